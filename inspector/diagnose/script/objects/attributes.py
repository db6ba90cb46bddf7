"""Attributes: what `value.name` is, and what setting one changes."""

from __future__ import annotations

import ast

from inspector.diagnose.script.edits import replaced
from inspector.diagnose.script.objects.containers import branch_of
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Batch,
    Bound,
    Class,
    Const,
    Device,
    External,
    FileObject,
    FilePlace,
    InstanceObject,
    Items,
    Loaded,
    ModuleObject,
    OptimizerObject,
    Parameters,
    Ref,
    Super,
    Tensor,
    Value,
)
from inspector.diagnose.script.places import state_dicts
from inspector.diagnose.script.simulate.context import Context
from inspector.diagnose.script.vocabulary import words
from inspector.records import replace

MODULE_METHODS = words(
    "to cuda cpu xpu half float double bfloat16 eval train parameters named_parameters state_dict "
    "children modules named_children named_modules load_state_dict requires_grad_ zero_grad forward "
    "apply buffers named_buffers register_buffer register_parameter add_module share_memory compile"
)
_ONLY_MODULES = frozenset(
    ["eval", "train", "to", "cuda", "cpu", "half", "parameters", "state_dict", "load_state_dict", "forward"]
)
_SAME = frozenset({"data", "grad", "T", "mT", "real"})


def attribute(context: Context, owner: Value, name: str) -> Value:  # noqa: PLR0911 - a line for each kind of value
    """Return `owner.name`."""
    if isinstance(owner, External):
        return _external(context, f"{owner.name}.{name}")
    if isinstance(owner, Tensor):
        return _of_tensor(owner, name)
    if isinstance(owner, Device):
        return _of_device(owner, name)
    if isinstance(owner, Ref):
        return _of_object(context, owner, name)
    if isinstance(owner, FilePlace):
        return _of_file(context, owner, name)
    if isinstance(owner, Loaded) and name in _ONLY_MODULES:
        _fail_of_result(context, name)
    if isinstance(owner, Class) and name == "load_state_dict":
        return Bound(owner=owner, name=name)
    return _bound(context, owner, name)


def _bound(context: Context, owner: Value, name: str) -> Value:
    """Return a method of a value that has nothing but methods."""
    if isinstance(owner, Parameters) and name == "requires_grad_":
        freeze(context, owner, None)
    is_callable = isinstance(owner, Const | Batch | Super | Parameters | Items)
    return Bound(owner=owner, name=name) if is_callable else UNKNOWN


def _external(context: Context, name: str) -> Value:
    if name == "torch.__version__":
        major, minor = context.release
        return Const(value=context.target.torch_version or f"{major}.{minor}.0")
    return External(name=name)


def _of_tensor(owner: Tensor, name: str) -> Value:
    if name == "device":
        return UNKNOWN if owner.device is None else Device(text=owner.device)
    if name == "dtype":
        return UNKNOWN if owner.dtype is None else External(name=f"torch.{owner.dtype}")
    if name == "shape":
        return (
            UNKNOWN if owner.shape is None else Items(values=tuple(Const(value=size) for size in owner.shape))
        )
    if name == "is_cuda":
        return UNKNOWN if owner.device is None else Const(value=owner.device.startswith("cuda"))
    if name == "requires_grad":
        return UNKNOWN
    return owner if name in _SAME else Bound(owner=owner, name=name)


def _of_device(owner: Device, name: str) -> Value:
    kind, _, number = owner.text.partition(":")
    if name == "type":
        return Const(value=kind)
    if name == "index":
        return Const(value=int(number) if number.isdecimal() else None)
    return UNKNOWN


def _of_object(context: Context, owner: Ref, name: str) -> Value:  # noqa: PLR0911 - a line for each kind of object
    found = context.memory.get(owner)
    if isinstance(found, ModuleObject):
        return _of_module(context, owner, found, name)
    if isinstance(found, InstanceObject):
        held = found.attributes.get(name)
        if held is not None:
            return held
        return Bound(owner=owner, name=name) if found.script is not None else UNKNOWN
    if isinstance(found, OptimizerObject) and name == "state":
        context.memory.objects[owner.id] = replace(found, state=None)  # the script moves it itself
        return UNKNOWN
    if isinstance(found, OptimizerObject) and name == "param_groups":
        return UNKNOWN
    if isinstance(found, FileObject) and name in {"name", "stem", "suffix", "parts"}:
        return UNKNOWN
    return Bound(owner=owner, name=name)


def _of_module(context: Context, owner: Ref, module: ModuleObject, name: str) -> Value:
    if name in module.children:
        return Ref(id=module.children[name])
    if name in module.attributes:
        return module.attributes[name]
    if name in module.own:
        shape = module.own[name]
        grad = None if module.frozen is None else not module.frozen
        return Tensor(device=module.device, dtype=module.dtype, shape=shape, is_number=shape == (), grad=grad)
    if name == "training":
        return UNKNOWN
    if name in {"module", "_orig_mod"} and module.is_model and _lacks(module, name):
        _fail_of_bare(context, module, name)
    return Bound(owner=owner, name=name)


def has_attribute(module: ModuleObject, name: str) -> bool | None:
    """Return what `hasattr` says of a module, as far as that is known."""
    if name in module.children or name in module.own or name in module.attributes or name in MODULE_METHODS:
        return True
    return False if _lacks(module, name) else None


def _lacks(module: ModuleObject, name: str) -> bool:
    """Return whether a module certainly has no such attribute."""
    if module.layer or module.wrapper:
        return module.whole
    if module.script is None:
        return module.is_imported and name in {"module", "_orig_mod"}
    words = {node.attr for node in ast.walk(module.script.node) if isinstance(node, ast.Attribute)}
    made = {node.name for node in ast.walk(module.script.node) if isinstance(node, ast.FunctionDef)}
    return module.whole and name not in words | made and "__getattr__" not in made


def _fail_of_bare(context: Context, module: ModuleObject, name: str) -> None:
    node = next(
        (
            inner
            for inner in (ast.walk(context.statement) if context.statement is not None else ())
            if isinstance(inner, ast.Attribute) and inner.attr == name
        ),
        None,
    )
    edits = [] if node is None else [replaced(context.script, node, context.script.source(node.value))]
    context.fail(
        "no-attribute",
        f"AttributeError: '{module.cls}' object has no attribute '{name}'",
        f"Only a wrapped model has .{name}, and this one is not wrapped here.",
        edits=edits,
    )


def _of_file(context: Context, owner: FilePlace, name: str) -> Value:
    branch = branch_of(context, owner)
    if branch is not None and name in _ONLY_MODULES:
        named = {use.name for use in context.known.checkpoint.globals}
        is_ordered = "collections.OrderedDict" in named and owner.keys in state_dicts(context.known.places)
        kind = "collections.OrderedDict" if is_ordered else "dict"
        context.fail(
            "not-a-module",
            f"AttributeError: '{kind}' object has no attribute '{name}'",
            "The file holds a state dict, not a model: names and tensors without the class.",
            advice="Build the model first, then give it the tensors with model.load_state_dict(...).",
        )
    return Bound(owner=owner, name=name)


def _fail_of_result(context: Context, name: str) -> None:
    edits = [
        replaced(context.script, node, context.script.source(node.value))
        for node in ast.walk(context.script.tree)
        if isinstance(node, ast.Assign) and _assigns_result(node)
    ]
    context.fail(
        "not-a-module",
        f"AttributeError: '_IncompatibleKeys' object has no attribute '{name}'",
        "load_state_dict changes the model in place. What it returns is a report of the keys, not the model.",
        edits=edits,
    )


def _assigns_result(node: ast.Assign) -> bool:
    """Return whether a statement puts the result of `model.load_state_dict` in the place of the model."""
    call = node.value
    is_load = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    if not is_load or call.func.attr != "load_state_dict" or len(node.targets) != 1:  # type: ignore[attr-defined]
        return False
    return ast.dump(call.func.value).replace("Load()", "") == ast.dump(node.targets[0]).replace("Store()", "")  # type: ignore[attr-defined]


def freeze(context: Context, owner: Parameters, frozen: bool | None) -> None:  # noqa: FBT001 - a state
    """Note whether parameters record gradients; None for what is not known."""
    for start in owner.modules:
        for _, number, module in list(context.memory.below(start)):
            context.memory.objects[number] = replace(module, frozen=frozen)


# --- setting ------------------------------------------------------------------------------------------------


def set_attribute(context: Context, owner: Value, name: str, value: Value) -> None:
    """Do `owner.name = value`."""
    found = context.memory.get(owner)
    if isinstance(owner, Parameters) and name == "requires_grad":
        known = value.value if isinstance(value, Const) and isinstance(value.value, bool) else None
        freeze(context, owner, None if known is None else not known)
    if not isinstance(owner, Ref) or found is None:
        return
    if isinstance(found, InstanceObject):
        context.memory.objects[owner.id] = replace(found, attributes={**found.attributes, name: value})
    elif isinstance(found, ModuleObject):
        context.memory.objects[owner.id] = _with(context, found, name, value)
    elif isinstance(found, OptimizerObject) and name in {"state", "param_groups"}:
        context.memory.objects[owner.id] = replace(found, modules=None, groups=None, state=None)


def _with(context: Context, module: ModuleObject, name: str, value: Value) -> ModuleObject:
    children = {key: child for key, child in module.children.items() if key != name}
    attributes = {key: held for key, held in module.attributes.items() if key != name}
    own = {key: shape for key, shape in module.own.items() if key != name}
    if isinstance(value, Ref) and context.memory.module(value) is not None:
        if name in module.children:  # an attribute that is set again keeps its place
            children = {**module.children, name: value.id}
        else:
            children[name] = value.id
    elif (
        isinstance(value, Tensor)
        and value.grad is True
        and value.from_loader is False
        and name not in attributes
    ):
        own[name] = value.shape
    else:
        attributes[name] = value
    may_be_module = not isinstance(value, Const | Device | Items | Tensor | Ref | External)
    is_plain = not may_be_module or module.script is None
    return replace(module, children=children, attributes=attributes, own=own, whole=module.whole and is_plain)
