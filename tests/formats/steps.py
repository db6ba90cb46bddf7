"""What the program does with a sample of a format, step by step; each step is run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.corpus import CORPUS
from tests.formats.rows import YES, Row

Document = dict[str, Any]
Run = Callable[..., Any]
_TO = "*=cuda:1"
_SHOWN: dict[Path, Document] = {}


class Step(NamedTuple):
    """A column of the table.

    Attributes:
        title: Its head.
        asks: What it means that the cell says yes.
        cell: What stands in the cell of a row.
        wrong: Runs the step in an empty folder, and yields what is not as the row says.
    """

    title: str
    asks: str
    cell: Callable[[Row], str]
    wrong: Callable[[Row, Run, Path], Iterator[str]]


def document_of(cli: Run, path: Path) -> Document:
    """Return what `show --json` says of a file; that of the corpus is asked once."""
    if path in _SHOWN:
        return _SHOWN[path]
    found: Document = json.loads(cli("show", "--json", path).out)
    if CORPUS in path.parents:
        _SHOWN[path] = found
    return found


# --- reading ------------------------------------------------------------------------------------------------


def _opens(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    document = document_of(cli, row.file(folder))
    if document.get("format") != row.name:
        yield f"it is called {document.get('format')!r}: {document.get('error')}"


def _lists(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    document = document_of(cli, row.file(folder))
    tensors = document["tensors"]
    if len(tensors) != row.tensors:
        yield f"{len(tensors)} tensors are listed, not {row.tensors}"
    if len({json.dumps(tensor["keys"]) for tensor in tensors}) != len(tensors):
        yield "two tensors have the same keys"
    keys = {storage["key"] for storage in document["storages"]}
    if not {tensor["storage"] for tensor in tensors} <= {*keys, None}:
        yield "a tensor is in a storage that is not listed"


def _devices(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    found = tuple(sorted({tensor["device"] for tensor in document_of(cli, row.file(folder))["tensors"]}))
    if found != row.devices:
        yield f"the devices are {found}, not {row.devices}"


def _roles(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    found = tuple(sorted({tensor["role"] for tensor in document_of(cli, row.file(folder))["tensors"]}))
    if found != row.roles:
        yield f"the roles are {found}, not {row.roles}"


def _slots(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    slots = [tensor for tensor in document_of(cli, row.file(folder))["tensors"] if tensor["slot"]]
    found = sum(slot["parameter"] is not None for slot in slots), len(slots)
    if found != row.slots:
        yield f"{found} slots are named, not {row.slots}"


# --- judging ------------------------------------------------------------------------------------------------


def _check(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    answer = cli("check", row.file(folder), "--target", "cpu", "--json")
    document = json.loads(answer.out)
    if answer.code != (0 if document["loads"] and document["safe"] else 1):
        yield f"the exit code is {answer.code}"
    if row.check not in json.dumps(document, ensure_ascii=False):
        yield f"it says nothing of {row.check!r}: {[one['id'] for one in document['findings']]}"


def _snippet(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    answer = cli("snippet", row.file(folder))
    if answer.code or row.code not in answer.out:
        yield f"exit code {answer.code}, and no {row.code!r}: {answer.out or answer.err}"
    else:
        compile(answer.out, "the snippet", "exec")


# --- writing ------------------------------------------------------------------------------------------------


def _is_as_told(words: str, answer: Any, out: Path) -> Iterator[str]:
    """Compare an answer with the row; a step that works writes, and one that does not writes nothing."""
    if words == YES:
        if answer.code or not out.exists():
            yield f"exit code {answer.code}: {answer.err or answer.out}"
    elif answer.code not in {2, 4}:
        yield f"exit code {answer.code}, and the row says {words!r}: {answer.out}{answer.err}"
    elif words not in answer.err:
        yield f"the sentence has no {words!r}: {answer.err}"
    elif out.exists():
        yield "something is left of the file that could not be written"


def _out(row: Row, folder: Path, ending: str = "") -> Path:
    """Return where a step writes; a name of another program's files would be refused before all else."""
    suffix = row.file(folder).suffix
    return folder / f"out{ending or ('' if suffix in _OF_OTHERS else suffix)}"


_OF_OTHERS = {".npy", ".npz", ".gguf"}


def _remap(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    out = _out(row, folder)
    yield from _is_as_told(row.remap, cli("remap", row.file(folder), "-o", out, "--map", _TO), out)
    if row.remap == YES and out.exists():
        after = {tensor["device"] for tensor in document_of(cli, out)["tensors"] if tensor["role"] in _MOVED}
        if after - {"none"} != {"cuda:1"}:  # arrays have no device
            yield f"the devices of the copy are {sorted(after)}"


_MOVED = {"parameter", "buffer"}


def _in_place(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    sample, copy = row.file(folder), folder / "copy" / row.file(folder).name
    (shutil.copytree if sample.is_dir() else _copy)(sample, copy)
    before = _contents(copy)
    answer = cli("remap", copy, "--in-place", "--map", _TO)
    yield from _is_as_told(row.in_place, answer, copy if row.in_place == YES else folder / "nothing")
    changed = _contents(copy) != before
    if changed != (row.in_place == YES):
        yield "it was changed" if changed else "nothing was changed"
    if row.in_place == YES:
        cli("remap", copy, "--undo")
        if _contents(copy) != before:
            yield "undo does not bring the file back"


def _copy(sample: Path, copy: Path) -> None:
    copy.parent.mkdir()
    shutil.copyfile(sample, copy)


def _contents(path: Path) -> dict[str, bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file): file.read_bytes() for file in files if file.is_file() and file.suffix != ".undo"}


def _state_dict(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    out = _out(row, folder, ".pt")
    answer = cli("export", row.file(folder), "-o", out, "--format", "state-dict")
    yield from _is_as_told(row.state_dict, answer, out)
    yield from _has_weights(row, row.state_dict, cli, out)


def _safetensors(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    out = _out(row, folder, ".safetensors")
    # A file of this format under the same name is a copy, and other tests look at those.
    answer = cli("export", row.file(folder), "-o", out, "--format", "safetensors")
    yield from _is_as_told(row.safetensors, answer, out)


def _has_weights(row: Row, words: str, cli: Run, out: Path) -> Iterator[str]:
    if words == YES and out.exists():
        document = document_of(cli, out)
        wanted = row.tensors if row.weights is None else row.weights
        if len(document["tensors"]) != wanted or document["format"] not in {"zip", "legacy"}:
            yield f"the copy holds {len(document['tensors'])} tensors as {document['format']}, not {wanted}"
        if not document["safety"]["weights_only"]:
            yield "the copy is not loaded by weights_only=True"


# --- comparing and saving -----------------------------------------------------------------------------------


def _verify(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    """Compare a copy with what it was made from, and then with a byte of a tensor changed."""
    out = _out(row, folder)
    if row.remap == YES:
        cli("remap", row.file(folder), "-o", out, "--map", _TO)
        answer = cli("verify", out, "--against", row.file(folder), "--map", _TO)
    else:
        shutil.copytree(row.file(folder), out) if row.file(folder).is_dir() else shutil.copyfile(
            row.file(folder), out
        )
        answer = cli("verify", out, "--against", row.file(folder))
    if row.verify != YES:
        if answer.code == 0 or row.verify not in answer.err + answer.out:
            yield f"exit code {answer.code}, without {row.verify!r}: {answer.out}{answer.err}"
        return
    if answer.code:
        yield f"exit code {answer.code}: {answer.out}{answer.err}"
    _spoil(cli, out)
    spoiled = cli("verify", out, "--against", row.file(folder), *(("--map", _TO) if row.remap == YES else ()))
    if spoiled.code != 1:
        yield f"a changed byte goes unnoticed: exit code {spoiled.code}: {spoiled.out}{spoiled.err}"


def _spoil(cli: Run, path: Path) -> None:
    """Change a byte of the first storage whose place in a file is known."""
    document = document_of(cli, path)
    storage = next(one for one in document["storages"] if one["nbytes"] and one["file_offset"] is not None)
    parts = document.get("parts") or [{"path": str(path)}]
    file = Path(parts[storage.get("part") or 0]["path"])
    data = bytearray((file if file.is_absolute() else path / file).read_bytes())
    data[storage["file_offset"]] ^= 1
    (file if file.is_absolute() else path / file).write_bytes(data)


def _recover(row: Row, cli: Run, folder: Path) -> Iterator[str]:
    sample, out = row.file(folder), _out(row, folder)
    cut = folder / f"cut{sample.suffix}"
    if sample.is_dir():
        shutil.copytree(sample, cut)
        largest = max(
            (file for file in cut.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
        )
        _shorten(largest, row.cut)
    else:
        shutil.copyfile(sample, cut)
        _shorten(cut, row.cut)
    yield from _is_as_told(row.recover, cli("recover", cut, "-o", out), out)
    if row.recover == YES and out.exists() and not 0 < len(document_of(cli, out)["tensors"]) <= row.tensors:
        yield "nothing was saved"


def _shorten(file: Path, share: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


# --- the columns --------------------------------------------------------------------------------------------


def _yes(_row: Row) -> str:
    return YES


STEPS: dict[str, Step] = {
    "opens": Step("opens", "`show` names the format.", _yes, _opens),
    "lists": Step(
        "lists", "All tensors are listed, under keys of their own.", lambda row: str(row.tensors), _lists
    ),
    "devices": Step(
        "devices", "The device that each was saved on.", lambda row: ", ".join(row.devices), _devices
    ),
    "roles": Step("roles", "What each is for.", lambda row: ", ".join(row.roles), _roles),
    "slots": Step(
        "slot names",
        "Optimizer slots with the name of their parameter, of how many.",
        lambda row: f"{row.slots[0]} of {row.slots[1]}" if row.slots[1] else "no slots",
        _slots,
    ),
    "check": Step("check", "`check --target cpu` judges it.", lambda row: row.check or YES, _check),
    "snippet": Step("snippet", "The call that loads it.", lambda row: f"`{row.code}`", _snippet),
    "remap": Step("remap", "A copy with other devices.", lambda row: row.remap, _remap),
    "in-place": Step(
        "in place", "The same in the file itself, and undone.", lambda row: row.in_place, _in_place
    ),
    "state-dict": Step(
        "to a state dict", "A file of `torch.save` with its weights.", lambda row: row.state_dict, _state_dict
    ),
    "safetensors": Step(
        "to safetensors", "Its weights as a safetensors file.", lambda row: row.safetensors, _safetensors
    ),
    "verify": Step(
        "values", "`verify` compares every byte of its tensors with a copy.", lambda row: row.verify, _verify
    ),
    "recover": Step("recover", "What is whole in a file that was cut.", lambda row: row.recover, _recover),
}
