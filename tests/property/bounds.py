"""What a made-up file may cost, so that hypothesis can try many of them."""

from __future__ import annotations

from inspector.limits import Limits

LIMITS = Limits(
    opcodes=100_000,
    values=100_000,
    pickle_nbytes=1 << 22,
    directory_nbytes=1 << 20,
    records=10_000,
    inflated_nbytes=1 << 22,
    seconds=30,
)
