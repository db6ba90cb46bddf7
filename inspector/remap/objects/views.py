"""Views of storages as a pickle holds them, and what a writer is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from inspector.containers.persistent_ids import STORAGE_DTYPES, StorageId, parse_storage_id
from inspector.containers.rebuilds import VIEWS
from inspector.errors import ExportError
from inspector.model.values.children import mapping_pairs
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import dataclass, field

_ORDERED = "collections.OrderedDict"
_MOST_AT_ONCE = 64  # dimensions that are written without asking whether others share them


UNTYPED = ("torch.storage", "UntypedStorage")
"""Module and name of the class of storages without an element type."""

_CLASSES = {
    dtype: ("torch", f"{name}Storage") for name, (dtype, _) in STORAGE_DTYPES.items() if "ntyped" not in name
}


def storage_class(dtype: str | None) -> tuple[str, str]:
    """Return module and name of the class of storages of an element type, or of none."""
    return UNTYPED if dtype is None else _CLASSES[dtype]


def as_written(storage: StorageId) -> StorageId:
    """Return a storage as torch.save writes it: of bytes, where no class stands for its element type."""
    if storage.untyped or storage.dtype in _CLASSES:
        return storage
    return storage._replace(dtype="uint8", itemsize=1, numel=storage.nbytes, untyped=True)


class StorageName(NamedTuple):
    """What the pickle says of a storage.

    Attributes:
        cls: The class's module and name; it tells the element type.
        key: The storage's key in the file.
        location: The location tag.
        numel: How many elements it has; bytes for untyped ones.
    """

    cls: tuple[str, str]
    key: str
    location: str
    numel: int


class Naming(Protocol):
    """Decides what becomes of storages."""

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage's persistent id; None for an id of something else."""

    def move_view(self, call: Call) -> int | None:
        """Return the offset, in elements, at which a view of a storage begins there; None to leave it."""


class NoStorages:
    """The naming of values that hold no storages."""

    def name_storage(self, _node: PersistentId) -> StorageName | None:
        """Leave a persistent id as it is."""

    def move_view(self, _call: Call) -> int | None:
        """Leave a view as it is."""


@dataclass(slots=True)
class Edits:
    """What of mappings is written under another name.

    Attributes:
        prefixes: What is removed from the front of a mapping's keys, by its identity.
    """

    prefixes: dict[int, str] = field(default_factory=dict)

    def entries(self, owner: Value, pairs: Sequence[tuple[Value, Value]]) -> Sequence[tuple[Value, Value]]:
        """Return the pairs of a mapping as they are written."""
        prefix = self.prefixes.get(id(owner))
        if prefix:
            pairs = [
                (key.removeprefix(prefix) if isinstance(key, str) else key, value) for key, value in pairs
            ]
        return pairs


def filled_pairs(call: Call) -> tuple[Value, list[tuple[Value, Value]]]:
    """Return the arguments that an object is made with, and the pairs that it is filled with.

    What Python 2 gave an OrderedDict as an argument, a list of lists, counts as pairs: `weights_only` takes
    such a list as little as an entry of it could be left out.
    """
    pairs, args = call.pairs or [], call.args
    func = call.func
    if type(func) is not Global or func.dotted != _ORDERED or call.kind == "newobj":
        return args, pairs
    first = args[0] if isinstance(args, tuple) and len(args) == 1 else None
    is_pairs = isinstance(first, list) and all(
        isinstance(item, list | tuple) and len(item) == 2 for item in first
    )
    return ((), mapping_pairs(call) or []) if is_pairs or isinstance(first, Dict) else (args, pairs)


def view_of(call: Call) -> PersistentId | None:
    """Return the persistent id that a call rebuilds a view of; None if it is no such call."""
    func, args = call.func, call.args
    if type(func) is not Global or func.name not in VIEWS or func.package != "torch":
        return None
    if type(args) is not tuple or len(args) < 4 or type(args[0]) is not PersistentId:
        return None
    return args[0] if type(args[1]) is int else None


def is_usual(args: tuple[Any, ...]) -> bool:
    """Return whether the arguments of `_rebuild_tensor_v2` are those that torch gives, without any hooks."""
    if len(args) != 6 or type(args[4]) is not bool or type(args[5]) is not Call:
        return False
    hooks = args[5]
    if hooks.state is not None or hooks.pairs or hooks.args != () or type(hooks.func) is not Global:
        return False
    if parse_storage_id(args[0]) is None:
        return False
    if not all(type(numbers) is tuple and len(numbers) <= _MOST_AT_ONCE for numbers in args[2:4]):
        return False
    return all(type(number) is int for numbers in args[2:4] for number in numbers)


def refuse_stored(_tensor: StoredTensor) -> Call:
    """Refuse a tensor where nothing is known of storages."""
    raise ExportError("a tensor stands where none can be written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How values are written.

    Attributes:
        naming: What becomes of storages.
        edits: What becomes of entries.
        data: The stream that large texts of the value are still in.
        legacy: Whether persistent ids have the legacy container's six parts.
        names_are_present: Whether names must not be taken for those of Python 2; see `names_are_present`.
        rebuilt: Returns the call that rebuilds a tensor of a format without a pickle.
        progress: Asked for cancellation.
    """

    naming: Naming = field(default_factory=NoStorages)
    edits: Edits = field(default_factory=Edits)
    data: bytes = b""
    legacy: bool = False
    names_are_present: bool = False
    rebuilt: Callable[[StoredTensor], Call] = refuse_stored
    progress: Progress = field(default_factory=Progress)

    def bytes_of(self, value: Blob) -> bytes:
        """Return what was left in the stream for its length."""
        data = self.data[value.offset : value.offset + value.nbytes]
        if len(data) < value.nbytes:
            raise ExportError(
                f"a value of {value.nbytes:,} bytes, which is no tensor, is too large to be written again",
                remedy="leave it out with --exclude, or ask for --format state-dict",
            )
        return data
