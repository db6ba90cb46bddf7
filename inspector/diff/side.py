"""One of two checkpoints that are compared: its rows, the values behind them, and its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.formats import format_of
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import Source
from inspector.containers.storage_reader import StorageReader
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.found import Found
from inspector.model.values.text import step_text
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.records import dataclass

_BIG = "big"


@dataclass(slots=True, eq=False)
class Side:
    """An open checkpoint.

    Attributes:
        aliases: Places where an object stands that the rows list elsewhere, with that place.
        containers: What holds tensors and values, by its place.
        is_swapped: Whether the numbers in its storages have their first byte last.
    """

    checkpoint: Checkpoint
    container: Container
    source: Source
    reader: StorageReader
    values: list[Value]
    tensors: list[Value]
    aliases: dict[str, str]
    containers: dict[str, Value]
    is_swapped: bool

    @property
    def has_keys(self) -> bool:
        """Whether it tells a key that is a number from its text; the writer of DCP makes texts of all."""
        return not format_of(self.checkpoint.format).keys_are_texts

    @property
    def has_containers(self) -> bool:
        """Whether it says what holds its tensors: one pickle does, several files do not."""
        return self.container.stream is not None

    @property
    def data(self) -> bytes:
        """What large values of its pickle are still in."""
        return self.container.object_data

    def listed_at(self, path: str) -> str:
        """Return where the rows of a place are listed, if it is in an object that stands elsewhere, too."""
        seen: set[str] = set()
        while path not in seen:
            seen.add(path)
            place = next((step for step in _steps(path) if step in self.aliases), None)
            if place is None:
                break
            path = f"{self.aliases[place]}{path[len(place) :]}".lstrip("/")
        return path


def _steps(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


@contextmanager
def open_side(path: str, progress: Progress, limits: Limits = DEFAULT_LIMITS) -> Iterator[Side]:
    """Open one of the checkpoints; its file is closed behind the `with` block."""
    limits = limits.started(progress.advance)
    with ExitStack() as stack:
        try:
            source = stack.enter_context(open_path(path, limits))
            with collector_paused():
                container = read_container(source, limits, progress)
            side = side_of(container, source, limits, progress)
        except CheckpointError as error:
            if path not in (error.where or ""):
                error.where = path if error.where is None else f"{error.where}, in {path}"
            raise
        yield side


def side_of(container: Container, source: Source, limits: Limits, progress: Progress) -> Side:
    """Return a side of what was read of an open source."""
    found: list[Found] = []
    with collector_paused():
        checkpoint = build_checkpoint(container, limits, progress, beside=True, on_walked=found.append)
    walked = found[0]
    return Side(
        checkpoint,
        container,
        source,
        StorageReader(container, source),
        walked.leaf_values,
        walked.sources,
        _aliases(checkpoint, walked),
        {walked.places[id(value)]: value for value in walked.holders},
        dict(container.versions).get("byteorder") == _BIG,
    )


def _aliases(checkpoint: Checkpoint, found: Found) -> dict[str, str]:
    """Return the places that only point at another, with that: of objects, and of names that are left out."""
    aliases = {step_text(name): step_text(kept) for name, kept in checkpoint.tied}
    places = found.places
    for row, value in zip(checkpoint.values, found.leaf_values, strict=True):
        place = places.get(id(value))
        if place is not None and place != row.path:
            aliases[row.path] = place
    return aliases
