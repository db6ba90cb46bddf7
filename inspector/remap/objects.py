"""Which model of a checkpoint is meant, and its state dict as the pickle has it.

Of a module that was pickled whole, names and order are those of `Module.state_dict` in torch's
`torch/nn/modules/module.py`: a module's own parameters, then its buffers but for those that are not
persistent, then its children; a module that two parents share is listed under both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.containers.formats import format_of
from inspector.containers.rebuilds import FROM_TYPE, JAGGED, PARAMETER, PARAMETERS, SENT, WRAPPER
from inspector.errors import ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Checkpoint, Key, Role, Tensor, ValueRow
from inspector.model.once import once
from inspector.model.roles.roles import COUNT_OF_AVERAGES, DICTIONARIES, WRAPPER_PREFIXES
from inspector.model.tensors.rebuild import describe_tensor, looks_like_tensor
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.children import attributes_of, children_of, iter_values, mapping_pairs
from inspector.model.values.text import cut_name, is_same_step, path_key, step_text, type_of
from inspector.pickles.values import ByteString, Call, Dict, Global, Set, Value
from inspector.remap.forms import EXCLUDED, Form, LeftOut, Patterns
from inspector.remap.pickle_writer import filled_pairs
from inspector.units import cut_text

# ------------------------------------------------------------------------------------------------------------
# Which model of a checkpoint is meant, and what its tensors are called, told from the rows alone.
#
# A row's role says whether it is a weight; what it stands in is its model. Nothing is guessed where two
# models could be meant.

_WEIGHTS: frozenset[Role] = frozenset({"parameter", "buffer"})
_MOST_NAMES = 6
_MOST_CHARS = 80
_WHY: dict[Role, str] = {
    "parameter": "another model",
    "buffer": "another model",
    "optimizer": "the state of an optimizer",
    "scheduler": "the state of a scheduler",
    "rng": "the state of a random generator",
    "ema": "averaged weights",
    "other": "not among the model's weights",
}
_NO_TENSOR = "no tensor"
# Beside the averages, which Lightning's `WeightAveraging` saves as the state dict.
_BEFORE_AVERAGING = ("current_model_state",)
_GRAPH = "edge_index"  # of data, see `model.roles.roles`
_NO_WEIGHT = "an attribute or a constant of the program, which a state dict does not hold"

_PACKED = "its module packs it in its own way"


class Model(NamedTuple):
    """A model in a checkpoint.

    Attributes:
        is_module: Whether it is a module with its class, not a dictionary of tensors.
        is_program: Whether its modules are mappings within mappings: names are the ways to the tensors.
    """

    keys: tuple[Key, ...]
    path: str
    is_module: bool
    is_average: bool
    is_program: bool = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.path or "the checkpoint itself"


# --- models -------------------------------------------------------------------------------------------------


def select_model(checkpoint: Checkpoint, form: Form) -> Model:
    """Return the model that a form takes."""
    if checkpoint.is_program:
        return _program(checkpoint)
    models = _models(checkpoint)
    wanted = form.path
    if wanted is None and any(model.path == form.strip_prefix for model in models if model.path):
        wanted = form.strip_prefix
    if wanted is not None:
        below = f"{wanted}/"
        found = [model for model in models if model.path == wanted]
        found = found or [model for model in models if model.path.startswith(below)]
        return _only(found, f"no weights stand at {wanted}", models)
    if form.ema:
        found = [model for model in models if model.is_average]
        return _only(found, "no averaged weights were recognized", models)
    found = [model for model in models if not model.is_average] or list(models)
    found = [model for model in found if model.keys[-1:] != _BEFORE_AVERAGING] or found
    main = format_of(checkpoint.format).weights_at
    found = [model for model in found if main and model.path == main] or found
    return _only(found, "no weights of a model were recognized", models)


def _program(checkpoint: Checkpoint) -> Model:
    if not any(row.role in _WEIGHTS for row in checkpoint.tensors):
        raise PlanError(
            "the model has no weights with names",
            where=checkpoint.path,
            remedy="it was frozen or packed, or is a function: no state dict has what it computes with",
        )
    return Model((), "", is_module=False, is_average=False, is_program=True)


def _only(found: Sequence[Model], otherwise: str, models: Sequence[Model]) -> Model:
    if len(found) == 1:
        return found[0]
    names = ", ".join(cut_text(model.label, _MOST_CHARS) for model in (found or models)[:_MOST_NAMES])
    if found:
        raise PlanError(
            "the file holds several models", where=names, remedy="name one: --strip-prefix with its path"
        )
    raise PlanError(
        otherwise, where=names or None, remedy=None if models else "for the whole file, ask for --format same"
    )


@once
def _models(checkpoint: Checkpoint) -> tuple[Model, ...]:
    """Return the models of a checkpoint in file order; those within another are parts of it."""
    found: dict[tuple[Key, ...], Model] = {}
    strangers: dict[tuple[Key, ...], Model] = {}
    data: set[tuple[Key, ...]] = set()
    for row in checkpoint.tensors:
        if row.part_of is None and row.keys and isinstance(row.keys[-1], str):
            keys = _owner(row.keys)
            is_weight = row.role in _WEIGHTS or row.role == "ema"
            if not is_weight and _is_data(row):
                data.add(keys)
            where = found if is_weight else strangers
            if keys not in where and (is_weight or row.role == "other"):
                path = "/".join(row.path.split("/")[: len(keys)])
                where[keys] = Model(keys, path, row.keys[len(keys)] in DICTIONARIES, row.role == "ema")
    models = found or {keys: model for keys, model in strangers.items() if keys not in data}
    return tuple([model for keys, model in models.items() if not _is_inside(keys, models)])


def _is_data(row: Tensor) -> bool:
    """Return whether what holds a tensor is data: an object's own, or a graph."""
    return row.keys[-1] == _GRAPH or any(isinstance(key, str) and key.startswith(".") for key in row.keys)


def _owner(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    for place, key in enumerate(keys):
        if key in DICTIONARIES:
            return keys[:place]
    return keys[:-1]


def _is_inside(keys: tuple[Key, ...], models: Iterable[tuple[Key, ...]]) -> bool:
    return any(keys[:length] in models for length in range(len(keys)))


# --- names --------------------------------------------------------------------------------------------------


def name_in(model: Model, row: Tensor) -> str | None:
    """Return a row's name in its model as torch would; None if it has none there."""
    steps = row.keys[len(model.keys) :]
    if row.part_of is not None or not steps or row.keys[: len(model.keys)] != model.keys:
        return None
    if model.is_program:
        return ".".join(map(str, steps)) if row.role in _WEIGHTS else None
    if not model.is_module:
        return str(steps[0]) if len(steps) == 1 else None
    inner = steps[::2]
    is_regular = len(steps) % 2 == 0 and all(step in DICTIONARIES for step in inner)
    is_regular = is_regular and all(step == "._modules" for step in inner[:-1]) and inner[-1] != "._modules"
    return ".".join(map(str, steps[1::2])) if is_regular else None


def why_unwanted(model: Model, name: str) -> str:
    """Return why an entry of a model is none of its weights, or nothing."""
    is_count = model.is_average and name == COUNT_OF_AVERAGES
    return "counts what was averaged, and is no weight" if is_count else ""


def find_prefix(form: Form, names: Sequence[str]) -> str:
    """Return what is removed from the front of all names: what was asked for, or what wrappers put there."""
    asked = form.strip_prefix or ""
    if asked:
        others = [name for name in names if not name.startswith(asked) or name == asked]
        if others:
            shown = ", ".join(cut_text(name, _MOST_CHARS) for name in others[:_MOST_NAMES])
            raise PlanError(f"{len(others):,} names do not begin with {asked!r}", where=shown)
        return asked
    found = ""
    while form.only_weights and (more := _wrapper_of(names, found)):
        found += more
    return found


def _wrapper_of(names: Sequence[str], found: str) -> str:
    for wrapper in WRAPPER_PREFIXES:
        prefix = found + wrapper
        if names and all(name.startswith(prefix) and name != prefix for name in names):
            return wrapper
    return ""


def without_choice(form: Form, model: Model) -> Form:
    """Take the prefix out of a form where it named a model instead."""
    if form.path is None and form.strip_prefix is not None and form.strip_prefix == model.path:
        return form.with_path(model.path)
    return form


# --- what is left out ---------------------------------------------------------------------------------------


def left_beside(checkpoint: Checkpoint, model: Model) -> list[LeftOut]:
    """Return the branches of a checkpoint that are not the model, each in one row."""
    rows: dict[tuple[Key, ...], LeftOut] = {}
    if not (model.keys or model.is_program or model.is_module):
        return []  # the checkpoint itself: nothing stands beside it
    every: tuple[Tensor | ValueRow, ...] = (*checkpoint.tensors, *checkpoint.values)
    for row in every:
        depth = _common(row.keys, model.keys)
        if model.is_program and isinstance(row, Tensor) and row.part_of is None and row.role == "other":
            rows[row.keys] = LeftOut(row.path, _NO_WEIGHT, 1, row.nbytes)
        if model.is_module and isinstance(row, Tensor) and _is_packed(model, row):
            rows[row.keys] = LeftOut(row.path, _PACKED, 1, row.nbytes, is_lost=True)
        if depth == len(model.keys):
            continue
        branch = row.keys[: depth + 1]
        known = rows.get(branch)
        if known is None:
            path = "/".join(row.path.split("/")[: depth + 1])
            known = LeftOut(path, _WHY[row.role] if isinstance(row, Tensor) else _NO_TENSOR, 0, 0)
        if isinstance(row, Tensor) and row.part_of is None:
            why = known.why if known.tensors else _WHY[row.role]
            known = LeftOut(known.path, why, known.tensors + 1, known.nbytes + row.nbytes)
        rows[branch] = known
    return list(rows.values())


def _is_packed(model: Model, row: Tensor) -> bool:
    """Return whether a weight of a module stands where its state dict has no name for it."""
    is_own = row.keys[: len(model.keys)] == model.keys and row.part_of is None
    return is_own and row.role in _WEIGHTS and name_in(model, row) is None


def _common(keys: tuple[Key, ...], others: tuple[Key, ...]) -> int:
    depth = 0
    for key, other in zip(keys, others, strict=False):
        if key != other:
            break
        depth += 1
    return depth


# --- the state dict of a module, and of a program -----------------------------------------------------------

_MOST_NAME = 10_000
_NOT_PERSISTENT = "._non_persistent_buffers_set"


class StateEntry(NamedTuple):
    """One entry of a state dict.

    Attributes:
        steps: The way to it within the module or mapping, as the path of its row has it.
    """

    name: str
    steps: tuple[str, ...]
    value: Value


def read_module(module: Value, limits: Limits = DEFAULT_LIMITS) -> list[StateEntry]:
    """Return the entries of a module's state dict."""
    entries: list[StateEntry] = []
    todo: list[tuple[str, tuple[str, ...], Value]] = [("", (), module)]
    while todo:
        prefix, steps, value = todo.pop()
        if len(steps) > 2 * limits.depth or len(entries) > limits.rows:
            raise ExportError("the modules contain each other without end", where=prefix[:200])
        attributes = dict(_text_keys(value))
        unsaved = _texts(attributes.get(_NOT_PERSISTENT))
        for kind in ("._parameters", "._buffers"):
            for name, item in _named(attributes.get(kind)):
                if item is not None and not (kind == "._buffers" and name in unsaved):
                    entries.append(StateEntry(_join(prefix, name), (*steps, kind, str(name)), item))
        children = [
            (_join(_join(prefix, name), "."), (*steps, "._modules", str(name)), item)
            for name, item in _named(attributes.get("._modules"))
            if isinstance(item, Call)
        ]
        todo += reversed(children)
    return entries


def _text_keys(value: Value) -> list[tuple[str, Value]]:
    attributes = attributes_of(value.state) if isinstance(value, Call) else []
    return [(key, item) for key, item in attributes if isinstance(key, str)]


def _named(mapping: Value) -> list[tuple[str, Value]]:
    return [(key, item) for key, item in mapping_pairs(mapping) or [] if isinstance(key, str)]


def _join(first: str, second: str) -> str:
    """Join two parts of a name; with a part whose encoding nobody knows, the whole is bytes."""
    text = first + second
    is_old = isinstance(first, ByteString) or isinstance(second, ByteString)
    return text if text.isascii() or not is_old else ByteString(text)


def _texts(value: Value) -> set[str]:
    items: Value = value.items if isinstance(value, Set) else None
    if isinstance(value, Call) and isinstance(value.func, Global) and value.func.name == "set":
        first = value.args[0] if isinstance(value.args, tuple) and value.args else []
        items = first if isinstance(first, list | tuple) else []
        items = [*items, *(value.items or [])]
    return {item for item in items if isinstance(item, str)} if isinstance(items, list) else set()


def read_program(container: Container) -> list[StateEntry]:
    """Return the state dict of a program, whose modules are mappings; own weights come first."""
    declared = container.declared or {}
    found: list[StateEntry] = []
    stack: list[tuple[tuple[str, ...], Value]] = [((), container.root)]
    seen: set[int] = set()  # a module that holds itself is listed once
    while stack:
        steps, value = stack.pop()
        is_new = isinstance(value, Dict) and id(value) not in seen and len(steps) < DEFAULT_LIMITS.depth
        pairs = value.pairs if is_new and isinstance(value, Dict) else []
        seen.add(id(value))
        named = [((*steps, key), item) for key, item in pairs if isinstance(key, str)]
        for role in ("parameter", "buffer"):
            found += [
                StateEntry(".".join(way), way, item) for way, item in named if declared.get(id(item)) == role
            ]
        stack += [(way, item) for way, item in reversed(named) if isinstance(item, Dict)]
    return found


def flat_program(container: Container) -> Dict:
    """Return the weights of a program by name, and what else its modules hold of tensors by its way."""
    entries = read_program(container)
    taken = {id(entry.value) for entry in entries}
    pairs: list[tuple[Value, Value]] = [(entry.name, entry.value) for entry in entries]
    stack: list[tuple[str, Value]] = [("", container.root)]
    seen: set[int] = set()
    while stack:
        name, value = stack.pop()
        if looks_like_tensor(value) and id(value) not in taken:
            pairs.append((name, value))
        if isinstance(value, Dict | list | tuple) and id(value) not in seen and len(name) < _MOST_NAME:
            seen.add(id(value))
            inside = children_of(value)
            stack += reversed([(f"{name}.{key}" if name else str(key), item) for key, item in inside])
    return Dict(pairs)


# ------------------------------------------------------------------------------------------------------------
# The entries of a model's state dict as the pickle has them, without what only a class could load.
#
# Tensors are taken out of the objects around them: attributes set on a tensor, a subclass that adds nothing
# to its data, the device that it would be sent to while loading. What has no data of its own is left out.

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
        facts: What each of the tensors is, by its place; None for plain data.
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


# ------------------------------------------------------------------------------------------------------------
# Entries left out of the objects of a checkpoint, by the paths that `show` gives them.
#
# What stands in a dictionary, a list or an object's attributes can be left out; an item of a tuple or an
# argument of a call cannot, since others would take its place.

_MOST_AGAIN = 100_000
"""Entries looked at once more, by another path to what holds them."""


Owner = list[Value] | Dict | Call


class _Place(NamedTuple):
    """Where a child stands in the mapping or list that holds it."""

    owner: Owner
    number: int


class Gone(NamedTuple):
    """An entry that is left out.

    Attributes:
        same_as: Where a pattern named it, if that was at another place: what holds it is one object in both.
    """

    path: str
    same_as: str | None = None


def leave_out(root: Value, patterns: Patterns, limits: Limits = DEFAULT_LIMITS) -> list[Gone]:
    """Take the entries that patterns cover out of a value, and return every path that they had.

    An object that several others share stays shared, so what is taken out of it is gone wherever it stood.
    What is nested too deeply to be shown has no path, and stays.
    """
    drops: dict[tuple[int, int], str] = {}
    owners: dict[int, Owner] = {}
    gone: list[Gone] = []

    def choose(path: str, place: _Place | None) -> bool:
        if not patterns.name((path,)):  # what is above was looked at before
            return False
        if place is None:
            raise PlanError(
                "an item of a tuple or an argument cannot be left out",
                where=path,
                remedy="name what holds it",
            )
        owners[id(place.owner)] = place.owner
        drops.setdefault((id(place.owner), place.number), path)
        return True

    def name(path: str, place: _Place | None) -> bool:
        first = None if place is None else drops.get((id(place.owner), place.number))
        if first is not None:
            gone.append(Gone(path, None if patterns.name((path,)) else first))
        return first is not None

    _visit(root, limits, choose)
    if drops:
        _visit(root, limits, name)
    for owner in owners.values():
        _remove(owner, {number for found, number in drops if found == id(owner)})
    return gone


def _visit(root: Value, limits: Limits, is_gone: Callable[[str, _Place | None], bool]) -> None:
    """Go through all paths; what is shared has several. Nothing below what is gone is looked at."""
    todo: list[tuple[str, tuple[int, ...], Value]] = [("", (id(root),), root)]
    entered: set[int] = set()
    again = 0
    while todo:
        prefix, above, value = todo.pop()
        children = _placed_children(value)
        if id(value) in entered:
            again += len(children)
            if again > _MOST_AGAIN:
                raise PlanError(
                    "the objects are shared so often that their paths cannot all be visited",
                    remedy="export without --exclude",
                )
        entered.add(id(value))
        below = []
        for key, child, place in children:
            path = prefix + step_text(key)
            if is_gone(path, place) or len(above) > limits.depth or id(child) in above:
                continue
            if children_of(child):
                below.append((f"{path}/", (*above, id(child)), child))
        todo += reversed(below)


def _remove(owner: Owner, numbers: set[int]) -> None:
    if isinstance(owner, list):
        owner[:] = [item for number, item in enumerate(owner) if number not in numbers]
        return
    if isinstance(owner, Dict):
        owner.pairs = _others(owner.pairs, numbers)
        return
    owner.args, pairs = filled_pairs(owner)
    owner.pairs = _others(pairs, numbers)


def _others(pairs: list[tuple[Value, Value]], numbers: set[int]) -> list[tuple[Value, Value]]:
    return [pair for number, pair in enumerate(pairs) if number not in numbers]


def _placed_children(value: Value) -> list[tuple[Key, Value, _Place | None]]:
    children = children_of(value)
    places: list[_Place | None] = [None] * len(children)
    if isinstance(value, Dict | list):
        places = [_Place(value, number) for number in range(len(children))]
    elif isinstance(value, Call):
        attributes = _attribute_places(value.state)
        pairs = _pair_places(value)
        end = len(children) - len(attributes)
        behind = len(value.items or []) + len(attributes_of(value.kwargs))
        start = end - behind - len(pairs)
        if start >= 0:  # else it is shown by what it means, as arrays are
            places[start : start + len(pairs)] = pairs
            places[end:] = attributes
    return [(key, child, place) for (key, child), place in zip(children, places, strict=True)]


def _pair_places(call: Call) -> list[_Place | None]:
    """Return the places of an object's pairs; those in an argument have one in OrderedDict alone."""
    count, own = len(mapping_pairs(call) or []), len(filled_pairs(call)[1])
    return [None] * (count - own) + [_Place(call, number) for number in range(own)]


def _attribute_places(state: Value) -> list[_Place | None]:
    """Return the places of an object's attributes, in the order of `attributes_of`."""
    count = len(attributes_of(state))
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    places: list[_Place | None] = []
    for part in parts:
        if isinstance(part, Dict | Call):
            places += [_Place(part, number) for number in range(len(mapping_pairs(part) or []))]
    return places if len(places) == count else [None] * count
