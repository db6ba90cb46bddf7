"""What the functions and classes of torch and its relatives do, as far as it matters here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from inspector.containers.formats import format_of
from inspector.diagnose.script.edits import appended, replaced
from inspector.diagnose.script.objects.containers import iterate, owned
from inspector.diagnose.script.objects.devices import read_device, send
from inspector.diagnose.script.objects.loading import torch_load
from inspector.diagnose.script.objects.losses import check_loss
from inspector.diagnose.script.objects.making import new_layer, new_module, wrap
from inspector.diagnose.script.objects.optimizers import make_optimizer
from inspector.diagnose.script.objects.tensors import check_numpy, combine, joined
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Bound,
    Const,
    Device,
    DictObject,
    External,
    FileObject,
    LoaderObject,
    Ref,
    Tensor,
    Value,
)
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.containing import moves_items
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.diagnose.script.simulate.withs import manager
from inspector.diagnose.script.vocabulary import words
from inspector.model.roles.devices import split_device
from inspector.records import replace

_Call = Callable[[Context, str, Arguments], Value]
_FACTORIES = words(
    "zeros ones rand randn randint arange full empty linspace eye tensor as_tensor randperm normal"
)
_LIKE = frozenset(["zeros_like", "ones_like", "rand_like", "randn_like", "empty_like", "full_like"])
_PAIRS = frozenset(["add", "sub", "mul", "div", "matmul", "mm", "bmm", "where", "eq"])
_LOSSES = frozenset(
    [
        "cross_entropy",
        "nll_loss",
        "mse_loss",
        "l1_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "smooth_l1_loss",
        "kl_div",
        "huber_loss",
    ]
)
_MANAGERS = frozenset(["no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast"])
_ASKED = {
    "torch.cuda.is_available": "cuda",
    "torch.xpu.is_available": "xpu",
    "torch.backends.mps.is_available": "mps",
    "torch.backends.mps.is_built": "mps",
    "torch.mps.is_available": "mps",
}


def call_torch(context: Context, name: str, arguments: Arguments) -> Value:  # noqa: PLR0911 - by kind of name
    """Call something of torch, or of a package that goes with it."""
    handler = _EXACT.get(name)
    if handler is not None:
        return handler(context, name, arguments)
    if name in _ASKED:
        return Const(value=context.target.count(_ASKED[name]) > 0)
    place, _, last = name.rpartition(".")
    if last in _MANAGERS:
        return manager(name, arguments.values)
    if place == "torch.nn" or place.startswith("torch.nn.modules"):
        return new_layer(context, last, arguments)
    if place.startswith("torch.optim") and "lr_scheduler" not in place and last[:1].isupper():
        return make_optimizer(context, last, arguments)
    if place == "torch.nn.functional":
        return _functional(context, last, arguments)
    if place == "torch":
        return _function(context, last, arguments)
    return _of_others(context, place, last, arguments)


def _of_others(context: Context, place: str, last: str, arguments: Arguments) -> Value:
    is_model = place.startswith(("torchvision.models", "timm")) and last != "get_weight"
    if is_model and (last[:1].islower() or (last[:1].isupper() and "_Weights" not in last)):
        return new_module(context, last, arguments, is_model=True)
    if place.endswith("GradScaler()"):
        return _scaled(context, last, arguments)
    is_helper = place == "torch.optim.lr_scheduler" or last == "GradScaler"
    return External(name=f"{place}.{last}()") if is_helper and last[:1].isupper() else UNKNOWN


def _scaled(context: Context, method: str, arguments: Arguments) -> Value:
    """Call a method of a gradient scaler: its step is the optimizer's."""
    if method == "step" and arguments.values:
        return context.call_value(
            Bound(owner=arguments.values[0], name="step"), Arguments(node=arguments.node)
        )
    return arguments.values[0] if method == "scale" and arguments.values else UNKNOWN


# --- devices ------------------------------------------------------------------------------------------------


def _device(_: Context, __: str, arguments: Arguments) -> Value:
    kind, number = arguments.get(0, "type"), arguments.get(1, "index")
    if isinstance(kind, Device):
        return kind
    if not isinstance(kind, Const):
        return UNKNOWN
    text = f"cuda:{kind.value}" if isinstance(kind.value, int) else str(kind.value)
    if isinstance(number, Const) and isinstance(number.value, int):
        text = f"{text}:{number.value}"
    return Device(text=text) if split_device(text) is not None else UNKNOWN


def _device_count(context: Context, name: str, _: Arguments) -> Value:
    return Const(value=context.target.count(name.split(".")[1]))


def _current(context: Context, name: str, _: Arguments) -> Value:
    return Const(value=0) if context.target.count(name.split(".")[1]) else UNKNOWN


def _set_device(context: Context, _: str, arguments: Arguments) -> Value:
    device = read_device(context, arguments.get(0, "device"))
    if device:
        send(context, device, arguments.node)
        if split_device(device) not in {("cuda", None), ("cuda", 0)}:
            context.lose("another GPU than the first becomes the current one")
    return NONE


def _default_device(context: Context, _: str, arguments: Arguments) -> Value:
    device = read_device(context, arguments.get(0, "device"))
    context.memory.default_device = send(context, device, arguments.node) if device else None
    return NONE


def _default_type(context: Context, _: str, __: Arguments) -> Value:
    context.memory.default_device = None
    return NONE


def _allow(context: Context, name: str, arguments: Arguments) -> Value:
    names = iterate(context, arguments.get(0, "safe_globals") or UNKNOWN)
    if names is None:
        context.allows_any = True
    for value in names or ():
        if isinstance(value, External):
            context.allowed.add(value.name)
        else:
            context.allows_any = True  # a class of the script, or a pair with another name
    return manager(name, ())


# --- tensors ------------------------------------------------------------------------------------------------


def _function(context: Context, name: str, arguments: Arguments) -> Value:  # noqa: PLR0911 - by kind of result
    first = arguments.values[0] if arguments.values else None
    if name in _FACTORIES:
        return _made(context, name, arguments)
    if name in _LIKE and isinstance(first, Tensor):
        given = read_device(context, arguments.named.get("device"))
        return replace(first, grad=False, device=given or first.device)
    if name in _PAIRS and len(arguments.values) > 1:
        return combine(context, arguments.values[-2], arguments.values[-1], None)
    tensors = [value for value in arguments.all if isinstance(value, Tensor)]
    if name in {"cat", "stack", "concat"} and first is not None:
        found = [value for value in iterate(context, first) or () if isinstance(value, Tensor)]
        return joined(context, found) if found else Tensor()
    if name in {"argmax", "argmin"} and tensors:
        return replace(tensors[0], shape=None, is_number=None, grad=False, dtype="int64")
    if name in {"max", "min", "topk", "sort"} and isinstance(first, Tensor):
        return Batch(device=first.device)
    if name[:1].isupper():
        return Tensor(device="cpu", grad=False) if name.endswith("Tensor") else UNKNOWN
    return replace(tensors[0], shape=None, is_number=None) if tensors else UNKNOWN


def _made(context: Context, name: str, arguments: Arguments) -> Value:
    if not arguments.whole:
        return Tensor()
    given = arguments.named.get("device")
    device = context.memory.default_device if given is None else read_device(context, given)
    first = arguments.values[0] if arguments.values else None
    if name in {"tensor", "as_tensor"} and isinstance(first, Tensor) and given is None:
        return first
    place = (
        send(context, device, arguments.node)
        if device
        else (context.memory.default_device if device == "" else None)
    )
    dtype = {"randint": "int64", "arange": None, "tensor": None, "as_tensor": None, "full": None}.get(
        name, "float32"
    )
    if "dtype" in arguments.named:
        value = arguments.named["dtype"]
        dtype = value.name.removeprefix("torch.") if isinstance(value, External) else None
    is_number = isinstance(first, Const) if name == "tensor" else False
    return Tensor(device=place, dtype=dtype, is_number=is_number, grad=False)


def _numpy_array(context: Context, _: str, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else None
    node = arguments.node.args[0] if arguments.node is not None and arguments.node.args else None
    if isinstance(first, Tensor) and node is not None and not isinstance(node, ast.Starred):
        check_numpy(context, first, node)
    return UNKNOWN


def _from_numpy(_: Context, __: str, ___: Arguments) -> Value:
    return Tensor(device="cpu", grad=False)


def _functional(context: Context, name: str, arguments: Arguments) -> Value:
    tensors = [value for value in arguments.all if isinstance(value, Tensor)]
    if name in _LOSSES and len(tensors) > 1:
        check_loss(
            context,
            tensors[0],
            tensors[1],
            "nll" if name in {"cross_entropy", "nll_loss"} else "other",
            arguments,
        )
        return replace(joined(context, tensors[:1]), is_number=True)
    return tensors[0] if tensors else UNKNOWN


# --- data ---------------------------------------------------------------------------------------------------


def _loader(context: Context, _: str, arguments: Arguments) -> Value:
    if moves_items(context, arguments.get(0, "dataset")) or "collate_fn" in arguments.named:
        return context.memory.put(LoaderObject(element=UNKNOWN))
    device = "cpu" if context.memory.default_device == "cpu" else None
    return context.memory.put(LoaderObject(element=Batch(device=device)))


def _consume_prefix(context: Context, _: str, arguments: Arguments) -> Value:
    prefix = arguments.get(1, "prefix")
    state = owned(context, arguments.get(0, "state_dict") or UNKNOWN)
    found = context.memory.get(state)
    if isinstance(state, Ref) and isinstance(found, DictObject) and isinstance(prefix, Const):
        pairs: dict[object, Value] = {
            str(key).removeprefix(str(prefix.value)): value for key, value in found.pairs.items()
        }
        context.memory.objects[state.id] = DictObject(pairs=pairs, whole=found.whole)
    return NONE


def _pickle_load(context: Context, name: str, arguments: Arguments) -> Value:
    checkpoint = context.known.checkpoint
    first = arguments.values[0] if arguments.values else None
    held = context.memory.get(first) if first is not None else None
    path = held.path if isinstance(held, FileObject) else None
    is_file = path is not None and path.rpartition("/")[2] == checkpoint.path.rpartition("/")[2]
    if is_file and format_of(checkpoint.format).has_records:
        _fail_pickle(context, name, arguments)
    return UNKNOWN


def _fail_pickle(context: Context, name: str, arguments: Arguments) -> None:
    edits = _torch_load_edits(context, arguments.node)
    context.fail(
        "pickle",
        "_pickle.UnpicklingError: A load persistent id instruction was encountered, but no persistent_load "
        "function was specified.",
        f"This is a file of torch.save, which only torch.load reads; {name} does not know its storages.",
        edits=edits,
    )


def _torch_load_edits(context: Context, node: ast.Call | None) -> list[Edit]:
    """Put `torch.load` in the place of `pickle.load`."""
    if node is None or not isinstance(node.func, ast.Attribute) or node.keywords or len(node.args) != 1:
        return []
    word = context.device_word() or '"cpu"'
    function = replaced(context.script, node.func, "torch.load")
    return [function, appended(context.script, node.args[0], f", map_location={word}")]


def _lost(context: Context, name: str, arguments: Arguments) -> Value:
    context.lose(f"{name} reads files in its own way")
    context.give_away(arguments.all)
    return UNKNOWN


_EXACT: Mapping[str, _Call] = {
    "torch.load": lambda context, _, arguments: torch_load(context, arguments),
    "torch.serialization.load": lambda context, _, arguments: torch_load(context, arguments),
    "torch.device": _device,
    "torch.cuda.device_count": _device_count,
    "torch.xpu.device_count": _device_count,
    "torch.cuda.current_device": _current,
    "torch.cuda.set_device": _set_device,
    "torch.set_default_device": _default_device,
    "torch.set_default_tensor_type": _default_type,
    "torch.set_default_dtype": _default_type,
    "torch.serialization.add_safe_globals": _allow,
    "torch.serialization.safe_globals": _allow,
    "torch.compile": lambda context, _, arguments: wrap(context, "OptimizedModule", arguments),
    "torch.from_numpy": _from_numpy,
    "torch.utils.data.DataLoader": _loader,
    "torch.nn.parallel.DistributedDataParallel": lambda context, _, arguments: wrap(
        context, "DistributedDataParallel", arguments
    ),
    "torch.nn.parallel.DataParallel": lambda context, _, arguments: wrap(context, "DataParallel", arguments),
    "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present": _consume_prefix,
    "torch.jit.load": _lost,
    "torch.hub.load": _lost,
    "safetensors.torch.load_file": _lost,
    "pickle.load": _pickle_load,
    "joblib.load": _lost,
    "numpy.array": _numpy_array,
    "numpy.asarray": _numpy_array,
    "torch.is_tensor": lambda _, __, arguments: (
        Const(value=True) if arguments.values and isinstance(arguments.values[0], Tensor) else UNKNOWN
    ),
}
