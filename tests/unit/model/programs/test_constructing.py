from __future__ import annotations

from inspector.model.programs.facts import split_by_use
from tests.builders.pickles import call, dict_, list_, name, new, number, op, read, text, tuple_
from tests.sweep import table

PAIR = (text("a"), number(1))
FROM_TYPE = "torch._tensor._rebuild_from_type_v2"


def split(*parts: bytes) -> tuple[set[str], set[str]]:
    constructed, called = split_by_use(read(list_(*parts)).calls)
    return set(constructed), set(called)


@table(
    ("made", "constructed", "called"),
    [
        (new("m.C"), {"m.C"}, set()),
        (new("m.C", PAIR), {"m.C"}, set()),
        (new("m.C") + tuple_(op("NONE"), dict_(PAIR)) + op("BUILD"), {"m.C"}, set()),
        (new("m.C") + op("NONE") + op("BUILD"), {"m.C"}, set()),
        (new("m.C") + text("x") + op("BUILD"), set(), {"m.C"}),
        (new("m.C") + tuple_(number(1), op("NONE")) + op("BUILD"), set(), {"m.C"}),
        (name("m.C"), set(), set()),
        (call("m.C"), set(), {"m.C"}),
        (new("m.C") + call("m.C"), set(), {"m.C"}),
        (new("m.C") + call("m.f", name("m.C")), set(), {"m.C", "m.f"}),
        (new("m.C") + call("m.f", list_(dict_((text("x"), tuple_(name("m.C")))))), set(), {"m.C", "m.f"}),
        (
            new("m.C") + call("m.f", op("EMPTY_SET") + op("MARK") + name("m.C") + op("ADDITEMS")),
            set(),
            {"m.C", "m.f"},
        ),
        (name("m.C") + op("EMPTY_TUPLE") + dict_(PAIR) + op("NEWOBJ_EX"), set(), {"m.C"}),
        (op("MARK") + number(1) + op("INST", b"m\nC\n"), set(), {"m.C"}),
        (call(FROM_TYPE, name("m.f"), name("m.C"), tuple_(), dict_()), {"m.C"}, {FROM_TYPE, "m.f"}),
        (call(FROM_TYPE, name("m.C"), name("m.C"), tuple_(), dict_()), set(), {FROM_TYPE, "m.C"}),
        (call(FROM_TYPE, name("m.f"), number(1)), set(), {FROM_TYPE, "m.f"}),
        (call(FROM_TYPE, name("m.f")), set(), {FROM_TYPE, "m.f"}),
        (call(FROM_TYPE, *[name("m.C")] * 17), set(), {FROM_TYPE, "m.C"}),
        (
            call("torch._utils._rebuild_wrapper_subclass", name("m.C"), number(1)),
            {"m.C"},
            {"torch._utils._rebuild_wrapper_subclass"},
        ),
        (text("x") + op("EMPTY_TUPLE") + op("NEWOBJ"), set(), set()),
    ],
)
def test_how_names_are_used(made: bytes, constructed: set[str], called: set[str]) -> None:
    assert split(made) == (constructed, called)


def test_what_calls_share_is_looked_into_once() -> None:
    """A container handed to many calls costs as much as one."""
    stream = read(
        list_(
            list_(*(name(f"m.C{number_}") for number_ in range(50))) + op("BINPUT", b"\1"),
            *(name("m.f") + op("BINGET", b"\1") + op("TUPLE1") + op("REDUCE") for _ in range(50)),
        )
    )

    class Counted(list):
        visits = 0

        def __iter__(self):
            Counted.visits += 1
            return super().__iter__()

    shared = Counted(stream.root[0])
    for made in stream.calls:
        made.args = (shared,)
    assert len(split_by_use(stream.calls)[1]) == 51
    assert Counted.visits == 1
