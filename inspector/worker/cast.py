"""Casts elements, a block at a time.

Head: `source` and `target`, names of dtypes. Answers: one for each block, with `overflowed`, which counts the
finite elements that became infinite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


def answer(head: dict[str, str], blocks: Iterator[bytes]) -> Iterator[tuple[dict[str, int], bytes]]:
    """Cast each block."""
    torch.set_num_threads(1)  # a cast waits for memory, not for the processor
    source, target = getattr(torch, head["source"]), getattr(torch, head["target"])
    for block in blocks:
        elements = torch.frombuffer(bytearray(block), dtype=source)
        cast = elements.to(target)
        overflowed = int((torch.isinf(cast) & ~torch.isinf(elements)).sum())
        yield {"overflowed": overflowed}, cast.view(torch.uint8).numpy().tobytes()
