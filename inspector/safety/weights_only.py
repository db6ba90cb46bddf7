"""Why torch's restricted unpickler stops, whatever is on its list.

The rules are those of `torch/_weights_only_unpickler.py`: 34 opcodes, written with protocols 2 and 3 in mind;
no calls of what is no listed name; appending to lists only, items of three kinds of dictionary only.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers.formats import format_of
from inspector.model.arguments.random_generators import RANDOM_TYPES
from inspector.model.checkpoint import Checkpoint, Fault, KeyFault, Verb
from inspector.model.programs.uses import PERSISTENT_ID
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.values import present_name
from inspector.safety.allowlist import AllowList

_DICTIONARIES = frozenset({"collections.OrderedDict", "collections.Counter"})
_OTHER_IDS = "weights_only=True takes only storages as persistent ids; legacy files of modules have others."
_BAD_IDS = "The place of a tensor's bytes is written in a way that torch cannot read."
_TAR = (
    "weights_only=True does not read tar files of torch 0.1. Write its weights into a new file, or load and "
    "save it once with weights_only=False, if you trust it."
)
_FAULTS: dict[Fault, str] = {
    KeyFault.UNHASHABLE: "a dictionary has an unhashable key, such as a list",
    KeyFault.ENDLESS: "a key of a dictionary is built so that comparing it never ends, and torch hangs",
    KeyFault.ALIKE: "thousands of keys of a dictionary have the same hash, and torch takes minutes over them",
    KeyFault.DEEP: "a key of a dictionary is nested so deeply that torch crashes",
    StreamFault.UNDECODABLE_NAME: "a name to import is not UTF-8",
    StreamFault.UNDECODABLE_TEXT: (
        "a str of Python 2 is not UTF-8; torch.load has the argument encoding for that"
    ),
    OddityKind.ODD_ITEMS: "a dictionary gets a key without a value",
    OddityKind.APPEND_ON_OTHER: "something is appended to an object that is no list",
    OddityKind.SETITEM_ON_OTHER: "an item is set on an object that is no dictionary",
    OddityKind.BUILD_ON_NAME: "the state of an imported object is set",
    StreamFault.BUILD_OF_NONE: "the state of an object is set to None",
    OddityKind.BUILD_ON_OTHER: "the state of an object is set that has none",
}


def unknown_opcode(checkpoint: Checkpoint, allowed: AllowList) -> str:
    """Return the first opcode that ends the load, by pickletools' name; empty where all are known."""
    if not format_of(checkpoint.format).loads_restricted:
        return ""
    return next((name for name in checkpoint.needs.opcodes if name not in allowed.opcodes), "")


def refusals(checkpoint: Checkpoint, allowed: AllowList) -> Iterator[str]:
    """Yield the reasons why `weights_only=True` stops though every name is on its list, one sentence each."""
    safety = checkpoint.needs
    if not format_of(checkpoint.format).loads_restricted:
        yield _TAR
        return
    again = "save the file again with pickle protocol 2"
    opcode = unknown_opcode(checkpoint, allowed)
    if opcode:
        yield f"weights_only=True does not know the opcode {opcode}: {again}."
    for name, verb in safety.uses:
        reason = _misuse(present_name(name), verb)
        if reason is not None:
            yield reason
    for fault in safety.faults:
        if fault in _FAULTS:
            yield f"weights_only=True stops because {_FAULTS[fault]}."


def _misuse(name: str, verb: Verb) -> str | None:
    if not name:
        return (
            "weights_only=True calls only names on its list, and this pickle calls an object without a name."
        )
    if name == PERSISTENT_ID:
        return _BAD_IDS if verb is Verb.MISREAD else _OTHER_IDS
    if verb is Verb.MISCALL:
        return f"{name} is called with arguments that it does not take."
    return _misfit(name, verb)


def _misfit(name: str, verb: Verb) -> str | None:
    """Return what is done to an object that torch does to other types only."""
    if verb is Verb.APPEND:
        return f"weights_only=True appends to lists only, and this pickle appends to {name}."
    if verb is Verb.SETITEM and name not in _DICTIONARIES:
        return f"weights_only=True sets items of plain dicts only, and this pickle sets items of {name}."
    if verb is Verb.MISBUILD:
        return f"weights_only=True sets no state of {name} such as this pickle's."
    return None


def _is_unnamed(name: str) -> bool:
    return name.startswith("numpy.dtypes.") or name in RANDOM_TYPES


def names_to_allow(checkpoint: Checkpoint, allowed: AllowList) -> tuple[str, ...]:
    """Return the names that are missing from torch's list, in the order of their first use.

    Among them are the types of NumPy's elements and random generators, which the file does not name but torch
    asks for.
    """
    wanted = [present_name(use.name) for use in checkpoint.globals if not use.elsewhere]
    wanted += [name for name, _ in checkpoint.needs.uses if _is_unnamed(name)]
    return tuple(dict.fromkeys(name for name in wanted if name not in allowed.names))
