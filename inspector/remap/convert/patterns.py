"""Patterns of paths that an export leaves out, and which of them cover what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.quoting import command, file_word
from inspector.remap.rules import Rule, as_meant, path_of
from inspector.remap.unmatched import meant_path

_NONE: frozenset[int] = frozenset()


class Patterns:
    """The paths that are left out, each with everything below it.

    Patterns without wildcards, and beginnings of names such as `model/layer1.*`, are looked up and not tried:
    a choice made row by row may have thousands.
    """

    def __init__(self, patterns: Sequence[str], checkpoint: Checkpoint | None = None) -> None:
        """Take patterns, as they are meant in a checkpoint if one is given."""
        self.texts = tuple(dict.fromkeys(patterns))
        meant = {} if checkpoint is None else as_meant(self.texts, checkpoint)
        self._paths: dict[str, int] = {}
        self._dotted: dict[str, int] = {}
        self._globs: list[tuple[int, Rule]] = []
        for number, given in enumerate(self.texts):
            text = meant.get(given, given)
            path, beginning = path_of(text), path_of(text.removesuffix("*"))
            if path is not None and path not in self._paths:  # there may be two spellings of one path
                self._paths[path] = number
            elif text.endswith(".*") and beginning is not None and beginning not in self._dotted:
                self._dotted[beginning] = number
            else:
                self._globs.append((number, Rule(path=text, to="cpu")))
        self._above: dict[str, frozenset[int]] = {}
        self._used: set[int] = set()
        self._steps: set[str] = set()

    @property
    def unused(self) -> tuple[str, ...]:
        """The patterns that have covered nothing so far."""
        return tuple(text for number, text in enumerate(self.texts) if number not in self._used)

    def cover(self, *paths: str) -> bool:
        """Return whether something known by these paths is left out, and remember which pattern did it."""
        return bool(self.find(*paths))

    def find(self, *paths: str) -> frozenset[int]:
        """Return the places of the patterns that leave out something known by these paths."""
        if not self.texts:
            return _NONE
        found = _NONE
        for path in paths:
            above, slash, _ = path.rpartition("/")
            found |= self._find((path,))
            if slash:
                known = self._above.get(above)
                if known is None:
                    known = self._above[above] = self._find(lineage_of(above))
                found |= known
        return found

    def name(self, paths: Sequence[str]) -> bool:
        """Return whether a pattern covers one of these paths itself, whatever they stand in."""
        return bool(self._find(paths))

    def refuse_unused(self, path: str) -> None:
        """Refuse patterns that left nothing out of a file: most likely they are mistyped."""
        for pattern in self.unused[:1]:
            near = meant_path(pattern, self._steps)
            meant = "" if near is None else f"did you mean {near}? "
            raise PlanError(
                "nothing in the file matches the pattern",
                where=pattern,
                remedy=f"{meant}list the paths with: {command('show', file_word(path))}",
            )

    def _find(self, paths: Iterable[str]) -> frozenset[int]:
        paths = tuple(paths)
        self._steps.update(path.partition("/")[0] for path in paths)
        found = {self._paths[path] for path in paths if path in self._paths}
        if self._dotted:
            begun = (path[:end] for path in paths for end in _ends_at_dots(path))
            found.update(self._dotted[beginning] for beginning in begun if beginning in self._dotted)
        found.update(number for number, rule in self._globs if rule.matches("", paths))
        self._used |= found
        return frozenset(found)


def _ends_at_dots(path: str) -> Iterator[int]:
    """Yield where `beginning.*` can have its star: behind each dot of the last step."""
    at = path.find(".", path.rfind("/") + 1)
    while at >= 0:
        yield at + 1
        at = path.find(".", at + 1)


def lineage_of(path: str) -> list[str]:
    """Return a path and all that it is below, outermost first."""
    steps = path.split("/")
    return ["/".join(steps[:count]) for count in range(1, len(steps) + 1)]
