"""The element types of safetensors: what torch calls each, and how many bits an element has.

The names are those of `Dtype` in `safetensors/src/tensor.rs`. torch packs two elements of `F4` into one of
its own, and has no types of six bits: `load_file` refuses files with those.
"""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One element type.

    Attributes:
        dtype: What it is called here: torch's name, where torch has it.
        bits: The size of an element.
        packed: How many of its elements are one of torch's.
        loads: Whether `load_file` makes tensors of it.
    """

    dtype: str
    bits: int
    packed: int = 1
    loads: bool = True


CODES: dict[str, Code] = {
    "BOOL": Code("bool", 8),
    "F4": Code("float4_e2m1fn_x2", 4, packed=2),
    "F6_E2M3": Code("float6_e2m3", 6, loads=False),
    "F6_E3M2": Code("float6_e3m2", 6, loads=False),
    "U8": Code("uint8", 8),
    "I8": Code("int8", 8),
    "F8_E5M2": Code("float8_e5m2", 8),
    "F8_E4M3": Code("float8_e4m3fn", 8),
    "F8_E5M2FNUZ": Code("float8_e5m2fnuz", 8),
    "F8_E4M3FNUZ": Code("float8_e4m3fnuz", 8),
    "F8_E8M0": Code("float8_e8m0fnu", 8),
    "I16": Code("int16", 16),
    "U16": Code("uint16", 16),
    "F16": Code("float16", 16),
    "BF16": Code("bfloat16", 16),
    "I32": Code("int32", 32),
    "U32": Code("uint32", 32),
    "F32": Code("float32", 32),
    "C64": Code("complex64", 64),
    "F64": Code("float64", 64),
    "I64": Code("int64", 64),
    "U64": Code("uint64", 64),
}
