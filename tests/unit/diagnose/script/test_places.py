from __future__ import annotations

from inspector.diagnose.script.places import (
    Branch,
    Places,
    is_empty_container,
    plain_value,
    state_dicts,
)
from inspector.model.checkpoint import Tensor, ValueRow
from tests.unit.diagnose.script.following import loaded_as, opened


def value(kind: str, text: str, *keys: str | int) -> ValueRow:
    return ValueRow(keys=keys, path="/".join(map(str, keys)), type=kind, text=text)


def test_tree_of_a_file() -> None:
    places = Places(opened("train_cuda.pth"))
    assert list(places.root.children) == ["model", "optimizer", "epoch"]
    model = places.at(("model",))
    assert isinstance(model, Branch)
    row = places.at(("model", "fc1.weight"))
    assert isinstance(row, Tensor)
    assert places.at(("model", "none", "more")) is None
    assert places.at(("epoch", "more")) is None


def test_parts_of_tensors_and_other_values_are_no_tensors_of_a_state_dict() -> None:
    whole, *parts = opened("sd_cpu.pth").tensors
    rows = (whole, *(part._replace(part_of=0) for part in parts))
    places = Places(loaded_as("sd_cpu.pth", tensors=rows, values=(value("bytes", "", "fc1._extra_state"),)))
    assert list(places.root.children) == ["fc1.weight", "fc1._extra_state"]


def test_state_dicts_of_files() -> None:
    found = {
        name: state_dicts(Places(opened(name))) for name in ("sd_cpu.pth", "train_cuda.pth", "gan_cuda.pth")
    }
    assert found == {
        "sd_cpu.pth": [()],
        "train_cuda.pth": [("model",)],
        "gan_cuda.pth": [("netG",), ("netD",)],
    }


def test_values_below_a_leaf_are_left_out() -> None:
    rows = (
        value("int", "1", "a"),
        value("int", "2", "a", "b"),
        value("int", "3"),
        value("str", "x", "a", "b", "c"),
    )
    places = Places(loaded_as("sd_cpu.pth", tensors=(), values=rows))
    assert list(places.root.children) == ["a"]


def test_plain_values() -> None:
    rows = [
        ("NoneType", "None"),
        ("bool", "True"),
        ("int", "7"),
        ("float", "0.5"),
        ("int", "x"),
        ("str", "a"),
    ]
    assert [plain_value(value(*row)) for row in rows] == [None, True, 7, 0.5, ..., ...]
    assert plain_value(value("int", "1" * 40)) is ...
    assert is_empty_container(value("dict", "{}"))
