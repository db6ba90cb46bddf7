"""Rules about the file itself: damage, waste, names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.diagnose.case import Case, Rule
from inspector.diagnose.listing import plain
from inspector.model.agents import loader_of
from inspector.model.findings import Finding, Fix, finding
from inspector.model.obstacles import (
    ObstacleKind,
    find_obstacle,
    has_wrong_checksum,
    legacy_obstacle,
    lost_directory,
)
from inspector.model.tensors.views import torch_words
from inspector.model.totals import lost_nbytes, wasted_nbytes
from inspector.quoting import command, file_word
from inspector.target.call import load_call, short_message
from inspector.target.opening import OTHER_LOADER, opening_failure
from inspector.units import format_count, format_nbytes, unescaped_path

PART_OF_CHECKPOINT = "part-of-checkpoint"
_WASTE_NBYTES = 1 << 20
_MOST_NAMED = 4
_DISAGREEING = frozenset(
    {
        NoteKind.PART_LACKS,
        NoteKind.PART_HAS_OTHERS,
        NoteKind.PART_HAS_MORE,
        NoteKind.DOUBLE_TENSORS,
        NoteKind.INDEXED_TWICE,
        NoteKind.NO_STATE_DICT,
        NoteKind.EXTRA_PART,
        NoteKind.TOTAL_SIZE,
    }
)
_MODEL_ROLES = frozenset({"parameter", "buffer", "ema"})


def _truncated(case: Case) -> Iterator[Finding]:
    """Find tensors whose bytes are not in the file, or say that its end is all that it lost."""
    missing = {storage.key for storage in case.checkpoint.storages if storage.missing and storage.nbytes}
    kinds = {note.kind for note in case.checkpoint.notes}
    lost = {storage.key for storage in case.checkpoint.storages if missing and lost_nbytes(storage)}
    paths = [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in lost]
    obstacle = legacy_obstacle(case.checkpoint)
    is_cut = obstacle is not None and obstacle.kind is ObstacleKind.CUT_OFF
    if missing or is_cut or lost_directory(case.checkpoint):
        tensors = format_count(len(paths), "tensor")
        behind = "What stood behind its last complete value is lost. " if NoteKind.CUT_PICKLE in kinds else ""
        yield finding(
            "truncated",
            "error",
            f"Bytes of {tensors} are missing" if paths else "The end of the file is missing",
            f"{behind}The file is truncated or lost records, so {loader_of(case.checkpoint)} "
            "fails. Fetch or copy the file again; where that cannot be done, save what is intact to a new "
            "file (checkpoint-inspector recover).",
            paths,
            fix=Fix(recovers=True),
        )


def _invalid(case: Case) -> Iterator[Finding]:
    """Find tensors that cannot be what the pickle says, or whose description is longer than is read."""
    wrong = [tensor for tensor in case.checkpoint.tensors if tensor.problem is not None]
    wrong.sort(key=lambda tensor: not torch_words(tensor.problem or ""))
    if wrong:
        is_impossible = bool(torch_words(wrong[0].problem or ""))
        yield finding(
            "invalid-tensor",
            "error" if is_impossible else "warning",
            "Tensors with an impossible description" if is_impossible else "Tensors that are not described",
            f"For example {unescaped_path(wrong[0].path)}: {wrong[0].problem}.",
            [tensor.path for tensor in wrong],
        )


def _refused(case: Case) -> Iterator[Finding]:
    """Return why torch can load the file nowhere, where no other rule says it."""
    obstacle = find_obstacle(case.checkpoint)
    if obstacle is None or obstacle.kind.finding in {"truncated", "invalid-tensor"}:
        return
    title = f"{loader_of(case.checkpoint)} refuses this file"
    if obstacle.kind is ObstacleKind.NEWER_VERSION:
        title = "The file has a newer format than torch can read"
    if obstacle.kind is ObstacleKind.MISSING_FILE:
        title = "Files of this checkpoint are missing or cannot be read"
    message = obstacle.message if obstacle.message.endswith((".", "!", "?")) else f"{obstacle.message}."
    detail = f"On every machine it fails with: {message} {obstacle.kind.remedy}"
    yield finding(obstacle.kind.finding, "error", title, detail, [])


def _other_loader(case: Case) -> Iterator[Finding]:
    """Report what `torch.load` says to a file that another function loads."""
    form = format_of(case.checkpoint.format)
    if form.torch_loads or case.target is None:
        return
    failure = opening_failure(case.checkpoint, case.target, load_call(case.checkpoint, case.safety))
    if failure is not None and failure[0] == OTHER_LOADER:
        own = f"It is {form.what}: load it with {loader_of(case.checkpoint)}."
        detail = f"{own} torch.load stops with: {short_message(failure[1])}"
        yield finding(OTHER_LOADER, "note", "torch.load does not read this file", detail, [])


def _shards(case: Case) -> Iterator[Finding]:
    """Report where an index and the files that it names disagree."""
    found = [note.sentence for note in case.checkpoint.notes if note.kind in _DISAGREEING]
    if found:
        more = f" (and {len(found) - _MOST_NAMED:,} more)" if len(found) > _MOST_NAMED else ""
        yield finding(
            "shards-disagree",
            "warning",
            "The index and the files disagree",
            f"{' '.join(found[:_MOST_NAMED])}{more} They may be of different saves: fetch or save them "
            "together again.",
            [],
        )


def _part_of(case: Case) -> Iterator[Finding]:
    """Report that a file is one of several that make up a checkpoint."""
    for note in case.checkpoint.notes:
        if note.kind is NoteKind.PART_OF:
            whole = file_word(note.values[0])
            yield finding(
                PART_OF_CHECKPOINT,
                "note",
                "One of several files of a checkpoint",
                f"Open all of them as one: {command('show', whole)} (the other files lie beside it).",
                [],
            )


def _tied(case: Case) -> Iterator[Finding]:
    """Name tensors that are kept under another name."""
    tied = case.checkpoint.tied
    if tied:
        pairs = [f"{plain(name)} is {plain(kept)}" for name, kept in tied]
        yield finding(
            "tied-names",
            "note",
            f"{format_count(len(tied), 'tied name')} left out",
            f"save_model keeps a tensor of several names once: {', '.join(pairs[:_MOST_NAMED])}"
            f"{', ...' if len(pairs) > _MOST_NAMED else ''}. load_file returns only the names that are kept, "
            "so load_state_dict of the whole model misses the others: use "
            "safetensors.torch.load_model(model, path).",
            [kept for _, kept in tied],
        )


def _checksum(case: Case) -> Iterator[Finding]:
    """Report that the pickle is not what its checksum says; torch does not look at it."""
    if has_wrong_checksum(case.checkpoint):
        yield finding(
            "bad-crc",
            "warning",
            "A checksum in the file is wrong",
            "The file was damaged, or changed after it was saved. torch.load does not check it. Compare it "
            "with the original, or fetch it again.",
            [],
        )


def _oversized(case: Case) -> Iterator[Finding]:
    """Find storages of which most is viewed by no tensor."""
    wasteful = [
        storage
        for storage in case.checkpoint.storages
        if storage.tensors
        and storage.nbytes - storage.viewed_nbytes > max(_WASTE_NBYTES, storage.viewed_nbytes)
    ]
    keys = {storage.key for storage in wasteful}
    if keys:
        yield finding(
            "oversized-storage",
            "warning",
            f"{format_nbytes(wasted_nbytes(wasteful))} are stored that no tensor uses",
            "Small views of large tensors were saved: torch.save writes the whole storage. Save a clone() "
            "of each view.",
            [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in keys],
        )


def _shared(case: Case) -> Iterator[Finding]:
    """Name tensors that share their bytes."""
    shared = {storage.key for storage in case.checkpoint.storages if storage.tensors > 1}
    if shared:
        paths = [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in shared]
        yield finding(
            "shared-storage",
            "note",
            f"{format_count(len(paths), 'tensor')} share storage with others",
            "Tied weights, or views of one tensor. torch.load and a remapped copy keep the sharing; "
            "safetensors does not.",
            paths,
        )


def _prefixes(case: Case) -> Iterator[Finding]:
    """Name the wrappers whose prefix stands in parameters' names."""
    hinted = {
        tensor.path.rpartition("/")[0]
        for tensor in case.checkpoint.tensors
        if "module." in tensor.path or "_orig_mod." in tensor.path
    }
    names: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for tensor in case.checkpoint.tensors if hinted else ():
        if tensor.role in _MODEL_ROLES and tensor.part_of is None:
            # A path is hashed with a secret; keys could be integers that were made to collide.
            place, _, name = tensor.path.rpartition("/")
            if place in hinted:
                names[place].append((tensor.path, name))
    found = [[path for rows in names.values() for path in find(rows)] for *_, find in _WRAPPERS]
    both = "" if set(found[0]).isdisjoint(found[1]) else _BOTH
    for (id_, prefix, wrapper, _), paths in zip(_WRAPPERS, found, strict=True):
        if paths:
            yield finding(
                id_,
                "warning",
                f"Parameter names carry the prefix '{prefix}'",
                f"The model was saved inside {wrapper}. Loading it into the bare model fails with missing "
                f"and unexpected keys unless the prefix is removed.{both}",
                paths,
                fix=Fix(style="plain"),
            )


def _behind_module(names: list[tuple[str, str]]) -> list[str]:
    # torch.compile may have wrapped the wrapper; an averaged model counts its updates beside the wrapped one.
    wrapped = [path for path, name in names if _bare(name).startswith("module.")]
    others = sum(1 for _, name in names if name != "n_averaged")
    return wrapped if len(wrapped) == others else []


def _bare(name: str) -> str:
    """Return a name without the mark of torch.compile."""
    if "_orig_mod" not in name:
        return name
    return ".".join(step for step in name.split(".") if step != "_orig_mod")


def _behind_compile(names: list[tuple[str, str]]) -> list[str]:
    """Return the paths that torch.compile left its mark in; nothing else uses that name."""
    return [path for path, name in names if "_orig_mod." in name and "_orig_mod" in name.split(".")[:-1]]


_WRAPPERS = (
    ("prefix-module", "module.", "DataParallel or DistributedDataParallel", _behind_module),
    ("prefix-compiled", "_orig_mod.", "torch.compile", _behind_compile),
)
_BOTH = " Two wrappers are nested here, 'module.' and '_orig_mod.': both prefixes must be removed."


def _byteorder(case: Case) -> Iterator[Finding]:
    """Report that the bytes are in the other order."""
    if dict(case.checkpoint.versions).get("byteorder") == "big":
        yield finding(
            "byteorder",
            "note",
            "Saved on a big-endian machine",
            "torch swaps the bytes of typed storages on load.",
            [],
        )


FILE_RULES: tuple[Rule, ...] = (
    _refused,
    _other_loader,
    _part_of,
    _shards,
    _tied,
    _truncated,
    _invalid,
    _checksum,
    _oversized,
    _shared,
    _prefixes,
    _byteorder,
)
