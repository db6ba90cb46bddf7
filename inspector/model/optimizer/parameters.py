"""The parameters that a model has, and the shapes that an optimizer's slots tell of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.checkpoint import Tensor
from inspector.model.roles.roles import ModelDraft, parameter_name
from inspector.model.values.text import cut_name
from inspector.records import dataclass

Shape = tuple[int, ...]
View = tuple[str, int | None, *tuple[int, ...]]
"""The storage of a tensor, where it begins there, and its shape."""

# Slots that every optimizer of torch, and most others, shape like their parameter.
_LIKE_PARAMETER = frozenset(
    {
        "acc_delta",
        "ax",
        "exp_avg",
        "exp_avg_sq",
        "exp_inf",
        "grad_avg",
        "max_exp_avg_sq",
        "momentum_buffer",
        "prev",
        "square_avg",
        "state1",
        "state2",
        "step_size",
        "sum",
        "variance",
    }
)
_FACTORS = frozenset({"row_var", "col_var"})
# The Adafactor of transformers and fairseq keeps the means without the dimension that they go over.
_MEANS = ("exp_avg_sq_row", "exp_avg_sq_col")
# Parts of names of slots that are not: factors of a matrix, scales of blocks.
_UNLIKE_PARAMETER = ("row", "col", "factor", "absmax", "qmap")
# Slots of LBFGS, which lays all parameters end to end.
_ALL_TOGETHER = frozenset({"prev_flat_grad", "old_dirs", "old_stps", "H_diag"})
# Python hashes integers modulo 2**61 - 1: larger ones could be made to collide in a dictionary of shapes.
_MOST_SIZE = (1 << 60) - 1
_SALT = "shape"  # Python salts the hash of text, and of no number


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one model, in order, those that share their data counted once.

    Attributes:
        paths: Where the model stands; several for models that one optimizer trains together.
        is_ordered: Whether they stand in the order of the model; safetensors sorts its tensors.
        views: What each views of which storage, by which an optimizer that was pickled whole knows it.
    """

    where: str
    names: list[str]
    shapes: list[Shape]
    paths: tuple[str, ...] = ()
    views: tuple[View | None, ...] = ()
    is_ordered: bool = True


def read_parameters(model: ModelDraft, tensors: Sequence[Tensor]) -> Parameters:
    """Return a model's parameters as `Module.parameters` does: tied ones once, under their first name."""
    first: dict[View | int, tuple[str, Shape]] = {}
    for row in model.rows:
        tensor = tensors[row]
        if not _is_sane(tensor.shape):
            continue
        view = view_of(tensor.storage, tensor.storage_offset, tensor.shape)
        name = cut_name(parameter_name(model, tensor.keys))
        first.setdefault(row if view is None else view, (name, tensor.shape))
    return Parameters(
        model.path or "the checkpoint",
        [name for name, _ in first.values()],
        [shape for _, shape in first.values()],
        (model.path,),
        tuple(None if isinstance(view, int) else view for view in first),
        not any(tensors[row].device == NO_DEVICE for row in model.rows),
    )


def read_models(models: Sequence[ModelDraft], tensors: Sequence[Tensor]) -> list[Parameters]:
    """Return the parameters of all models that have any; of averages only where there is no other."""
    filled = [model for model in models if model.rows]
    trained = [model for model in filled if not model.is_average] or filled
    return [read_parameters(model, tensors) for model in trained]


def view_of(storage: str | None, offset: int | None, shape: Shape) -> View | None:
    """Return what a tensor views; None for what has no storage of its own."""
    return None if storage is None or not _is_sane(shape) else (storage, offset, *shape)


def join_parameters(models: Sequence[Parameters]) -> Parameters:
    """Return the parameters of several models one after the other, each name below its model's."""
    return Parameters(
        " and ".join(model.where for model in models),
        [cut_name(f"{model.where}.{name}") for model in models for name in model.names],
        [shape for model in models for shape in model.shapes],
        tuple(path for model in models for path in model.paths),
        tuple(view for model in models for view in model.views),
        all(model.is_ordered for model in models),
    )


def slot_shape(slots: Sequence[Tensor]) -> Shape | None:
    """Return the shape of the parameter that these slots belong to, or None if they do not tell."""
    told = [tensor.shape for tensor in slots if tensor.slot in _LIKE_PARAMETER] or _told_otherwise(slots)
    # Compared one by one: in a set, shapes made to have the same hash would take for ever.
    shape = told[0] if told and all(other == told[0] for other in told) else None
    return shape if shape is not None and _is_sane(shape) else None


def salted(shape: Shape) -> tuple[object, ...]:
    """Return a shape as a key of dictionaries: nobody can make shapes whose hashes are the same with this."""
    return (_SALT, *shape)


def _told_otherwise(slots: Sequence[Tensor]) -> list[Shape]:
    factors = [tensor.shape for tensor in slots if tensor.slot in _FACTORS]
    if factors:
        return _factored(factors)
    by_name = {tensor.slot: tensor.shape for tensor in slots}
    row, column = (by_name.get(name, ()) for name in _MEANS)
    if row and column:
        return [(*row, column[-1])] if row[:-1] == column[:-1] else []
    names = [tensor.slot or "" for tensor in slots]
    if any(part in name for name in names for part in _UNLIKE_PARAMETER):
        return []
    # Numbers, such as counters, tell nothing.
    return [tensor.shape for tensor in slots if tensor.shape and tensor.slot != "step"]


def _factored(factors: list[Shape]) -> list[Shape]:
    """Return the shape of which torch's Adafactor stores the means over rows and over columns."""
    if len(factors) != 2 or len(factors[0]) != len(factors[1]):
        return []
    return [tuple(map(max, *factors))]


def serves_all(slots: Iterable[str | None]) -> bool:
    """Return whether slots of these names are those of an optimizer with one state for all parameters."""
    return any(slot is not None and slot.partition("/")[0] in _ALL_TOGETHER for slot in slots)


def _is_sane(shape: Shape) -> bool:
    return max(shape, default=0) <= _MOST_SIZE
