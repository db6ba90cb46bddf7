"""`inspector.diff`: what two checkpoints differ in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NoReturn

from inspector.diff.compare import Chosen, Wish, compare_paths
from inspector.diff.content import Tolerance
from inspector.diff.records import Diff as Found
from inspector.diff.records import Mode
from inspector.errors import PlanError, QueryError
from inspector.library.sources import CheckpointLike, path_of, shown, telling_what_runs
from inspector.library.telling import Told, told
from inspector.model.checkpoint import Checkpoint
from inspector.overriding import override
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.text import format_diff
from inspector.report.query import parse_query, refuse_mistakes, searchable
from inspector.report.terms import begun_fields

Compare = Literal["facts", "equal", "numbers"]

_MODES: dict[Compare, Mode] = {"facts": "none", "equal": "equal", "numbers": "numbers"}


class Diff:
    """What two checkpoints differ in. Ask for `equal`: by itself it is neither true nor false."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._document = diff_document(found)

    @property
    def equal(self) -> bool:
        """Whether all was compared, and nothing differs."""
        return self._found.is_equal

    @property
    def complete(self) -> bool:
        """Whether all could be compared."""
        complete: bool = self._document["complete"]
        return complete

    @property
    def added(self) -> tuple[str, ...]:
        """The paths that only the second has."""
        return tuple(self._document["added"])

    @property
    def removed(self) -> tuple[str, ...]:
        """The paths that only the first has."""
        return tuple(self._document["removed"])

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Tensors with other paths: that in the first, and that in the second."""
        return tuple((row["a"], row["b"]) for row in self._document["renamed"])

    @property
    def changed(self) -> tuple[dict[str, Any], ...]:
        """Tensors and values that differ, with what differs, as `diff --json` has them."""
        return tuple(self._document["changed"])

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `diff --json`."""
        return self._document

    def __bool__(self) -> NoReturn:
        """Refuse to guess.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a comparison is neither true nor false: ask for its .equal")

    @override
    def __str__(self) -> str:
        return format_diff(self._found)

    @override
    def __repr__(self) -> str:
        a, b = shown(self._found.a.path), shown(self._found.b.path)
        counts = (f"{len(getattr(self, what))} {what}" for what in ("added", "removed", "renamed", "changed"))
        return f"<Diff of {a} and {b}: equal={self.equal}, {', '.join(counts)}>"


def diff(  # noqa: PLR0913 - the command line's options
    a: CheckpointLike,
    b: CheckpointLike,
    *,
    compare: Compare = "equal",
    rtol: float = 0.0,
    atol: float = 0.0,
    filter: str = "",  # noqa: A002 - the command line's word
    progress: Told = None,
) -> Diff:
    """Compare two checkpoints of any formats, as they are now.

    Args:
        a: The first: a path, or an open checkpoint.
        b: The second.
        compare: Tensors by what is said of them alone (`facts`), by their bytes as well (`equal`), or by how
            much their numbers differ (`numbers`).
        rtol: Numbers are equal if `|a-b| <= atol + rtol*|b|`; goes with `numbers`.
        atol: The same.
        filter: Only these rows, as `--filter` takes them: `"role:parameter"`.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        PlanError: An argument is wrong, or there is nothing to compare.
        QueryError: A word of the filter can find nothing in any file.
        CheckpointError: One of them cannot be read.
    """
    if compare not in _MODES:
        raise PlanError(f"there is no comparison {compare!r}", remedy=f"use {', '.join(_MODES)}")
    if not all(0 <= number < math.inf for number in (rtol, atol)):
        raise PlanError("a tolerance is a number from 0 on")
    if compare != "numbers" and (rtol or atol):
        raise PlanError(f"compare={compare!r} compares no numbers", remedy="say compare='numbers'")
    wish = Wish(mode=_MODES[compare], tolerance=Tolerance(rtol=rtol, atol=atol), choose=chooser(filter))
    with told(progress) as steps, telling_what_runs():
        return Diff(compare_paths(path_of(a), path_of(b), wish, steps))


def chooser(text: str) -> Callable[[Checkpoint], Chosen] | None:
    """Return what finds the rows that a query asks for; None where it asks for nothing."""
    query = parse_query(text)
    if not query.terms and not begun_fields(text):
        return None
    mistaken = False

    def choose(checkpoint: Checkpoint) -> Chosen:
        nonlocal mistaken
        rows = searchable(checkpoint)
        try:
            refuse_mistakes(text, rows)
        except QueryError:
            if mistaken:  # what is a mistake for one file may be a name in the other
                raise
            mistaken = True
        tensors, values = query.find(rows)
        return Chosen(frozenset(tensors), frozenset(values))

    return choose
