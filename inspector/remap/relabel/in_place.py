"""A file's devices changed in the file itself: some kilobytes are written, whatever its size.

An undo record goes first (see `inspector.remap.relabel.undo`), so that `undo_patch` gives the file back bit
for bit, also after a crash half-way. The file keeps its name, owner, permissions and links.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from inspector.containers.container import Container
from inspector.containers.copying import write_bytes, write_over
from inspector.containers.opening import read_container
from inspector.containers.packed import looked_through
from inspector.containers.source import FileSource
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import collector_paused
from inspector.progress import Progress
from inspector.quoting import command, file_word
from inspector.records import dataclass
from inspector.remap.compare.planned import check_copy
from inspector.remap.files.naming import patched_path, record_path
from inspector.remap.files.outfile import explained, settle, sync_folder, writing
from inspector.remap.plan import Plan, with_viewed
from inspector.remap.relabel.formats import COPY, pieces_of
from inspector.remap.relabel.patches import Patch
from inspector.remap.relabel.undo import (
    UndoRecord,
    format_undo,
    make_record,
    read_undo,
    refuse_stranger,
    restore,
)
from inspector.remap.relabel.undo_check import refuse_foreign

_FILE = "the file cannot be changed"
_RECORD = "the undo record cannot be written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A file that was changed.

    Attributes:
        path: The file.
        record: Its undo record; None where nothing had to change.
        nbytes: Its size now.
        written_nbytes: How many bytes were written over or appended.
        appended: Whether the file grew: its new pickle stands at the end.
        moved_tensors: How many tensors have another device now.
        moved_hidden: How many devices outside of tensors are others now.
        kept_tensors: How many stayed on the CPU by design.
        verified: Whether the file was opened again and compared.
    """

    path: Path
    record: Path | None
    nbytes: int
    written_nbytes: int
    appended: bool
    moved_tensors: int
    moved_hidden: int = 0
    kept_tensors: int
    verified: bool


def patch_in_place(
    path: str, plan: Plan, *, force: bool = False, verify: bool = True, progress: Progress | None = None
) -> Patched:
    """Change the devices in a file as a plan says that was made from it.

    Args:
        path: The file; of a link, what it points to.
        plan: What changes.
        force: Change it even if it is write-protected or has other names (hard links), which change with it.
        verify: Open it again and compare; if it is not as planned it is restored.
        progress: Told of the stages, asked for cancellation.
    """
    progress = progress or Progress()
    record_at = record_path(Path(path))
    _refuse_patched(path, record_at)
    with _opened(path, force=force) as (fd, file), looked_through(file) as source:
        status = os.fstat(fd)
        with collector_paused():
            container = read_container(source, DEFAULT_LIMITS, progress)
            plan = with_viewed(plan, container.storage_ids.values())
            pieces = pieces_of(container, source, plan, progress)
        if pieces:
            record = make_record(source, pieces, plan, status.st_mtime_ns)
            source.refuse_changed("read")
            _write_record(record, record_at, status)
            with _restored_on_failure(fd, record, record_at), explained(Path(path), _FILE):
                _write(fd, pieces)
                if verify:
                    progress.start("checking the file")
                    _read_again(fd, path, pieces)
                    _verify(container, path, plan, progress)
        return Patched(
            path=Path(path),
            record=record_at if pieces else None,
            nbytes=os.fstat(fd).st_size,
            written_nbytes=sum(len(piece.data) for piece in pieces),
            appended=any(piece.offset >= status.st_size for piece in pieces),
            moved_tensors=len(plan.tensors) if pieces else 0,
            moved_hidden=len(plan.hidden) if pieces else 0,
            kept_tensors=len(plan.kept),
            verified=verify and bool(pieces),
        )


def undo_patch(path: str, *, force: bool = False, progress: Progress | None = None) -> int:
    """Restore a file that was patched, bit for bit, and remove its undo record; return its size.

    Args:
        path: The file; of a link, what it points to.
        force: Restore it even if it is write-protected or has other names, and whatever the record makes of
            it: records come with files, and are believed only as far as they take a change of devices back.
        progress: Told of the stages, asked for cancellation.
    """
    record_at = record_path(Path(path))
    if not os.path.lexists(record_at):
        raise ExportError("there is nothing to undo: the file has no undo record", where=str(record_at))
    with _opened(path, force=force) as (fd, source), source:
        record = read_undo(record_at)
        refuse_stranger(source, record)
        if not force:
            refuse_foreign(source, record, progress or Progress())
        source.refuse_changed("read")
        with explained(Path(path), _FILE):
            _give_back(fd, record, record_at)
    return record.nbytes


# --- what is written ----------------------------------------------------------------------------------------


def _write(fd: int, pieces: tuple[Patch, ...]) -> None:
    for piece in pieces:
        write_over(fd, piece.offset, piece.data)
    settle(fd)


def _read_again(fd: int, path: str, pieces: tuple[Patch, ...]) -> None:
    for piece in pieces:
        os.lseek(fd, piece.offset, os.SEEK_SET)
        if os.read(fd, len(piece.data)) != piece.data:
            raise ExportError(
                "the file does not hold what was written, and was restored",
                where=f"{path}: byte {piece.offset:,}",
                remedy="see whether the disk is sound",
            )


def _verify(container: Container, path: str, plan: Plan, progress: Progress) -> None:
    _, difference = check_copy(container, path, plan, progress, "the file")
    if difference:
        raise ExportError(f"the file is not as planned, and was restored: {difference}", where=path)


def _write_record(record: UndoRecord, record_at: Path, like: os.stat_result) -> None:
    """Have the record complete on the disk before anything changes."""
    try:
        with writing(record_at, like=like, overwrite=False, what=_RECORD) as out:
            write_bytes(out.fd, format_undo(record))
    except ExportError:  # it did not come to stand there
        raise
    except BaseException:  # a second Ctrl+C just then
        record_at.unlink(missing_ok=True)
        raise


# --- who may, and what if it fails --------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: str, *, force: bool) -> Iterator[tuple[int, FileSource]]:
    """Open a file for changing it, alone; yield its descriptor, and what reads it, which is to be closed."""
    if os.path.isdir(path):  # noqa: PTH112 - a text, as it was given
        raise ExportError("a folder cannot be changed in place", where=path, remedy=COPY)
    with explained(Path(path), _FILE):
        fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _lock(fd, path)
        status = os.fstat(fd)
        if not status.st_mode & 0o222 and not force:  # root may write it all the same
            raise ExportError("the file is write-protected", where=path, remedy="use --force")
        if status.st_nlink > 1 and not force:
            raise ExportError(
                f"the file has {status.st_nlink} hard links, and would change under each of them",
                where=path,
                remedy=f"{COPY}, or use --force",
            )
        yield fd, FileSource(path, os.dup(fd))
    finally:
        os.close(fd)


def _lock(fd: int, path: str) -> None:
    """Keep a second run of this program out, where the system has locks that end with the process."""
    try:
        import fcntl  # noqa: PLC0415 - exists on Unix only
    except ImportError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ExportError(
            "another process of this program is changing the file", where=path, remedy="wait until it is done"
        ) from error
    except OSError:  # a file system without locks
        return


def _undo(path: str) -> str:
    return command("remap", file_word(path), "--undo")


def _refuse_patched(path: str, record_at: Path) -> None:
    if os.path.lexists(record_at):
        raise ExportError(
            "the file was changed before, and its undo record is still there",
            where=str(record_at),
            remedy=f"take that back with: {_undo(path)}; or delete the record if the file is as it should be",
        )


@contextlib.contextmanager
def _restored_on_failure(fd: int, record: UndoRecord, record_at: Path) -> Iterator[None]:
    """Restore the file if the block fails for any reason."""
    try:
        yield
    except BaseException as failure:
        try:
            _give_back(fd, record, record_at)
        except OSError as error:
            raise ExportError(
                f"{failure}; the file could not be restored: {error.strerror}",
                where=str(record_at),
                remedy=f"once it can be written, restore it with: {_undo(str(patched_path(record_at)))}",
            ) from failure
        raise


def _give_back(fd: int, record: UndoRecord, record_at: Path) -> None:
    restore(fd, record)
    with contextlib.suppress(OSError):  # a convenience for those who look at times
        os.utime(patched_path(record_at), ns=(os.fstat(fd).st_atime_ns, record.mtime_ns))
    record_at.unlink()
    with contextlib.suppress(OSError):
        sync_folder(record_at.parent)
