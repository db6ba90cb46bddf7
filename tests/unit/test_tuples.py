from __future__ import annotations

import copy
import pickle
import typing

import pytest

from inspector import tuples
from inspector.tuples import NamedTuple


class Place(NamedTuple):
    """A place."""

    row: int
    column: int = 7
    name: str = "here"

    @property
    def total(self) -> int:
        return self.row + self.column

    @classmethod
    def first(cls) -> Place:
        return cls(0, 0)


class Standard(typing.NamedTuple):
    row: int
    column: int = 7
    name: str = "here"


class Loud(NamedTuple):
    text: str

    def __repr__(self) -> str:
        return self.text.upper()


class Empty(NamedTuple):
    pass


class Inner(Place):
    __slots__ = ()

    def __new__(cls, row: int) -> typing.Self:
        return super().__new__(cls, row, 1)

    @property
    def total(self) -> int:
        return super().total + 100


MANY = tuples._FEW + 2


def fresh() -> typing.Any:
    """A class of which there is no instance yet."""

    class Place(NamedTuple):
        row: int
        column: int = 7
        name: str = "here"

    Place.__qualname__ = "Standard"
    return Place


def outcome(call: typing.Callable[[typing.Any], object], cls: typing.Any) -> object:
    try:
        return call(cls)
    except Exception as error:  # noqa: BLE001 - whatever it is, both must raise it
        return type(error), str(error)


CALLS: list[typing.Callable[[typing.Any], object]] = [
    lambda cls: cls(1),
    lambda cls: cls(1, 2, "x"),
    lambda cls: cls(row=1),
    lambda cls: cls(1, name="x"),
    lambda cls: cls(name="x", column=3, row=2),
    lambda cls: cls(),
    lambda cls: cls(column=1),
    lambda cls: cls(1, 2, "x", 4),
    lambda cls: cls(1, row=2),
    lambda cls: cls(1, other=2),
    lambda cls: cls._make([1, 2, "x"]),
    lambda cls: cls._make([1]),
    lambda cls: cls(1)._replace(column=5),
    lambda cls: cls(1)._asdict(),
    lambda cls: cls(1).__getnewargs__(),
    lambda cls: (cls._fields, cls._field_defaults, cls.__match_args__, cls.__slots__),
    lambda cls: (cls(1).row, cls(1).column, cls(1).name, cls(1)[2], [*cls(1)], len(cls(1))),
    lambda cls: hash(cls(1)),
    lambda cls: setattr(cls(1), "row", 3),
    lambda cls: repr(cls(1)).partition("(")[2],
]


def test_it_is_what_the_standard_one_is_for_the_first_instances_and_for_all_others() -> None:
    many = fresh()
    for number in range(MANY):
        assert many(number) == (number, 7, "here")
    assert many.__new__ is not fresh().__new__
    different = []
    for number, call in enumerate(CALLS):
        expected = outcome(call, Standard)
        different += [number for cls in (fresh(), many) if outcome(call, cls) != expected]
    assert different == []


def test_no_other_field_is_replaced() -> None:
    """From Python 3.13 on the standard one raises a TypeError."""
    with pytest.raises(ValueError, match=r"unexpected field names: \['other'\]"):
        Place(1)._replace(other=5)


def test_methods_of_the_body_stay() -> None:
    assert (Place(1).total, Place.first(), repr(Loud("a")), Place.__doc__) == (
        8,
        (0, 0, "here"),
        "A",
        "A place.",
    )
    assert (repr(Place(1)), fresh().__doc__) == (
        "Place(row=1, column=7, name='here')",
        "Place(row, column, name)",
    )


def test_one_may_be_empty_or_have_heirs() -> None:
    assert {Empty() for _ in range(MANY)} == {()}
    inner = [Inner(row) for row in range(MANY)]
    assert (inner[3].total, inner[-1], type(inner[-1])) == (104, (MANY - 1, 1, "here"), Inner)
    assert type(Place(1)) is Place


def test_copies_are_equal_and_of_its_class() -> None:
    for made in (copy.copy(Place(1)), copy.deepcopy(Place(1)), pickle.loads(pickle.dumps(Place(1)))):
        assert (made, type(made)) == (Place(1), Place)


def test_instances_match_patterns_by_position() -> None:
    match Place(1, 2):
        case Place(row, column):
            assert (row, column) == (1, 2)


@pytest.mark.parametrize(
    ("bases", "body", "problem"),
    [
        ((NamedTuple, dict), {}, "a second base"),
        ((NamedTuple,), {"__new__": None}, "made for it"),
        ((NamedTuple,), {"_fields": ()}, "made for it"),
        ((NamedTuple,), {"__annotations__": {"_a": "int"}}, "an underscore"),
        ((NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1}, "without a default behind"),
    ],
)
def test_what_the_standard_one_refuses_is_refused(
    bases: tuple[type, ...], body: dict[str, object], problem: str
) -> None:
    with pytest.raises(TypeError, match=f"the named tuple Row .*{problem}"):
        type(NamedTuple)("Row", bases, body)
