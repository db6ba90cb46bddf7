"""Which values a callable on torch's list takes, where their types alone do not decide.

Each rule gets arguments whose number and types are right, see `arguments`. It asks nothing that only the
bytes of a storage could answer: where those decide, it passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from encodings.aliases import aliases
from math import prod

from inspector.model.arguments.kinds import PARAMETER, TENSOR, UNHASHABLE_KINDS, UNKNOWN, kind_of, listed_name
from inspector.model.tensors.dtypes import is_whole
from inspector.model.tensors.numpy_arrays import describe_bytes
from inspector.model.tensors.rebuild import describe_tensor
from inspector.pickles.values import Blob, Call, Dict, PersistentId, Set, Value

Args = tuple[Value, ...]
_KINDS = (
    "cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta"
    "|hpu|mtia|privateuseone"
)
_DEVICE = re.compile(rf"({_KINDS})(:(0|[1-9][0-9]{{0,8}}))?")
_BARE_DEVICE = re.compile(_KINDS)
_LAYOUTS = frozenset(
    f"torch.{name}"
    for name in (
        *("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"),
        *("_mkldnn", "jagged"),
    )
)
# Codecs of the standard library that are missing among their own aliases, and those that take no text.
_ENCODINGS = (
    frozenset(aliases)
    | frozenset(aliases.values())
    | {
        *("utf_8_sig", "unicode_escape", "raw_unicode_escape", "punycode", "idna", "rot13", "cp737", "cp720"),
        *("cp856", "cp874", "cp875", "cp1006", "koi8_u", "koi8_t", "utf8", "latin1", "hp_roman8"),
        *("mac_croatian", "mac_arabic", "mac_farsi", "mac_romanian"),
    }
)
_OF_BYTES = frozenset({"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "uu_codec", "zlib_codec"})
_NARROW = {"ascii": 0x80, "latin_1": 0x100}
_PAIR, _BYTE, _MOST_TEXT = 2, 256, 1000
_MOST = 1 << 63
_LONGEST_BYTEARRAY = 1 << 30


def items_of(value: Value) -> Sequence[Value]:
    """Return what iterating over a value gives; nothing where only the bytes of a storage could tell."""
    if isinstance(value, str | bytes | list | tuple):
        return value
    if isinstance(value, Dict):
        return [key for key, _ in value.pairs]
    if isinstance(value, Set):
        return value.items
    given = describe_bytes(value)
    if given is not None:
        return given.head
    if isinstance(value, Call) and kind_of(value) in {"set", "Size", "OrderedDict", "Counter", "bytearray"}:
        return _items_of_call(value)
    return ()


def _items_of_call(call: Call) -> Sequence[Value]:
    given = call.args[0] if isinstance(call.args, tuple) and call.args else ()
    items = () if isinstance(given, Call) or call.kind == "newobj" else items_of(given)
    if listed_name(call.func) == "collections.OrderedDict" and not isinstance(given, Dict):
        items = [pair[0] for pair in items if isinstance(pair, str | list | tuple) and pair]
    return [*items, *(key for key, _ in call.pairs or ())]


def is_hashable(value: Value) -> bool:
    """Return whether Python hashes a value: tuples as far as two levels of them."""
    if isinstance(value, tuple):
        return all(_is_flat(item) for item in value)
    return _is_flat(value)


def _is_flat(value: Value) -> bool:
    if isinstance(value, tuple):
        return not any(kind_of(item) in UNHASHABLE_KINDS for item in value)
    return (isinstance(value, Set) and value.frozen) or kind_of(value) not in UNHASHABLE_KINDS


# --- Python's own types -------------------------------------------------------------------------------------


def _takes_members(args: Args) -> bool:
    return not args or (known_shape(args[0]) != () and all(map(is_hashable, items_of(args[0]))))


def _takes_pairs(args: Args) -> bool:
    if not args or kind_of(args[0]) in {"dict", "OrderedDict", "Counter"}:
        return True
    shape = known_shape(args[0])
    if shape is not None:
        return shape[:1] == (0,) or shape[1:2] == (_PAIR,)
    return all(map(is_pair, items_of(args[0])))


def is_pair(item: Value) -> bool:
    """Return whether a dictionary can be filled with an item: two values, of which the first has a hash."""
    kind = kind_of(item)
    if kind in {TENSOR, PARAMETER, UNKNOWN}:
        return True
    parts = items_of(item)
    return kind in ITERABLE and len(parts) == _PAIR and is_hashable(parts[0])


ITERABLE = frozenset(
    {"str", "bytes", "tuple", "list", "dict", "set", "OrderedDict", "Counter", "Size", "bytearray"}
)


def _takes_parts(args: Args) -> bool:
    if args and isinstance(args[0], str):
        try:
            complex(args[0][:_MOST_TEXT])
        except ValueError:
            return False
    return all(_numel(arg) in {None, 1} for arg in args)


def _takes_bytes(args: Args) -> bool:
    if len(args) > 1:
        return _takes_text(args)
    value = args[0] if args else 0
    if isinstance(value, int):
        return 0 <= value < _LONGEST_BYTEARRAY
    if isinstance(value, Call | PersistentId) and describe_tensor(value) is not None:
        return is_whole(_dtype(value)) and len(known_shape(value) or ()) <= 1
    return kind_of(value) == "bytes" or all(_is_byte(item) for item in items_of(value))


def _is_byte(item: Value) -> bool:
    if isinstance(item, int):
        return 0 <= item < _BYTE
    return (_numel(item) == 1 and is_whole(_dtype(item))) or kind_of(item) == UNKNOWN


def _takes_text(args: Args) -> bool:
    text, *rest = args
    name = rest[0] if rest else "utf8"
    encoding = _encoding(name) if isinstance(name, str) else None
    if encoding is None or encoding in _OF_BYTES or not isinstance(text, str):
        return encoding is not None and encoding not in _OF_BYTES  # a text too long to be looked at
    if len(rest) > 1 and rest[1] != "strict":
        return True
    if encoding in _NARROW:
        return all(ord(char) < _NARROW[encoding] for char in text)
    return encoding not in {"utf_8", "utf_16", "utf_32"} or not any(
        0xD800 <= ord(char) < 0xE000 for char in text
    )


def _encoding(name: str) -> str | None:
    """Return Python's own name of an encoding, or None if there is no such."""
    plain = "_".join(re.findall(r"[a-z0-9.]+", name[:_MOST_TEXT].lower()))
    return aliases.get(plain, plain) if plain in _ENCODINGS else None


# --- torch's ------------------------------------------------------------------------------------------------


def _takes_sizes(args: Args) -> bool:
    if args and isinstance(args[0], Call | PersistentId) and describe_tensor(args[0]) is not None:
        is_flat = isinstance(args[0], PersistentId) or len(known_shape(args[0]) or ()) == 1
        return is_flat and is_whole(_dtype(args[0]))
    return not args or all(_is_size(item) for item in items_of(args[0]))


def _is_size(item: Value) -> bool:
    if isinstance(item, int) or kind_of(item) == UNKNOWN or isinstance(item, Blob):
        return True
    return _numel(item) == 1 and is_whole(_dtype(item))


def _takes_device(args: Args) -> bool:
    name, *index = args
    if not isinstance(name, str):
        return True
    if not index:
        return _DEVICE.fullmatch(name) is not None
    number = index[0]
    is_index = not isinstance(number, int) or 0 <= number < _MOST
    return _BARE_DEVICE.fullmatch(name) is not None and is_index and known_shape(number) in {None, ()}


def _takes_layout(args: Args) -> bool:
    return isinstance(args[0], str) and args[0] in _LAYOUTS


def known_shape(value: Value) -> tuple[int, ...] | None:
    """Return the sizes of a tensor; None for what is no tensor, or one that nobody understands."""
    facts = describe_tensor(value) if isinstance(value, Call) else None
    return None if facts is None else facts.shape


def _numel(value: Value) -> int | None:
    shape = known_shape(value)
    return None if shape is None else prod(shape)


def _dtype(value: Value) -> str:
    facts = describe_tensor(value) if isinstance(value, Call | PersistentId) else None
    return "" if facts is None else facts.dtype


RULES: dict[str, Callable[[Args], bool]] = {
    "_codecs.encode": _takes_text,
    "builtins.bytearray": _takes_bytes,
    "builtins.complex": _takes_parts,
    "builtins.set": _takes_members,
    "collections.Counter": _takes_members,
    "collections.OrderedDict": _takes_pairs,
    "torch.Size": _takes_sizes,
    "torch.device": _takes_device,
    "torch.serialization._get_layout": _takes_layout,
}
"""By callable, what looks at the values."""
