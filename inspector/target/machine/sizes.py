"""Machines with as much memory as people have: what is offered beside those whose memory nobody named.

Sizes are those that cards are sold with, of NVIDIA from 8 GB (RTX 4060) over 24 (RTX 4090, L4), 48 (L40S),
80 (A100, H100) and 141 (H200) to 192 (B200). They count as decimal, like `--target cuda@24gb`: a card of
24 GiB has 7 % more, of which the driver and torch's own context take about as much.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from inspector.records import replace
from inspector.target.machine.profile import Profile
from inspector.target.machine.wish import Memory, parse_target, with_memory

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


@lru_cache(maxsize=1)
def sized_presets() -> tuple[Profile, ...]:
    """Return the machines with known memory; the id of each is what `--target` takes."""
    made: list[Profile] = []
    for word, sizes in SIZES.items():
        machine = parse_target(word)
        for size in sizes:
            memory = Memory(nbytes=size * 10**9, text=f"{size} GB", count=None)
            made.append(replace(with_memory(machine, memory), id=f"{word}@{size}gb"))
    return tuple(made)


def in_order(machines: Iterable[Profile]) -> tuple[Profile, ...]:
    """Put each machine with known memory behind the one of the same kind without."""
    kinds: dict[str, list[Profile]] = {}
    for machine in machines:
        kinds.setdefault(machine.id.partition("@")[0], []).append(machine)
    return tuple(machine for kind in kinds.values() for machine in kind)
