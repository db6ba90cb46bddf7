"""Data is told from models by names and shapes, since nothing else in a file does."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.snippet.traits import Data, find_data
from tests.sweep import table
from tests.unit.snippet.rows import checkpoint, optimizer, tensor


def column(*keys: Key, length: int = 10) -> Tensor:
    return tensor(*keys, role="other", nbytes=length)


def listed(*rows: Tensor, root: str = "sequence", **options: object) -> Checkpoint:
    return checkpoint(*rows, root=root, **options)


def columns(*places: tuple[Key, ...]) -> Data:
    return Data(kind="columns", places=places)


SAMPLES = Data(kind="dataset", places=((),))


@table(
    ("rows", "data"),
    [
        (listed(column(), root="tensor"), columns(())),
        (listed(column(0), column(1)), columns((0,), (1,))),
        (listed(column(0)), columns((0,))),
        (listed(column(0, 0), column(0, 1), column(1, 0)), columns((0, 0), (0, 1))),
        (listed(column(0, "a"), column(0, "b", length=3), column(1, "a")), SAMPLES),
        (listed(*(column(index) for index in range(5))), SAMPLES),
        (listed(*(column(index, "image") for index in range(9))), SAMPLES),
        (checkpoint(column("x"), column("y"), column("names", length=3)), columns(("x",), ("y",))),
        (checkpoint(column("train", "a"), column("train", "b")), columns(("train", "a"), ("train", "b"))),
        (checkpoint(*(column("X", index) for index in range(9))), columns(*(("X", i) for i in range(4)))),
    ],
)
def test_data(rows: Checkpoint, data: Data) -> None:
    assert find_data(rows) == data


@table(
    "rows",
    [
        checkpoint(),
        checkpoint(tensor("l.weight"), tensor("l.bias")),
        checkpoint(tensor("weight"), tensor("bias")),
        checkpoint(column("x", "l.weight")),
        checkpoint(column("x"), optimizers=(optimizer("o"),)),
        checkpoint(tensor("x", role="rng")),
        listed(tensor("._parameters", "x"), root="module"),
        listed(tensor(0, "l.weight")),
        listed(column("w000"), column("w001"), root="object"),  # an OrderedDict of Python 2
        listed(column(0), column(1, length=3)),
        listed(column(length=0), root="tensor"),
        listed(*(column(index, length=9 - index) for index in range(9))),
        listed(column(".weights"), root="object", names=("x.Index",)),
        checkpoint(tensor("data", "._parameters", "w"), names=("x.Dataset",)),
    ],
)
def test_what_is_no_data(rows: Checkpoint) -> None:
    assert find_data(rows) is None


@table(
    ("name", "kind"),
    [
        ("torch.utils.data.dataset.TensorDataset", "dataset"),
        ("torch.utils.data.dataset.Subset", "dataset"),
        ("mine.MyDataset", "dataset"),
        ("torch.utils.data.dataloader.DataLoader", "loader"),
    ],
)
def test_objects_of_datasets(name: str, kind: str) -> None:
    names = ("torch.utils.data.dataset.TensorDataset", name)
    found = find_data(listed(column(".tensors", 0), root="object", names=names))
    assert found == Data(kind=kind, places=((),))
    found = find_data(checkpoint(column("train", ".tensors", 0), names=names))
    assert found == Data(kind=kind, places=(("train",),))
