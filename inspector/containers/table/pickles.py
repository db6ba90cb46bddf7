"""The rows of plain pickles: what `pickle.dump` and its relatives write, and joblib."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.container import Container, Extent
from inspector.containers.source import Source
from inspector.containers.table.row import Format
from inspector.limits import Limits
from inspector.progress import Progress


def is_pickle(source: Source) -> bool:
    """Return whether a file begins with a pickle."""
    head = source.read_upto(0, 2)
    if head[:1] == b"\x80":
        return b"\x02" <= head[1:] <= b"\x05"
    from inspector.containers.pickled import begins_undeclared  # noqa: PLC0415 - plain pickles are rare

    return begins_undeclared(source)


def _read_pickled(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.pickled import read_pickled  # noqa: PLC0415 - plain pickles are rare

    return read_pickled(source, limits, progress)


def _find_within(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.pickled import find_within  # noqa: PLC0415 - as above

    return find_within(source)


PICKLE_ROWS: tuple[Format, ...] = (
    Format(
        name="pickle",
        what="a plain pickle, not written by torch.save",
        matches=is_pickle,
        read=_read_pickled,
        storage_extents=_find_within,
        is_read_through_gzip=True,
        loader="pickle.load",
        unchecked=True,
    ),
    Format(
        name="joblib",
        what="a file of joblib",
        read=_read_pickled,
        storage_extents=_find_within,
        is_read_through_gzip=True,
        loader="joblib.load",
        unchecked=True,
    ),
)
