"""Files of very many tensors open to the same checkpoint whichever way they are read."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inspector.containers.zip import directory
from inspector.containers.zip.placed import Placed
from inspector.errors import ContainerError, ModelError
from inspector.limits import Limits
from inspector.model import build
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.pickles import machine, runs


class _Kept(Tensor):
    """A tensor with an attribute of its own."""


def _odd() -> dict[str, object]:
    whole = torch.zeros(6, 4)
    kept = torch.zeros(2).as_subclass(_Kept)
    kept.note = {"more": torch.ones(3)}  # type: ignore[attr-defined]
    return {
        "a column": whole[:, 1],
        "the same storage": whole[2:],
        "every other": whole[::2, ::3],
        "transposed": whole.t(),
        "a parameter": nn.Parameter(torch.zeros(2)),
        "bytes": torch.zeros(3, dtype=torch.uint8),
        "expanded": torch.zeros(1).expand(4),
        "complex": torch.zeros(2, dtype=torch.complex64).conj(),
        "five dimensions": torch.zeros(1, 1, 1, 1, 2),
        "a scalar": torch.tensor(1.0),
        "empty": torch.zeros(0, 3),
        "sparse": torch.zeros(2, 2).to_sparse(),
        "a subclass": kept,
        "a number": 3,
    }


def _mixed() -> object:
    """Plain tensors in crowds, and whatever is odd in their midst."""
    model: OrderedDict[object, object] = OrderedDict()
    for group, (name, value) in enumerate(_odd().items()):
        for at in range(30):
            model[f"{group}.layers.{at}.weight"] = torch.zeros(2, at + 1)
        model[f"{group} {name}"] = value
    state = {
        at: {"step": torch.tensor(1.0), "exp_avg": torch.zeros(2, at), "exp_avg_sq": torch.zeros(2, at)}
        for at in range(120)
    }
    group = {"lr": 0.1, "params": list(range(120))}
    return {"model": model, 7: torch.zeros(2), "optimizer": {"state": state, "param_groups": [group]}}


def _opened(path: Path, *, together: bool) -> Checkpoint:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "BATCH", 256)
        patch.setattr(runs, "FEWEST", 10 if together else 1 << 30)
        patch.setattr(directory, "MANY", 20 if together else 1 << 30)
        if not together:
            patch.setattr("inspector.model.crowds.MOST", 1)
        return open_checkpoint(str(path))


@pytest.fixture(name="mixed")
def _mixed_file(tmp_path: Path) -> Path:
    torch.save(_mixed(), tmp_path / "mixed.pt")
    return tmp_path / "mixed.pt"


def test_both_ways_give_one_checkpoint(mixed: Path) -> None:
    together, plain = (_opened(mixed, together=together) for together in (True, False))
    assert len(together.tensors) > 700
    for name in Checkpoint.__slots__:
        if not name.startswith("_"):
            assert getattr(together, name, None) == getattr(plain, name, None), name
    assert together == plain


def test_damaged_files_are_read_alike(mixed: Path) -> None:
    data = mixed.read_bytes()
    for at in (data.index(b"mixed/data/7"), data.rindex(b"mixed/data/90"), data.rindex(b"mixed/data/5") - 4):
        mixed.write_bytes(data[:at] + b"\xee\xee" + data[at + 2 :])
        assert _opened(mixed, together=True) == _opened(mixed, together=False)


def test_many_tensors_are_really_read_together(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the tests above would compare a way with itself."""
    found = []
    read = build.read_container
    monkeypatch.setattr(build, "read_container", lambda *given: found.append(read(*given)) or found[-1])
    _opened(mixed, together=True)
    _opened(mixed, together=False)
    assert [type(container.stored) for container in found] == [Placed, dict]


def test_storages_whose_records_are_alike_may_be_more(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ContainerError, match="more than 100 storages") as caught:
        open_checkpoint(str(mixed), Limits(storages=100))
    assert caught.value.remedy
    monkeypatch.setattr(directory, "MANY", 20)
    assert len(open_checkpoint(str(mixed), Limits(storages=100)).storages) > 700
    assert open_checkpoint(str(mixed), Limits(storages=100, rows=500)).tensors
    with pytest.raises(ModelError, match="more than 800 tensors and containers") as refused:
        open_checkpoint(str(mixed), Limits(storages=100, alike=800))
    assert refused.value.remedy
    with pytest.raises(ModelError, match="more than 500 tensors and containers"):
        open_checkpoint(str(mixed), Limits(rows=500))
