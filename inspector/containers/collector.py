"""A pause for the cycle collector.

A large checkpoint is millions of small values, all alive: the collector walks over them again and again,
finds nothing, and doubles the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector from running. Pauses may nest, and overlap in several threads."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
