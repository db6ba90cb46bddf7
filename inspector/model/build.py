"""From a container to a checkpoint: the one way into the model, used by everything that opens a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import product
from math import prod

from inspector.containers.collector import collector_paused
from inspector.containers.container import CodeDevice, Container
from inspector.containers.formats import format_of
from inspector.containers.notes import Note, NoteKind, listed
from inspector.containers.opening import read_container
from inspector.containers.source import Source
from inspector.containers.unread import OPENER
from inspector.errors import CheckpointError, ModelError
from inspector.limits import DEFAULT_LIMITS, Limits, Work, written_chars
from inspector.model.checkpoint import (
    Checkpoint,
    HiddenDevice,
    HiddenPlace,
    Key,
    Optimizer,
    Safety,
    Tensor,
    ValueRow,
)
from inspector.model.found import Found
from inspector.model.optimizer.naming import Names, Owned, held_views, name_lone, name_parameters
from inspector.model.optimizer.parameters import Parameters, Shape, View, read_models, serves_all, slot_shape
from inspector.model.optimizer.state_dict import OptimizerDraft
from inspector.model.programs.facts import describe_safety, list_globals, note_program_uses
from inspector.model.programs.uses import note_strangers
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.storages import build_storages, mark_misfits
from inspector.model.tensors.views import Known
from inspector.model.values.children import attributes_of, iter_values
from inspector.model.values.embedded import holds_checkpoint
from inspector.model.values.text import type_of
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.records import replace

# Names that are dangerous as such, and harmless in a file whose use of them was followed.

WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
_FOLLOWED = (OPENER, WRAPPER)


def read_within(container: Container, look: Callable[[int], None]) -> tuple[str, ...]:
    """Return the names by which a file unpickles bytes in turn, if all of those were read.

    A name that stands anywhere but in the place of what is called may be called by what it is handed to.
    """
    named = {node.present for one in container.programs for node in one.stream.globals}
    if named.isdisjoint(_FOLLOWED) or not all(one.is_whole for one in container.programs):
        return ()
    found = {name for name in _FOLLOWED if name in named}
    roots: list[Value] = [container.root]
    for program in container.programs:
        for call in program.stream.calls:
            roots += [call.args, call.kwargs, call.state, *(call.items or ())]
            roots += [part for pair in call.pairs or () for part in pair]
    for value in iter_values(roots):
        look(1)
        if isinstance(value, Global):
            found.discard(value.present)
    return tuple(sorted(found))


__all__ = ["build_checkpoint", "collector_paused", "open_checkpoint"]

_MODEL_TYPE = "config.json/model_type"
_MOST_UNORDERED, _MOST_WAYS = 4, 24
_DEEP = 2  # as far as the state of an optimizer lies below the root
_PARAMETER = Tensor._fields.index("parameter")


def open_checkpoint(
    source: Source | str,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    *,
    beside: bool = False,
) -> Checkpoint:
    """Describe a source wholly, without executing anything in it or reading any weights.

    Args:
        source: What to read, or the path of a file, which is open only meanwhile.
        beside: Whether the slots of an optimizer in a file of its own get their names from the model in the
            file beside it.
    """
    with collector_paused():
        progress = progress or Progress()
        limits = limits.started(progress.advance)
        container = read_container(source, limits, progress)
        try:
            checkpoint = build_checkpoint(container, limits, progress, beside=beside, keep=False)
        except CheckpointError as error:
            error.programs = container.programs
            raise
        except MemoryError:
            failure = ModelError("there is not enough memory to describe this file", where=container.path)
            failure.programs = container.programs
            raise failure from None
        return checkpoint


def _forget(found: Found, root: Value) -> None:
    """Forget values that have their rows: a million tensors are half a gigabyte once more."""
    found.sources.clear()
    found.places.clear()
    _empty(root, _DEEP)
    found.holders.clear()


def _empty(value: Value, deep: int) -> None:
    """Empty a mapping, what it holds first: the end of very many at once would hold up the window."""
    if isinstance(value, Dict | Call) and value.pairs is not None:
        for _, inner in value.pairs if deep else ():
            if type(inner) is Dict:
                _empty(inner, deep - 1)
        value.pairs.clear()


def build_checkpoint(
    container: Container,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    *,
    beside: bool = False,
    on_walked: Callable[[Found], object] | None = None,
    keep: bool = True,
) -> Checkpoint:
    """Describe what a container holds; arguments as those of `open_checkpoint`.

    Args:
        beside: Whether to look at the model in the file beside it.
        on_walked: Takes what the walk found, for those who need the values behind the rows.
        keep: Whether they are needed once all is described.
    """
    progress = progress or Progress()
    limits = limits.started(progress.advance)
    work = limits.counted()
    progress.start("listing tensors")
    known = Known(container.storage_ids)
    found = walk(container.root, _bounds(limits, container), progress, known, container.declared)
    if on_walked is not None:
        on_walked(found)
    for stream, form in container.objects:
        note_strangers(found.uses, stream, is_legacy=format_of(form).is_stream)
    note_program_uses(found.uses, container.programs, work.look, limits.ends_s)
    others: list[list[Parameters]] = []
    if beside and found.optimizers and not any(model.rows for model in found.models):
        from inspector.model.beside import read_models_beside  # noqa: PLC0415 - few files are an optimizer's

        others = read_models_beside(container.path, limits, progress)
    data = container.object_data
    inside, imported_inside = _inside(found, data, limits, progress)
    safety = _safety(container, found, work, imported_inside) if container.programs else None
    embedded = tuple(path for path, value in found.embedded if holds_checkpoint(value, data))
    kind, module_class = _kind_of_root(container.root), _module_class(container.root)
    tuples = tuple(found.places[id(holder)] for holder in found.holders if isinstance(holder, tuple))
    held = [held_views(optimizer, known) for optimizer in found.optimizers]
    if not keep:
        _forget(found, container.root)
    names = _name_slots(found, others, work, held) if found.optimizers else []
    work.look(len(container.storage_ids))
    storages = build_storages(container, found.views)
    mark_misfits(found.tensors, storages)
    if container.programs:
        _check_problems(found.tensors, limits)
    return Checkpoint(
        path=container.path,
        format=container.format,
        file_nbytes=container.file_nbytes,
        tensors=tuple(found.tensors),
        storages=storages,
        values=tuple(found.values),
        globals=list_globals(container.programs, container.stream, in_parts=bool(container.parts)),
        hidden_devices=(
            *found.hidden_devices,
            *inside,
            *map(_in_code, container.code_devices),
        ),
        optimizers=tuple(map(_optimizer_row, found.optimizers, names)),
        versions=container.versions,
        root=kind,
        module_class=module_class,
        safety=safety,
        notes=container.notes + _notes(found),
        refusal=container.refusal,
        refused=container.refused,
        tied=container.tied,
        own_loader=container.own_loader,
        parts=container.parts,
        embedded=embedded,
        imported_inside=tuple(imported_inside),
        stamp=container.stamp,
        is_program=container.declared is not None,
        encodings=tuple(found.encodings),
        tuples=tuples,
    )


def _bounds(limits: Limits, container: Container) -> Limits:
    return limits if container.programs else replace(limits, rows=limits.header_rows)


def _check_problems(tensors: list[Tensor], limits: Limits) -> None:
    """Refuse very many tensors that cannot be as the file says: all that is said of them takes longest."""
    if len(tensors) > limits.storages < sum(tensor.problem is not None for tensor in tensors):
        what = f"more than {limits.storages:,} tensors of the checkpoint cannot be as it says"
        raise ModelError(what, remedy="fetch the file again, it is damaged or was made up")


# --- optimizers ---------------------------------------------------------------------------------------------


def _name_slots(
    found: Found, others: list[list[Parameters]], work: Work, held: list[dict[Key, View]]
) -> list[Names]:
    slots: list[dict[Key, list[Tensor]]] = [defaultdict(list) for _ in found.optimizers]
    work.look(2 * len(found.slots))
    for row, number, owner in found.slots:
        slots[number][owner].append(found.tensors[row])
    work.look(sum(len(model.rows) for model in found.models))
    models = read_models(found.models, found.tensors)
    work.breathe()
    owned = list(map(_owned, found.optimizers, slots, held))
    for rows in slots:
        rows.clear()  # they are made anew below
    others = others if not models else _ways_of(models, found.values)
    names = _name_by_others(owned, others) if others else name_parameters(owned, models)
    for number, one in enumerate(owned):
        if names[number].naming == "unknown" and one.optimizer.listed.parameters == 1:
            work.look(len(found.tensors))
            names[number] = name_lone(one, found.tensors) or names[number]
    for row, number, owner in found.slots:
        name = names[number].by_id.get(owner)
        if name is not None:
            work.write(written_chars(name))
            before = found.tensors[row]
            found.tensors[row] = Tensor._make((*before[:_PARAMETER], name, *before[_PARAMETER + 1 :]))
    return names


def _ways_of(models: list[Parameters], values: list[ValueRow]) -> list[list[Parameters]]:
    """Return models some of which have no order of their own, in each that they can have; else nothing."""
    if not 0 < sum(not model.is_ordered for model in models) <= _MOST_UNORDERED:
        return []
    from inspector.model.optimizer.ordering import registered_orders  # noqa: PLC0415 - few files need it

    kind = next((row.text for row in values if row.path == _MODEL_TYPE), "")
    orders = [[model] if model.is_ordered else registered_orders(model, kind) for model in models]
    is_few = prod(map(len, orders)) <= _MOST_WAYS
    return [list(way) for way in product(*orders)] if is_few else []


def _name_by_others(owned: list[Owned], others: list[list[Parameters]]) -> list[Names]:
    from inspector.model.optimizer.ordering import name_in_any_order  # noqa: PLC0415 - few files need it

    return name_in_any_order(owned, others)


def _owned(optimizer: OptimizerDraft, slots: dict[Key, list[Tensor]], held: dict[Key, View]) -> Owned:
    names = {tensor.slot for tensors in slots.values() for tensor in tensors}
    shapes: dict[Key, Shape] = {}
    for owner, tensors in slots.items():
        shape = slot_shape(tensors)
        if shape is not None:
            shapes[owner] = shape
    return Owned(optimizer, shapes, dict.fromkeys(slots), serves_all(names), held)


def _optimizer_row(draft: OptimizerDraft, names: Names) -> Optimizer:
    return Optimizer(
        path=draft.path,
        keys=draft.keys,
        parameters=draft.listed.parameters,
        with_state=len(draft.state_ids),
        naming=names.naming,
        detail=names.detail,
        by_place=names.by_place,
        capturable=draft.listed.capturable,
        groups=draft.listed.sizes,
        models=names.models,
        is_object=draft.is_object,
    )


# --- the rest -----------------------------------------------------------------------------------------------


def _safety(container: Container, found: Found, work: Work, imported_inside: list[tuple[str, str]]) -> Safety:
    stream = container.stream
    safety = describe_safety(
        container.programs,
        found.uses,
        protocol=max((one.stream.protocol for one in container.pickles), default=0)
        if stream is None
        else stream.protocol,
        look=work.look,
        oddities=() if stream is None else stream.oddities,
        faults=found.faults,
        places=_places(found) if any(program.stream.calls for program in container.programs) else None,
    )
    within = read_within(container, work.look) if format_of(container.format).unchecked else ()
    closed = tuple(dict.fromkeys(path for path, name in imported_inside if not name))
    unread = (f"checkpoints in its bytes ({listed(closed)})",) if closed else ()
    return (
        replace(safety, read_within=within, unread=(*safety.unread, *unread)) if within or unread else safety
    )


def _inside(
    found: Found, data: bytes, limits: Limits, progress: Progress
) -> tuple[list[HiddenDevice], list[tuple[str, str]]]:
    """Return the devices of files within bytes, and what those import, each with the place of the bytes."""
    hidden: list[HiddenDevice] = []
    names: list[tuple[str, str]] = []
    if found.embedded:
        from inspector.model.inside import files_inside  # noqa: PLC0415 - few files hold others

        for path, _, devices, imported in files_inside(found, data, limits, progress):
            hidden += [HiddenDevice(path=path, device=one, what=HiddenPlace.NESTED) for one in devices]
            names += [(path, name) for name in imported]
    return hidden, names


def _in_code(found: CodeDevice) -> HiddenDevice:
    return HiddenDevice(path=found.place, device=found.device, what=HiddenPlace.CODE)


def _kind_of_root(root: Value) -> str:
    if describe_tensor(root) is not None:
        return "tensor"
    if _module_class(root) is not None:
        return "module"
    if isinstance(root, Dict) or (isinstance(root, Call) and root.pairs is not None):
        return "mapping"
    if isinstance(root, list | tuple):
        return "sequence"
    return "object" if isinstance(root, Call) else "value"


def _module_class(root: Value) -> str | None:
    """Return the class of a whole pickled `nn.Module`, told by the dictionaries that every module has."""
    if not isinstance(root, Call):
        return None
    names = [key for key, _ in attributes_of(root.state)]
    return type_of(root) if "._parameters" in names and "._modules" in names else None


def _places(found: Found) -> dict[int, str]:
    """Return where every call stands that has a row and is news, by its `id`; see `list_calls`."""
    tensors = {
        id(value): row.path
        for value, row in zip(found.sources, found.tensors, strict=True)
        if type(value) is Call and not (type(value.func) is Global and value.func.common)
    }
    return tensors | found.leaves | found.places


def _notes(found: Found) -> tuple[Note, ...]:
    counts = {NoteKind.TOO_DEEP: found.too_deep, NoteKind.UNLISTED: found.unlisted}
    return tuple(Note(kind, (f"{count:,}",)) for kind, count in counts.items() if count)
