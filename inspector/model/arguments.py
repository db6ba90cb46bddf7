"""Whether what torch's restricted unpickler lets a pickle call takes the arguments that it is given.

Tensors are another matter, see `model.tensors`. The table holds what is cheap to tell and wrong for certain;
whatever is not in it passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from inspector.containers.persistent_ids import STORAGE_DTYPES
from inspector.model.dtypes import ITEMSIZES
from inspector.pickles.values import Call, Dict, Set, Value

_KINDS = (
    "cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta"
    "|hpu|mtia|privateuseone"
)
_DEVICE = re.compile(rf"({_KINDS})(:(0|[1-9][0-9]?))?")
_PAIR = 2


def may_take(name: str, call: Call) -> bool:
    """Say whether a call of a name may succeed, as far as its arguments tell."""
    name = name.replace("__builtin__.", "builtins.")
    if not isinstance(call.args, list | tuple) or name in _NEVER_CALLED:
        return False
    if call.kind == "newobj":
        return name not in _FUNCTIONS
    check = _CHECKS.get(name)
    return check is None or check(tuple(call.args))


def _is_iterable(value: Value) -> bool:
    return isinstance(value, str | bytes | list | tuple | Dict | Set | Call)


def _takes_items(args: tuple[Value, ...]) -> bool:
    return len(args) == 0 or (len(args) == 1 and _is_iterable(args[0]))


def _takes_pairs(args: tuple[Value, ...]) -> bool:
    if len(args) != 1 or not isinstance(args[0], list | tuple):
        return len(args) == 0 or (len(args) == 1 and isinstance(args[0], Dict | Call))
    return all(isinstance(item, list | tuple | str | Call) and _is_pair(item) for item in args[0])


def _is_pair(item: list[Value] | tuple[Value, ...] | str | Call) -> bool:
    return isinstance(item, Call) or len(item) == _PAIR


def _takes_sizes(args: tuple[Value, ...]) -> bool:
    if len(args) != 1:
        return len(args) == 0
    sizes = args[0]
    if isinstance(sizes, list | tuple):
        return all(type(size) in {int, bool} for size in sizes)
    return not isinstance(sizes, str | bytes | int | float | None)


def _takes_device(args: tuple[Value, ...]) -> bool:
    if not args or len(args) > _PAIR:
        return False
    name, *index = args
    if isinstance(name, str):
        return _DEVICE.fullmatch(name) is not None and all(type(number) is int for number in index)
    return type(name) is int and not index


def _takes_text(args: tuple[Value, ...]) -> bool:
    if not args or not isinstance(args[0], str) or not all(isinstance(arg, str) for arg in args):
        return False
    return len(args) == 1 or args[1] != "ascii" or args[0].isascii()


def _takes_parts(args: tuple[Value, ...]) -> bool:
    kinds = {type(arg) for arg in args}
    if str in kinds:
        return len(args) == 1
    return len(args) <= _PAIR and kinds <= {int, float, bool, Call}


_FUNCTIONS = frozenset({"_codecs.encode", "torch.serialization._get_layout"})
_NEVER_CALLED = frozenset(
    {f"torch.{name}" for name in ITEMSIZES}
    | {f"torch.{name}Storage" for name in STORAGE_DTYPES if "Untyped" not in name}
    | {f"torch.cuda.{name}Storage" for name in STORAGE_DTYPES if "Untyped" not in name}
)
_CHECKS: dict[str, Callable[[tuple[Value, ...]], bool]] = {
    "_codecs.encode": _takes_text,
    "builtins.complex": _takes_parts,
    "builtins.set": _takes_items,
    "collections.Counter": _takes_items,
    "collections.OrderedDict": _takes_pairs,
    "torch.Size": _takes_sizes,
    "torch.device": _takes_device,
}
