"""Tensors: where they are, what moves them, and what torch says when two do not fit."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from inspector.diagnose.script.edits import appended, line_before, replaced
from inspector.diagnose.script.objects.devices import device_argument, send
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Const,
    External,
    Tensor,
    Value,
)
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.diagnose.script.vocabulary import words
from inspector.records import replace
from inspector.target.versions import Release

NEW_WORDS: Release = (2, 9)
"""The first release that names the argument first, see `common_device_check_failure` in torch's c10."""
_MOVES = frozenset({"to", "cuda", "cpu", "xpu"})
_NUMBERS = frozenset(
    {"item", "size", "dim", "numel", "tolist", "backward", "data_ptr", "element_size", "ndimension"}
)
_SAME_DEVICE = words("add sub mul div matmul mm bmm add_ sub_ mul_ div_ eq")
_DTYPES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "bfloat16",
    "long": "int64",
}
_DTYPES |= {"int": "int32", "bool": "bool"}
_ITSELF: Mapping[str, bool | None] = {
    **dict.fromkeys(("contiguous", "clone", "copy_", "zero_", "relu", "sigmoid", "exp", "abs", "pin_memory")),
    "detach": False,
    "detach_": False,
    "requires_grad_": True,
}
"""Methods whose result is like the tensor, and what becomes of its gradient; None where it stays."""


def dtype_argument(arguments: Arguments) -> str | None:
    """Return the dtype among the arguments of `to`, or None."""
    for value in arguments.all:
        if isinstance(value, External) and value.name.startswith("torch."):
            name = value.name.removeprefix("torch.")
            return _DTYPES.get(name, name)
    return None


def call_tensor(context: Context, owner: Tensor, name: str, arguments: Arguments) -> Value:
    """Call a method of a tensor."""
    if name in _MOVES:
        return _moved(context, owner, name, arguments)
    if name == "numpy":
        return _numpy(context, owner, arguments)
    if name in _SAME_DEVICE and arguments.values:
        return combine(context, owner, arguments.values[0], arguments.node)
    if name in {"sum", "mean"} and not arguments.all:
        return replace(owner, shape=(), is_number=True)
    return _shaped(owner, name)


def _shaped(owner: Tensor, name: str) -> Value:
    """Return the result of a method that needs no other tensor."""
    if name in _DTYPES:
        return replace(owner, dtype=_DTYPES[name])
    if name in _NUMBERS:
        return NONE if name == "backward" else UNKNOWN
    if name in _ITSELF:
        return replace(owner, grad=_ITSELF[name] if _ITSELF[name] is not None else owner.grad)
    if name in {"argmax", "argmin", "argsort"}:
        return replace(owner, shape=None, is_number=None, grad=False, dtype="int64")
    if name in {"max", "min", "sort", "topk", "split", "chunk", "unbind"}:
        return Batch(device=owner.device)
    return Tensor(device=owner.device, grad=owner.grad)


def call_batch(context: Context, owner: Batch, name: str, arguments: Arguments) -> Value:
    """Call a method of a batch of unknown form: moved as a whole, or taken apart."""
    if name in _MOVES:
        moved = _moved(context, Tensor(device=owner.device), name, arguments)
        return Batch(device=moved.device)
    return UNKNOWN


def _moved(context: Context, owner: Tensor, name: str, arguments: Arguments) -> Tensor:
    dtype = dtype_argument(arguments) or owner.dtype
    other = arguments.values[0] if arguments.values else None
    if name == "to" and isinstance(other, Tensor):
        return replace(owner, device=other.device, dtype=other.dtype)
    device = device_argument(context, name, arguments)
    if device == "":
        return replace(owner, dtype=dtype)
    return replace(
        owner, device=None if device is None else send(context, device, arguments.node), dtype=dtype
    )


def _numpy(context: Context, owner: Tensor, arguments: Arguments) -> Value:
    """Raise what `Tensor.numpy` raises, in its order: the device is looked at before the gradient."""
    function = arguments.node.func if arguments.node is not None else None
    before = function.value if isinstance(function, ast.Attribute) else None
    check_numpy(context, owner, before, is_forced=bool(arguments.all))
    return UNKNOWN


def check_numpy(context: Context, owner: Tensor, before: ast.expr | None, *, is_forced: bool = False) -> None:
    """Raise where a tensor cannot become an array; `before` is what the call stands behind."""
    if is_forced or owner.device is None:
        return
    has_graph = owner.grad is True and context.memory.is_grad is True
    if owner.device != "cpu":
        edit = ".detach().cpu()" if has_graph else ".cpu()"
        context.fail(
            "numpy-of-gpu",
            f"TypeError: can't convert {owner.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first.",
            f"NumPy works in the machine's own memory, and this tensor is on {owner.device}.",
            edits=[] if before is None else [appended(context.script, before, edit)],
        )
    if has_graph:
        context.fail(
            "numpy-of-grad",
            "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
            "instead.",
            "This tensor comes out of a model while gradients are recorded.",
            edits=[] if before is None else [appended(context.script, before, ".detach()")],
        )


# --- two tensors --------------------------------------------------------------------------------------------


def combine(context: Context, one: Value, two: Value, node: ast.AST | None) -> Value:
    """Return what an operation on two values gives, of which at least one is a tensor."""
    tensors = [value for value in (one, two) if isinstance(value, Tensor)]
    if len(tensors) < 2:
        known = tensors[0] if tensors else Tensor()
        other = two if known is one else one
        return replace(known, shape=None) if isinstance(other, Const) else Tensor()
    first, second = tensors
    both = {first.device, second.device}
    if None not in both and len(both) == 2 and first.is_number is False and second.is_number is False:
        edits = _operand_edits(context, node, first)
        fail_mixed(context, "other", first.device or "", second.device or "", edits=edits)
    return joined(context, tensors)


def joined(context: Context, tensors: Sequence[Tensor]) -> Tensor:
    """Return what an operation on tensors gives."""
    placed = [tensor for tensor in tensors if tensor.is_number is not True] or list(tensors)
    devices = {tensor.device for tensor in placed}
    grads = [tensor.grad for tensor in tensors]
    grad = True if True in grads else None if None in grads else False
    same = tensors[0].dtype if len({tensor.dtype for tensor in tensors}) == 1 else None
    is_flat = all(tensor.is_number is False for tensor in placed) and len(placed) == len(tensors)
    recorded = grad if context.memory.is_grad is not False else False
    return Tensor(
        device=devices.pop() if len(devices) == 1 else None,
        dtype=same,
        is_number=False if is_flat else None,
        grad=recorded,
    )


def _operand_edits(context: Context, node: ast.AST | None, first: Tensor) -> list[Edit]:
    if not isinstance(node, ast.BinOp):
        return []
    stray, kept = (node.left, node.right) if first.device == "cpu" else (node.right, node.left)
    return [replaced(context.script, stray, f"{grouped(context, stray)}.to({grouped(context, kept)}.device)")]


def grouped(context: Context, node: ast.expr) -> str:
    """Return the text of an expression so that an attribute can be asked of it."""
    text = context.script.source(node)
    is_simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return text if is_simple else f"({text})"


_ARGUMENTS = {
    "linear": ("mat1", "addmm"),
    "embedding": ("index", "_index_select"),
    "nll": ("target", "nll_loss_forward"),
}
"""What torch calls the stray argument of an operation on CUDA, and the operation."""


def fail_mixed(
    context: Context,
    asks: str,
    stray: str,
    kept: str,
    *,
    why: str = "",
    edits: Sequence[Edit] = (),
) -> None:
    """Raise what torch says where tensors of one operation are on different devices."""
    context.fail(
        "device-mix",
        mix_message(asks, stray, kept, context.release),
        why or f"One operand is on {stray}, the other on {kept}.",
        edits=edits,
    )


def mix_message(asks: str, stray: str, kept: str, release: Release) -> str:
    """Return torch's words for tensors on two devices.

    Args:
        asks: What is computed: `linear`, `conv`, `embedding`, `nll`, or anything else.
        stray: The device of the input.
        kept: The device of the parameters.
        release: The machine's torch.
    """
    if asks == "conv":
        return _conv_message(stray, kept)
    start = "RuntimeError: Expected all tensors to be on the same device, but "
    if release >= NEW_WORDS and asks in _ARGUMENTS and kept.startswith("cuda"):
        name, method = _ARGUMENTS[asks]
        return (
            f"{start}got {name} is on {stray}, different from other tensors on {kept} (when checking "
            f"argument in method wrapper_CUDA_{method})"
        )
    one, two = (kept, stray) if stray == "cpu" else (stray, kept)
    return f"{start}found at least two devices, {one} and {two}!"


def _conv_message(stray: str, kept: str) -> str:
    types = [_type_name(device) for device in (stray, kept)]
    return f"RuntimeError: Input type ({types[0]}) and weight type ({types[1]}) should be the same"


def _type_name(device: str) -> str:
    kind = device.partition(":")[0]
    return "torch.FloatTensor" if kind == "cpu" else f"torch.{kind}.FloatTensor"


# --- what is put in front of a line -------------------------------------------------------------------------


def move_edits(context: Context, node: ast.expr | None, device: str) -> list[Edit]:
    """Move the value that an argument names, right before the statement that needs it."""
    word = context.device_word() or repr(device)
    if node is None or context.statement is None:
        return []
    if isinstance(node, ast.Name) and is_simple(context.statement):
        return [line_before(context.script, context.statement, f"{node.id} = {node.id}.to({word})")]
    return [replaced(context.script, node, f"{grouped(context, node)}.to({word})")]


def is_simple(statement: ast.stmt) -> bool:
    """Return whether a line can be put above a statement and is reached just before it."""
    return isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return)
