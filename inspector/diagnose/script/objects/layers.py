"""The parameters of the layers of `torch.nn`: their names, and their shapes where the arguments tell them.

From the `__init__` of each class in `torch/nn/modules` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inspector.diagnose.script.vocabulary import words
from inspector.records import dataclass

Shape = tuple[int, ...] | None
Named = dict[str, Shape]
Arguments = Mapping[str, object]
"""The arguments of a layer by name; what is unknown is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer.

    Attributes:
        arguments: The names of its positional arguments.
        own: Returns its parameters; None where the arguments do not tell their names.
        asks: What it does with its input: `linear`, `conv`, `embedding`, `loss`, or `point` for all else.
    """

    arguments: tuple[str, ...] = ()
    own: Callable[[Arguments], Named | None] = lambda _: {}
    asks: str = "point"


def _int(arguments: Arguments, name: str) -> int | None:
    found = arguments.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _ints(arguments: Arguments, name: str, count: int) -> tuple[int, ...] | None:
    found = arguments.get(name)
    if isinstance(found, int):
        return (found,) * count
    fits = isinstance(found, tuple) and len(found) == count and all(isinstance(one, int) for one in found)
    return found if fits and isinstance(found, tuple) else None


def _flag(arguments: Arguments, name: str, default: bool) -> bool | None:  # noqa: FBT001 - as in the call
    if name not in arguments:
        return default
    found = arguments[name]
    return found if isinstance(found, bool) else None


def _with_bias(arguments: Arguments, weight: Shape, size: int | None) -> Named | None:
    has_bias = _flag(arguments, "bias", default=True)
    if has_bias is None:
        return None
    bias: Shape = None if size is None else (size,)
    return {"weight": weight, "bias": bias} if has_bias else {"weight": weight}


def _linear(arguments: Arguments) -> Named | None:
    into, out = _int(arguments, "in_features"), _int(arguments, "out_features")
    return _with_bias(arguments, None if into is None or out is None else (out, into), out)


def _bilinear(arguments: Arguments) -> Named | None:
    return _with_bias(arguments, None, _int(arguments, "out_features"))


def _conv(dimensions: int, *, is_transposed: bool = False) -> Callable[[Arguments], Named | None]:
    def own(arguments: Arguments) -> Named | None:
        into, out = _int(arguments, "in_channels"), _int(arguments, "out_channels")
        groups = _int(arguments, "groups") if "groups" in arguments else 1
        kernel = _ints(arguments, "kernel_size", dimensions)
        weight: Shape = None
        if into is not None and out is not None and groups and kernel is not None:
            weight = (into, out // groups, *kernel) if is_transposed else (out, into // groups, *kernel)
        return _with_bias(arguments, weight, out)

    return own


def _batch_norm(arguments: Arguments) -> Named | None:
    size = _int(arguments, "num_features")
    shape: Shape = None if size is None else (size,)
    affine = _flag(arguments, "affine", default=True)
    tracks = _flag(arguments, "track_running_stats", default=True)
    if affine is None or tracks is None:
        return None
    named: Named = {"weight": shape, "bias": shape} if affine else {}
    if tracks:
        named |= {"running_mean": shape, "running_var": shape, "num_batches_tracked": ()}
    return named


def _instance_norm(arguments: Arguments) -> Named | None:
    return _batch_norm({"affine": False, "track_running_stats": False} | dict(arguments))


def _layer_norm(arguments: Arguments) -> Named | None:
    size = arguments.get("normalized_shape")
    shape: Shape = (size,) if isinstance(size, int) else None
    affine = _flag(arguments, "elementwise_affine", default=True)
    if affine is None:
        return None
    return _with_bias(arguments, shape, shape[0] if shape else None) if affine else {}


def _rms_norm(arguments: Arguments) -> Named | None:
    return _layer_norm({"bias": False} | dict(arguments))


def _group_norm(arguments: Arguments) -> Named | None:
    size = _int(arguments, "num_channels")
    affine = _flag(arguments, "affine", default=True)
    if affine is None:
        return None
    shape: Shape = None if size is None else (size,)
    return {"weight": shape, "bias": shape} if affine else {}


def _embedding(arguments: Arguments) -> Named:
    count, size = _int(arguments, "num_embeddings"), _int(arguments, "embedding_dim")
    return {"weight": None if count is None or size is None else (count, size)}


def _prelu(arguments: Arguments) -> Named:
    count = _int(arguments, "num_parameters") if "num_parameters" in arguments else 1
    return {"weight": None if count is None else (count,)}


def _recurrent(gates: int) -> Callable[[Arguments], Named | None]:
    def own(arguments: Arguments) -> Named | None:
        into, size = _int(arguments, "input_size"), _int(arguments, "hidden_size")
        layers = _int(arguments, "num_layers") if "num_layers" in arguments else 1
        both, bias = _flag(arguments, "bidirectional", default=False), _flag(arguments, "bias", default=True)
        if layers is None or layers > 64 or both is None or bias is None or "proj_size" in arguments:
            return None
        named: Named = {}
        for layer in range(layers):
            below = None if size is None else size * (2 if both else 1)
            width = into if layer == 0 else below
            for end in ("", "_reverse") if both else ("",):
                named |= _cell(gates, width, size, f"_l{layer}{end}", has_bias=bias)
        return named

    return own


def _cell(gates: int, into: int | None, size: int | None, end: str, *, has_bias: bool) -> Named:
    rows = None if size is None else gates * size
    named: Named = {
        f"weight_ih{end}": None if rows is None or into is None else (rows, into),
        f"weight_hh{end}": None if rows is None or size is None else (rows, size),
    }
    shape: Shape = None if rows is None else (rows,)
    return named | ({f"bias_ih{end}": shape, f"bias_hh{end}": shape} if has_bias else {})


def _weighted_loss(name: str) -> Callable[[Arguments], Named]:
    return lambda arguments: {name: None} if arguments.get(name, None) is not None else {}


_CONV = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
_DECONV = (*_CONV[:5], "output_padding", "groups", "bias", "dilation")
_NORM = ("num_features", "eps", "momentum", "affine", "track_running_stats")
_RNN = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
_PLAIN = words(
    "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Softmax LogSoftmax "
    "Softplus Softsign Hardswish Hardsigmoid Hardtanh Identity Flatten Unflatten Dropout Dropout1d "
    "Dropout2d Dropout3d AlphaDropout MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d "
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle "
    "ZeroPad2d ReflectionPad1d ReflectionPad2d ReplicationPad2d ConstantPad2d Fold Unfold "
    "CosineSimilarity GLU ChannelShuffle Softmax2d"
)
_LOSSES = [
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "HuberLoss",
    "KLDivLoss",
    "GaussianNLLLoss",
    "PoissonNLLLoss",
    "MultiLabelMarginLoss",
    "SoftMarginLoss",
]

LAYERS: Mapping[str, Layer] = {
    **{name: Layer() for name in _PLAIN},
    **{name: Layer(asks="loss") for name in _LOSSES},
    **{
        name: Layer(arguments=("weight",), own=_weighted_loss("weight"), asks="loss")
        for name in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "MultiLabelSoftMarginLoss")
    },
    "BCEWithLogitsLoss": Layer(
        own=lambda arguments: {
            name: None for name in ("weight", "pos_weight") if arguments.get(name) is not None
        },
        arguments=("weight", "size_average", "reduce", "reduction", "pos_weight"),
        asks="loss",
    ),
    "Linear": Layer(arguments=("in_features", "out_features", "bias"), own=_linear, asks="linear"),
    "Bilinear": Layer(arguments=("in1_features", "in2_features", "out_features", "bias"), own=_bilinear),
    **{f"Conv{n}d": Layer(arguments=_CONV, own=_conv(n), asks="conv") for n in (1, 2, 3)},
    **{
        f"ConvTranspose{n}d": Layer(arguments=_DECONV, own=_conv(n, is_transposed=True), asks="conv")
        for n in (1, 2, 3)
    },
    **{
        name: Layer(arguments=_NORM, own=_batch_norm, asks="norm")
        for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
    },
    **{
        name: Layer(arguments=_NORM, own=_instance_norm)
        for name in ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
    },
    "LayerNorm": Layer(arguments=("normalized_shape", "eps", "elementwise_affine", "bias"), own=_layer_norm),
    "RMSNorm": Layer(arguments=("normalized_shape", "eps", "elementwise_affine"), own=_rms_norm),
    "GroupNorm": Layer(arguments=("num_groups", "num_channels", "eps", "affine"), own=_group_norm),
    "Embedding": Layer(arguments=("num_embeddings", "embedding_dim"), own=_embedding, asks="embedding"),
    "EmbeddingBag": Layer(arguments=("num_embeddings", "embedding_dim"), own=_embedding, asks="embedding"),
    "PReLU": Layer(arguments=("num_parameters",), own=_prelu),
    "RNN": Layer(arguments=_RNN, own=_recurrent(1), asks="recurrent"),
    "LSTM": Layer(arguments=_RNN, own=_recurrent(4), asks="recurrent"),
    "GRU": Layer(arguments=_RNN, own=_recurrent(3), asks="recurrent"),
}
"""By name. Layers that are not listed are modules of which nothing more is known."""
