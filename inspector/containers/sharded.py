"""A model in several files with an index, as Hugging Face's libraries save it, as one checkpoint.

See `save_torch_state_dict` of `huggingface_hub/serialization/_torch.py`: the index is JSON, and its
`weight_map` says in which file each tensor is. A loader loads every file that it names and takes whatever is
in them, so the files count, and the index is compared with them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, cast

from inspector.containers.base import Cannot, Format
from inspector.containers.belonging import ARGUMENTS
from inspector.containers.container import Container
from inspector.containers.folder import Folder, leads_out, run_beside
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind, are_files, listed, shown
from inspector.containers.small_json import Members, read_json
from inspector.containers.source import Source
from inspector.errors import CheckpointError, DamagedError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import format_count, format_nbytes

SUFFIX = ".index.json"
_SHARD = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.[a-z0-9]{1,16}")
_METADATA = "__metadata__"


class Index(NamedTuple):
    """What an index says."""

    files: dict[str, str]
    twice: tuple[str, ...]  # names that it lists more than once
    total_nbytes: int | None  # the bytes of all tensors; None where it does not tell
    metadata: tuple[tuple[str, Value], ...]


def read_index(folder: Folder, name: str, limits: Limits, progress: Progress) -> Container:
    """Read the files that one index of a folder names."""
    with folder.open(name) as source:
        index = _parse_index(read_json(source, limits), source.path)
    files = {tensor: posixpath.join(posixpath.dirname(name), file) for tensor, file in index.files.items()}
    return _Reading(folder, index._replace(files=files), limits, progress).read(name)


def find_index(names: Collection[str]) -> str | None:
    """Return the index of a folder; of several the one of safetensors, which loaders prefer."""
    found = [name for name in names if name.endswith(SUFFIX) and "/" not in name]
    return min(found, key=lambda name: (".safetensors." not in name, len(name), name), default=None)


def _parse_index(found: Members, where: str) -> Index:
    pairs = found.first("weight_map")
    if not isinstance(pairs, Members) or not all(isinstance(file, str) for _, file in pairs):
        raise DamagedError(
            "the index does not say in which file each tensor is",
            where=where,
            remedy="fetch the index again; loaders cannot find the files without it",
        )
    files: dict[str, str] = {}
    twice: dict[str, None] = {}
    for name, file in pairs:
        if name in files:
            twice[name] = None
        files[name] = str(file)
    metadata = found.first("metadata")
    rows = metadata if isinstance(metadata, Members) else Members()
    total: Any = rows.first("total_size")
    plain = tuple((key, value) for key, value in rows if isinstance(value, str | int | float | bool))
    size = int(total) if type(total) in {int, float} and 0 <= total < 1 << 63 else None
    return Index(files, tuple(twice), size, plain)


class _Reading:
    def __init__(self, folder: Folder, index: Index, limits: Limits, progress: Progress) -> None:
        self._folder = folder
        places = {file: folder.locate(file) or file for file in dict.fromkeys(index.files.values())}
        self._index = index = index._replace(files={name: places[file] for name, file in index.files.items()})
        self._limits = limits
        self._progress = progress
        self._wanted: dict[str, list[str]] = {}
        for name, file in index.files.items():
            self._wanted.setdefault(file, []).append(name)
        self._members: list[Member] = []
        self._pairs: dict[str, tuple[str, Value]] = {}
        self._missing: list[str] = []
        self._unread: list[tuple[str, CheckpointError]] = []
        self._double: dict[str, None] = {}
        self._notes: list[Note] = []

    def read(self, index: str) -> Container:
        folder = self._folder
        self._missing = sorted(file for file in self._wanted if file not in folder.sizes)
        for file in filter(folder.leads_elsewhere, self._missing):
            folder.programs.miss(file, "it is not among the files of the folder")
        files = sorted(self._wanted.keys() - self._missing)
        self._members, self._unread = folder.read_members(
            files, lambda name: folder.read_member(name, self._limits, self._progress), self._progress
        )
        for member in self._members:
            self._compare(member)
        members = _one_by_one(self._members)
        container = join(self._folder.path, "sharded", members, self._root(), self._limits)
        notes = (*self._all_notes(container), *container.notes)
        return replace(
            container,
            file_nbytes=container.file_nbytes + self._folder.sizes.get(index, 0),
            notes=notes,
            refusal=self._refusal() or container.refusal,
            tied=tuple(pair for pair in container.tied if pair[0] not in self._pairs),
        )

    # --- what the index says and what the files hold --------------------------------------------------------

    def _compare(self, member: Member) -> None:
        file, pairs = member.name, pairs_of(member.container.root)
        if pairs is None:
            self._notes.append(Note(NoteKind.NO_STATE_DICT, (shown(file),)))
            pairs = [(file, member.container.root)]
        names = {name for name, _ in pairs}
        indexed = self._index.files
        lacking = [name for name in self._wanted[file] if name not in names]
        further = [name for name, _ in pairs if name not in indexed]
        elsewhere = [name for name, _ in pairs if indexed.get(name, file) != file]
        for kind, found in (
            (NoteKind.PART_LACKS, lacking),
            (NoteKind.PART_HAS_MORE, further),
            (NoteKind.PART_HAS_OTHERS, elsewhere),
        ):
            if found:
                note = Note(kind, (format_count(len(found), "tensor"), listed(found)))
                self._notes.append(note.within(file))
        for name, value in pairs:
            known = self._pairs.get(name)
            if known is not None:
                self._double[name] = None
            if known is None or indexed.get(name) == file:
                self._pairs[name] = file, value

    def _root(self) -> Value:
        root = Call(Global("collections", "OrderedDict"), (), "reduce")
        root.pairs = [(name, value) for name, (_, value) in self._pairs.items()]
        if self._index.metadata:
            root.state = Dict([(_METADATA, Dict(list(self._index.metadata)))])
        return root

    def _all_notes(self, container: Container) -> Iterator[Note]:
        outside = [file for file in self._missing if leads_out(file)]
        missing = [file for file in self._missing if not leads_out(file)]
        if outside:
            yield Note(NoteKind.PART_OUTSIDE, (listed(outside),))
        if missing:
            yield Note(NoteKind.MISSING_PART, (are_files(len(missing)), listed(missing)))
        for file, error in self._unread:
            yield Note(NoteKind.UNREAD_PART, (error.what,)).within(file)
        extra = self._extra()
        if extra:
            yield Note(NoteKind.EXTRA_PART, (are_files(len(extra)), listed(extra)))
        if self._double:
            yield Note(
                NoteKind.DOUBLE_TENSORS, (format_count(len(self._double), "tensor"), listed(self._double))
            )
        if self._index.twice:
            count = format_count(len(self._index.twice), "tensor")
            yield Note(NoteKind.INDEXED_TWICE, (count, listed(self._index.twice)))
        yield from self._notes
        total, is_whole = self._index.total_nbytes, not self._missing and not self._unread
        found = sum(one.nbytes for one in container.storage_ids.values() if one.view is None)
        if total is not None and is_whole and total != found and not self._double:
            yield Note(NoteKind.TOTAL_SIZE, (format_nbytes(total), format_nbytes(found)))

    def _extra(self) -> list[str]:
        """Return files of the folder that are named like those of the index, and are none of them."""
        found = [_SHARD.fullmatch(name) for name in self._wanted]
        kinds = {(match[1], match[0].rpartition(".")[2]) for match in found if match is not None}
        return [
            name
            for name in sorted(self._folder.sizes)
            if name not in self._wanted
            and (match := _SHARD.fullmatch(name)) is not None
            and (match[1], name.rpartition(".")[2]) in kinds
        ]

    def _refusal(self) -> str:
        if self._missing:
            return f"FileNotFoundError: No such file or directory: {shown(self._missing[0])}"
        return f"{self._unread[0][0]}: {self._unread[0][1].what}" if self._unread else ""


def _one_by_one(members: list[Member]) -> Iterator[Member]:
    """Yield members, and let go of each when it was taken: else a million tensors are described twice."""
    members.reverse()
    while members:
        yield members.pop()


def pairs_of(root: Value) -> list[tuple[str, Value]] | None:
    """Return the entries of a state dict that have names; None for what is none."""
    if isinstance(root, Dict):
        pairs = root.pairs
    elif isinstance(root, Call) and isinstance(root.func, Global) and root.func.name == "OrderedDict":
        pairs = root.pairs or []
    else:
        return None
    return [(str(key), value) for key, value in pairs if isinstance(key, str)]


NOT_FOR_FOLDERS = (
    Cannot(
        ("in-place",),
        "a folder cannot be changed in place",
        "write a new folder with -o, or change its files one by one",
    ),
    Cannot(("recover",), "only single files are recovered", "recover the file of the folder that is damaged"),
)


class Sharded(Format):
    """What save_pretrained writes for a large model."""

    name = "sharded"
    what = "a model in several files with an index"
    loader = "transformers.AutoModel.from_pretrained"
    loader_maps = True
    device_from = "from_pretrained(..., device_map=...) decides"
    loader_restricts = True
    copied_as = "state-dict"
    cannot = NOT_FOR_FOLDERS

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return folder.entry.endswith(SUFFIX) or (not folder.entry and find_index(folder.sizes) is not None)

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        if folder.entry:
            return read_index(folder, folder.entry, limits, progress)
        # Such as the weights that `from_pretrained(use_safetensors=False)` takes.
        found = read_index(folder, find_index(folder.sizes) or "", limits, progress)
        read = {os.path.relpath(part.path, folder.root) for part in found.parts}
        run_beside(folder, {*read, ARGUMENTS}, "", limits, progress)
        return found
