"""Machines with as much memory as people have: what is offered beside those whose memory nobody named.

Sizes are those that cards are sold with, of NVIDIA from 8 GB (RTX 4060) over 24 (RTX 4090, L4), 48 (L40S),
80 (A100, H100) and 141 (H200) to 192 (B200). They count as decimal, like `--target cuda@24gb`: a card of
24 GiB has 7 % more, of which the driver and torch's own context take about as much.
"""

from __future__ import annotations

from functools import lru_cache

from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.records import replace
from inspector.target.machine.profile import Profile, label_with, presets

SIZES: dict[str, tuple[int, ...]] = {
    "cpu": (8, 16, 32, 64, 128, 256),
    "cuda": (8, 12, 16, 24, 32, 40, 48, 80, 96, 141, 192),
    "2xcuda": (24, 48, 80),
    "4xcuda": (24, 48, 80),
    "8xcuda": (40, 80, 141),
    "mps": (16, 32, 64, 128),
    "xpu": (12, 16),
    "rocm": (16, 24, 64, 192),
}
"""Gigabytes of each GPU, or of the machine if it has none, by the word for the machine."""


def offered() -> tuple[tuple[str, str], ...]:
    """Return what `--target` takes and the label of each machine that nobody probed.

    Those with known memory stand behind the one of the same kind without. They are not made for that: the
    list is on the way to the first paint of the window.
    """
    return _offered(tuple(DEVICE_TYPES))


@lru_cache(maxsize=1)
def _offered(_types: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the same for these types of devices, of which more may be added at any time."""
    found: list[tuple[str, str]] = []
    for machine in presets():
        texts = [(size, f"{size} GB") for size in SIZES.get(machine.id, ())]
        found.append((machine.id, machine.label))
        found += [(f"{machine.id}@{size}gb", label_with(machine, text)) for size, text in texts]
    return tuple(found)


def offered_machine(word: str) -> Profile | None:
    """Return an offered machine by what `--target` takes, or None if it is none of them."""
    if word not in dict(offered()):
        return None
    from inspector.target.machine.wish import parse_target  # noqa: PLC0415 - not for the first paint

    return replace(parse_target(word), id=word)
