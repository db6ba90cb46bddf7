"""What a pickle does with the names that it imports, as far as torch's restricted unpickler minds.

Importing is only the first step: `weights_only=True` also refuses to append to anything but a list, to set
items of anything but three kinds of dictionary, and to set the state of what it does not know.
"""

from __future__ import annotations

from inspector.model.arrays import describe_array, describe_scalar
from inspector.pickles.values import Call, Global

_DTYPE_CLASSES = {
    "bool": "BoolDType",
    "str": "StrDType",
    "bytes": "BytesDType",
    "void": "VoidDType",
    "object": "ObjectDType",
    "datetime64": "DateTime64DType",
    "timedelta64": "TimeDelta64DType",
}


def note_use(uses: set[tuple[str, str]], call: Call) -> None:
    """Add what is done in one call, as (name, `call`, `build`, `append` or `setitem`)."""
    # A class that comes as a persistent id (legacy files of whole modules) has no name for this purpose.
    name = call.func.dotted if isinstance(call.func, Global) else ""
    uses.add((name, "call"))
    if call.items is not None:
        uses.add((name, "append"))
    if call.pairs is not None:
        uses.add((name, "setitem"))
    if call.state is not None:
        uses.add((name, "build"))
    array = describe_array(call) or describe_scalar(call)
    if array is not None:
        # The state of a dtype is set, and its class is one for each element type, named nowhere in the file.
        uses.add((f"numpy.dtypes.{_dtype_class(array.dtype)}", "build"))


def _dtype_class(dtype: str) -> str:
    return _DTYPE_CLASSES.get(dtype) or f"{dtype.capitalize()}DType".replace("Uint", "UInt")
