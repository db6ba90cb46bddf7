"""Why torch's restricted unpickler stops, whatever is on its list.

The rules are those of `torch/_weights_only_unpickler.py`: 34 opcodes, written with protocols 2 and 3 in mind;
no calls of what is no listed name; appending to lists only, items of three kinds of dictionary only.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.model.checkpoint import Checkpoint
from inspector.model.uses import PERSISTENT_ID
from inspector.safety.allowlist import default_allow_list
from inspector.safety.python2 import present_name

OPCODES = frozenset(
    {
        "APPEND",
        "APPENDS",
        "BINFLOAT",
        "BINGET",
        "BININT",
        "BININT1",
        "BININT2",
        "BINPERSID",
        "BINPUT",
        "BINUNICODE",
        "BUILD",
        "EMPTY_DICT",
        "EMPTY_LIST",
        "EMPTY_SET",
        "EMPTY_TUPLE",
        "GLOBAL",
        "LONG1",
        "LONG_BINGET",
        "LONG_BINPUT",
        "MARK",
        "NEWFALSE",
        "NEWOBJ",
        "NEWTRUE",
        "NONE",
        "PROTO",
        "REDUCE",
        "SETITEM",
        "SETITEMS",
        "SHORT_BINSTRING",
        "STOP",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
    }
)
# In a legacy file, other protocols spell the magic number before the object with an unknown opcode.
_LEGACY_PROTOCOLS = frozenset({2, 3})
_DICTIONARIES = frozenset({"collections.OrderedDict", "collections.Counter"})
# Of the listed names, those whose objects take a state; the others are functions, numbers and types.
_BUILT = _DICTIONARIES | {"torch.nn.parameter.Parameter", "torch.Tensor"}


def refusals(checkpoint: Checkpoint) -> Iterator[str]:
    """Give the reasons why `weights_only=True` stops though every name is on its list, one sentence each."""
    safety = checkpoint.safety
    strangers = [name for name in safety.opcodes if name not in OPCODES]
    again = "save the file again with pickle protocol 2"
    if strangers:
        yield f"weights_only=True does not know the opcode {strangers[0]}: {again}."
    elif checkpoint.format == "legacy" and safety.protocol not in _LEGACY_PROTOCOLS:
        yield f"weights_only=True does not read legacy files of pickle protocol {safety.protocol}: {again}."
    for name, verb in safety.uses:
        reason = _misuse(present_name(name), verb)
        if reason is not None:
            yield reason


def _misuse(name: str, verb: str) -> str | None:
    if not name:
        return "weights_only=True calls listed names only, and this pickle calls what has no name."
    if name == PERSISTENT_ID:
        return "weights_only=True takes no persistent ids but storages; legacy files of modules have others."
    if verb == "append":
        return f"weights_only=True appends to lists only, and this pickle to {name}."
    if verb == "setitem" and name not in _DICTIONARIES:
        return f"weights_only=True sets items of plain dictionaries only, and this pickle those of {name}."
    if verb == "build" and name in default_allow_list().names - _BUILT:
        return f"weights_only=True sets no state of {name}, and this pickle does."
    return None


def names_to_allow(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Give the names that are missing from torch's list, in the order of their first use.

    Among them are the types of NumPy's elements, which the file does not name but torch asks for.
    """
    listed = default_allow_list().names
    wanted = [present_name(use.name) for use in checkpoint.globals]
    wanted += [name for name, _ in checkpoint.safety.uses if name.startswith("numpy.dtypes.")]
    return tuple(dict.fromkeys(name for name in wanted if name not in listed))
