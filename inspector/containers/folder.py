"""A folder as a source: its files by name, and nothing that leads out of it.

The names in a checkpoint are as untrusted as its bytes. So files are opened by names that were listed, a link
counts only where it ends within the folder, and what is no regular file does not count at all.

Loaders find their files by patterns of their own, which take more names than the readers here know:
DeepSpeed's `zero_to_fp32.py` globs `*_optim_states.pt`, Megatron-LM loads `common.pt`. So whatever is named
like a pickle is read for what it runs, and what cannot be read is not known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from hashlib import blake2b

from inspector.containers.container import Container
from inspector.containers.joined import Member
from inspector.containers.source import FileSource, Source, Stamp, stamp_of
from inspector.errors import CancelledError, CheckpointError, ContainerError, NotACheckpointError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.progress import Progress

_MOST_FILES, _NAMED_ALONE = 220_000, 200_000
_NAMED = re.compile(
    r"^[^.]*$|\.(pt|pth|bin|ckpt|safetensors|json|txt|metadata|distcp|pkl|pickle|npy|npz|tar|zip|gguf)$",
    re.IGNORECASE,
)
"""What the files of checkpoints are named like, `latest` among them."""
_MOST_DEPTH = 4
_MOST_OPEN = 32


Read = Callable[[Source, Limits, Progress], Container]
"""Reads a file of any format; whoever opens a folder hands it on, since reading a file knows of folders."""


def _read_nothing(source: Source, _limits: Limits, _progress: Progress) -> Container:
    raise ContainerError("the files of this folder are listed and not read", where=source.path)


class Folder(Source):
    """A folder; reading bytes from it gives none.

    Attributes:
        entry: The name of the file that was given to open it; empty where the folder itself was.
        sizes: Its files by name, those of subfolders with slashes, with their sizes; in order of their names.
        outside: Links in it that lead out of it.
        read_file: Reads one of its files that is open, of any format.
    """

    is_folder = True

    def __init__(self, path: str, root: str, entry: str = "", read: Read | None = None) -> None:
        """List a folder, which `path` names in messages; `read` reads its files."""
        self.root = root
        self.entry = entry
        self.read_file = read or _read_nothing
        self.outside: tuple[str, ...] = ()
        self.sizes: dict[str, int] = {}
        self._kept: dict[str, Source] = {}
        self._list()
        super().__init__(path, 0)
        self.file_nbytes = sum(self.sizes.values())

    def _list(self) -> None:
        room = [_MOST_FILES]
        found = sorted(_entries(self.root, "", _MOST_DEPTH, room))
        self.is_cut = room[0] < 0
        self.sizes = {name: nbytes for name, nbytes in found if nbytes >= 0}
        links = [name for name, nbytes in found if nbytes < 0]
        homes = _homes(self.root) if links else ()
        inside = [name for name in links if os.path.realpath(self.path_of(name)).startswith(homes)]
        self.outside = tuple(name for name in links if name not in set(inside))
        for name in inside:
            with suppress(OSError):
                self.sizes[name] = os.path.getsize(self.path_of(name))  # noqa: PTH202 - as above

    def open(self, name: str) -> Source:
        """Open one of its files."""
        if name in self.outside:
            raise ContainerError("a link leads out of the folder", where=self.path_of(name))
        if name not in self.sizes:
            raise ContainerError("no such file in the folder", where=self.path_of(name))
        return FileSource(self.path_of(name))

    def locate(self, path: str) -> str | None:
        """Return the file to which a path leads that stands in one of the files; None for none.

        Loaders join it with the folder's path: `./a`, `b/../a` and a link lead to `a`, too.
        """
        if path in self.sizes or "\0" in path:
            return path if path in self.sizes else None
        root = os.path.realpath(self.root)
        found = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - a text, as it was given
        name = os.path.relpath(found, root).replace(os.sep, "/")
        return name if name in self.sizes else None

    def leads_elsewhere(self, path: str) -> bool:
        """Return whether a path that leads to none of its files may lead a loader to another one."""
        if leads_out(path) or path in self.outside:
            return True
        return "\0" not in path and os.path.lexists(os.path.join(self.root, path))  # noqa: PTH118 - as above

    def path_of(self, name: str) -> str:
        """Return the path of a file."""
        return os.path.join(self.root, *name.split("/"))  # noqa: PTH118 - a text, as it was given

    def read_member(self, name: str, limits: Limits, progress: Progress) -> Container:
        """Read one of its files, and add what that runs to what the folder does."""
        try:
            with self.open(name) as source:
                container = self.read_file(source, limits, progress)
        except CancelledError:
            raise
        except CheckpointError as error:
            self.programs.absorb_failed(error, name)
            raise
        self.programs.absorb(container.programs, name)
        return container

    def read_members(
        self, names: Collection[str], read: Callable[[str], Container], progress: Progress
    ) -> tuple[list[Member], list[tuple[str, CheckpointError]]]:
        """Read several files: return those that can be read, and why the others cannot; some must be."""
        progress.start("reading the parts", len(names), is_counted=True)
        members: list[Member] = []
        errors: list[tuple[str, CheckpointError]] = []
        for name in names:
            progress.advance(1)
            try:
                members.append(Member(name, read(name)))
            except CancelledError:
                raise
            except CheckpointError as error:
                errors.append((name, error))
        if errors and not members:
            raise errors[0][1]
        return members, errors

    @override
    def part_at(self, path: str) -> Source:
        """Return an open file by the path of a part; a few of them stay open until the folder is closed."""
        source = self._kept.pop(path, None)
        if source is None:
            source = self.open(os.path.relpath(path, self.root).replace(os.sep, "/"))
        self._kept[path] = source
        if len(self._kept) > _MOST_OPEN:
            self._kept.pop(next(iter(self._kept))).close()
        return source

    @override
    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        return b""

    @override
    def identity(self) -> Stamp | None:
        """Return what tells a state of all its files from another."""
        newest = total = 0
        each = blake2b(digest_size=8)
        for name in self.sizes:
            stamp: Stamp | None = None
            with suppress(OSError):
                status = os.stat(self.path_of(name))  # noqa: PTH116 - as above
                newest, total, stamp = (
                    max(newest, status.st_mtime_ns),
                    total + status.st_size,
                    stamp_of(status),
                )
            each.update(f"{name}\0{stamp}\n".encode("utf-8", "surrogateescape"))
        return newest, total, int.from_bytes(each.digest(), "little") >> 1


def leads_out(path: str) -> bool:
    """Return whether a path that a file of a folder names is that of a file somewhere else."""
    steps = path.replace("\\", "/").split("/")
    return ".." in steps or steps[0] == "" or steps[0].endswith(":")


def _entries(folder: str, prefix: str, depth: int, room: list[int]) -> Iterator[tuple[str, int]]:
    """Yield the files of a folder and their sizes; of links that lead out of it -1.

    Its own files come before those of its subfolders. `room` says how many entries may still be looked at; in
    the last part of it only files are yielded that are named like those of checkpoints.
    """
    below = []
    with suppress(OSError), os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            room[0] -= 1
            if room[0] < 0:
                return
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, name))
            elif room[0] < _NAMED_ALONE and _NAMED.search(entry.name) is None:
                continue
            elif entry.is_symlink():
                if os.path.isfile(entry.path):  # noqa: PTH113 - a loop of links is none, and no error
                    yield name, -1
            elif entry.is_file():
                yield name, entry.stat().st_size
    for path, name in sorted(below) if depth > 1 else ():
        yield from _entries(path, f"{name}/", depth - 1, room)


def _homes(root: str) -> tuple[str, ...]:
    """Return where links may lead: into the folder, and from a snapshot of Hugging Face to its blobs."""
    home = os.path.realpath(root)
    cache = os.path.dirname(os.path.dirname(home))  # noqa: PTH120 - as above
    is_snapshot = os.path.basename(os.path.dirname(home)) == "snapshots"  # noqa: PTH119, PTH120 - as above
    return (home + os.sep, *((os.path.join(cache, "blobs") + os.sep,) if is_snapshot else ()))  # noqa: PTH118


# --- the files in it ----------------------------------------------------------------------------------------


_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".tar")
_MOST_BESIDE = 256
_MOST_WORD_NBYTES = 1 << 20


def read_word(folder: Folder, name: str) -> str | None:
    """Return what stands in a file that names a subfolder: None without one; loaders read it all."""
    if name in folder.outside:
        folder.programs.miss(f"what {name} names", "a link leads out of the folder")
    if name not in folder.sizes:
        return None
    with folder.open(name) as source:
        if source.nbytes > _MOST_WORD_NBYTES:
            folder.programs.miss(f"what {name} names", f"it is longer than {_MOST_WORD_NBYTES:,} bytes")
            raise ContainerError("the file is too long for the name of a folder", where=source.path)
        return source.read(0, source.nbytes).decode("utf-8", "replace").strip()


def run_beside(
    folder: Folder, read: Collection[str], below: str | None, limits: Limits, progress: Progress
) -> None:
    """Read what further files run, but for those that were `read`.

    Args:
        below: What their names begin with; empty for those in the folder itself, None for all of them.
    """
    left = _MOST_BESIDE
    for name in (*folder.sizes, *folder.outside):
        is_there = below is None or (name.startswith(below) if below else "/" not in name)
        if not is_there or name in read or not name.lower().endswith(_SUFFIXES):
            continue
        progress.advance(0)
        if not left:
            folder.programs.miss("further files", f"{_MOST_BESIDE} of them are read")
            return
        left -= 1
        try:
            with folder.open(name) as source:
                container = folder.read_file(source, limits, progress)
        except CancelledError:
            raise
        except NotACheckpointError as error:  # `.bin` is also what tokenizers are called
            folder.programs.absorb(error.programs, name)
        except CheckpointError as error:
            folder.programs.absorb_failed(error, name)
        else:
            folder.programs.absorb(container.programs, name)
