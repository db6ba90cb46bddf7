"""Whether a file begins with a pickle of protocol 0 or 1, which do not say so: it is tried."""

from __future__ import annotations

from inspector.containers.source import Source
from inspector.errors import BrokenOffError, PickleError
from inspector.limits import Limits
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import Machine
from inspector.pickles.values import Call, Dict, Set

_LOOK_NBYTES = 1 << 14
# What picklers begin an object with: a mark, an empty container, a name.
_FIRST = frozenset(CODES[name] for name in ("MARK", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "GLOBAL"))


def begins_undeclared(source: Source) -> bool:
    """Return whether a pickle begins a file that holds a container or an object, as far as one can see.

    Texts may begin like pickles, but no text remembers values in the memo.
    """
    data = source.read_upto(0, _LOOK_NBYTES)
    if not data or data[0] not in _FIRST:
        return False
    machine = Machine(data, name="a pickle", limits=Limits(opcodes=_LOOK_NBYTES, values=_LOOK_NBYTES))
    state = machine.state
    try:
        root = machine.run().root
    except BrokenOffError:
        return bool(state.memo)
    except PickleError:
        return False
    return bool(state.memo) and isinstance(root, Dict | list | tuple | Set | Call)
