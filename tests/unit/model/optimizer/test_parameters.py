"""What a model's parameters are, and what slots tell of an optimizer's."""

from __future__ import annotations

from inspector.model.checkpoint import Tensor
from inspector.model.optimizer.parameters import Shape, read_parameters, serves_all, slot_shape
from inspector.model.roles.roles import ModelDraft
from tests.sweep import table


def tensor(
    name: str, shape: Shape = (2,), storage: str | None = "0", offset: int = 0, slot: str | None = None
) -> Tensor:
    return Tensor(
        keys=("model", name),
        path=f"model/{name}",
        device="cpu",
        dtype="float32",
        shape=shape,
        stride=None,
        storage_offset=offset,
        layout="strided",
        requires_grad=False,
        nbytes=0,
        storage=storage,
        role="parameter",
        parameter=None,
        slot=slot,
        part_of=None,
        on_cpu_by_design=False,
        problem=None,
    )


def slots(**shapes: Shape) -> list[Tensor]:
    return [tensor("x", shape, slot=name) for name, shape in shapes.items()]


def test_tied_parameters_count_once_and_views_of_one_storage_each() -> None:
    rows = [
        tensor("a"),
        tensor("tied"),
        tensor("b", offset=2),
        tensor("c", shape=(1,)),
        tensor("meta", storage=None),
        tensor("meta2", storage=None),
        tensor("left out", shape=(1 << 60,)),
        tensor("x\u202e", storage="1"),
        tensor("unlisted", storage="2"),
    ]
    found = read_parameters(ModelDraft(("model",), "model", list(range(8))), rows)
    assert found.where == "model"
    assert found.names == ["a", "b", "c", "meta", "meta2", "x\\u202e"]
    assert found.shapes == [(2,), (2,), (1,), (2,), (2,), (2,)]
    assert read_parameters(ModelDraft((), ""), rows).where == "the checkpoint"


@table(
    ("made", "shape"),
    [
        (slots(exp_avg=(2, 3), exp_avg_sq=(2, 3), step=()), (2, 3)),
        (slots(exp_avg=(), step=()), ()),
        (slots(step=()), None),
        (slots(), None),
        (slots(exp_avg=(2,), exp_avg_sq=(3,)), None),
        (slots(exp_avg=(2, 3), exp_avg_sq_row=(2,), exp_avg_sq_col=(3,)), (2, 3)),
        (slots(exp_avg_sq_row=(2,), exp_avg_sq_col=(4,)), (2, 4)),
        (slots(exp_avg_sq_row=(5, 2), exp_avg_sq_col=(5, 4), RMS=()), (5, 2, 4)),
        (slots(exp_avg_sq_row=(5, 2), exp_avg_sq_col=(6, 4)), None),
        (slots(exp_avg_sq_row=(5, 2), exp_avg_sq_col=()), None),
        (slots(row_var=(2, 1), col_var=(1, 3), step=()), (2, 3)),
        (slots(row_var=(2, 1)), None),
        (slots(row_var=(2, 1), col_var=(3,)), None),
        (slots(variance=(3,), step=()), (3,)),
        (slots(state1=(4,), qmap1=(256,), absmax1=(1,)), (4,)),
        (slots(hessian=(2, 3), count=()), (2, 3)),
        (slots(hessian=(2, 3), other=(3,)), None),
        (slots(exp_avg=(1 << 60,)), None),
    ],
)
def test_shape_of_the_parameter(made: list[Tensor], shape: Shape | None) -> None:
    assert slot_shape(made) == shape


def test_one_state_for_all() -> None:
    assert serves_all(["d", "prev_flat_grad"])
    assert serves_all(["old_dirs/0"])
    assert not serves_all(["exp_avg", None])
