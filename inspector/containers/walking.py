"""The checkpoints in a folder and in its subfolders, one after the other as they are found.

A file counts by its name, or where that says nothing by its first bytes; a folder that is one checkpoint
(shards, DCP, what a trainer saves) counts as one. Hidden names are left out and links to folders are not
followed, so that no loop of links matters. What cannot be looked at is given with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from inspector.containers.base import Format
from inspector.containers.folder import Folder
from inspector.containers.formats import FOLDERS
from inspector.containers.lookalikes import is_unpacked
from inspector.progress import Progress

_MOST_ENTRIES = 200_000
_MOST_DEPTH = 32
_NS_PER_S = 1_000_000_000
_NAMED = re.compile(
    r"\.(pth|pt|pt2|ckpt|safetensors|pkl|pickle|joblib|distcp|gguf|npz)(\.tar|\.gz)?$"
    r"|(model|adapter|optimizer|scheduler|training_args|weights|checkpoint|ckpt|state).*\.bin$",
    re.IGNORECASE,
)
"""What the files of checkpoints are named like; `.bin` and `.tar` are more often something else."""
_BEGINS = re.compile(
    rb"\x80[\x02-\x05]|GGUF|PK\x03\x04.{26}(?:[^\0]{0,200}/)?(?:data\.pkl|\.format_version|data\{)",
    re.DOTALL,
)
"""How files begin that torch and Stable-Baselines3 write under any name."""
_READ_NBYTES = 256
_DIGITS = re.compile(r"(\d+)", re.ASCII)


class Found(NamedTuple):
    """A checkpoint, or something that is named like one.

    Attributes:
        nbytes: Its size; of a folder that of all its files.
        modified_s: When it was written last, in seconds since 1970; of a folder its newest file.
        problem: Why it, or this folder, could not be looked at; empty where nothing is known to be wrong.
    """

    path: str
    nbytes: int = 0
    modified_s: float = 0.0
    is_folder: bool = False
    problem: str = ""


def is_one_checkpoint(path: str) -> bool:
    """Return whether a folder is a checkpoint as a whole, so that opening it opens that."""
    return is_unpacked(path) or _format_of(Folder(path, path)) is not None


def is_named_like_one(path: str) -> bool:
    """Return whether a path has the name of a checkpoint, whatever is there."""
    return _NAMED.search(os.path.basename(path)) is not None  # noqa: PTH119 - a text


def checkpoints_in(
    path: str,
    progress: Progress | None = None,
    *,
    below: bool = True,
    most_entries: int = _MOST_ENTRIES,
) -> Iterator[Found]:
    """Yield the checkpoints in a folder, 2 before 10, those of its subfolders after its own.

    The first is the folder itself where it is one checkpoint.

    Args:
        below: Whether subfolders are walked, too, and not only those that are one checkpoint.
        most_entries: So many files and folders are looked at; a row says where there are more.
    """
    yield from _Walk(progress or Progress(), most_entries, below=below).walk(path, 0)


def in_order(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts names by the numbers in them: 2 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]


def _format_of(folder: Folder) -> Format | None:
    return next((form for entry in FOLDERS if (form := entry.format()).matches_folder(folder)), None)


class _Walk:
    def __init__(self, progress: Progress, most_entries: int, *, below: bool) -> None:
        self._progress = progress
        self._most, self._left = most_entries, most_entries
        self._below = below

    def walk(self, path: str, depth: int) -> Iterator[Found]:
        whole = _folder(path)
        if whole is not None:
            yield whole[0]
            if whole[1]:
                return
        files, folders, problem = self._listed(path)
        for file in files if whole is None else ():  # else they are parts of it
            self._progress.advance(1)
            found = _file(file)
            if found is not None:
                yield found
        for folder in folders:
            self._progress.advance(1)
            if not self._below:
                inner = _folder(folder)
                yield from () if inner is None else (inner[0],)
            elif depth < _MOST_DEPTH:
                yield from self.walk(folder, depth + 1)
            else:
                yield Found(folder, is_folder=True, problem="folders nested so deeply are not looked at")
        if problem:
            yield Found(path, is_folder=True, problem=problem)

    def _listed(self, path: str) -> tuple[list[str], list[str], str]:
        """Return the files and folders in one, each in order, and why these are not all."""
        files, folders, problem = [], [], ""
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if self._left <= 0:
                        problem = f"more than {self._most:,} files and folders: the rest was not looked at"
                        break
                    self._left -= 1
                    self._progress.advance()
                    if entry.name.startswith("."):
                        continue
                    if not _is_dir(entry):
                        files.append(entry.name)
                    elif not entry.is_symlink():
                        folders.append(entry.name)
        except OSError as error:
            problem = f"the folder cannot be listed: {error.strerror}"
        files.sort(key=in_order)
        folders.sort(key=in_order)
        join = os.path.join  # paths stay texts, as they were given
        return [join(path, name) for name in files], [join(path, name) for name in folders], problem


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself, which is told as a file that cannot be read
        return False


def _file(path: str) -> Found | None:
    """Return a file if it looks like a checkpoint; devices and pipes do not."""
    is_named = is_named_like_one(path)
    try:
        status = os.stat(path)  # noqa: PTH116 - a text
        if not os.path.isfile(path) or not (is_named or _begins_like_one(path)):  # noqa: PTH113 - the same
            return None
    except OSError as error:
        return Found(path, problem=f"the file cannot be read: {error.strerror}") if is_named else None
    return Found(path, status.st_size, status.st_mtime)


def _begins_like_one(path: str) -> bool:
    with open(path, "rb") as file:  # noqa: PTH123 - the same
        return _BEGINS.match(file.read(_READ_NBYTES)) is not None


def _folder(path: str) -> tuple[Found, bool] | None:
    """Return a folder that is one checkpoint, and whether what stands in its subfolders belongs to it."""
    try:
        folder = Folder(path, path)
        form = _format_of(folder)
        if form is None and not is_unpacked(path):
            return None
        newest, nbytes, _ = folder.identity() or (0, 0, 0)
    except OSError as error:
        return Found(path, is_folder=True, problem=f"the folder cannot be read: {error.strerror}"), True
    return Found(path, nbytes, newest / _NS_PER_S, is_folder=True), form is None or form.reads_below
