"""Names that differ by a prefix: wrappers of modules, and the place that a state dict stands at.

A rule is believed where it explains several names at once. Wrappers that frameworks put around modules are
known; of others, one of the two sides must have nothing in the place of the prefix, or both must be mappings:
`encoder.` that became `decoder.` is another thing, until the bytes say that it is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from inspector.diff.pairs.paths import Left, unique_names, without

WRAPPERS = (
    "module",
    "_orig_mod",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
    "_forward_module",
    "_fpw_module",
)
"""What DataParallel and its like, torch.compile, FSDP, activation checkpointing, Lightning's Fabric and
FairScale put before the names of what they wrap."""

_WRAPPER = re.compile(rf"(?:(?<=[./])|^)(?:(?:{'|'.join(WRAPPERS)})\.)+")
_STEP = re.compile(r"[^./]*[./]|[^./]+$")
_MOST_DROPPED = 6
_FEWEST = 2
_MOST_RULES = 32  # each costs a look at all names that are left

Alike = Callable[[int, int], bool]
"""Returns whether two rows have the same shape and dtype."""


class _Prefix(NamedTuple):
    """What a name begins with in each file."""

    a: str
    b: str


def unwrapped(name: str) -> str:
    """Return a name without the wrappers in it."""
    return _WRAPPER.sub("", name) if "m" in name else name


def pair_wrapped(a: Sequence[str], b: Sequence[str], left: Left) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows whose names differ by wrappers alone; names that two rows of a file have then stay alone."""
    others = unique_names(b, left.b)
    own = unique_names(a, left.a)
    pairs = [(row, others[name]) for name, row in own.items() if name in others]
    return pairs, _rest(left, pairs)


def pair_moved(
    a: Sequence[str], b: Sequence[str], left: Left, alike: Alike
) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows by the prefixes that explain most of their names.

    Args:
        a: The names of the rows of the first side, by number, without wrappers.
        b: Those of the second.
        left: The rows that are to be paired.
        alike: Tells whether two rows can be the same tensor.
    """
    found: list[tuple[int, int]] = []
    votes = Counter(_votes(a, b, left))
    for prefix, count in votes.most_common(_MOST_RULES):
        if not (count >= _FEWEST or count == min(len(left.a), len(left.b))):
            break
        pairs = _explained(prefix, a, b, left)
        same = sum(alike(*pair) for pair in pairs)
        if pairs and 2 * same >= len(pairs):
            found += pairs
            left = _rest(left, pairs)
    return found, left


def difference(a: str, b: str) -> tuple[str, str]:
    """Return the steps of two names in which they differ, without those that both begin and end with."""
    one, other = _STEP.findall(a), _STEP.findall(b)
    most = min(len(one), len(other))
    end = next((place for place in range(most) if one[-1 - place] != other[-1 - place]), most)
    most -= end
    start = next((place for place in range(most) if one[place] != other[place]), most)
    return "".join(one[start : len(one) - end]), "".join(other[start : len(other) - end])


def _votes(a: Sequence[str], b: Sequence[str], left: Left) -> Iterator[_Prefix]:
    """Yield a prefix for each name that has one partner at most when both lose some steps."""
    endings = _endings(b, left.b)
    own = _endings(a, left.a)
    for row in left.a:
        for prefix, rest in _divided(a[row]):
            partner = endings.get(rest, -1)
            if partner >= 0 and own[rest] == row:
                vote = _Prefix(prefix, b[partner][: len(b[partner]) - len(rest)])
                if _is_plausible(vote):
                    yield vote
                break


def _is_plausible(prefix: _Prefix) -> bool:
    return not (prefix.a and prefix.b) or (prefix.a[-1] == prefix.b[-1] == "/")


def _endings(names: Sequence[str], rows: list[int]) -> dict[str, int]:
    """Return which row has a name that ends so, behind a step; -1 where several have."""
    found: dict[str, int] = {}
    for row in rows:
        for _, rest in _divided(names[row]):
            if found.setdefault(rest, row) != row:
                found[rest] = -1
    return found


def _divided(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name cut behind each of its first steps."""
    yield "", name
    for count, match in enumerate(_STEP.finditer(name)):
        if count == _MOST_DROPPED or match.end() == len(name):
            return
        yield name[: match.end()], name[match.end() :]


def _explained(prefix: _Prefix, a: Sequence[str], b: Sequence[str], left: Left) -> list[tuple[int, int]]:
    others = unique_names(b, (row for row in left.b if b[row].startswith(prefix.b)))
    own = unique_names(a, (row for row in left.a if a[row].startswith(prefix.a)))
    start = len(prefix.a)
    wanted = ((row, others.get(prefix.b + name[start:])) for name, row in own.items())
    return [(row, partner) for row, partner in wanted if partner is not None]


def _rest(left: Left, pairs: list[tuple[int, int]]) -> Left:
    return Left(without(left.a, (row for row, _ in pairs)), without(left.b, (row for _, row in pairs)))
