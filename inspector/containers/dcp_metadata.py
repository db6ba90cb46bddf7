"""What `.metadata` says: names, sizes and chunks of tensors, other values, and where each of them is.

It is a pickle of `torch.distributed.checkpoint.metadata.Metadata`, written by `_FileSystemWriter.finish` in
torch's `torch/distributed/checkpoint/filesystem.py`; torch 1.13 had the same classes in
`torch.distributed._shard.checkpoint`. Objects are told by their class's name and read by their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from inspector.containers.element_types import ITEMSIZES
from inspector.errors import DamagedError
from inspector.pickles.values import Call, Dict, Global, Value

_CLASSES = {
    "torch.distributed.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    # Where they were in torch 1.13 to 2.2.
    "torch.distributed._shard.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
    ),
    "torch.distributed._shard.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    "torch.distributed._shard.sharded_tensor.metadata": ("MEM_FORMAT_ENCODING", "TensorProperties"),
    # The folder that it was saved to, as `StorageMeta.checkpoint_id`.
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"),
}
OWN_NAMES = frozenset(f"{module}.{name}" for module, names in _CLASSES.items() for name in names)
"""The dotted names."""


_MOST = (1 << 63) - 1
_MOST_DIMENSIONS = 64
Sizes = tuple[int, ...]
PathKeys = tuple[str | int, ...]
_NO_START: Sizes = (-1,)  # what no chunk has


class Stored(NamedTuple):
    """Where a chunk or a value is: a `_StorageInfo`."""

    path: str
    offset: int
    length: int
    # what was done to the stream (`stream.zstd/1`), in the order of undoing it
    transforms: tuple[str, ...] = ()


class TensorEntry(NamedTuple):
    """A tensor."""

    name: str
    dtype: str
    size: Sizes
    requires_grad: bool
    chunks: tuple[tuple[Sizes, Sizes], ...]


class MetadataFile(NamedTuple):
    """What a `.metadata` says."""

    entries: tuple[TensorEntry | str, ...]
    # the keys that lead to each of them, by flat name; empty where names are not nested
    paths: dict[str, PathKeys]
    # where each chunk is, by name and start; of a value the start is None
    stored: dict[tuple[str, Sizes | None], Stored]
    # further places by name: earlier ones under the same key, and those whose start is no start. What is a
    # key to Python may be another one here.
    rivals: tuple[tuple[str, Stored], ...]
    version: str


def parse_metadata(root: Value, where: str, look: Callable[[int], object]) -> MetadataFile:
    """Read the metadata of a distributed checkpoint."""
    if not is_metadata(root):
        raise DamagedError(
            "this .metadata does not describe a distributed checkpoint",
            where=where,
            remedy="fetch the folder again",
        )
    fields = fields_of(root)
    entries = tuple(_entries(fields.get("state_dict_metadata"), where, look))
    stored: dict[tuple[str, Sizes | None], Stored] = {}
    rivals = []
    for name, start, info in _places(fields.get("storage_data"), where, look):
        if start is _NO_START or (name, start) in stored:
            rivals.append((name, info))
        if start is not _NO_START:
            if (name, start) in stored:
                rivals[-1] = name, stored[name, start]
            stored[name, start] = info
    version = fields.get("version")
    return MetadataFile(
        entries,
        dict(_paths(fields.get("planner_data"), look)),
        stored,
        tuple(rivals),
        version if isinstance(version, str) else "",
    )


def is_metadata(root: Value) -> bool:
    """Return whether a value is the metadata of a distributed checkpoint."""
    func = root.func if isinstance(root, Call) else None
    # Megatron's is a class of its own below torch's.
    is_named = isinstance(func, Global) and func.name.endswith("Metadata")
    return is_named and "state_dict_metadata" in fields_of(root)


def fields_of(value: Value) -> dict[str, Value]:
    """Return the attributes that the state of an object sets."""
    state = value.state if isinstance(value, Call) else None
    pairs = state.pairs if isinstance(state, Dict) else []
    return {str(key): item for key, item in pairs if isinstance(key, str)}


def _class_of(value: Value) -> str:
    func = value.func if isinstance(value, Call) else None
    return func.name if isinstance(func, Global) and func.package == "torch" else ""


# --- tensors and values -------------------------------------------------------------------------------------


def _entries(value: Value, where: str, look: Callable[[int], object]) -> Iterator[TensorEntry | str]:
    if not isinstance(value, Dict):
        raise _wrong(where, "it lists no names")
    look(len(value.pairs))
    for name, entry in value.pairs:
        if not isinstance(name, str):
            raise _wrong(where, "a name in it is no str")
        yield _tensor(str(name), entry, where, look) if "Tensor" in _class_of(entry) else str(name)


def _tensor(name: str, value: Value, where: str, look: Callable[[int], object]) -> TensorEntry:
    fields = fields_of(value)
    size, chunks = _sizes(fields.get("size")), fields.get("chunks")
    dtype, requires_grad = _properties(fields.get("properties"))
    if size is None or not isinstance(chunks, list) or dtype not in ITEMSIZES:
        raise _wrong(where, f"the entry of {name} is damaged")
    look(len(chunks) * (1 + 2 * len(size)))
    found = []
    for chunk in chunks:
        chunk_fields = fields_of(chunk)
        starts, sizes = _sizes(chunk_fields.get("offsets")), _sizes(chunk_fields.get("sizes"))
        if starts is None or sizes is None:
            raise _wrong(where, f"a chunk of {name} is damaged")
        found.append((starts, sizes))
    return TensorEntry(name, dtype, size, requires_grad, tuple(found))


def _properties(value: Value) -> tuple[str, bool]:
    """Return the element type, and whether gradients were asked for: the state is a tuple in all releases."""
    state = value.state if isinstance(value, Call) else None
    if not isinstance(state, tuple) or len(state) < 3:
        return "", False
    dtype = state[0]
    return (dtype.name if isinstance(dtype, Global) and dtype.module == "torch" else ""), state[2] is True


def _sizes(value: Value) -> Sizes | None:
    """Read a `torch.Size`; None for what is none."""
    if _class_of(value) == "Size" and isinstance(value, Call):
        value = value.arguments[0] if value.arguments else ()
    if not isinstance(value, tuple | list) or len(value) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(one for one in value if type(one) is int and 0 <= one <= _MOST)
    return sizes if len(sizes) == len(value) else None


# --- names and places ---------------------------------------------------------------------------------------


def _paths(value: Value, look: Callable[[int], object]) -> Iterator[tuple[str, PathKeys]]:
    """Yield the keys that lead to each name; what another planner left there is passed over."""
    pairs = value.pairs if isinstance(value, Dict) else []
    look(len(pairs))
    for name, path in pairs:
        if isinstance(name, str) and isinstance(path, tuple) and 0 < len(path) <= _MOST_DIMENSIONS:
            keys = tuple(_key(step) for step in path)
            if all(key is not None for key in keys) and isinstance(keys[0], str):
                yield str(name), tuple(key for key in keys if key is not None)


def _key(step: Value) -> str | int | None:
    if isinstance(step, str):
        return str(step)
    return step if type(step) is int and 0 <= step <= _MOST else None


def _places(
    value: Value, where: str, look: Callable[[int], object]
) -> Iterator[tuple[str, Sizes | None, Stored]]:
    pairs = value.pairs if isinstance(value, Dict) else []
    look(len(pairs))
    for key, info in pairs:
        index, place = fields_of(key), fields_of(info)
        name, path = index.get("fqn"), place.get("relative_path")
        start = None if index.get("offset") is None else _sizes(index["offset"])
        if start is None and index.get("offset") is not None:
            start = _NO_START
        offset, length = place.get("offset"), place.get("length")
        if not isinstance(name, str) or not isinstance(path, str):
            raise _wrong(where, "an entry does not say what is where")
        if type(offset) is not int or type(length) is not int or not 0 <= offset + length <= _MOST:
            raise _wrong(where, f"the place of {name} is damaged")
        if min(offset, length) < 0:
            raise _wrong(where, f"the place of {name} is before the beginning of its file")
        yield str(name), start, Stored(str(path), offset, length, _transforms(place))


def _transforms(place: dict[str, Value]) -> tuple[str, ...]:
    found = place.get("transform_descriptors")
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def _wrong(where: str, why: str) -> DamagedError:
    return DamagedError(
        f"the metadata of this checkpoint is damaged: {why}", where=where, remedy="fetch the folder again"
    )


# --- flat names ---------------------------------------------------------------------------------------------


_MOST_MORE = 1024


class Nesting:
    """A state dict that is filled one name after the other."""

    def __init__(self, entries: int) -> None:
        """Prepare for so many entries; a list of more items than that and some is nobody's."""
        self.root = Dict([])
        self._most = entries + _MOST_MORE
        self._inside: dict[int, dict[str, Value]] = {id(self.root): {}}

    def put(self, name: str, path: PathKeys, value: Value) -> None:
        """Put a value where its keys lead; under its flat name where they lead nowhere."""
        if not self._put(path, value):
            self._put((name,), value, anew=True)

    def _put(self, path: PathKeys, value: Value, *, anew: bool = False) -> bool:
        at: Value = self.root
        for key, following in pairwise(path):
            found = self._find(at, key)
            if found is None:
                found = self._made(following)
                if not self._set(at, key, found):
                    return False
            at = found
            if not isinstance(at, Dict | list) or id(at) not in self._inside:
                return False
        last = path[-1]
        if self._find(at, last) is not None and not anew:
            return False
        return self._set(at, last, value)

    def _made(self, following: str | int) -> Dict | list[Value]:
        made: Dict | list[Value] = Dict([]) if isinstance(following, str) else []
        self._inside[id(made)] = {}
        return made

    def _find(self, at: Value, key: str | int) -> Value:
        if isinstance(at, list):
            return at[key] if isinstance(key, int) and key < len(at) else None
        return self._inside[id(at)].get(key) if isinstance(key, str) else None

    def _set(self, at: Value, key: str | int, value: Value) -> bool:
        if isinstance(at, list):
            if not isinstance(key, int) or key > self._most:
                return False
            at.extend([None] * (key + 1 - len(at)))
            at[key] = value
            return True
        if not isinstance(at, Dict) or not isinstance(key, str):
            return False
        self._inside[id(at)][key] = value
        at.pairs.append((key, value))
        return True
