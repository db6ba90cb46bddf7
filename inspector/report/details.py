"""Facts about one tensor, and about the file, as titled lists of plain text."""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Callable, Iterable
from keyword import iskeyword

from inspector.containers.formats import format_of
from inspector.containers.notes import sentences
from inspector.model.checkpoint import Checkpoint, Naming, OddKey, Optimizer, Piece, Storage, Tensor, ValueRow
from inspector.model.roles.hidden import devices_outside
from inspector.model.totals import wasted_nbytes
from inspector.records import dataclass
from inspector.report.colors import device_name
from inspector.report.damage import WORDS, Damage, damage_of
from inspector.report.words.formats import format_label, shown_place
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import verdict_words
from inspector.units import (
    escape_text,
    format_count,
    format_nbytes,
    format_shape,
    short_value,
    shown_path,
    unescaped_path,
)

_MOST_LISTED = 40
_MOST_PIECES = 64
_COUNTABLE = 10**24
_NO_EXPRESSION = "none: a key on the way is an object, neither text nor a number"
ROLE_WORDS = {
    "parameter": "parameter",
    "buffer": "buffer",
    "optimizer": "optimizer state",
    "scheduler": "scheduler state",
    "rng": "RNG state",
    "ema": "averaged weights (EMA)",
    "other": "other data",
}
_SURENESS: dict[Naming, str] = {
    "names": "Certain",
    "order": "Nearly certain",
    "shape": "Very likely",
    "recipe": "By a known recipe",
    "partial": "Very likely where there is a name",
    "unknown": "Unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactGroup:
    """A titled list of (label, value) facts, all plain text."""

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Indexes for showing one tensor after the other; built once for each file.

    Attributes:
        viewers: The indexes of the tensors that view a storage, by its key, where they are several.
        after: What becomes of a tensor after the load, by its index.
    """

    storages: dict[str, Storage]
    viewers: dict[str, list[int]]
    optimizers: dict[str, Optimizer]
    after: Callable[[int], str]


def look_up(checkpoint: Checkpoint) -> Lookup:
    """Prepare for `tensor_facts`."""
    from inspector.report.words.verdicts import AfterWords  # noqa: PLC0415 - only when a tensor is looked at

    viewers: dict[str, list[int]] = defaultdict(list)
    several = {storage.key for storage in checkpoint.storages if storage.tensors > 1}
    for index, tensor in enumerate(checkpoint.tensors if several else ()):
        if tensor.storage in several:
            viewers[tensor.storage].append(index)
    return Lookup(
        storages={storage.key: storage for storage in checkpoint.storages},
        viewers=viewers,
        optimizers={optimizer.path: optimizer for optimizer in checkpoint.optimizers},
        after=AfterWords(checkpoint).of,
    )


def tensor_facts(checkpoint: Checkpoint, index: int, lookup: Lookup) -> tuple[FactGroup, ...]:
    """Return all that is known about a tensor without reading its data."""
    tensor = checkpoint.tensors[index]
    groups = [
        _group("Tensor", _about(tensor, lookup, lookup.after(index), damage_of(checkpoint).get(index))),
        _group("Layout", _layout(tensor)),
    ]
    storage = None if tensor.storage is None else lookup.storages.get(tensor.storage)
    if storage is not None:
        groups.append(_group("Storage", _storage(storage)))
        others = [other for other in lookup.viewers.get(storage.key, ()) if other != index]
        if others:
            paths = [("", unescaped_path(checkpoint.tensors[other].path)) for other in others[:_MOST_LISTED]]
            groups.append(_group(f"Shares its bytes with {format_count(len(others), 'tensor')}", paths))
    return tuple(groups)


def value_facts(value: ValueRow) -> tuple[FactGroup, ...]:
    """Return what is known about a value that is no tensor."""
    short = short_value(value.type, value.text)
    exact = [("Exactly", value.text)] if short != value.text else []
    rows = [("Path", unescaped_path(shown_place(value))), ("Type", value.type), ("Value", short), *exact]
    return (_group("Value", rows),)


def file_facts(checkpoint: Checkpoint, safety: SafetyVerdict, parameters: str = "") -> tuple[FactGroup, ...]:
    """Return what is known about the file; `parameters` is how many there are, as text."""
    optimizers = [(shown_path(row.path) or "(root)", naming_text(row)) for row in checkpoint.optimizers]
    names = [
        (use.name, f"{verdict}, {use.count:,} \u00d7")
        for use, verdict in zip(checkpoint.globals, safety.globals, strict=True)
    ]
    groups = (
        _group("File", _about_file(checkpoint, parameters)),
        _group(f"Safety, by the rules of torch {safety.torch_version}", _about_safety(safety)),
        _group("What weights_only=False calls", _calls(safety)),
        _group("Globals that loading imports", names[:_MOST_LISTED]),
        _group("Devices outside of tensors", hidden_texts(checkpoint)),
        _group("Versions in the file", checkpoint.versions),
        _group("Optimizers", optimizers),
        _group("Notes", [("", note) for note in sentences(checkpoint.notes)]),
    )
    return tuple(group for group in groups if group.facts)


def naming_text(optimizer: Optimizer) -> str:
    """Return how certain the names of an optimizer's parameters are, and why."""
    if not optimizer.by_place:
        return f"{_SURENESS[optimizer.naming]}. {optimizer.detail}"
    sure = "In the usual order" if optimizer.naming == "order" else _SURENESS[optimizer.naming]
    return f"{sure}. {optimizer.detail} Where shapes are equal, only the order tells them apart."


def hidden_texts(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """Return the devices outside of tensors, each with the number of its places, or the only one."""
    found: dict[str, list[str]] = {}
    for row in devices_outside(checkpoint):
        found.setdefault(f"{row.what} {row.device}", []).append(row.path)
    return [
        (text, paths[0] or "(root)" if len(paths) == 1 else format_count(len(paths), "place"))
        for text, paths in list(found.items())[:_MOST_LISTED]
    ]


def written_by(checkpoint: Checkpoint) -> str:
    """Return which torch wrote the file, as far as its container shows."""
    versions = dict(checkpoint.versions)
    era = format_of(checkpoint.format).era
    if era:
        return era
    if not format_of(checkpoint.format).torch_loads:
        return "torch 2.1 or later" if "byteorder" in versions else ""
    if ".format_version" in versions:
        return "torch 2.7 or later"
    if "byteorder" in versions:
        return "torch 2.1 to 2.6"
    return {"3": "torch 1.6 to 2.0", "2": "torch 1.5", "1": "torch 1.4"}.get(versions.get("version", ""), "")


def _about_safety(safety: SafetyVerdict) -> list[tuple[str, str]]:
    verdict = [("Verdict", verdict_words(safety)), *(("", reason) for reason in safety.reasons)]
    return [*verdict, ("weights_only=True", safety.answer.sentence)]


def _calls(safety: SafetyVerdict) -> list[tuple[str, str]]:
    """Return the calls, worst first: what is called, with which arguments, and what that does."""
    rows = []
    for row in safety.calls[:_MOST_LISTED]:
        where = "" if row.path is None else f" [{row.path or 'the whole object'}]"
        rows.append((row.name or "(the result of a call)", f"{row.text} \u2013 {row.words}{where}"))
    left = safety.calls_made - len(rows)
    if rows and left > 0:
        rows.append(("", f"and {left:,} more calls"))
    return rows


def _about_file(checkpoint: Checkpoint, parameters: str) -> list[tuple[str, str]]:
    written = written_by(checkpoint)
    rows = [
        ("Path", checkpoint.path),
        ("Size", size_text(checkpoint.file_nbytes)),
        ("Container", f"{format_label(checkpoint)}, {written}" if written else format_label(checkpoint)),
        ("Tensors", f"{len(checkpoint.tensors):,} in {format_count(len(checkpoint.storages), 'storage')}"),
        *([("Parameters", parameters)] if parameters else ()),
        ("Stored but unused", format_nbytes(wasted_nbytes(checkpoint.storages))),
    ]
    if checkpoint.module_class:
        rows.append(("Whole module", checkpoint.module_class))
    return rows


def _about(tensor: Tensor, lookup: Lookup, after: str, damage: Damage | None) -> list[tuple[str, str]]:
    rows = [
        ("Path", unescaped_path(shown_place(tensor))),
        ("Shape", format_shape(tensor.shape)),
        ("Dtype", tensor.dtype),
        ("Size" if tensor.layout == "strided" else "Dense size", size_text(tensor.nbytes)),
        ("Device", device_name(tensor.device)),
        ("After loading", after),
        ("Role", ROLE_WORDS[tensor.role]),
    ]
    if tensor.slot is not None:
        optimizer = _optimizer_around(tensor, lookup)
        rows += [("Slot", tensor.slot), ("Parameter", tensor.parameter or "unknown")]
        rows += [] if optimizer is None else [("Certainty", naming_text(optimizer))]
    if tensor.on_cpu_by_design and tensor.device == "cpu":
        rows.append(("On the CPU", "by design: torch keeps this state there"))
    if damage is not None:
        rows.append(("Damage", WORDS[damage]))
    if tensor.problem is not None:
        rows.append(("Problem", tensor.problem))
    return [*rows, ("Python", python_expression(tensor) or _NO_EXPRESSION)]


def _optimizer_around(tensor: Tensor, lookup: Lookup) -> Optimizer | None:
    path = tensor.path
    while path:
        path = path.rpartition("/")[0]
        if path in lookup.optimizers:
            return lookup.optimizers[path]
    return None


def _layout(tensor: Tensor) -> list[tuple[str, str]]:
    rows = [("Layout", tensor.layout)]
    if tensor.stride is not None:
        rows.append(("Stride", f"({', '.join(str(step) for step in tensor.stride)})"))
    if tensor.storage_offset is not None:
        rows.append(("Offset", format_count(tensor.storage_offset, "element")))
    rows.append(("Requires grad", "yes" if tensor.requires_grad else "no"))
    return rows


def _storage(storage: Storage) -> list[tuple[str, str]]:
    place = "missing from the file" if storage.missing else "compressed"
    if storage.pieces:
        place = f"put together from {format_count(len(storage.pieces), 'piece')}"
    return [
        ("Key", storage.key),
        ("Location tag", device_name(storage.device)),
        *_stored(storage),
        ("At byte", f"{storage.file_offset:,}" if storage.file_offset is not None else place),
        *([("File", storage.part)] if storage.part and not storage.pieces else ()),
        *_piece_rows(storage.pieces),
        ("Unused", format_nbytes(max(storage.nbytes - storage.viewed_nbytes, 0))),
    ]


def _stored(storage: Storage) -> list[tuple[str, str]]:
    """Return how much the file stores, and how much the pickle declares where that is something else."""
    declared = storage.nbytes if storage.missing else storage.expected_nbytes
    rows = [("Stored", "nothing" if storage.missing else size_text(storage.nbytes))]
    return rows if declared is None else [*rows, ("Declared", size_text(declared))]


def _piece_rows(pieces: tuple[Piece, ...]) -> list[tuple[str, str]]:
    """Return a row for each of the first pieces: its file, and which elements of the tensor it has."""
    rows = []
    for number, piece in enumerate(pieces[:_MOST_PIECES]):
        spans = ", ".join(f"{at}:{at + size}" for at, size in zip(piece.starts, piece.sizes, strict=False))
        file = os.path.basename(piece.part) or "a missing file"  # noqa: PTH119 - a text
        rows.append((f"Piece {number + 1}", f"[{spans}] in {file}"))
    if len(pieces) > _MOST_PIECES:
        rows.append(("More", format_count(len(pieces) - _MOST_PIECES, "piece")))
    return rows


def python_expression(tensor: Tensor) -> str:
    """Return the Python expression that reaches a tensor in the loaded checkpoint, in ASCII.

    It is empty where a key on the way is an object: only its short text is known.
    """
    if any(isinstance(key, OddKey) for key in tensor.keys):
        return ""
    expression = "checkpoint"
    for key in tensor.keys:
        if not isinstance(key, str) or not key.startswith(".") or len(key) == 1:
            expression += f"[{key!a}]"
        elif key.isascii() and key[1:].isidentifier() and not iskeyword(key[1:]):
            expression += key
        else:
            expression = f"getattr({expression}, {key[1:]!a})"
    return expression


def size_text(nbytes: int) -> str:
    """Return a size, with the exact count of bytes where the short text leaves some out."""
    text = format_nbytes(nbytes)
    return f"{text} ({nbytes:,} bytes)" if 1000 <= nbytes < _COUNTABLE else text


def _group(title: str, facts: Iterable[tuple[str, str]]) -> FactGroup:
    return FactGroup(title=title, facts=tuple((escape_text(name), escape_text(text)) for name, text in facts))
