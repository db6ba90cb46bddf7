"""A pause for the cycle collector.

A large checkpoint is millions of small values, all alive: the collector walks over them again and again,
finds nothing, and doubles the time. It would walk over all of them once more as soon as it runs again, and
stop every thread for half a second meanwhile; `gc.freeze` puts them behind what it looks at, without a walk.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import finalize

_MANY = 100_000
_holders = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector from running. Pauses may nest, and overlap in several threads."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _MANY:
                gc.freeze()
                if not _holders:
                    gc.unfreeze()  # what is old is looked at again, but far less often than what is new
            gc.enable()


def keep_from_collector(holder: object) -> None:
    """Keep all there is by now from the collector as long as `holder` lives, which refers to most of it."""
    global _holders  # noqa: PLW0603 - there is one collector
    gc.freeze()
    _holders += 1
    finalize(holder, _release).atexit = False


def _release() -> None:
    global _holders  # noqa: PLW0603 - as above
    _holders -= 1
    if not _holders:
        gc.unfreeze()
