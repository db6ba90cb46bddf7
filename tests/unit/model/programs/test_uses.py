"""What a pickle does with the names it imports."""

from __future__ import annotations

import enum
import pickle
from pathlib import Path

import pytest

from inspector.model.checkpoint import Verb
from inspector.model.programs.uses import PERSISTENT_ID, note_attributes, note_use
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call
from tests.builders.pickles import NONE, STOP, list_, name, number, op, proto, text, tuple_
from tests.sweep import table
from tests.unit.model.making import built, by_hand, call, numbers, pairs, root_of, saved, view


def uses(made: bytes) -> set[tuple[str, str]]:
    value = root_of(made)
    assert isinstance(value, Call)
    noted: set[tuple[str, str]] = set()
    note_use(noted, value)
    return noted


@table(
    ("made", "expected"),
    [
        (call("a.B"), {("a.B", Verb.CALL)}),
        (built(call("a.B"), pairs(x=number(1))), {("a.B", Verb.CALL), ("a.B", Verb.BUILD)}),
        (built(call("torch.Size"), number(1)), {("torch.Size", Verb.CALL), ("torch.Size", Verb.MISBUILD)}),
        (
            call("torch.Size") + number(1) + op("APPEND"),
            {("torch.Size", Verb.CALL), ("torch.Size", Verb.APPEND)},
        ),
        (call("a.B") + number(1) + op("APPEND"), {("a.B", Verb.CALL), ("a.B", Verb.APPEND)}),
        (call("a.B") + text("k") + number(1) + op("SETITEM"), {("a.B", Verb.CALL), ("a.B", Verb.SETITEM)}),
        (text("x") + op("EMPTY_TUPLE") + op("REDUCE"), {("", Verb.CALL)}),
        (text("x") + op("BINPERSID") + op("EMPTY_TUPLE") + op("NEWOBJ"), {(PERSISTENT_ID, Verb.CALL)}),
    ],
)
def test_uses(made: bytes, expected: set[tuple[str, str]]) -> None:
    assert uses(made) == expected


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        ("f4", "Float32DType"),
        ("u2", "UInt16DType"),
        ("b1", "BoolDType"),
        ("U1", "StrDType"),
        ("M8", "DateTime64DType"),
    ],
)
def test_types_of_elements_are_used_though_never_named(code: str, cls: str) -> None:
    np = pytest.importorskip("numpy")
    dtype = call("numpy.dtype", text(code), op("NEWFALSE"), op("NEWTRUE"))
    array = call("numpy._core.multiarray._reconstruct", name("numpy.ndarray"), numbers(0))
    made = built(array, tuple_(number(1), numbers(2), dtype, op("NEWFALSE"), text("")))
    assert (f"numpy.dtypes.{cls}", Verb.BUILD) in uses(made)
    assert type(np.zeros(1, {"M8": "M8[s]"}.get(code, code)).dtype).__name__ == cls


def test_strangers_among_persistent_ids_are_noted() -> None:
    assert by_hand(view()).safety.uses == ()
    for pid in (text("x"), tuple_(), tuple_(text("module"), number(1))):
        assert by_hand(pid + op("BINPERSID")).safety.uses == ((PERSISTENT_ID, Verb.LOAD),)


def test_tensors_are_left_out() -> None:
    checkpoint = by_hand(pairs(w=view(), x=built(call("a.B"), pairs(y=view()))))
    assert checkpoint.safety.uses == (("a.B", Verb.BUILD), ("a.B", Verb.CALL))


# --- getattr ------------------------------------------------------------------------------------------------


def attributes(*made: bytes) -> set[tuple[str, str]]:
    noted: set[tuple[str, str]] = set()
    note_attributes(noted, read_pickle(proto() + b"".join(made) + STOP))
    return noted


def reach(owner: bytes = name("my.Color"), attribute: bytes = text("RED")) -> bytes:
    return call("__builtin__.getattr", owner, attribute)


TOLD = {("my.Color.RED", Verb.GETATTR)}
NOT_TOLD = {("", Verb.GETATTR)}


@table(
    ("made", "expected"),
    [
        (list_(number(1)), set()),
        (reach(), TOLD),
        (call("builtins.getattr", name("my.Color"), text("RED")), TOLD),
        (pairs(a=reach(), b=list_(tuple_(reach()))), TOLD),
        (op("EMPTY_DICT") + reach() + number(1) + op("SETITEM"), TOLD),
        (call("a.B", reach()), TOLD),
        (built(call("a.B"), reach()), TOLD),
        (call("a.B") + reach() + op("APPEND"), TOLD),
        (call("a.B") + reach() + reach() + op("SETITEM"), TOLD),
        (reach() + op("EMPTY_TUPLE") + op("REDUCE"), TOLD),
        (tuple_(text("x"), reach()) + op("BINPERSID"), TOLD),
        (op("EMPTY_SET") + op("MARK") + reach() + op("ADDITEMS"), TOLD),
        (reach(owner=text("x")), NOT_TOLD),
        (reach(attribute=number(1)), NOT_TOLD),
        (call("__builtin__.getattr", name("a.B")), NOT_TOLD),
        (name("__builtin__.getattr") + number(1) + op("REDUCE"), NOT_TOLD),
        (reach(owner=reach()), NOT_TOLD | TOLD),
        (call("a.apply", name("__builtin__.getattr"), text("x")), NOT_TOLD),
        (reach() + op("POP") + number(1), TOLD),
        (op("MARK") + reach() + op("POP_MARK") + number(1), TOLD),
        (reach() + number(1), TOLD),
        (op("MARK") + reach() + op("MARK") + number(1), TOLD),
        (reach() + op("DUP") + op("POP") + op("POP") + number(1), TOLD),
        (call("a.apply", name("__builtin__.getattr")) + op("POP") + number(1), NOT_TOLD),
        (reach() + op("EXT1", b"\1"), TOLD | NOT_TOLD),
        (call("a.B") + op("BINPUT", b"\0") + reach() + op("BUILD") + op("POP") + number(1), TOLD),
    ],
)
def test_what_getattr_reaches(made: bytes, expected: set[tuple[str, str]]) -> None:
    assert attributes(made) == expected


def test_attributes_are_looked_for_as_long_as_there_is_time() -> None:
    noted: set[tuple[str, str]] = set()
    note_attributes(noted, read_pickle(proto() + list_(reach()) + STOP), ends_s=-1.0)
    assert noted == NOT_TOLD


def test_storages_that_cannot_be_read() -> None:
    strange = tuple_(text("storage"), op("NONE"), text("0"), text("cpu"), number(1)) + op("BINPERSID")
    assert (PERSISTENT_ID, Verb.MISREAD) in by_hand(strange).safety.uses


@table(
    ("view", "is_read"),
    [
        (None, True),
        (NONE, True),
        (tuple_(text("v"), number(0), number(1)), True),
        (list_(text("v"), number(0), number(1)), True),
        (tuple_(text("v"), number(0)), False),
        (tuple_(text("v"), NONE, number(1)), False),
        (number(0), False),
    ],
)
@table("form", ["zip", "legacy"])
def test_each_form_has_ids_of_its_own(form: str, view: bytes | None, is_read: bool) -> None:
    parts = [text("storage"), name("torch.FloatStorage"), text("0"), text("cpu"), number(1)]
    pid = tuple_(*parts, *([] if view is None else [view])) + op("BINPERSID")
    is_right = view is None if form == "zip" else view is not None and is_read
    assert ((PERSISTENT_ID, Verb.MISREAD) in by_hand(pid, form=form).safety.uses) != is_right


def test_shared_and_circular_values_are_looked_at_once() -> None:
    shared = list_(reach()) + op("BINPUT", b"\1")
    made = op("EMPTY_LIST") + op("BINPUT", b"\0") + op("MARK") + shared
    made += op("BINGET", b"\1") * 3 + op("BINGET", b"\0") + op("APPENDS")
    assert attributes(made) == TOLD


class Color(enum.Enum):
    RED = 1


@pytest.mark.torch
def test_enumerations_are_pickled_with_it_by_some_versions_of_python(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    spelled = pickle.dumps(Color.RED, 2)
    checkpoint = saved(tmp_path, {"color": Color.RED})
    reached = [found for found, verb in checkpoint.safety.uses if verb is Verb.GETATTR]
    assert reached == ([f"{Color.__module__}.Color.RED"] if b"getattr" in spelled else [])


def test_what_getattr_reaches_is_cut() -> None:
    owner = op("GLOBAL", b"a" * 5000 + b"\nB\n")
    made = name("builtins.getattr") + owner + text("c" * 5000) + op("TUPLE2") + op("REDUCE")
    uses: set[tuple[str, str]] = set()
    note_attributes(uses, read_pickle(proto() + made + STOP))
    assert uses == {(f"{'a' * 1000}.{'c' * 1000}", Verb.GETATTR)}
