"""Rows of many tensors that stand side by side, made together: column by column, without a call for each.

Nearly all tensors of a large file are a crowd of plain ones below one mapping, each a view of a storage under
a short name. Whatever else there is, is left to the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice, repeat

from inspector.containers.persistent_ids import StorageId
from inspector.errors import ModelError
from inspector.limits import Work
from inspector.model.arguments.check import is_plain
from inspector.model.checkpoint import Encoding, Key, Role, Tensor
from inspector.model.found import Found, Frame
from inspector.model.roles.roles import is_averaged_parameter, role_of_weight, roles_of_tensors
from inspector.model.tensors.columns import describe_alike
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.text import are_plain_steps
from inspector.pickles.values import Call, Value
from inspector.tuples import NamedTuple

FEW = 8
"""So few are not worth it."""
MOST = 512
"""How many are made together."""
_FEW_DIMENSIONS = 4
_DESCRIBED = 8  # facts that a row begins with behind its path
Child = tuple[Key | None, Value]
Drafted = tuple[Key | None, Value, TensorFacts]
"""A tensor before it has its row: its key, its value, and what that says."""


class _Columns(NamedTuple):
    """What tensors say, each kind of fact by itself; see `TensorFacts`."""

    device: tuple[str, ...]
    dtype: tuple[str, ...]
    shape: tuple[tuple[int, ...], ...]
    stride: tuple[tuple[int, ...] | None, ...]
    offset: tuple[int | None, ...]
    layout: tuple[str, ...]
    requires_grad: tuple[bool, ...]
    nbytes: tuple[int, ...]
    storage: tuple[StorageId | None, ...]
    span: tuple[tuple[int, int], ...]
    parts: tuple[tuple[tuple[str, Value], ...], ...]
    state: tuple[Value, ...]
    is_parameter: tuple[bool, ...]
    problem: tuple[str | None, ...]
    encoding: tuple[Encoding | None, ...]


def most_together(frame: Frame) -> int:
    """Return how many tensors of a container may be made together: 1 where each needs a look by itself."""
    is_usual = frame.part_of is None and frame.context.optimizer is None and not frame.pinned
    return MOST if is_usual and frame.prefix.isascii() else 1


def after_crowds(
    found: Found, work: Work, frame: Frame, known: Known, check_rows: Callable[[], None]
) -> Frame:
    """Add the rows of tensors that a container begins with, as long as all are alike; return what is left.

    Raises:
        ModelError: They are more than the limits allow, or their names longer.
    """
    most = most_together(frame)
    children: list[Child] = []
    while most > 1:
        children = list(islice(frame.children, most))
        if len(children) < FEW or not add_alike(found, work, frame, children, known):
            break
        check_rows()
    return frame._replace(children=chain(children, frame.children))


def add_alike(found: Found, work: Work, frame: Frame, children: Sequence[Child], known: Known) -> bool:
    """Add the rows of a model's tensors that are all plain; return False where any is not, and nothing was.

    Raises:
        ModelError: Their names are longer than the limits allow.
    """
    model, kind = frame.context.model, frame.context.kind
    if model is None or frame.context.role is not None:
        return False
    keys, values = zip(*children, strict=True)
    columns = describe_alike(values, known) if are_plain_steps(keys) else None
    if columns is None:
        return False
    work.look(len(keys))
    ways = [(*frame.keys, key) for key in keys] if frame.keys else list(zip(keys, strict=True))
    paths = [frame.prefix + key for key in keys] if frame.prefix else keys
    storages = columns.storage
    work.write(sum(map(len, paths)) + frame.weight * len(keys) + sum(map(len, storages)))
    roles: list[Role] = (
        [kind] * len(keys) if kind is not None else list(map(role_of_weight, keys, columns.dtype))
    )
    first = len(found.tensors)
    model.rows += [first + index for index, role in enumerate(roles) if role == "parameter"]
    described = (*columns[:5], repeat("strided"), columns.requires_grad, columns.nbytes, storages, roles)
    place = (repeat(None), repeat(None), repeat(None), [False] * len(keys), repeat(None))
    new = tuple.__new__
    found.tensors += [new(Tensor, row) for row in zip(ways, paths, *described, *place, strict=False)]
    found.sources += values
    found.views.add_all(storages, columns.span)
    return True


def too_many(rows: int) -> ModelError:
    """Return what is said of a checkpoint with more rows than these, and what to do about it."""
    what = f"the checkpoint holds more than {rows:,} tensors and containers"
    return ModelError(what, remedy="save its parts in files of their own, such as the optimizer's state")


def has_more(facts: TensorFacts) -> bool:
    """Return whether a tensor has something that a row does not hold."""
    return bool(facts.parts) or facts.state is not None or facts.encoding is not None


def add_crowd(found: Found, work: Work, frame: Frame, crowd: Sequence[Drafted]) -> bool:
    """Add the rows of tensors that are all plain; return False where any is not, and nothing was added.

    Raises:
        ModelError: Their names are longer than the limits allow.
    """
    keys, values, facts = zip(*crowd, strict=True)
    columns = _Columns(*zip(*facts, strict=True))
    if not are_plain_steps(keys) or not _are_plain(values, columns):
        return False
    ways = [(*frame.keys, key) for key in keys]
    paths = [frame.prefix + key for key in keys]
    storages = [storage.key for storage in columns.storage if storage is not None]
    work.write(sum(map(len, paths)) + frame.weight * len(keys) + sum(map(len, storages)))
    roles = _roles(found, frame, ways, facts)
    place = (repeat(None), repeat(None), repeat(None), [role == "rng" for role in roles])
    rows = zip(ways, paths, *columns[:_DESCRIBED], storages, roles, *place, columns.problem, strict=False)
    new = tuple.__new__
    found.tensors += [new(Tensor, row) for row in rows]  # Tensor(...) would take four times as long
    found.sources += values
    found.views.add_all(storages, columns.span)
    return True


def _are_plain(values: tuple[Value, ...], columns: _Columns) -> bool:
    """Return whether tensors are made of nothing else, of few dimensions, and by calls that torch takes."""
    return (
        not any(columns.parts)
        and None not in columns.storage
        and all(state is None for state in columns.state)
        and all(encoding is None for encoding in columns.encoding)
        and "".join(set(columns.device)).isascii()
        and max(map(len, columns.shape)) <= _FEW_DIMENSIONS
        and all(stride is not None and len(stride) <= _FEW_DIMENSIONS for stride in columns.stride)
        and all(
            type(one) is not Call or is_plain(one, dtype)
            for one, dtype in zip(values, columns.dtype, strict=True)
        )
    )


def _roles(
    found: Found, frame: Frame, ways: list[tuple[Key, ...]], facts: tuple[TensorFacts, ...]
) -> list[Role]:
    """Return what tensors are for, and note those that are weights of a model."""
    context, first = frame.context, len(found.tensors)
    roles = roles_of_tensors(context, ways, facts)
    if context.model is not None:
        context.model.rows += [
            first + index
            for index, role in enumerate(roles)
            if role == "parameter"
            or (role == "ema" and is_averaged_parameter(context, ways[index][-1], facts[index]))
        ]
    return roles
