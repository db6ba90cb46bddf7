"""A memory-mapped TensorDict: a folder with `meta.json` and a file of plain numbers for each tensor.

See `TensorDictBase.memmap` in `tensordict/base.py` and `_load_memmap` in `tensordict/_td.py`: what is nested
has a folder of its own, and so has what is no tensor, with its text in `meta.json` or a pickle beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import cast
from urllib.parse import quote

from inspector.containers.base import Format
from inspector.containers.container import Container, StoredBytes
from inspector.containers.element_types import ITEMSIZES
from inspector.containers.folder import Folder, leads_out, run_beside
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind, are_files, listed, shown
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.sharded import NOT_FOR_FOLDERS
from inspector.containers.small_json import Members, read_json, value_of
from inspector.containers.source import Source
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import replace

_META, _NUMBERS = "meta.json", ".memmap"
_TYPE = "_type"
_OWN = re.compile(r"<class 'tensordict\.[A-Za-z_.]{1,80}'>")
_TELLS = re.compile(rb'"_type":\s{0,8}"<class \'tensordict\.')
_MOST_DEPTH = 4  # as far as the files of a folder are listed
_MOST_META_NBYTES = 1 << 20


class TensorDict(Format):
    """What `TensorDict.memmap` writes."""

    name = "tensordict"
    what = "a memory-mapped TensorDict"
    loader = "tensordict.TensorDict.load_memmap"
    loader_maps = True
    device_from = "load_memmap(folder).to(device) decides"
    unchecked = True
    runs_with = "allow_pickle=True"  # tensordict before 0.16 does so unasked
    reads_below = True
    copied_as = "objects"
    cannot = NOT_FOR_FOLDERS

    @override
    def matches_folder(self, folder: Folder) -> bool:
        if folder.entry or not 0 < folder.sizes.get(_META, 0) <= _MOST_META_NBYTES:
            return False
        with folder.open(_META) as source:
            return _TELLS.search(source.read(0, source.nbytes)) is not None

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        reading = _Reading(folder, limits, progress)
        root = reading.nested("", 1)
        run_beside(folder, (), None, limits, progress)
        container = join(folder.path, self.name, reading.members, root, limits)
        return replace(container, notes=(*reading.notes(), *container.notes), refusal=reading.refusal)


class _Reading:
    def __init__(self, folder: Folder, limits: Limits, progress: Progress) -> None:
        self._folder = folder
        self._limits = limits
        self._progress = progress
        self.members: list[Member] = []
        self.refusal = ""
        self._missing: list[str] = []
        self._outside: list[str] = []
        self._short: list[str] = []

    def notes(self) -> Iterator[Note]:
        """Yield what is wrong with its files."""
        if self._missing:
            yield Note(NoteKind.MISSING_PART, (are_files(len(self._missing)), listed(self._missing)))
        if self._outside:
            yield Note(NoteKind.PART_OUTSIDE, (listed(self._outside),))
        if self._short:
            yield Note(NoteKind.SHORT_PART, (are_files(len(self._short)), listed(self._short)))

    def nested(self, below: str, depth: int) -> Value:
        """Return what stands in a folder; its files have names that begin with `below`."""
        with self._folder.open(f"{below}{_META}") as source:
            rows = read_json(source, self._limits)
        kind = str(rows.first(_TYPE))
        if _OWN.fullmatch(kind) is None:
            self._folder.programs.miss(f"{below}{_META}", f"it asks for {shown(kind)}")
        if rows.first("_is_non_tensor") is True:
            return value_of(rows.first("data"))
        if "LazyStacked" in kind:
            return [self.nested(f"{below}{at}/", depth + 1) for at in self._stacked(below)]
        pairs: list[tuple[Value, Value]] = []
        for key, row in rows:
            if not isinstance(row, Members):
                continue
            self._progress.advance(0)
            if row.first("type") is not None:
                pairs.append((key, self._inner(below, key, depth)))
            else:
                pairs.append((key, self._tensor(below, key, row)))
        return Dict(pairs)

    def _stacked(self, below: str) -> Iterator[int]:
        at = 0
        while f"{below}{at}/{_META}" in self._folder.sizes:
            yield at
            at += 1

    def _inner(self, below: str, key: str, depth: int) -> Value:
        for name in (key, quote(key, safe="")):
            if f"{below}{name}/{_META}" in self._folder.sizes and depth < _MOST_DEPTH:
                return self.nested(f"{below}{name}/", depth + 1)
        self._miss(f"{below}{key}/{_META}", key)
        self._folder.programs.miss(f"{below}{key}", "it is not among the files of the folder")
        return None

    def _miss(self, name: str, key: str) -> None:
        (self._outside if leads_out(key) else self._missing).append(name)
        self.refusal = self.refusal or f"FileNotFoundError: No such file or directory: {shown(name)}"

    def _tensor(self, below: str, key: str, row: Members) -> Value:
        name = next(
            (
                name
                for one in (key, quote(key, safe=""))
                if (name := f"{below}{one}{_NUMBERS}") in self._folder.sizes
            ),
            "",
        )
        dtype = str(row.first("dtype")).removeprefix("torch.")
        sizes = row.first("shape")
        is_plain = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
        if row.first("is_nested") is True or dtype not in ITEMSIZES or not is_plain:
            return value_of(row)  # a nested tensor has a file of shapes besides
        shape = tuple(cast("list[int]", sizes))
        if not name:
            self._miss(f"{below}{key}{_NUMBERS}", key)
            return value_of(row)
        if len(self.members) >= self._limits.storages:
            raise ContainerError(f"the folder has more than {self._limits.storages:,} tensors", where=name)
        numel, nbytes = prod(shape), self._folder.sizes[name]
        if nbytes < numel * ITEMSIZES[dtype]:
            self._short.append(name)
            self.refusal = self.refusal or f"ValueError: {shown(name)} is too short"
        tensor = StoredTensor("0", dtype, shape)
        storage = StorageId("0", dtype, ITEMSIZES[dtype], NO_DEVICE, numel, untyped=False, view=None)
        place = StoredBytes(0, 0, min(nbytes, storage.nbytes))
        path = self._folder.path_of(name)
        self.members.append(
            Member(
                name,
                Container(
                    path=path,
                    format="",
                    file_nbytes=nbytes,
                    root=tensor,
                    storage_ids={"0": storage},
                    stored={"0": place},
                ),
            )
        )
        return tensor
