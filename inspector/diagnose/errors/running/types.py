"""Names of tensor types in messages, as a place and a dtype: `torch.cuda.HalfTensor` is float16 on cuda."""

from __future__ import annotations

import re

from inspector.records import dataclass

_DTYPES = {
    "bfloat16": "bfloat16",
    "complexfloat": "complex64",
    "complexdouble": "complex128",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "unsignedchar": "uint8",
    "signedchar": "int8",
    "longint": "int64",
    "half": "float16",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "float": "float32",
    "double": "float64",
    "int64": "int64",
    "int32": "int32",
    "uint8": "uint8",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "byte": "uint8",
    "char": "int8",
    "bool": "bool",
}
_DTYPE = re.compile("|".join(sorted(_DTYPES, key=len, reverse=True)))
_PLACES = ("cuda", "mps", "xpu", "hpu", "npu", "xla", "meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName:
    """What a name of a type says.

    Attributes:
        place: The kind of device, such as `cuda`; empty where the name has none (`float`, `c10::Half`).
        dtype: The dtype as torch writes it, such as `float16`; empty where the name has none.
    """

    place: str
    dtype: str


def read_type(text: str) -> TypeName:
    """Read a name of a type: `torch.cuda.HalfTensor`, `CUDABFloat16Type`, `c10::Half`, `double`."""
    small = text.lower().replace(" ", "").strip("'\"()")
    named = _DTYPE.search(small.replace("tensor", "").replace("type", ""))
    place = next((place for place in _PLACES if place in small), "")
    if not place and ((small.startswith("torch.") and small.endswith("tensor")) or small.startswith("cpu")):
        place = "cpu"
    return TypeName(place=place, dtype=_DTYPES[named[0]] if named is not None else "")


def are_apart(first: TypeName, second: TypeName) -> bool:
    """Return whether two types are on different kinds of devices."""
    return bool(first.place and second.place and first.place != second.place)


def differ(first: TypeName, second: TypeName) -> bool:
    """Return whether two types differ in their dtype."""
    return bool(first.dtype and second.dtype and first.dtype != second.dtype)
