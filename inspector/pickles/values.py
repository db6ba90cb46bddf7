"""The inert values that a pickle stream is read into.

Numbers, strs, lists and tuples are Python's own, since none of those can run anything; what pickle would
import, call or hash becomes a slotted node that is compared by identity. Dicts are lists of pairs: a key is
never hashed, because the hash of a hostile key can hang or crash the program.

Names of Python 2 are translated as unpicklers do: the tables are `IMPORT_MAPPING` and `NAME_MAPPING` of
torch's `torch/_utils.py`, cut down from CPython's `Lib/_compat_pickle.py`. Protocol 2, which torch writes,
spells `builtins` the old way to this day.
"""

from __future__ import annotations

from typing import Literal

from inspector.overriding import override
from inspector.units import cut_text, escape_text

MODULES: dict[str, str] = {
    "Queue": "queue",
    "StringIO": "io",
    "UserDict": "collections",
    "UserList": "collections",
    "UserString": "collections",
    "__builtin__": "builtins",
    "_abcoll": "collections.abc",
    "cStringIO": "io",
    "copy_reg": "copyreg",
    "repr": "reprlib",
    "whichdb": "dbm",
}

NAMES: dict[str, str] = {
    "UserDict.IterableUserDict": "collections.UserDict",
    "UserDict.UserDict": "collections.UserDict",
    "UserList.UserList": "collections.UserList",
    "UserString.UserString": "collections.UserString",
    "__builtin__.basestring": "builtins.str",
    "__builtin__.intern": "sys.intern",
    "__builtin__.long": "builtins.int",
    "__builtin__.reduce": "functools.reduce",
    "__builtin__.unichr": "builtins.chr",
    "__builtin__.unicode": "builtins.str",
    "__builtin__.xrange": "builtins.range",
    "exceptions.StandardError": "builtins.Exception",
    "itertools.ifilter": "builtins.filter",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "itertools.imap": "builtins.map",
    "itertools.izip": "builtins.zip",
    "itertools.izip_longest": "itertools.zip_longest",
}


def present_name(name: str) -> str:
    """Return the present name of a dotted one; most are their own."""
    found = NAMES.get(name)
    if found is not None:
        return found
    module, dot, rest = name.partition(".")
    return f"{MODULES.get(module, module)}{dot}{rest}"


CallKind = Literal["reduce", "newobj", "inst"]
BlobKind = Literal[
    "text", "text-line", "string", "string-line", "bytes", "bytearray", "int", "digits", "buffer"
]
"""How a large value is written: lines hold escapes, and `string` is a byte string of Python 2."""

BLOB_TYPES: dict[BlobKind, str] = {
    "text": "str",
    "text-line": "str",
    "string": "str",
    "string-line": "str",
    "bytes": "bytes",
    "bytearray": "bytearray",
    "int": "int",
    "digits": "int",
    "buffer": "buffer",
}
"""The Python type of each."""


class ByteString(str):
    """A `str` of Python 2: bytes without an encoding, read as UTF-8 for as far as they are.

    What torch makes of it depends on the `encoding` that it is called with, so it is always written again as
    the bytes it was, in a byte string.
    """

    __slots__ = ()

    @classmethod
    def of(cls, raw: bytes) -> ByteString:
        """Return the byte string of some bytes."""
        return cls(raw.decode("utf-8", "surrogateescape"))

    @property
    def raw(self) -> bytes:
        """The bytes as the stream has them."""
        return self.encode("utf-8", "surrogateescape")

    @override
    def removeprefix(self, prefix: str, /) -> ByteString:
        """Return the byte string without a prefix, if it has that."""
        return ByteString(str.removeprefix(self, prefix))


class ByteArray(bytes):
    """The contents of a `bytearray`, which can be changed: two with equal contents are two."""

    __slots__ = ()


def package_of(dotted: str) -> str:
    """Return the top-level package of a dotted name.

    Packages are compared by this and never by how a name begins: `torchevil` is no part of torch.
    """
    return dotted.partition(".")[0]


class Global:
    """A name that pickle would import.

    Attributes:
        present: The same under its present name where Python 2 had another: `builtins` for `__builtin__`.
        after: How many persistent ids stand before the first of them.
        common: Whether every checkpoint calls it, for each of its tensors.
        arity: With how many arguments, or one more.
    """

    __slots__ = ("after", "arity", "common", "count", "dotted", "module", "name", "package", "present")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
        self.dotted = f"{module}.{name}"  # made once: it is asked for with every call, and may be long
        self.present = present_name(self.dotted)
        self.package = package_of(module)
        self.count = 0
        self.after = 0
        self.common = False
        self.arity = 0


class Call:
    """An object that pickle would make by calling something, with what would be done to it afterwards.

    Attributes:
        func: What would be called: a `Global`, or any other value in a stream that is made to deceive.
        args: Its arguments: a tuple unless the stream is malformed.
        kind: `reduce` calls `func(*args)`, `newobj` calls `func.__new__(func, *args)`, `inst` instantiates.
    """

    __slots__ = ("args", "func", "items", "kind", "kwargs", "pairs", "state")

    def __init__(self, func: Value, args: Value, kind: CallKind, kwargs: Value = None) -> None:
        self.func = func
        self.args = args
        self.kind = kind
        self.kwargs = kwargs
        self.state: Value = None
        self.items: list[Value] | None = None
        self.pairs: list[tuple[Value, Value]] | None = None

    @property
    def name(self) -> str:
        """The present dotted name of what is called; empty where that is no name."""
        return self.func.present if isinstance(self.func, Global) else ""

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The arguments; none where they are no tuple."""
        return self.args if isinstance(self.args, tuple) else ()


class Dict:
    """A dict as the pairs that fill it, in order, repetitions included.

    Attributes:
        copied: Set where an unpickler has copied what is in it, see `State.hand_over`.
    """

    __slots__ = ("copied", "pairs")

    def __init__(self, pairs: list[tuple[Value, Value]]) -> None:
        self.pairs = pairs
        self.copied = False


class Set:
    """A set or frozenset as the items that fill it; `copied` as of a `Dict`."""

    __slots__ = ("copied", "frozen", "items")

    def __init__(self, items: list[Value], *, frozen: bool) -> None:
        self.items = items
        self.frozen = frozen
        self.copied = False


class PersistentId:
    """A reference to something outside the pickle: for torch, a storage.

    Attributes:
        meaning: Room for what a reader of such references made of it: it is asked for again and again.
    """

    __slots__ = ("meaning", "pid")

    def __init__(self, pid: Value) -> None:
        self.pid = pid
        self.meaning: object = self


class Blob:
    """A str, byte string or int too large to be worth copying; it stays in the stream."""

    __slots__ = ("kind", "nbytes", "offset")

    def __init__(self, kind: BlobKind, offset: int, nbytes: int) -> None:
        self.kind = kind
        self.offset = offset
        self.nbytes = nbytes


class StoredTensor:
    """A tensor of a format that writes its tensors down itself, so that no pickle rebuilds them.

    Attributes:
        dtype: torch's name of its element type, which may be another than its storage's.
        stride: Steps by dimension, in elements; None for those of a contiguous tensor.
        offset: Its first element within the storage.
    """

    __slots__ = ("dtype", "key", "layout", "offset", "requires_grad", "shape", "stride")

    def __init__(  # noqa: PLR0913 - what a tensor is has so many parts
        self,
        key: str,
        dtype: str,
        shape: tuple[int, ...],
        stride: tuple[int, ...] | None = None,
        offset: int = 0,
        *,
        layout: str = "strided",
        requires_grad: bool = False,
    ) -> None:
        self.key = key
        self.dtype = dtype
        self.shape = shape
        self.stride = stride
        self.offset = offset
        self.layout = layout
        self.requires_grad = requires_grad


# The element types are spelled loosely on purpose: a stream may nest anything in anything.
Value = (
    None
    | bool
    | int
    | float
    | str
    | bytes
    | list["Value"]
    | tuple["Value", ...]
    | Global
    | Call
    | Dict
    | Set
    | PersistentId
    | Blob
    | StoredTensor
)


_MOST_NAME = 100


def noun_for(value: Value) -> str:
    """Return the kind of a value in a few words; its contents never show."""
    if isinstance(value, Global):
        return f"the name {escape_text(cut_text(value.dotted, _MOST_NAME))}"
    return _KINDS.get(type(value), f"a {type(value).__name__.lower()}")


_KINDS: dict[type, str] = {
    Call: "an object",
    PersistentId: "a persistent id",
    Blob: "a large value",
    StoredTensor: "a tensor",
    bool: "a bool",
    int: "an int",
    type(None): "None",
    str: "a str",
    ByteString: "a byte string of Python 2",
    bytes: "a bytes object",
    ByteArray: "a bytearray",
}
