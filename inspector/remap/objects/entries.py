"""The entries of a model's state dict as the pickle has them, without what only a class could load.

Tensors are taken out of the objects around them: attributes set on a tensor, a subclass that adds nothing
to its data, the device that it would be sent to while loading. What has no data of its own is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.containers.rebuilds import FROM_TYPE, JAGGED, PARAMETER, PARAMETERS, SENT, WRAPPER
from inspector.errors import ExportError
from inspector.model.checkpoint import Key
from inspector.model.tensors.rebuild import describe_tensor, looks_like_tensor
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.children import attributes_of, children_of, mapping_pairs
from inspector.model.values.parts import iter_values
from inspector.model.values.text import cut_name, is_same_step, path_key, step_text, type_of
from inspector.pickles.values import Call, Global, Value
from inspector.remap.convert.forms import EXCLUDED, LeftOut
from inspector.remap.convert.patterns import Patterns
from inspector.remap.convert.selection import Model, why_unwanted
from inspector.remap.objects.modules import StateEntry, read_module, read_program

_OWN_CLASS = frozenset({WRAPPER, JAGGED})
_PLAIN = frozenset(
    {
        "collections.OrderedDict",
        "_codecs.encode",
        "torch.Size",
        "builtins.set",
        "builtins.complex",
        "builtins.bytearray",
    }
)
_OWN_WAY = "its class stores the data in its own way"


class Taken(NamedTuple):
    """The entries of a state dict.

    Attributes:
        entries: Name and value of each, in order; a value is a tensor, or plain data.
        facts: What each of the tensors is, by its place; None for plain data.
        left_out: The entries that could not be taken, or were not wanted.
        metadata: What torch keeps beside the names (the version of each module), or None.
    """

    entries: list[tuple[str, Value]]
    facts: list[TensorFacts | None]
    left_out: list[LeftOut]
    metadata: Value


def take_entries(container: Container, model: Model, patterns: Patterns) -> Taken:
    """Take the entries of a model out of a container."""
    root = value_at(container.root, model.keys)
    nameless: list[str] = []
    if model.is_program:
        found = read_program(container)
    else:
        found = read_module(root) if model.is_module else _read_mapping(root, nameless)
    if not model.keys and not model.is_program:
        found += _tied_entries(container, found)
    taken = Taken([], [], [], None if model.is_module else metadata_of(root))
    known = Known(container.storage_ids)
    prefix = f"{model.path}/" if model.path else ""
    taken.left_out.extend(LeftOut(prefix + step, "its key is not a str", 0, 0) for step in nameless)
    for entry in found:
        path = prefix + "/".join(map(step_text, entry.steps))
        facts = describe_tensor(entry.value, known)
        unwanted = why_unwanted(model, entry.name)
        why = unwanted or (EXCLUDED if patterns.cover(path, entry.name) else "")
        value, trouble = (entry.value, "") if why else _bare(entry.value, facts, detach=model.is_module)
        if why or trouble:
            left_out = _left_out(path, why or trouble, entry.value, facts, is_lost=not why)
            taken.left_out.append(left_out._replace(is_asked=bool(why) and not unwanted))
            continue
        taken.entries.append((entry.name, value))
        taken.facts.append(facts if value is entry.value else describe_tensor(value, known))
    if model.is_module:
        taken.left_out.append(LeftOut(model.path, "the module's class and its other attributes", 0, 0))
    return taken


def _left_out(path: str, why: str, value: Value, facts: TensorFacts | None, *, is_lost: bool) -> LeftOut:
    count, nbytes = (1, facts.nbytes) if facts is not None else tensors_in(value) if is_lost else (0, 0)
    return LeftOut(path, why, count, nbytes, is_lost=is_lost and count > 0)


def tensors_in(value: Value) -> tuple[int, int]:
    """Return how many tensors are in a value that is none, such as packed weights, and their size."""
    found = [facts for item in iter_values(value, _inside) if (facts := describe_tensor(item)) is not None]
    return len(found), sum(facts.nbytes for facts in found)


def _inside(value: Value) -> list[Value]:
    """Return what is in a value; what is in a tensor is counted with it."""
    return [] if looks_like_tensor(value) else _children(value)


def _tied_entries(container: Container, found: Sequence[StateEntry]) -> list[StateEntry]:
    """Return the entries that the file leaves out, since the same tensors stand there under other names."""
    values = {entry.name: entry.value for entry in found} if container.tied else {}
    return [StateEntry(name, (name,), values[kept]) for name, kept in container.tied if kept in values]


def value_at(root: Value, keys: tuple[Key, ...]) -> Value:
    """Return the value at the end of a path."""
    for key in keys:
        found = [value for step, value in children_of(root) if is_same_step(step, key)]
        if not found:
            raise ExportError("the model is not where its rows say", where=step_text(key))
        root = found[0]
    return root


def _read_mapping(value: Value, nameless: list[str]) -> list[StateEntry]:
    """Return the entries whose keys are texts, and note the others; of a key given twice the last counts."""
    pairs = mapping_pairs(value)
    if pairs is None:
        raise ExportError("the weights are not in a dict, so they have no names")
    found: dict[str, StateEntry] = {}
    for key, item in pairs:
        if isinstance(key, str):
            found[key] = StateEntry(key, (str(key),), item)
        else:
            nameless.append(step_text(path_key(key)))
    return list(found.values())


def metadata_of(value: Value) -> Value:
    """Return what torch keeps beside a state dict's names, the version of each module; None without it."""
    attributes = attributes_of(value.state) if isinstance(value, Call) else []
    return next((item for key, item in attributes if key == "._metadata"), None)


def strip_metadata(metadata: Value, prefix: str) -> Value:
    """Return the versions of modules under the names that they have without the prefix."""
    if not prefix:
        return metadata
    made = Call(Global("collections", "OrderedDict"), (), "reduce")
    made.pairs = [
        (type(key)(f"{key}.".removeprefix(prefix).removesuffix(".")), value)
        for key, value in mapping_pairs(metadata) or []
        if isinstance(key, str) and f"{key}.".startswith(prefix)
    ]
    return made


def _bare(value: Value, facts: TensorFacts | None, *, detach: bool) -> tuple[Value, str]:
    """Return an entry without what only a class could load, and why it cannot be taken if it cannot."""
    if facts is None:
        if looks_like_tensor(value):
            return value, _OWN_WAY
        stranger = _stranger_in(value)
        return value, f"needs the class {stranger} to be loaded" if stranger else ""
    while (inner := _unwrapped(value, detach=detach)) is not value:
        value = inner
    return value, _OWN_WAY if _function_of(value) in _OWN_CLASS | SENT else ""


def _unwrapped(value: Value, *, detach: bool) -> Value:
    """Take one object off a tensor."""
    name = _function_of(value)
    if not isinstance(value, Call) or not isinstance(value.args, tuple) or not value.args:
        return value
    args, first = value.args, value.args[0]
    if name in FROM_TYPE and len(args) > 2:
        return Call(first, args[2], "reduce")
    if name in SENT:
        return value if describe_tensor(first) is None else first
    if name in PARAMETERS:
        return first if detach else _plain_parameter(value, args)
    # What BUILD would set on it are attributes; tensors of torch 0.x have their data there instead.
    return Call(value.func, args, "reduce") if value.state is not None and name.startswith("_reb") else value


def _plain_parameter(value: Call, args: tuple[Value, ...]) -> Value:
    inner = _unwrapped(args[0], detach=False)
    if inner is args[0] and len(args) <= PARAMETER.arity:
        return value
    return Call(Global(PARAMETER.module, PARAMETER.name), (inner, *args[1 : PARAMETER.arity]), "reduce")


def _function_of(value: Value) -> str:
    return value.func.name if isinstance(value, Call) and isinstance(value.func, Global) else ""


def _stranger_in(value: Value) -> str:
    """Name a class that plain data does not have; empty if there is none."""
    for item in iter_values(value, _children):
        if isinstance(item, Call):
            func = item.func
            dotted = func.dotted.replace("__builtin__", "builtins") if isinstance(func, Global) else ""
            if not looks_like_tensor(item) and dotted not in _PLAIN:
                return type_of(item)
        if isinstance(item, Global) and item.module != "torch":  # torch's own are dtypes and layouts
            return cut_name(item.dotted)
    return ""


def _children(value: Value) -> list[Value]:
    return [child for _, child in children_of(value)]
