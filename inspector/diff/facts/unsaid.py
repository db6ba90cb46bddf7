"""What a pickle says of a tensor and no row shows: its class, its quantizer, bits such as conjugation."""

from __future__ import annotations

from inspector.diff.content.elements import MARKS, UNMARKED, Marks
from inspector.diff.facts.tokens import Tokens
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.records import dataclass

_PARAMETERS = frozenset({"_rebuild_parameter", "_rebuild_parameter_with_state"})
_TYPED = frozenset({"_rebuild_from_type", "_rebuild_from_type_v2"})
_QUANTIZED, _QUANTIZER = "_rebuild_qtensor", 4
_SPARSE = "_rebuild_sparse_tensor"
# How many arguments the row says itself; behind them stands what it does not.
_SAID = {
    "_rebuild_tensor": 4,
    "_rebuild_tensor_v2": 6,
    "_rebuild_tensor_v3": 7,
    "_rebuild_meta_tensor_no_storage": 4,
}
_MOST_NESTED = 8
_TENSOR, _PARAMETER = "torch.Tensor", "torch.nn.parameter.Parameter"


@dataclass(slots=True, kw_only=True)
class Unsaid:
    """What no row shows.

    Attributes:
        cls: The class of the tensor.
        rest: The values that decide what it is besides.
        is_sparse: Whether it is sparse: of another layout, other settings are none that differ.
    """

    cls: str
    rest: list[Value]
    is_sparse: bool = False


def compare_unsaid(one: Value, other: Value, one_tokens: Tokens, other_tokens: Tokens) -> tuple[str, ...]:
    """Return `class` and `metadata` where the pickles of two tensors differ in them.

    A format without a pickle says neither, which is no difference.
    """
    if _is_plain(one) and _is_plain(other):
        return ()
    first, second = unsaid_of(one), unsaid_of(other)
    if first is None or second is None:
        return ()
    found = () if first.cls == second.cls else ("class",)
    is_same = first.is_sparse != second.is_sparse or one_tokens.of(first.rest) == other_tokens.of(second.rest)
    return found if is_same else (*found, "metadata")


def _is_plain(value: Value) -> bool:
    """Return whether a value is what nearly all tensors are."""
    return (
        type(value) is Call
        and type(value.func) is Global
        and value.func.name == "_rebuild_tensor_v2"
        and isinstance(value.args, tuple)
        and len(value.args) <= _SAID["_rebuild_tensor_v2"]
    )


def unsaid_of(value: Value) -> Unsaid | None:
    """Return what no row shows of a tensor; None for what says nothing of the kind."""
    cls = _TENSOR
    rest: list[Value] = []
    for _ in range(_MOST_NESTED):
        if type(value) is not Call or type(value.func) is not Global or not isinstance(value.args, tuple):
            return None
        name, args = value.func.name, value.args
        if name in _PARAMETERS and args:
            cls = _PARAMETER
            rest += args[3:]
            value = args[0]
        elif name in _TYPED and len(args) == 4:
            cls = args[1].dotted if type(args[1]) is Global else cls
            value = Call(args[0], args[2], "reduce")
        elif name == _QUANTIZED:
            return Unsaid(cls=cls, rest=[*rest, *args[_QUANTIZER : _QUANTIZER + 1]])
        elif name == _SPARSE and len(args) == 2:  # its last part says whether it is coalesced; none means no
            data = args[1] if isinstance(args[1], tuple) else ()
            coalesced = (part for part in data[3:] if part is True)
            return Unsaid(cls=cls, rest=[*rest, *coalesced], is_sparse=True)
        elif name in _SAID:
            return Unsaid(cls=cls, rest=[*rest, *filter(_says, args[_SAID[name] :])])
        else:  # what it is made of has rows of its own
            return Unsaid(cls=cls, rest=rest)
    return None


def marks_of(value: Value) -> Marks:
    """Return whether a tensor is said to be conjugated or negated, and holds the elements of before."""
    if _is_plain(value):
        return UNMARKED
    found = unsaid_of(value)
    parts = [] if found is None else found.rest
    said = [key for part in parts if isinstance(part, Dict) for key, is_so in part.pairs if is_so is True]
    return frozenset(mark for mark in MARKS if mark in said)


def _says(value: Value) -> bool:
    """Return whether an argument says anything: torch writes an empty dictionary where there is nothing."""
    return value is not None and not (isinstance(value, Dict) and not value.pairs)
