from __future__ import annotations

import pytest

from inspector.containers.container import Container, first_storage_ids
from inspector.containers.programs import Program
from inspector.errors import CancelledError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Dict, Value
from inspector.progress import Progress
from inspector.remap.integrity import PATIENT, Lost, Rows, drop_lost, list_rows
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    list_,
    name,
    number,
    op,
    plain,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.sweep import table

GONE = tensor(storage("gone", numel=2), 2)
HERE = tensor(storage("here", numel=2), 2)
WHY = "its bytes are not in the file"


def container(*parts: bytes) -> Container:
    read = read_pickle(stream(proto(), *parts))
    return Container(
        path="x",
        format="zip",
        file_nbytes=0,
        root=read.root,
        stream=read,
        programs=(Program("data.pkl", "object", read),),
        storage_ids=first_storage_ids(read.persistent_ids, DEFAULT_LIMITS),
        stored={},
    )


def rows_of(made: Container) -> Rows:
    return list_rows(made, {"gone": WHY}, DEFAULT_LIMITS, Progress())


def left(*parts: bytes) -> Value:
    """What is left of an object, as plain data; a tensor that is whole shows as 'here'."""
    made = container(*parts)
    rows = rows_of(made)
    root = drop_lost(made.stream.root, rows.lost_values, Progress())
    return shown(root)


def shown(value: Value) -> Value:
    if isinstance(value, Call):
        name = getattr(value.func, "dotted", "?")
        if name.startswith("torch._utils._rebuild_tensor"):
            return value.args[0].pid[2]
        parts = [value.args, value.kwargs, value.state, value.items, value.pairs]
        return (name, *(shown(part) for part in parts if part))
    if isinstance(value, Dict):
        return {shown(key): shown(item) for key, item in value.pairs}
    if isinstance(value, list | tuple):
        return type(value)(map(shown, value))
    return plain(value)


def d(**items: bytes) -> bytes:
    return dict_(*((text(key), value) for key, value in items.items()))


@table(
    ("value", "expected"),
    [
        (d(a=HERE, b=GONE, c=number(1)), {"a": "here", "c": 1}),
        (d(a=d(x=GONE), b=HERE), {"a": {}, "b": "here"}),
        (list_(HERE, GONE, number(1)), ["here", None, 1]),
        (tuple_(HERE, GONE), ("here", None)),
        (d(a=tuple_(number(1), tuple_(GONE, HERE))), {"a": (1, (None, "here"))}),
        (d(a=list_(tuple_(GONE)), b=HERE), {"a": [(None,)], "b": "here"}),
        (d(a=storage("gone"), b=HERE), {"b": "here"}),
        (
            call("collections.OrderedDict")
            + text("k")
            + GONE
            + op("SETITEM")
            + text("l")
            + HERE
            + op("SETITEM"),
            ("collections.OrderedDict", [("l", "here")]),
        ),
        # Python 2: a list of lists
        (
            call("collections.OrderedDict", list_(list_(text("k"), GONE), list_(text("l"), HERE))),
            ("collections.OrderedDict", [("l", "here")]),
        ),
        (call("m.Point", HERE, GONE), ("m.Point", ("here", None))),
        (call("m.Net") + d(weight=GONE, bias=HERE) + op("BUILD"), ("m.Net", {"bias": "here"})),
        (call("m.Net") + tuple_(NONE, d(w=GONE)) + op("BUILD"), ("m.Net", (None, {}))),
        (
            call("collections.deque") + MARK + GONE + HERE + op("APPENDS"),
            ("collections.deque", [None, "here"]),
        ),
        (
            name("m.C") + tuple_() + d(kw=GONE) + op("NEWOBJ_EX"),
            ("m.C", {}),
        ),
        # a composite is lost with any of its parts
        (
            d(
                p=call(
                    "torch._utils._rebuild_parameter", GONE, op("NEWTRUE"), call("collections.OrderedDict")
                ),
                q=HERE,
            ),
            {"q": "here"},
        ),
        (
            d(
                s=call(
                    "torch._utils._rebuild_sparse_tensor",
                    call("torch.serialization._get_layout", text("torch.sparse_coo")),
                    tuple_(HERE, GONE, call("torch.Size", tuple_(number(2)))),
                ),
                q=HERE,
            ),
            {"q": "here"},
        ),
        (
            op("EMPTY_SET") + MARK + number(1) + tuple_(number(2), GONE) + op("ADDITEMS"),
            ("set", [1, (2, None)]),
        ),
    ],
)
def test_what_is_left(value: bytes, expected: Value) -> None:
    assert left(value) == expected


def test_nothing_is_touched_when_nothing_is_lost() -> None:
    made = container(d(a=HERE, b=tuple_(HERE)))
    assert rows_of(made).lost_values == frozenset()
    root = made.stream.root
    before = list(root.pairs)
    assert drop_lost(root, frozenset(), Progress()) is root
    assert root.pairs == before


def test_rows_are_sorted_and_say_why() -> None:
    sparse = call(
        "torch._utils._rebuild_sparse_tensor",
        call("torch.serialization._get_layout", text("torch.sparse_coo")),
        tuple_(HERE, GONE, call("torch.Size", tuple_(number(2)))),
    )
    odd = tensor(storage("here", numel=2), 3)
    rows = rows_of(container(d(a=HERE, s=sparse, b=GONE, odd=odd, c=HERE)))
    assert [tensor.path for tensor in rows.kept] == ["a", "c"]
    assert [row.path for row in rows.lost] == ["s", "b", "odd"]
    assert rows.lost[0].why == WHY
    assert rows.lost[1] == Lost("b", WHY, "cpu", "float32", (2,), 8)
    assert "storage" in rows.lost[2].why


def test_what_is_shared_stays_shared() -> None:
    made = container(op("EMPTY_DICT"), op("BINPUT", b"\1"), text("a"), list_(GONE), op("BINPUT", b"\2"),
                     op("SETITEM"), text("b"), op("BINGET", b"\2"), op("SETITEM"), text("me"),
                     op("BINGET", b"\1"), op("SETITEM"))  # fmt: skip
    root = drop_lost(made.stream.root, rows_of(made).lost_values, Progress())
    pairs = dict(root.pairs)
    assert pairs["a"] is pairs["b"]
    assert pairs["a"] == [None]
    assert pairs["me"] is root


def test_root_itself_may_be_lost() -> None:
    made = container(GONE)
    assert drop_lost(made.stream.root, rows_of(made).lost_values, Progress()) is None


@pytest.mark.wide
def test_deep_and_doubled_tuples_are_copied_once() -> None:
    # Deeper than anything is listed, so the row that is lost is told by hand.
    deep = container(op("EMPTY_LIST"), op("TUPLE1") * 50_000)
    root = drop_lost(deep.stream.root, frozenset({1}), Progress())
    for _ in range(50_000):
        (root,) = root
    assert root == []
    doubled = op("EMPTY_TUPLE") + (op("DUP") + op("TUPLE2")) * 100
    made = container(list_(doubled, GONE))
    root = drop_lost(made.stream.root, rows_of(made).lost_values, Progress())
    assert root[1] is None  # and it ends at all: written out, the tuple has 2 to the 100 parts


@pytest.mark.wide
def test_cancellation() -> None:
    made = container(op("EMPTY_LIST"), MARK, GONE, op("EMPTY_LIST") * 20_000, op("APPENDS"))
    lost = rows_of(made).lost_values
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        drop_lost(made.stream.root, lost, progress)
    with pytest.raises(CancelledError):
        list_rows(made, {}, DEFAULT_LIMITS, progress)


def test_work_that_was_asked_for_may_take_longer() -> None:
    assert PATIENT.seconds > 10 * DEFAULT_LIMITS.seconds
    assert PATIENT.opcodes == DEFAULT_LIMITS.opcodes
