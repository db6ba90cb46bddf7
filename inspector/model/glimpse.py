"""The first tensors of a checkpoint while the rest of it is read: what a display has to show meanwhile.

Nothing is judged here, and nothing that is shown finally comes from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import TensorFacts
from inspector.model.values.children import children_of
from inspector.model.values.text import step_text
from inspector.pickles.values import Call, Dict, Set, StoredTensor, Value
from inspector.progress import Progress
from inspector.units import cut_text, format_shape, shown_path

MOST_ROWS = 100
_MOST_LEVELS = 16
_MOST_STEPS = 4096
_MOST_CHARS = 300
_MOST_TRIES = 8
_CONTAINERS = (Dict, Call, Set, list, tuple)


class _Way(NamedTuple):
    """A container that is being looked through: the way to it, and what is still to come of it."""

    prefix: str
    children: Iterator[tuple[Value, Value]]


def watch_beginning(progress: Progress) -> None:
    """Have the first tensors shown by `progress` as soon as there are any."""
    tries = 0

    def look(levels: Sequence[Sequence[Value]]) -> None:
        nonlocal tries
        tries += 1
        rows = tuple(islice(_rows(levels), MOST_ROWS))
        if rows or tries == _MOST_TRIES:
            progress.first_rows, progress.on_values = rows, None

    progress.on_values = look


def _rows(levels: Sequence[Sequence[Value]]) -> Iterator[tuple[str, str]]:
    """Yield the tensors on the stack of a pickle.

    Args:
        levels: The values above each mark, the outermost first: each fills the last container of those below.
    """
    ways: list[_Way] = []
    prefix = ""
    for number, values in enumerate(levels[:_MOST_LEVELS]):
        if number == 0:
            ways.append(_Way("", iter([("", value) for value in values[-1:]])))
            continue
        ways.append(_Way(prefix, zip(values[::2], values[1::2], strict=False)))
        last = values[-2:] if len(values) % 2 == 0 else values[-1:]
        prefix = f"{prefix}{_step(last[0]) if last else ''}/"
    yield from _tensors(ways)


def _tensors(ways: list[_Way]) -> Iterator[tuple[str, str]]:
    """Yield names and facts of the tensors that can be reached in a few steps."""
    ways.reverse()
    seen: set[int] = set()
    for _ in range(_MOST_STEPS):
        if not ways:
            return
        prefix, children = ways[-1]
        found = next(children, None)
        if found is None:
            ways.pop()
        elif isinstance(found[0], str | int):
            name, value = cut_text(prefix + _step(found[0]), _MOST_CHARS), found[1]
            text = _text_of(value)
            if text:
                yield shown_path(name), text
            elif isinstance(value, _CONTAINERS) and id(value) not in seen:
                seen.add(id(value))
                ways.append(_Way(f"{name}/" if name else "", iter(children_of(value))))


def _step(key: Value) -> str:
    return step_text(key) if isinstance(key, str | int) else ""


def _text_of(value: Value) -> str:
    if isinstance(value, StoredTensor):
        return f"{value.dtype}  {format_shape(value.shape)}"
    facts = describe_tensor(value) if isinstance(value, Call) else None
    return "" if facts is None else _text(facts)


def _text(facts: TensorFacts) -> str:
    return f"{facts.dtype}  {format_shape(facts.shape)}  {facts.device}"
