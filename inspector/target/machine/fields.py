"""Typed, bounded reading of an untrusted JSON document; every complaint names its place.

Texts come out on one line, cut and with invisible characters escaped, so that no caller
can forget it.
"""

from __future__ import annotations

from inspector.errors import ContainerError
from inspector.target.machine.evidence import Version
from inspector.units import cut_text, escape_text

_MOST_CHARS = 4000
_MOST_ITEMS = 256
_MOST_COUNT = (1 << 63) - 1
REMEDY = "make the profile again: checkpoint-inspector target --probe-script prints the script that writes it"


class Fields:
    """One JSON object. What it lacks, and what is null, counts as not known; what it has more is ignored.

    Attributes:
        place: Where it stands in the document, for complaints.
    """

    def __init__(self, value: object, place: str = "") -> None:
        """Take a parsed value."""
        if not isinstance(value, dict):
            raise _refusal(place or "the document", "an object")
        self._value: dict[str, object] = value
        self.place = place

    def text(self, name: str) -> str | None:
        """Return a text."""
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise _refusal(self._at(name), "a text")
        return _inert(value)

    def flag(self, name: str) -> bool | None:
        """Return a yes or no."""
        value = self._value.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise _refusal(self._at(name), "true or false")

    def count(self, name: str) -> int | None:
        """Return a whole number; an exit code may be negative."""
        value = self._value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST_COUNT:
            raise _refusal(self._at(name), "a whole number")
        return value

    def nbytes(self, name: str) -> int | None:
        """Return a size."""
        value = self.count(name)
        if value is not None and value < 0:
            raise _refusal(self._at(name), "a size")
        return value

    def version(self, name: str) -> Version | None:
        """Return a version of two numbers, such as a compute capability."""
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise _refusal(self._at(name), "two numbers")
        major, minor = value
        if not (_is_small(major) and _is_small(minor)):
            raise _refusal(self._at(name), "two numbers")
        return major, minor

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise _refusal(self._at(name), "a list of texts")
        return tuple(_inert(str(value)) for value in values)

    def inside(self, name: str) -> Fields:
        """Return an object within; an empty one where it is not known."""
        value = self._value.get(name)
        return Fields({} if value is None else value, self._at(name))

    def each(self, name: str) -> tuple[Fields, ...]:
        """Return a list of objects."""
        return tuple(
            Fields(value, f"{self._at(name)}[{number}]") for number, value in enumerate(self._list(name))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that is in it, for an object that is a mapping."""
        if len(self._value) > _MOST_ITEMS:
            raise _refusal(self.place, f"at most {_MOST_ITEMS} names")
        return tuple(self._value)

    def _list(self, name: str) -> list[object]:
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > _MOST_ITEMS:
            raise _refusal(self._at(name), f"a list of at most {_MOST_ITEMS}")
        return value

    def _at(self, name: str) -> str:
        name = cut_text(escape_text(name), 40)
        return f"{self.place}.{name}" if self.place else name


def _inert(text: str) -> str:
    return cut_text(escape_text(" ".join(text.split())), _MOST_CHARS)


def _is_small(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000


def _refusal(place: str, wanted: str) -> ContainerError:
    return ContainerError(f"this machine profile is damaged: {wanted} is wanted", where=place, remedy=REMEDY)
