"""Element types by torch's name without `torch.`, with `torch.dtype.itemsize`, and those that only GGUF has.

The sub-byte integers exist only as the type of wrapper tensors and count one byte for each element there.
For GGUF see `enum ggml_type` in ggml's `include/ggml.h` and its `docs/gguf.md`: most types hold a block of
numbers in a few bytes, with a scale of its own.
"""

from __future__ import annotations

from typing import NamedTuple

ITEMSIZES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
    "complex128": 16,
    "complex64": 8,
    "complex32": 4,
    "qint8": 1,
    "qint32": 4,
    "quint8": 1,
    "quint4x2": 1,
    "quint2x4": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2fnuz": 1,
    "float8_e4m3fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "bits8": 1,
    "bits16": 2,
    "bits1x8": 1,
    "bits2x4": 1,
    "bits4x2": 1,
    **{f"{sign}int{bits}": 1 for bits in range(1, 8) for sign in ("", "u")},
}


class BlockType(NamedTuple):
    """One element type."""

    name: str
    numel: int
    nbytes: int


GGML_TYPES: dict[int, BlockType] = {
    0: BlockType("float32", 1, 4),
    1: BlockType("float16", 1, 2),
    2: BlockType("q4_0", 32, 18),
    3: BlockType("q4_1", 32, 20),
    6: BlockType("q5_0", 32, 22),
    7: BlockType("q5_1", 32, 24),
    8: BlockType("q8_0", 32, 34),
    9: BlockType("q8_1", 32, 36),
    10: BlockType("q2_k", 256, 84),
    11: BlockType("q3_k", 256, 110),
    12: BlockType("q4_k", 256, 144),
    13: BlockType("q5_k", 256, 176),
    14: BlockType("q6_k", 256, 210),
    15: BlockType("q8_k", 256, 292),
    16: BlockType("iq2_xxs", 256, 66),
    17: BlockType("iq2_xs", 256, 74),
    18: BlockType("iq3_xxs", 256, 98),
    19: BlockType("iq1_s", 256, 50),
    20: BlockType("iq4_nl", 32, 18),
    21: BlockType("iq3_s", 256, 110),
    22: BlockType("iq2_s", 256, 82),
    23: BlockType("iq4_xs", 256, 136),
    24: BlockType("int8", 1, 1),
    25: BlockType("int16", 1, 2),
    26: BlockType("int32", 1, 4),
    27: BlockType("int64", 1, 8),
    28: BlockType("float64", 1, 8),
    29: BlockType("iq1_m", 256, 56),
    30: BlockType("bfloat16", 1, 2),
    34: BlockType("tq1_0", 256, 54),
    35: BlockType("tq2_0", 256, 66),
    39: BlockType("mxfp4", 32, 17),
    40: BlockType("nvfp4", 64, 36),
    41: BlockType("q1_0", 128, 18),
}

NOT_DEQUANTIZED = frozenset({"q8_1", "q8_k", "q1_0"})
"""Blocks that `gguf.dequantize` of gguf 0.19 does not know."""
_UNKNOWN = "ggml_type_"


def unknown_ggml_type(number: int) -> BlockType:
    """Return a type that is newer than the table: nobody knows how many bytes its blocks have."""
    return BlockType(f"{_UNKNOWN}{number}", 0, 0)


def is_of_unknown_size(dtype: str) -> bool:
    """Return whether a tensor of a type takes as many bytes as its storage has, as far as is known."""
    return dtype.startswith(_UNKNOWN)


BLOCKS = {one.name: one for one in GGML_TYPES.values() if one.numel > 1}
"""The types that torch has not, by name."""
