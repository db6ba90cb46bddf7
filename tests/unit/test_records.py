from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import types
import weakref
from typing import Generic, TypeVar

import pytest

from inspector import records
from inspector.records import as_document, dataclass, field, replace
from tests.sweep import table

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A frozen one."""

    x: int
    y: int = 7

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Draft(Generic[T]):
    name: str
    parts: list[T] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Thing:
    name: str


@dataclass(slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Secret:
    word: str

    def __repr__(self) -> str:
        return "Secret(...)"


def test_fields_are_given_by_name_or_take_their_default() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).total) == (1, 7, 3)
    assert Draft("a", [1]).parts == [1]
    assert isinstance(Empty(), Empty)


@table("given", [{}, {"x": 1, "z": 2}])
def test_missing_and_unknown_fields_are_refused(given: dict[str, int]) -> None:
    for _ in range(2):  # before and after the first instance has been made
        with pytest.raises(TypeError):
            Point(**given)


def test_fields_by_name_only_are_not_taken_by_place() -> None:
    with pytest.raises(TypeError):
        Point(1)


def test_each_instance_has_defaults_of_its_own() -> None:
    one, two = Draft("a"), Draft("b")
    one.parts.append(1)
    assert two.parts == []


def test_frozen_ones_cannot_be_changed_and_others_can() -> None:
    with pytest.raises(AttributeError, match="frozen: x"):
        Point(x=1).x = 2
    with pytest.raises(AttributeError, match="frozen: x"):
        del Point(x=1).x
    draft = Draft("a")
    draft.name = "b"
    assert draft.name == "b"
    with pytest.raises(AttributeError):
        draft.other = 1


def test_they_compare_and_hash_by_their_fields() -> None:
    assert Point(x=1) == Point(x=1, y=7)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != (1, 7)
    assert hash(Point(x=1)) == hash(Point(x=1))
    with pytest.raises(TypeError):
        hash(Draft("a"))


def test_without_eq_they_are_themselves_only() -> None:
    thing = Thing("a")
    assert thing != Thing("a")
    assert len({thing, thing, Thing("a")}) == 2


@pytest.mark.wide
def test_they_can_be_watched_where_that_was_asked_for() -> None:
    thing = Thing("a")
    seen = weakref.ref(thing)
    del thing
    gc.collect()
    assert seen() is None
    with pytest.raises(TypeError):
        weakref.ref(Point(x=1))


def test_they_say_what_they_are() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=7)"
    assert repr(Secret("abc")) == "Secret(...)"
    assert Point.__doc__ == "A frozen one."
    assert Point.__qualname__ == "Point"


def test_replacing_makes_another_one() -> None:
    point = Point(x=1)
    assert replace(point, x=5) == Point(x=5)
    assert point.x == 1
    with pytest.raises(TypeError):
        replace(point, z=1)


def made(body: dict[str, object], *bases: type, **how: bool) -> type:
    """A record of this body; every name that is written with a type there is a field."""
    annotations = {name.split(":")[0]: name.split(":")[1] for name in body if ":" in name}
    plain = {name.split(":")[0]: value for name, value in body.items() if value is not None}
    return dataclass(**{"slots": True, **how})(type("Row", bases, {**plain, "__annotations__": annotations}))


@table(
    ("body", "bases", "how", "why"),
    [
        ({}, (), {"slots": False}, "slots"),
        ({"x:int": None}, (Exception,), {}, "inherits"),
        ({"x:int": None, "__post_init__": print}, (), {}, "made for it"),
        ({"x:int": None, "__init__": print}, (), {}, "made for it"),
        ({"x:ClassVar[int]": 1}, (), {}, "no field"),
        ({"x:dataclasses.InitVar[int]": 1}, (), {}, "no field"),
        ({"x:list[int]": []}, (), {}, "default_factory"),
        ({"x:dict[str, int]": {}}, (), {"kw_only": True}, "default_factory"),
        ({"x:object": Draft("a")}, (), {}, "default_factory"),
        ({"x:int": 1, "y:int": None}, (), {}, "behind one with a default"),
    ],
)
def test_what_records_do_not_do_is_refused_when_one_is_made(
    body: dict[str, object], bases: tuple[type, ...], how: dict[str, bool], why: str
) -> None:
    with pytest.raises(TypeError, match=why):
        made(body, *bases, **how)


def test_a_record_has_no_heirs() -> None:
    with pytest.raises(TypeError, match="Heir inherits from a record"):
        type("Heir", (Point,), {})


def test_fields_by_place_are_matched_by_place_and_others_are_not() -> None:
    match Draft("a", [1]):
        case Draft(name, parts):
            assert (name, parts) == ("a", [1])
    assert Point.__match_args__ == ()


def test_records_are_documents() -> None:
    row = made({"one:Point": None, "many:tuple": (Point(x=1, y=2), ("a", None))}, kw_only=True)
    assert as_document(row(one=Point(x=3))) == {
        "one": {"x": 3, "y": 7},
        "many": [{"x": 1, "y": 2}, ["a", None]],
    }


def test_they_behave_as_the_standard_ones() -> None:
    standard = dataclasses.make_dataclass("Point", [("x", int), ("y", int, 7)], frozen=True, kw_only=True)
    for given in ({"x": 1}, {"x": 1, "y": 2}):
        assert repr(standard(**given)) == repr(Point(**given))
        assert hash(standard(**given)) == hash(Point(**given))


def test_ctrl_c_while_a_record_is_made_is_still_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ends by the signal where it came while `exec` ran a str, whatever is done about it then."""
    ran = []

    def run(code: object, scope: dict[str, object]) -> None:
        ran.append(type(code))
        exec(code, scope)

    monkeypatch.setattr(records, "exec", run, raising=False)

    @dataclass(slots=True)
    class Row:
        x: int

    assert Row(1).x == 1
    assert ran == [types.CodeType]


def test_they_can_be_copied_and_sent_to_other_processes() -> None:
    for one in (Point(x=1), Draft("a", [1, 2]), Empty()):
        for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert again == one
            assert type(again) is type(one)
    with pytest.raises(AttributeError, match="is frozen"):
        copy.copy(Point(x=1)).x = 2  # type: ignore[misc]


@pytest.mark.parametrize("frozen", [False, True])
def test_the_first_are_made_as_all_others(frozen: bool) -> None:
    @dataclass(frozen=frozen, slots=True, kw_only=True)
    class Row:
        name: str
        count: int = 3
        parts: list[int] = field(default_factory=list)

    waits = Row.__init__
    made = []
    for number in range(records._FEW):
        made += [Row(name="a"), Row(name="a", count=number)]
        if number == 1:
            assert Row.__init__ is waits  # nothing was compiled for the first
    assert Row.__init__ is not waits
    assert all(row == Row(name="a", count=row.count) for row in made)
    assert made[0].count == made[-2].count == 3
    assert len({id(row.parts) for row in made}) == len(made)
    for given in ({}, {"name": "a", "size": 1}):

        @dataclass(frozen=frozen, slots=True, kw_only=True)
        class Fresh:
            name: str

        with pytest.raises(TypeError, match=r"name|size"):
            Fresh(**given)
