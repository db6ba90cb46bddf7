"""A file that appears whole or not at all: written without a name, synced, then given its own.

Linux can keep a file nameless until it is complete (`O_TMPFILE`, see open(2)), so that even a killed process
leaves nothing behind. Elsewhere the file has a hidden name beside its destination meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import os.path
import stat
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from pathlib import Path

from inspector.containers.opening import stands_for_folder
from inspector.errors import CheckpointError, ExportError
from inspector.records import dataclass

_MODE = 0o644
_AT_FDCWD = -2  # sys/fcntl.h of macOS
NOT_WRITTEN = "the copy cannot be written"
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})


@dataclass(slots=True)
class OutFile:
    """The file being written.

    Attributes:
        part: Its hidden name, or None while it has no name.
    """

    fd: int
    path: Path
    part: Path | None
    mode: int = _MODE
    is_settled: bool = False

    def settle(self) -> None:
        """Wait until the disk has all of it, so that what is compared is what stands there."""
        if not self.is_settled:
            self.path.chmod(self.mode)
            settle(self.fd)
            self.is_settled = True


@contextlib.contextmanager
def writing(
    destination: Path, *, like: os.stat_result | None, overwrite: bool, what: str = NOT_WRITTEN
) -> Iterator[OutFile]:
    """Yield a file to write; left without an error it takes its place, otherwise it is removed.

    Args:
        destination: The path of the file; a link that is there is replaced, not followed.
        like: Whose permissions it gets; without one everybody may read it.
    """
    with explained(destination, what):
        out = _create(destination)
        out.mode = _MODE if like is None else stat.S_IMODE(like.st_mode) & 0o777
        try:
            try:
                yield out
                out.settle()
                if out.part is None:
                    _give_name(out, destination, overwrite=overwrite)
            finally:
                os.close(out.fd)  # Windows renames no file that is open
            if out.part is not None:
                _rename(out.part, destination, overwrite=overwrite)
        finally:
            if out.part is not None:
                with contextlib.suppress(OSError):
                    out.part.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the file is in its place; not every system can sync a folder
            sync_folder(destination.parent)


def settle(fd: int) -> None:
    """Wait until the disk has a file, and have the system's cache forget it where it takes such advice."""
    os.fsync(fd)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def explained(destination: Path, what: str = NOT_WRITTEN) -> Iterator[None]:
    """Turn what the operating system refuses into an error that says so."""
    try:
        yield
    except CheckpointError:
        raise  # a file that is read for it may be missing, and is no fault of the one that is written
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"{what}: {reason}", where=str(destination)) from error


def _create(destination: Path) -> OutFile:
    part = _part_of(destination)
    fd = _open_unnamed(part)
    if fd is not None:
        return OutFile(fd, Path(f"/proc/self/fd/{fd}"), None)
    fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    return OutFile(fd, part, part)


def _part_of(destination: Path) -> Path:
    return destination.with_name(f".{destination.name[:40]}.{os.urandom(4).hex()}.part")


def _open_unnamed(part: Path) -> int | None:
    """Open a nameless file beside a name; None where there is none, or where it could get no name later."""
    flags = os.O_RDWR | getattr(os, "O_TMPFILE", 0)
    if flags == os.O_RDWR:
        return None
    try:
        trial = os.open(part.parent, flags, 0o600)
        try:
            _link_unnamed(trial, part)
        finally:
            os.close(trial)
        part.unlink()
        return os.open(part.parent, flags, 0o600)
    except OSError:
        return None


def _link_unnamed(fd: int, name: Path) -> None:
    # Any `src_dir_fd` makes Python call linkat(2), which follows the link of /proc to the file itself.
    os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=fd, follow_symlinks=True)


def _give_name(out: OutFile, destination: Path, *, overwrite: bool) -> None:
    """Link a nameless file to its name, or to a hidden one by which it can then replace what stands there."""
    if not overwrite:
        _link_unnamed(out.fd, destination)
        return
    part = _part_of(destination)
    _link_unnamed(out.fd, part)
    out.part = part


def _rename(part: Path, destination: Path, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(part, destination)  # unlike a renaming it never replaces what came there meanwhile
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
        else:
            return
        if os.path.lexists(destination):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    part.replace(destination)


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def clone_by_name(source: int, out: OutFile) -> bool:
    """Have macOS share all blocks of an open file with the one being written; False where that cannot be.

    It does so by name alone (see clonefile(2)), and makes a new file, which takes the place of the empty one.
    """
    if out.part is None:
        return False
    import ctypes  # noqa: PLC0415 - takes 5 ms

    made = out.part.with_name(f"{out.part.name}.whole")
    try:
        if ctypes.CDLL(None, use_errno=True).fclonefileat(source, _AT_FDCWD, os.fsencode(made), 0) != 0:
            return False
        made.chmod(0o600)  # it came with the permissions of the original, which may be read-only
        fd = os.open(made, os.O_RDWR)
    except OSError:
        return False
    else:
        os.dup2(fd, out.fd)
        os.close(fd)
        made, out.part, out.path = out.part, made, made  # what is removed below is the empty file
        return True
    finally:
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)


# --- where a copy may be written ----------------------------------------------------------------------------


def refuse_destination(path: str, destination: Path, *, overwrite: bool) -> None:
    """Refuse to write over the source, or over anything unless that was asked for."""
    if "\0" in str(destination):
        raise ExportError("this is not a file name", where=repr(str(destination)))
    with explained(destination):
        if destination.exists() and Path(path).exists() and destination.samefile(path):
            raise ExportError(
                "the copy would replace the file itself", where=str(destination), remedy="choose another file"
            )
        if destination.is_dir():
            raise ExportError("this is a folder", where=str(destination), remedy="name a file in it")
        if destination.exists() and not destination.is_file():
            raise ExportError("this is not a regular file", where=str(destination), remedy="name another")
        if not overwrite and os.path.lexists(destination):
            raise ExportError(
                "the file already exists",
                where=str(destination),
                remedy="choose another name, or use --force",
            )
        if not destination.parent.is_dir():
            raise ExportError("no such folder", where=str(destination.parent))


def refuse_parts(parts: Iterable[str], destination: Path) -> None:
    """Refuse to write over one of the files that a checkpoint consists of, or over what lists them."""
    parts = tuple(parts)
    if not parts:
        return
    with explained(destination):
        if not destination.exists():
            return
        folders = {Path(part).resolve().parent for part in parts}
        lists = stands_for_folder(str(destination.parent), destination.name)
        is_list = lists and destination.resolve().parent in folders
        if is_list or any(Path(part).exists() and destination.samefile(part) for part in parts):
            raise ExportError(
                "the copy would replace a part of the checkpoint itself",
                where=str(destination),
                remedy="choose another file",
            )


def copy_times(path: str, destination: Path) -> None:
    """Set the times of a copy to those of the original."""
    with explained(destination, "the times cannot be set"):
        status = Path(path).stat()
        os.utime(destination, ns=(status.st_atime_ns, status.st_mtime_ns))


# ------------------------------------------------------------------------------------------------------------
# What a new file beside another is called: `best.cpu.pth`, then `best.cpu-2.pth`, ...; `best.pth.undo`.

_UNDO_SUFFIX = ".undo"
_MOST_SUFFIX = 16
_BEFORE_TAR = (".pth", ".pt", ".ckpt")
_MOST_STEM_NBYTES = 200
"""File systems take 255 for a name; the rest is for what is added."""


def device_word(devices: Collection[str]) -> str:
    """Return the word that tells a copy by where its tensors go: the type of device, if that is one."""
    kinds = {device.partition(":")[0] for device in devices}
    return kinds.pop() if len(kinds) == 1 else "fixed"


def free_path(path: str, word: str, suffix: str = "") -> str:
    """Return a path beside a file at which nothing stands, spelled as the path was given.

    Args:
        suffix: The suffix of the new one; empty for the file's own, of a compressed file without `.gz`.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a `Path` would spell it in its own way
    folder = path.removesuffix(name)
    stem, own = _split(name.removesuffix(".gz"))
    return _first_free(f"{folder}{stem}.{word}", f".{suffix or own}")


def _first_free(start: str, end: str) -> str:
    paths = (f"{start}{'' if number == 1 else f'-{number}'}{end}" for number in count(1))
    return next(path for path in paths if not os.path.lexists(path))


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > _MOST_SUFFIX:
        stem, suffix = name, "pth"
    elif suffix == "tar" and stem.endswith(_BEFORE_TAR):  # `model_best.pth.tar` is a habit of years
        stem, _, before = stem.rpartition(".")
        suffix = f"{before}.{suffix}"
    while len(os.fsencode(stem)) > _MOST_STEM_NBYTES:
        stem = stem[:-1]
    return stem, suffix


def free_folder(path: str, word: str) -> str:
    """Return a path beside a folder, or beside the one that a file stands for, at which nothing stands."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120 - as above
    start = os.path.normpath(folder or os.curdir)
    start = os.path.abspath(start) if start in {os.curdir, os.pardir} else start  # noqa: PTH100 - as above
    return _first_free(f"{start}.{word}", "")


def record_path(path: Path) -> Path:
    """Return where the undo record of a file stands: beside it, and beside its target if it is a link."""
    path = path.resolve()
    return path.with_name(path.name + _UNDO_SUFFIX)


def patched_path(record_at: Path) -> Path:
    """Return the file that a record stands beside."""
    return record_at.with_name(record_at.name.removesuffix(_UNDO_SUFFIX))
