"""Modules: what their methods do to devices and types, and what a call asks of its input."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from inspector.diagnose.script.edits import appended, line_after
from inspector.diagnose.script.objects.devices import device_argument, send
from inspector.diagnose.script.objects.layers import LAYERS
from inspector.diagnose.script.objects.losses import argument_node, call_loss
from inspector.diagnose.script.objects.state_dicts import FIRST, load_state_dict, state_of
from inspector.diagnose.script.objects.tensors import (
    dtype_argument,
    fail_mixed,
    move_edits,
)
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Const,
    Items,
    ListObject,
    ModuleObject,
    Parameters,
    Ref,
    Tensor,
    Value,
)
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.records import replace

_TYPES = {"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
_WORDS = {"float16": "c10::Half", "float32": "float", "float64": "double", "bfloat16": "c10::BFloat16"}
_SHORT = {"float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16"}
_MODEL = frozenset({"eval", "train", "parameters", "load_state_dict", "state_dict"})


def call_method(context: Context, owner: Ref, name: str, arguments: Arguments) -> Value | None:
    """Call a method that all modules have; None where it is none of these."""
    module = context.memory.module(owner)
    if module is not None and not module.is_model and name in _MODEL:
        context.memory.objects[owner.id] = replace(module, is_model=True)
    method = _METHODS.get(name)
    if method is not None:
        return method(context, owner, name, arguments)
    return _list_method(context, owner, name, arguments)


def _load(context: Context, owner: Ref, _: str, arguments: Arguments) -> Value:
    return load_state_dict(context, owner, arguments)


def _state(context: Context, owner: Ref, _: str, __: Arguments) -> Value:
    return state_of(context, owner)


def _convert(context: Context, owner: Ref, name: str, _: Arguments) -> Value:
    _retype(context, owner, _TYPES[name])
    return owner


def _itself(_: Context, owner: Ref, __: str, ___: Arguments) -> Value:
    return owner


def _nothing(_: Context, __: Ref, ___: str, ____: Arguments) -> Value:
    return NONE


def _list_method(context: Context, owner: Ref, name: str, arguments: Arguments) -> Value | None:
    """Call a method that lists of modules have."""
    module = context.memory.module(owner)
    if module is None or module.layer not in {"Sequential", "ModuleList", "ModuleDict"}:
        return UNKNOWN if name in {"children", "modules", "named_modules", "named_children"} else None
    added = arguments.values[-1:] if name in {"append", "add_module"} else ()
    if name == "extend" and arguments.values:
        added = tuple(context.iterate(arguments.values[0]) or (UNKNOWN,))
    children, whole = dict(module.children), module.whole
    for value in added:
        if isinstance(value, Ref) and context.memory.module(value) is not None:
            children[str(len(children))] = value.id
        else:
            whole = False
    context.memory.objects[owner.id] = replace(module, children=children, whole=whole)
    return owner if added else UNKNOWN


def _register(context: Context, owner: Ref, name: str, arguments: Arguments) -> Value:
    module, key, value = context.memory.module(owner), arguments.get(0, "name"), arguments.get(1, "tensor")
    if module is None or not isinstance(key, Const):
        return NONE
    text = str(key.value)
    if name == "add_module":
        is_module = isinstance(value, Ref) and context.memory.module(value) is not None
        children = {**module.children, text: value.id} if is_module else module.children  # type: ignore[union-attr]
        context.memory.objects[owner.id] = replace(
            module, children=children, whole=module.whole and is_module
        )
        return NONE
    persists = arguments.get(2, "persistent", Const(value=True))
    if name == "register_buffer" and persists == Const(value=False):
        hidden = {**module.attributes, f"~{text}": Const(value=True)}
        context.memory.objects[owner.id] = replace(
            module, own={**module.own, f"~{text}": None}, attributes=hidden
        )
        return NONE
    shape = value.shape if isinstance(value, Tensor) else None
    own = module.own if value == NONE else {**module.own, text: shape}
    buffers = module.buffers | {text} if name == "register_buffer" else module.buffers
    context.memory.objects[owner.id] = replace(module, own=own, buffers=buffers)
    return NONE


# --- moving -------------------------------------------------------------------------------------------------


def _move(context: Context, owner: Ref, name: str, arguments: Arguments) -> Value:
    dtype = dtype_argument(arguments)
    if dtype is not None:
        _retype(context, owner, dtype)
    device = device_argument(context, name, arguments)
    if device == "":
        return owner
    place = None if device is None else send(context, device, arguments.node)
    for _, number, module in list(context.memory.below(owner.id)):
        context.memory.objects[number] = replace(module, device=place, moved=context.line)
    return owner


def _retype(context: Context, owner: Ref, dtype: str) -> None:
    for _, number, module in list(context.memory.below(owner.id)):
        context.memory.objects[number] = replace(module, dtype=dtype)


def _freeze(context: Context, owner: Ref, _: str, arguments: Arguments) -> Value:
    value = arguments.get(0, "requires_grad")
    known = True if value is None else value.value if isinstance(value, Const) else None
    frozen = None if not isinstance(known, bool) else not known
    for _, number, module in list(context.memory.below(owner.id)):
        context.memory.objects[number] = replace(module, frozen=frozen)
    return owner


def _parameters(context: Context, owner: Ref, name: str, _: Arguments) -> Value:
    if name == "parameters":
        return Parameters(modules=(owner.id,))
    return context.memory.put(
        ListObject(items=(Items(values=(UNKNOWN, Parameters(modules=(owner.id,)))),), whole=False)
    )


_METHODS: Mapping[str, Callable[[Context, Ref, str, Arguments], Value]] = {
    **dict.fromkeys(("to", "cuda", "cpu", "xpu"), _move),
    **dict.fromkeys(_TYPES, _convert),
    **dict.fromkeys(("parameters", "named_parameters"), _parameters),
    **dict.fromkeys(("register_buffer", "register_parameter", "add_module"), _register),
    **dict.fromkeys(("eval", "train", "apply", "share_memory", "type"), _itself),
    **dict.fromkeys(("zero_grad", "compile"), _nothing),
    "requires_grad_": _freeze,
    "load_state_dict": _load,
    "state_dict": _state,
}


# --- calling ------------------------------------------------------------------------------------------------


def call_module(context: Context, owner: Ref, module: ModuleObject, arguments: Arguments) -> Value:
    """Call a module that is not followed further: one of torch's own, or of another package."""
    if module.layer == "Sequential" and module.whole:
        return _call_sequence(context, module, arguments)
    layer = LAYERS.get(module.layer)
    tensors = [value for value in arguments.all if isinstance(value, Tensor | Batch)]
    if layer is not None and layer.asks == "loss":
        return call_loss(context, module, arguments)
    if layer is not None and not module.own:
        return tensors[0] if tensors else UNKNOWN
    stray = _stray(module, tensors)
    if stray is not None:
        _fail_input(context, owner, module, arguments, stray)
    _check_types(context, module, _asks(module), tensors)
    return _result(context, module, tensors)


def _call_sequence(context: Context, module: ModuleObject, arguments: Arguments) -> Value:
    found = arguments.get(0, "input") or UNKNOWN
    for child in module.children.values():
        context.spend()
        found = context.call_value(Ref(id=child), replace(arguments, values=(found,), named={}))
    return found


def _result(context: Context, module: ModuleObject, tensors: Sequence[Tensor | Batch]) -> Value:
    known = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    has_own = bool(module.own) or not module.layer
    trains = None if module.frozen is None else not module.frozen and has_own
    grads = [tensor.grad for tensor in known]
    grad: bool | None = True if trains or True in grads else trains
    if context.memory.is_grad is not True:
        grad = False if context.memory.is_grad is False else None
    if not module.layer:  # a class of another package: its result is taken for a tensor
        return Tensor(device=module.device, grad=grad if module.is_model else None)
    return Tensor(device=module.device, dtype=module.dtype, is_number=False, grad=grad)


def _stray(module: ModuleObject, tensors: Sequence[Tensor | Batch]) -> str | None:
    """Return the device of the first input that is not where the module is, or None."""
    if module.device is None or module.moves_input:
        return None
    if not module.layer and not module.whole and not (module.is_imported and module.is_model):
        return None
    for tensor in tensors:
        is_number = isinstance(tensor, Tensor) and tensor.is_number is True
        if tensor.device is not None and tensor.device != module.device and not is_number:
            return tensor.device
    return None


def _asks(module: ModuleObject) -> str:
    """Return what a module does first: of another package, by the first tensor it was given."""
    layer = LAYERS.get(module.layer)
    if layer is not None:
        return layer.asks
    first = module.attributes.get(FIRST)
    return str(first.value) if isinstance(first, Const) else "other"


def _fail_input(context: Context, owner: Ref, module: ModuleObject, arguments: Arguments, stray: str) -> None:
    arguments, context.statement, name = context.sites_called[0]  # where the script calls the whole model
    module = replace(module, cls=name)
    node = argument_node(arguments, stray)
    kept = module.device or ""
    fail_mixed(
        context,
        _asks(module),
        stray,
        kept,
        why=_why(context, module, stray, kept, node),
        edits=input_edits(context, owner, node, stray, kept),
    )


def _why(context: Context, module: ModuleObject, stray: str, kept: str, node: ast.expr | None) -> str:
    if kept == "cpu":
        return (
            f"The input is on {stray}, and {module.cls} is still on the CPU: load_state_dict copies into the "
            "parameters where they are, and nothing has moved them."
        )
    name = node.id if isinstance(node, ast.Name) else ""
    dropped = context.dropped.get(name, 0)
    if dropped:
        return f"Line {dropped} moves a copy of {name} and drops it: a tensor stays where it is."
    return f"{module.cls} is on {kept}, and its input is on {stray}: it was never moved."


def input_edits(context: Context, owner: Ref, node: ast.expr | None, stray: str, kept: str) -> list[Edit]:
    """Move what stayed on the CPU: the model where it was made, or the input before it is used."""
    if kept != "cpu":
        dropped = _dropped_call(context, node)
        if dropped is not None and isinstance(node, ast.Name):
            start, _ = context.script.span(dropped)
            return [Edit(start=start, end=start, text=f"{node.id} = ")]
        return move_edits(context, node, kept)
    name, statement = made_by(context, owner)
    if statement is None:
        return []
    word = context.device_word() or repr(stray)
    return [line_after(context.script, statement, f"{name}.to({word})")]


def _dropped_call(context: Context, node: ast.expr | None) -> ast.Expr | None:
    line = context.dropped.get(node.id, 0) if isinstance(node, ast.Name) else 0
    found = (
        inner
        for inner in ast.walk(context.script.tree)
        if isinstance(inner, ast.Expr) and inner.lineno == line
    )
    return next(found, None) if line else None


def made_by(context: Context, owner: Ref) -> tuple[str, ast.Assign | None]:
    """Return the name and the statement that made the model of a call, where it is a plain assignment."""
    line = _outermost(context, owner)
    found = [
        node
        for node in ast.walk(context.script.tree)
        if isinstance(node, ast.Assign)
        and node.lineno <= line <= (node.end_lineno or 0)
        and len(node.targets) == 1
    ]
    if not found or not isinstance(found[-1].targets[0], ast.Name | ast.Attribute):
        return "", None
    return context.script.source(found[-1].targets[0]), found[-1]


def _outermost(context: Context, owner: Ref) -> int:
    """Return the line that made the module which holds another, and is held by none."""
    number, seen = owner.id, {owner.id}
    while True:
        above = [
            key
            for key, held in context.memory.objects.items()
            if isinstance(held, ModuleObject) and number in held.children.values() and key not in seen
        ]
        context.spend(len(context.memory.objects) // 16)
        if not above:
            module = context.memory.module(number)
            return module.line if module is not None else 0
        number = above[0]
        seen.add(number)


def _check_types(
    context: Context, module: ModuleObject, asks: str, tensors: Sequence[Tensor | Batch]
) -> None:
    """Raise where an input is of another floating type than the parameters."""
    first = tensors[0] if tensors else None
    given = first.dtype if isinstance(first, Tensor) else None
    if given is None or module.dtype is None or given == module.dtype or context.casting:
        return
    if asks not in {"linear", "conv"} or given not in _SHORT or module.dtype not in _SHORT:
        return
    message = f"mat1 and mat2 must have the same dtype, but got {_SHORT[given]} and {_SHORT[module.dtype]}"
    if asks == "conv":
        message = f"Input type ({_WORDS[given]}) and bias type ({_WORDS[module.dtype]}) should be the same"
    context.fail(
        "dtype-mix",
        f"RuntimeError: {message}",
        f"The model is {module.dtype}, and its input is {given}.",
        edits=_type_edits(context, module.dtype),
    )


def _type_edits(context: Context, dtype: str) -> list[Edit]:
    """Convert the input of the call at the script's own line."""
    method = {value: key for key, value in _TYPES.items()}[dtype]
    for call in context.calls[::-1]:
        node = call.args[0] if call.args else None
        if isinstance(node, ast.Name | ast.Call) and not isinstance(node, ast.Starred):
            return [appended(context.script, node, f".{method}()")]
    return []
