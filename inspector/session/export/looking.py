"""What stands at the place where an export is to go, and whether it can be written there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inspector.errors import ExportError, PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.remap.files import refuse_parts
from inspector.remap.forms import refuse_suffix
from inspector.remap.storages import free_nbytes
from inspector.session.export.kinds import COPY, form_of, kind_of
from inspector.session.export.page import Destination, ExportDraft
from inspector.units import cut_text, escape_text, format_nbytes

_MOST_NAME, _MOST_PATH = 60, 300
_ITSELF = "This is the file itself, which stays as it is. Choose another name."
_PART = "This file is a part of the checkpoint itself. Choose another name."
_WITHIN = "This is in the folder that is copied. Choose another place."
_NO_NAME = "This is not the name of a file."
_EMPTY = "Enter a path for the copy."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be written.

    Attributes:
        parts: The files that are read, where there are several.
        folder: The folder that is copied as a whole; None where one file is written.
        nbytes: How large the copy will be, as far as that is known; else 0.
        can_share: Whether the copy may share the blocks of the original, and take less.
    """

    source: str
    parts: tuple[str, ...] = ()
    folder: str | None = None
    nbytes: int = 0
    can_share: bool = False
    says_safetensors: bool = False


def wanted_by(checkpoint: Checkpoint, draft: ExportDraft) -> Wanted:
    """Return what a draft is about to write."""
    kind, form = kind_of(draft.wish), form_of(draft.wish)
    copies = kind.id == COPY and form is None
    folder = None
    if draft.makes_folder:
        given = Path(checkpoint.path)
        folder = str(given if given.is_dir() else given.parent)
    return Wanted(
        source=checkpoint.path,
        parts=tuple(part.path for part in checkpoint.parts),
        folder=folder,
        nbytes=draft.nbytes,
        can_share=copies,
        says_safetensors=form is not None and form.shape == "safetensors",
    )


def absolute(path: str, source: str) -> str:
    """Return a path that was typed: it is seen from the folder of the file, for the process has its own."""
    folder = os.path.dirname(os.path.abspath(source))  # noqa: PTH100, PTH120 - links and dots stay
    return os.path.join(folder, os.path.expanduser(path))  # noqa: PTH111, PTH118 - the same


def look_at(path: str, wanted: Wanted) -> Destination:
    """Return what stands at a path, and why nothing can be written there."""
    if not path.strip():
        return Destination(path=path, found="bad", note=_EMPTY)
    if "\0" in path:
        return Destination(path=path, found="bad", note=_NO_NAME)
    meant = absolute(path, wanted.source)
    try:
        found = _at_folder(meant, wanted) if wanted.folder is not None else _at_file(meant, wanted)
    except (OSError, ValueError):
        return Destination(path=path, found="bad", note=_NO_NAME)
    if meant == path:
        return found
    note = f"This is {escape_text(cut_text(meant, _MOST_PATH))}. {found.note}".rstrip()
    return replace(found, path=path, note=note)


def _at_file(path: str, wanted: Wanted) -> Destination:
    place = Path(path)
    why = _why_not_over(place, wanted) or _why_not_in(place.parent)
    why = why or _contradiction(place, wanted) or _too_little(place.parent, wanted)
    if why:
        return Destination(path=path, found="bad", note=why)
    tight = _maybe_too_little(place.parent, wanted)
    if os.path.lexists(path):
        return Destination(path=path, found="file", note=f"{_taken(place)} {tight}".strip())
    return Destination(path=path, found="free", note=tight)


def _why_not_over(place: Path, wanted: Wanted) -> str:
    """Return why what stands there must stay, or nothing."""
    if _is_any(place, (wanted.source,)):
        return _ITSELF
    if _is_part(place, wanted.parts):
        return _PART
    if place.is_dir():
        return "This is a folder. Add a file name."
    is_strange = place.exists() and not place.is_file()
    return "This is not a regular file. Choose another name." if is_strange else ""


def _at_folder(path: str, wanted: Wanted) -> Destination:
    place, root = Path(path), Path(wanted.folder or "").resolve()
    if os.path.lexists(path):
        note = f"{_name(place)} exists already. Choose a name for a new folder."
        return Destination(path=path, found="bad", note=note)
    if why := _why_not_in(place.parent):
        return Destination(path=path, found="bad", note=why)
    above = place.parent.resolve()
    if root in (above, *above.parents):
        return Destination(path=path, found="bad", note=_WITHIN)
    return Destination(path=path, found="free", note=_maybe_too_little(place.parent, wanted))


def _is_any(place: Path, paths: Iterable[str]) -> bool:
    """Return whether a path leads to one of these files, by whatever name or link."""
    if not place.exists():
        return False
    return any(os.path.lexists(path) and Path(path).exists() and place.samefile(path) for path in paths)


def _is_part(place: Path, parts: tuple[str, ...]) -> bool:
    """Return whether a file is one of the parts, or lists them, as an index does."""
    try:
        refuse_parts(parts, place)
    except ExportError:
        return True
    return False


def _taken(place: Path) -> str:
    if not place.exists():
        return f"{_name(place)} is a link that leads nowhere."
    return f"{_name(place)} exists already ({format_nbytes(place.stat().st_size)})."


def _why_not_in(folder: Path) -> str:
    if not folder.is_dir():
        gone = folder
        while not gone.parent.exists():
            gone = gone.parent
        return (
            f"There is no folder {_name(gone)}." if not gone.exists() else f"{_name(gone)} is not a folder."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"You may not write to the folder {_name(folder)}."
    return ""


def _contradiction(place: Path, wanted: Wanted) -> str:
    try:
        refuse_suffix(place, "safetensors" if wanted.says_safetensors else "same")
    except PlanError as error:
        return f"{error.what[:1].upper()}{error.what[1:]}."
    return ""


def _too_little(folder: Path, wanted: Wanted) -> str:
    return "" if wanted.can_share else _shortage(folder, wanted.nbytes)


def _maybe_too_little(folder: Path, wanted: Wanted) -> str:
    short = _shortage(folder, wanted.nbytes) if wanted.can_share else ""
    return f"{short} It fits only where the file system shares the blocks of both." if short else ""


def _shortage(folder: Path, nbytes: int) -> str:
    free = free_nbytes(folder)
    if free >= nbytes:
        return ""
    return f"The disk has room for {format_nbytes(free)}, and the copy takes {format_nbytes(nbytes)}."


def _name(place: Path) -> str:
    return escape_text(cut_text(place.name or str(place), _MOST_NAME))
