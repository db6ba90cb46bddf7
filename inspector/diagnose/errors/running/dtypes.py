"""Messages about dtypes that do not go together, or that a device cannot compute with.

The wordings: types by name up to torch 1.0 and in convolutions (`torch.cuda.HalfTensor`), "expected scalar
type" since 1.0, `c10::Half` for the bias since 1.13, "must have the same dtype" for products.
"""

from __future__ import annotations

import re
from collections import Counter

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import about_code
from inspector.diagnose.listing import listed
from inspector.records import dataclass
from inspector.units import format_count

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


_T = r"[a-z0-9_:. ]{1,40}"
_MOST_DTYPES = 4
_FIRST = ("a", "a2", "a3", "a4", "a5", "a6", "a7", "a8")
_SECOND = ("b", "b2", "b3", "b4", "b5", "b6", "b7", "b8")
_INTEGERS = frozenset({"int64", "int32", "int16", "uint8", "int8", "bool"})
_LOW = frozenset({"float16", "bfloat16"})
_WEIGHTS = frozenset({"parameter", "buffer"})


def _dtypes(context: Context) -> Tied:
    """Report the dtypes of the weights in this file, and whether they decide those of the model."""
    counts = Counter(tensor.dtype for tensor in context.checkpoint.tensors if tensor.role in _WEIGHTS)
    if not counts:
        return Tied(fits="unknown", here="This file holds no weights whose dtype could matter.")
    shown = listed([f"{name} ({format_count(n, 'tensor')})" for name, n in counts.most_common(_MOST_DTYPES)])
    here = f"The weights in this file are {shown}."
    if context.checkpoint.module_class is not None:
        return Tied(fits="yes", here=f"{here} It is a whole model, which keeps these dtypes.")
    here += " load_state_dict copies them into the dtypes that the model was built with"
    return Tied(fits="unknown", here=f"{here}, so the file alone does not decide it (unless assign=True).")


def _is_dtype_mix(told: Told) -> bool:
    """Return whether the two types of a message differ in dtype and not in device."""
    first, second = read_type(_first(told)), read_type(_second(told))
    return not are_apart(first, second) and (differ(first, second) or not (first.dtype and second.dtype))


def _first(told: Told) -> str:
    return next((told.groups[key] for key in _FIRST if told.groups.get(key)), "")


def _second(told: Told) -> str:
    return next((told.groups[key] for key in _SECOND if told.groups.get(key)), "")


def _mixed(told: Told) -> Said:
    """Explain which dtype met which, and the shortest way to make them one."""
    first, second = read_type(_first(told)).dtype, read_type(_second(told)).dtype
    if told.scene.step in {"optimizer", "scaler"}:
        return _IN_OPTIMIZER
    return Said() if not first or not second or first == second else _of_pair(first, second)


def _of_pair(first: str, second: str) -> Said:
    """Explain what to convert where these two dtypes met."""
    cause = (
        f"One operation got tensors of {first} and of {second}. Both may be on the same device: this is "
        "about precision."
    )
    both = {first, second}
    if "int64" in both and not both & _LOW:
        return Said(cause=cause, advice=_LONG)
    if "float64" in both and "float32" in both:
        return Said(cause=f"{cause} {_DOUBLE}", advice=_TO_FLOAT)
    if both & _INTEGERS:
        return Said(cause=cause, advice=_FROM_INTEGERS)
    low = next(iter(sorted(both & _LOW)), "")
    return Said(cause=f"{cause} {_HALF}", advice=_TO_LOW.format(low=low)) if low else Said(cause=cause)


_IN_OPTIMIZER = Said(
    cause="The optimizer's state and the parameters have different dtypes: the model was converted "
    "(.half(), .float(), .bfloat16()) after the optimizer had its state, or state of another dtype was put "
    "in by hand.",
    advice="Convert the model first, then create the optimizer, and call optimizer.load_state_dict last: "
    "it casts the state to the dtype of each parameter.",
)
_DOUBLE = "NumPy arrays and Python floats become float64 by way of NumPy, while weights are float32."
_TO_FLOAT = "Convert what goes in: inputs = inputs.float() (targets.float() for a loss). Or model.double()."
_HALF = "A model in half precision (.half(), torch_dtype=, or a layer left in float32) got the other one."
_TO_LOW = (
    "Make them one: inputs = inputs.to(next(model.parameters()).dtype), or model.float() to compute in "
    "float32. With a model whose layers differ, run it under torch.autocast(device_type, dtype=torch.{low})."
)
_LONG = (
    "Class labels for cross_entropy and indices (embedding, gather, index_select) must be int64: "
    "labels.long(). Inputs of layers and targets of mse_loss or BCE must be floating point: x.float()."
)
_FROM_INTEGERS = (
    "Convert the integers before the model: images.float() / 255 for pictures, mask.bool() for masks, "
    "labels.long() for class labels."
)


def _kernel(told: Told) -> Said:
    """Explain why there is no code for this dtype: by the dtype, and by the name of the kernel."""
    kernel, dtype = told.groups["kernel"].lower(), told.groups["dtype"].lower()
    if "unscale" in kernel:
        return Said(
            title="The gradient scaler does not work with bfloat16",
            cause="torch's GradScaler is for float16; with bfloat16 nothing needs to be scaled.",
            advice="Leave the GradScaler out (enabled=False) where bfloat16 is used.",
        )
    if "float8" in dtype:
        return Said(
            cause=_FLOAT8, advice="Convert before computing: tensor.to(torch.bfloat16), or model.float()."
        )
    if dtype in {"half", "bfloat16"}:
        return Said() if "cuda" not in kernel else Said(cause=_OLD_CUDA, advice=_OLD_CUDA_ADVICE)
    if "nll" in kernel or "cross_entropy" in kernel:
        return Said(
            title="Class labels must be int64",
            cause="nll_loss and cross_entropy take class labels as int64; these labels are of another dtype.",
            advice="labels = labels.long(). For targets that are probabilities, pass floats of shape (N, C).",
        )
    if dtype in {"long", "int", "short", "byte", "char", "bool"}:
        return Said(
            title="An operation for floating point got integers",
            cause="The operation is defined for floating point, and the tensor holds integers.",
            advice="Convert it first: x.float(). Pictures are read as uint8: images.float() / 255.",
        )
    return Said(
        title="This operation does not exist for this dtype and device",
        cause="torch has no code for the operation with this dtype on the device that the tensors are on.",
        advice="Convert the tensor to a dtype that is supported, such as float32, or run it on another "
        "device.",
    )


_FLOAT8 = "float8 is a format for storing; most operations are not defined for it."
_OLD_CUDA = "This version of torch has no CUDA code for the operation in half precision."
_OLD_CUDA_ADVICE = (
    "Update torch. Or convert for this one operation: tensor.float(), and back afterwards; or load the "
    "model in float32."
)

DTYPE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="dtype-mix",
        title="One operation got tensors of different dtypes",
        pattern=rf"Input type \(?(?P<a>{_T}?)\)? and (?:weight|bias) type \(?(?P<b>{_T}?)\)? should be the "
        rf"same|"
        rf"expected (?:object of |tensor for argument )?scalar type (?P<a2>{_T}?) but (?:found|got) "
        rf"(?:scalar type )?"
        rf"(?P<b2>[a-z0-9]{{1,16}})|"
        rf"same dtype,? ?(?:but got|bot got|but found)?:? ?(?:input\d?:? |[a-z_]{{1,12}}\.dtype: "
        rf")?(?P<a3>[a-z0-9_:]{{1,30}}) "
        rf"(?:and|!=|key\.dtype:) (?P<b3>[a-z0-9_:]{{1,30}})|"
        rf"expected (?:object of )?type (?:torch\.)?(?P<a4>{_T}?) but (?:found|got) (?:type "
        rf")?(?P<b4>torch\.[a-z0-9.]{{1,40}})|"
        rf"found dtype (?P<a5>[a-z0-9]{{1,16}}) but expected (?P<b5>[a-z0-9]{{1,16}})|"
        rf"expected (?:device (?P<device>{_T}?) and )?dtype (?P<a6>[a-z0-9]{{1,16}}) but got (?:device "
        rf"(?P<device2>{_T}?) and )?"
        rf"dtype (?P<b6>[a-z0-9]{{1,16}})|"
        r"dtypes match, got (?P<a7>[a-z0-9]{1,16}) for the destination and (?P<b7>[a-z0-9]{1,16}) for the "
        r"source|"
        r"must have the same dtype\b|mixed dtype \(cpu\)|are not the same dtype, found|input dtype "
        r"\([^)]{1,40}\) does not "
        r"match weight dtype|expected running_(?:mean|var) to have type|attn_mask dtype to be bool or|"
        r"but type (?P<a8>torch\.[a-z.]{1,40}) does not equal (?P<b8>torch\.[a-z.]{1,40})|"
        r"must have same dtype, device, and layout|flatten tensors with (?:the same|uniform) dtype",
        cause="One operation got tensors of two dtypes, such as float16 and float32. Both may be on the "
        "same device: this is about precision.",
        advice="Make them one: inputs = inputs.to(next(model.parameters()).dtype), or model.float(). With "
        "a model whose layers differ, run it under torch.autocast.",
        tie=_dtypes,
        when=lambda told: _is_dtype_mix(told) and told.groups["device"] == told.groups["device2"],
        say=_mixed,
    ),
    ErrorKind(
        id="mps-graph-dtypes",
        title="An operation on the Apple GPU (mps) got tensors of two dtypes",
        pattern=r"input types 'tensor<[\dx*]{0,60}(?P<a>b?f\d\d|i\d\d?)>' and 'tensor<[\dx*]{0,60}"
        r"(?P<b>b?f\d\d|i\d\d?)>' are not broadcast compatible|"
        r"'mps\.\w{1,30}' op requires the same element type",
        cause="Metal's compiler ends the whole program where torch would raise: float32 (f32) and float16 "
        "(f16) were mixed in one operation.",
        advice="Make them one dtype: model.float() or model.half(), inputs.to(model.dtype). In web "
        "interfaces start with --no-half or --upcast-sampling.",
        tie=_dtypes,
        when=lambda told: not told.groups["a"] or told.groups["a"] != told.groups["b"],
    ),
    ErrorKind(
        id="dtype-kernel",
        title="The CPU does not compute this in half precision",
        pattern=r"['\"](?P<kernel>[\w:<>() -]{1,80})['\"] not implemented for "
        r"['\"](?P<dtype>\w{1,24})(?:['\"]|$)",
        cause="torch has no CPU code for this operation in half precision: the weights are float16 (or "
        "bfloat16), and the model runs on the CPU.",
        advice="On a CPU compute in float32: model.float() after loading (torch_dtype=torch.float32 in "
        "from_pretrained, --no-half in web interfaces). Newer versions of torch know more of these "
        "operations.",
        tie=_dtypes,
        say=_kernel,
    ),
    ErrorKind(
        id="index-dtype",
        title="Indices and class labels must be integers",
        pattern=r"tensors used as indices must be|expected tensor for argument #\d 'indices' to have (?:one "
        r"of the following )?scalar types?|expected dtype int(?:32 ?(?:or|/) ?int)?64 for index|"
        r"expected target dtype to be long or|"
        r"expected floating point type for target with class probabilities",
        cause="Embeddings, gather and index_select take whole numbers (int64); cross_entropy takes class "
        "labels as int64, or probabilities as floats of shape (N, C).",
        advice="Convert where they are made: ids.long(), labels.long(); mask.bool() for a mask.",
        tie=about_code("Nothing in this file decides the dtype of the indices: your code makes them."),
    ),
    ErrorKind(
        id="cast-in-place",
        title="A result does not fit into the tensor that it is written to",
        pattern=r"result type \w{1,20} can'?t be cast to the desired output type|"
        r"value cannot be converted to type (?:at::|c10::)?\w{1,12} without overflow",
        cause="An operation in place (+=, fill_, masked_fill) writes a value of one dtype into a tensor of "
        "another that cannot hold it: a float into integers, or a number beyond 65,504 such as -1e9 into "
        "float16.",
        advice="Convert the tensor first: x = x.float(). For masks in float16 use torch.finfo(x.dtype).min "
        "instead of -1e9.",
        tie=_dtypes,
    ),
    ErrorKind(
        id="unscale-fp16",
        title="The gradients are float16, and the scaler expects float32",
        pattern=r"Attempting to unscale FP16 gradients",
        cause="Mixed precision keeps the weights in float32 and computes in float16 under autocast. Here "
        "the trained parameters themselves are float16: the model was loaded or converted with .half() or "
        "torch_dtype=float16.",
        advice="Keep the parameters that are trained in float32: model.float(), or "
        "torch_dtype=torch.float32 (for adapters: cast the trainable parameters alone), and let autocast "
        "convert. Or train in pure float16 without a GradScaler.",
        tie=_dtypes,
    ),
    ErrorKind(
        id="grad-dtype",
        title="Integers cannot have gradients",
        pattern=r"only tensors of floating point (?:and complex )?(?:dtype )?can require gradients",
        cause="requires_grad was set on a tensor of integers, such as a buffer, or a quantized (int8, "
        "4-bit) weight that was put in place of a parameter.",
        advice="Set requires_grad only where tensor.is_floating_point(). Quantized models are trained "
        "through adapters (LoRA), not directly.",
        tie=_dtypes,
    ),
    ErrorKind(
        id="flash-attention",
        title="FlashAttention does not work with this GPU or dtype",
        pattern=r"FlashAttention only supports? (?:fp16|ampere|hopper|head|cuda)|"
        r"FlashAttention ?2? ?(?:only supports|forward only)",
        cause="FlashAttention needs float16 or bfloat16, and a GPU of the Ampere generation (RTX 30, A100) "
        "or newer.",
        advice="Load the model in bfloat16 or float16. On an older GPU choose another attention: "
        "attn_implementation='sdpa' (or 'eager') in from_pretrained.",
        tie=_dtypes,
    ),
)
