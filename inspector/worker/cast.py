"""`cast.py FROM TO`: casts elements that come over a pipe, a chunk at a time.

In: the length of a chunk in bytes (8 bytes, little endian) and the chunk. Out: how many finite elements
became infinite (8 bytes), the length of the result (8 bytes) and the result. The end of the input ends it.
"""

from __future__ import annotations

import struct
import sys
from typing import BinaryIO

import torch

_HEAD = struct.Struct("<Q")
_REPLY = struct.Struct("<2Q")


def cast_chunk(data: bytearray, source: torch.dtype, target: torch.dtype) -> tuple[int, bytes]:
    """Cast elements; give how many finite ones became infinite, and the result."""
    elements = torch.frombuffer(data, dtype=source)
    cast = elements.to(target)
    overflowed = int((torch.isinf(cast) & ~torch.isinf(elements)).sum())
    return overflowed, cast.view(torch.uint8).numpy().tobytes()


def serve(inward: BinaryIO, outward: BinaryIO, source: torch.dtype, target: torch.dtype) -> None:
    """Cast whatever comes in until nothing comes any more."""
    while head := inward.read(_HEAD.size):
        overflowed, data = cast_chunk(bytearray(inward.read(*_HEAD.unpack(head))), source, target)
        outward.write(_REPLY.pack(overflowed, len(data)) + data)
        outward.flush()


if __name__ == "__main__":
    torch.set_num_threads(1)  # a cast waits for memory, not for the processor
    serve(sys.stdin.buffer, sys.stdout.buffer, *(getattr(torch, name) for name in sys.argv[1:3]))
