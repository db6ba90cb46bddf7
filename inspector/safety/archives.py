"""The verdict on archives that another function than `torch.load` opens: they hold programs.

`torch.load(weights_only=True)` promises something of a pickle, and these have no such promise: at best they
count as running code. What their own loader runs is said for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from inspector.containers.notes import NoteKind
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import is_ambiguous
from inspector.safety.names import GlobalVerdict, judge_global, listed

_AMBIGUOUS = "Programs read different things from this file, and its loader may read others than this one."


class Archive(NamedTuple):
    """One kind of archive.

    Attributes:
        words: The verdict in a few words, where nothing worse is known.
        otherwise: What `torch.load` does with it, behind the name of that function.
        refusal: What it says with `weights_only=True`, for the answer about that.
        own: What the names begin with that its loader looks up in the archive, and not in Python.
    """

    loader: str
    words: str
    otherwise: str
    refusal: str
    own: tuple[str, ...]
    reasons: Callable[[Checkpoint], Iterator[str]]
    is_imported: bool
    maps: bool = True


def _script_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    yield (
        "torch.jit.load imports no Python and calls none, but the file is a program: its code runs when the "
        "model is called, with all that the operators of torch can do."
    )
    for note in checkpoint.notes:
        if note.kind is NoteKind.RUNS_AT_LOAD:
            yield f"Some of it, __setstate__ in {note.values[0]}, runs as soon as the file is loaded."
        elif note.kind is NoteKind.FILE_ACCESS:
            yield f"It reads or writes files: {note.values[0]}."


def _package_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    yield (
        "torch.package imports what its pickles name, from the package itself or from what is installed; no "
        "list restricts it."
    )
    for note in checkpoint.notes:
        if note.kind is NoteKind.PYTHON_INSIDE:
            yield f"The file holds Python, which runs as soon as it is imported: {note.values[0]}."


def _export_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    yield (
        "torch.export.load unpickles what stands beside the graph, sample inputs among it: where "
        "weights_only=True refuses that, it goes on with weights_only=False."
    )
    for note in checkpoint.notes:
        if note.kind is NoteKind.MACHINE_CODE:
            yield f"The file holds machine code, which runs as soon as it is loaded: {note.values[0]}."


ARCHIVES: dict[str, Archive] = {
    "torchscript": Archive(
        loader="torch.jit.load",
        words="a TorchScript program, which runs code of the file and no Python",
        otherwise="does so only with weights_only=False",
        refusal="It refuses every TorchScript file, and hands it to torch.jit.load with weights_only=False.",
        own=("__torch__.", "torch.jit._pickle."),
        reasons=_script_reasons,
        is_imported=False,
    ),
    "pt2": Archive(
        loader="torch.export.load",
        words="an exported program, whose loader unpickles whatever stands beside its graph",
        otherwise="does not read it",
        refusal="It finds no data.pkl in it: an exported program is read by torch.export.load alone.",
        own=(),
        reasons=_export_reasons,
        is_imported=True,
        maps=False,
    ),
    "package": Archive(
        loader="torch.package.PackageImporter",
        words="a package, whose loader imports whatever its pickles name",
        otherwise="does not read it",
        refusal="It finds no data.pkl in it: a package is read by torch.package alone.",
        own=(),
        reasons=_package_reasons,
        is_imported=True,
    ),
}
"""By the name of the format."""


class ArchiveVerdict(NamedTuple):
    """What is known of one archive.

    Attributes:
        danger: What in it is made to do harm, in a few words; empty where nothing is known to be.
    """

    archive: Archive
    danger: str
    globals: tuple[GlobalVerdict, ...]
    reasons: tuple[str, ...]


def judge_archive(checkpoint: Checkpoint) -> ArchiveVerdict | None:
    """Judge an archive; None for what `torch.load` opens."""
    archive = ARCHIVES.get(checkpoint.format)
    if archive is None:
        return None
    verdicts: list[GlobalVerdict] = [
        "unknown" if use.name.startswith(archive.own) else judge_global(use.name)
        for use in checkpoint.globals
    ]
    dangerous = [
        use.name for use, verdict in zip(checkpoint.globals, verdicts, strict=True) if verdict == "dangerous"
    ]
    reasons = [_naming(dangerous, archive)] if dangerous else []
    reasons += archive.reasons(checkpoint)
    if is_ambiguous(checkpoint) or checkpoint.needs.oddities:
        reasons.append(_AMBIGUOUS)
    danger = _danger(archive, checkpoint, is_named=bool(dangerous))
    return ArchiveVerdict(archive, danger, tuple(verdicts), tuple(reasons))


def _naming(dangerous: list[str], archive: Archive) -> str:
    named = f"{listed(dangerous)}, which can run anything"
    if archive.is_imported:
        return f"Loading it imports {named}."
    return f"A pickle in it names {named}: {archive.loader} looks no name up in Python, other readers do."


def _danger(archive: Archive, checkpoint: Checkpoint, *, is_named: bool) -> str:
    if is_named and archive.is_imported:
        return "loading it can run commands"
    kinds = {note.kind for note in checkpoint.notes}
    if kinds >= {NoteKind.RUNS_AT_LOAD, NoteKind.FILE_ACCESS}:
        return "loading it can read and write files"
    return "a pickle in it is made to run commands" if is_named else ""
