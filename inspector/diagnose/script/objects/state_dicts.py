"""`load_state_dict` of a module: the names in the file against those of the model, as torch compares them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from inspector.diagnose.errors.state_names import find_renaming, wrapper_of
from inspector.diagnose.script.edits import appended, replaced
from inspector.diagnose.script.objects.containers import pairs_of
from inspector.diagnose.script.objects.values import (
    Const,
    DictObject,
    Items,
    ListObject,
    Loaded,
    ModuleObject,
    Ref,
    Tensor,
    Value,
)
from inspector.diagnose.script.places import state_dicts
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.records import replace
from inspector.units import cut_text, escape_text

Names = Mapping[str, tuple[int, ...] | None]
_MOST_NAMED = 4
_TRACKED = "num_batches_tracked"
FIRST = "~first"
"""The attribute that remembers what the first layer of a model of another package is."""
_KINDS: Mapping[type, str] = {Tensor: "torch.Tensor", Items: "tuple"}
"""What torch calls values that are certainly no state dict."""
_FIRST_LAYERS = {2: "linear", 3: "conv", 4: "conv", 5: "conv"}


def names_of(context: Context, number: int) -> tuple[dict[str, tuple[int, ...] | None], bool]:
    """Return the names in a module's state dict with their shapes, and whether these are all."""
    found: dict[str, tuple[int, ...] | None] = {}
    whole = True
    for prefix, _, module in context.memory.below(number):
        context.spend()
        whole = whole and module.whole
        found.update({f"{prefix}{name}": shape for name, shape in module.own.items() if name[:1] != "~"})
    return found, whole


def state_of(context: Context, owner: Ref) -> Value:
    """Return `module.state_dict()`."""
    names, whole = names_of(context, owner.id)
    module = context.memory.module(owner)
    device = module.device if module is not None else None
    pairs: dict[object, Value] = {
        name: Tensor(device=device, shape=shape, is_number=shape == (), grad=False)
        for name, shape in names.items()
    }
    return context.memory.put(DictObject(pairs=pairs, whole=whole))


def load_state_dict(context: Context, owner: Ref, arguments: Arguments) -> Value:
    """Call `module.load_state_dict(state, strict=True, assign=False)`."""
    given = arguments.get(0, "state_dict")
    strict = arguments.get(1, "strict", Const(value=True))
    if given is None or not arguments.whole:
        return Loaded()
    _refuse_other(context, given, arguments)
    found = pairs_of(context, given)
    module = context.memory.module(owner)
    if module is None or found is None:
        context.lose("what load_state_dict is given cannot be followed")
        return Loaded()
    if arguments.get(2, "assign") not in {None, Const(value=False)}:
        _assign(context, owner, found[0])
    if not found[1] or not isinstance(strict, Const):
        return Loaded()
    names = {str(key): value for key, value in found[0].items()}
    wanted, whole = names_of(context, owner.id)
    if whole and wanted:
        _compare(context, owner, module, names, wanted, is_strict=bool(strict.value), arguments=arguments)
    else:
        _guess(context, owner, module, names, is_strict=bool(strict.value), arguments=arguments)
    return Loaded()


def _assign(context: Context, owner: Ref, pairs: Mapping[object, Value]) -> None:
    devices = {value.device for value in pairs.values() if isinstance(value, Tensor)}
    place = devices.pop() if len(devices) == 1 else None
    for _, number, module in list(context.memory.below(owner.id)):
        context.memory.objects[number] = replace(module, device=place, dtype=None)


def _refuse_other(context: Context, given: Value, arguments: Arguments) -> None:
    """Raise what torch raises for what is no dictionary."""
    node = arguments.node.args[0] if arguments.node is not None and arguments.node.args else None
    if isinstance(given, Const):
        edits = []
        if isinstance(given.value, str) and node is not None:
            text = f'torch.load({context.script.source(node)}, map_location="cpu")'
            edits = [replaced(context.script, node, text)]
        _fail_type(
            context, type(given.value).__name__, "It is given the path, not what is in the file.", edits
        )
    kind = _KINDS.get(type(given))
    if isinstance(context.memory.get(given), ListObject):  # or a set, or what a method or generator gives
        kind = "list" if isinstance(node, ast.List | ast.ListComp) else ""
    if kind is not None:
        _fail_type(context, kind, "A state dict is a dictionary of tensors by name.", [])
    module = context.memory.module(given)
    if module is not None:
        edits = [] if node is None else [appended(context.script, node, ".state_dict()")]
        name = f"__main__.{module.cls}" if module.script is not None else module.cls
        _fail_type(context, name, "The file holds a whole model, not a state dict.", edits)


def _fail_type(context: Context, name: str, why: str, edits: Sequence[Edit]) -> None:
    message = "TypeError: Expected state_dict to be dict-like"
    message += f", got <class '{name}'>." if name else ""
    context.fail("not-a-state-dict", message, why, edits=edits)


# --- a model whose names are known --------------------------------------------------------------------------


def _compare(  # noqa: PLR0913 - both sides, and the call
    context: Context,
    owner: Ref,
    module: ModuleObject,
    names: Mapping[str, Value],
    wanted: Names,
    *,
    is_strict: bool,
    arguments: Arguments,
) -> None:
    missing = [name for name in wanted if name not in names]
    if all(name.endswith(_TRACKED) for name in missing):  # torch lets old files lack them
        missing = []
    unexpected = [name for name in names if name not in wanted]
    wrong = [name for name, shape in wanted.items() if _differs(names.get(name), shape)]
    edits = _edits(context, owner, list(names), list(wanted), arguments)
    if wrong or (is_strict and (missing or unexpected)):
        message = _message(module, missing if is_strict else [], unexpected if is_strict else [])
        message += "".join(_mismatch(name, names[name], wanted[name]) for name in wrong[:_MOST_NAMED])
        why = _why(context, list(names), wanted, wrong)
        context.fail("names-differ", message, why, edits=[] if wrong else edits)
    if not is_strict and names and not any(name in wanted for name in names):
        _note_nothing(context, len(names), edits)


def _note_nothing(context: Context, count: int, edits: Sequence[Edit]) -> None:
    context.note_silent(
        "nothing-matches",
        f"strict=False lets this pass, but none of the {count} names is the model's: nothing is loaded, "
        "and the model keeps its random weights.",
        edits=edits,
    )


def _differs(value: Value | None, shape: tuple[int, ...] | None) -> bool:
    return isinstance(value, Tensor) and None not in {value.shape, shape} and value.shape != shape


def _mismatch(name: str, value: Value, shape: tuple[int, ...] | None) -> str:
    has = value.shape if isinstance(value, Tensor) else None
    return (
        f"\n\tsize mismatch for {_shown(name)}: copying a param with shape torch.Size({list(has or ())}) "
        f"from checkpoint, the shape in current model is torch.Size({list(shape or ())})."
    )


def _message(module: ModuleObject, missing: Sequence[str], unexpected: Sequence[str]) -> str:
    message = f"RuntimeError: Error(s) in loading state_dict for {module.cls}:"
    for word, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            more = ", ..." if len(names) > _MOST_NAMED else ""
            listed = ", ".join(f'"{_shown(name)}"' for name in names[:_MOST_NAMED])
            message += f"\n\t{word} key(s) in state_dict: {listed}{more}. "
    return message


def _shown(name: str) -> str:
    return escape_text(cut_text(name, 80))


def _why(context: Context, names: Sequence[str], wanted: Names, wrong: Sequence[str]) -> str:
    if wrong:
        return f"{_shown(wrong[0])} has another shape in the file than in the model that the script builds."
    renaming = find_renaming(list(wanted), dict.fromkeys(names))
    if renaming is not None and renaming.in_file and not renaming.in_model:
        return f"The names in the file begin with {_shown(renaming.in_file)!r}, those of the model do not."
    if renaming is not None and renaming.in_model and not renaming.in_file:
        return f"The names of the model begin with {_shown(renaming.in_model)!r}, those in the file do not."
    if not any(name in wanted for name in names) and _inner(context, names):
        return "This is the whole checkpoint. The state dict of the model is one of its entries."
    return "The model that the script builds has other parameters than the file."


def _inner(context: Context, names: Sequence[str]) -> str:
    """Return the key of the file's only state dict, if it is among these names."""
    places = state_dicts(context.known.places)
    is_one = len(places) == 1 and len(places[0]) == 1 and str(places[0][0]) in names
    return str(places[0][0]) if is_one else ""


def _edits(
    context: Context, owner: Ref, names: Sequence[str], wanted: Sequence[str], arguments: Arguments
) -> list[Edit]:
    """Propose edits that fit the names to the model: another entry, another receiver, or other names."""
    node = arguments.node.args[0] if arguments.node is not None and arguments.node.args else None
    if node is None or arguments.node is None:
        return []
    if not any(name in wanted for name in names):
        key = _inner(context, names)
        if key:
            return [appended(context.script, node, f"[{key!r}]")]
    renaming = find_renaming(list(wanted), dict.fromkeys(names))
    if renaming is None:
        return []
    wrapper, function = context.memory.module(owner), arguments.node.func
    is_inside = wrapper is not None and f"{wrapper.wrapper}." == renaming.in_model and not renaming.in_file
    if is_inside and isinstance(function, ast.Attribute) and wrapper is not None:
        return [appended(context.script, function.value, f".{wrapper.wrapper}")]
    return _renamed(context, node, renaming.in_file, renaming.in_model)


def _renamed(context: Context, node: ast.expr, old: str, new: str) -> list[Edit]:
    text = context.script.source(node)
    key = f"k.removeprefix({old!r})" if old else "k"
    key = f"{new!r} + {key}" if new else key
    return [replaced(context.script, node, f"{{{key}: v for k, v in {text}.items()}}")]


# --- a model of which only the wrappers are known -----------------------------------------------------------


def _guess(
    context: Context,
    owner: Ref,
    module: ModuleObject,
    names: Mapping[str, Value],
    *,
    is_strict: bool,
    arguments: Arguments,
) -> None:
    """Compare what must be so for any model: its wrappers' prefix, and that there are tensors at all."""
    prefix, core = _wrappers(context, owner.id)
    if core is None or (not core.is_imported and not core.script):
        return
    if "ema" in core.cls.lower() or "averag" in core.cls.lower():
        return
    tensors = [name for name, value in names.items() if isinstance(value, Tensor)]
    _note_first(context, owner.id, names)
    key = _inner(context, list(names))
    if key and len(tensors) < len(names):
        edits = _edits(context, owner, list(names), [], arguments)
        why = "This is the whole checkpoint. The state dict of the model is one of its entries."
        _fail_or_note(context, module, [], list(names), why, edits, is_strict=is_strict)
        return
    has = wrapper_of(tensors)
    if not tensors or has == prefix or core.script is not None:
        return
    bare = [name.removeprefix(has) for name in tensors]
    wanted = [prefix + name for name in bare]
    edits = _edits(context, owner, tensors, wanted, arguments)
    why = f"The names in the file begin with {has!r}, those of the model do not."
    if not has:
        why = f"The model is wrapped, so its names begin with {prefix!r}; those in the file do not."
    _fail_or_note(context, module, wanted, tensors, why, edits, is_strict=is_strict)


def _note_first(context: Context, number: int, names: Mapping[str, Value]) -> None:
    """Remember by its weights what the first layer of a model is."""
    name, first = next(iter(names.items()), ("", None))
    if not isinstance(first, Tensor) or first.shape is None or "emb" in name.lower():
        return
    for _, at, module in list(context.memory.below(number)):
        known = Const(value=_FIRST_LAYERS.get(len(first.shape), "other"))
        context.memory.objects[at] = replace(module, attributes={**module.attributes, FIRST: known})


def _fail_or_note(  # noqa: PLR0913, PLR0917 - what torch says, and what mends it
    context: Context,
    module: ModuleObject,
    missing: Sequence[str],
    unexpected: Sequence[str],
    why: str,
    edits: Sequence[Edit],
    *,
    is_strict: bool,
) -> None:
    if is_strict:
        context.fail("names-differ", _message(module, missing, unexpected), why, edits=edits)
    _note_nothing(context, len(unexpected), edits)


def _wrappers(context: Context, number: int) -> tuple[str, ModuleObject | None]:
    """Return the prefix of a module's wrappers, and what is in them."""
    prefix, module = "", context.memory.module(number)
    while module is not None and module.wrapper and module.children:
        prefix += f"{module.wrapper}."
        module = context.memory.module(next(iter(module.children.values())))
        context.spend()
    return prefix, module
