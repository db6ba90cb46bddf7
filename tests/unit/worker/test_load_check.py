from __future__ import annotations

import collections
import os
from pathlib import Path

import pytest

from inspector.child import Worker, worker_script
from inspector.progress import Progress
from tests.sweep import table

torch = pytest.importorskip("torch")
load_check = pytest.importorskip("inspector.worker.load_check")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def value() -> dict[str, object]:
    weight = torch.arange(6.0).reshape(2, 3)
    return {
        "model": collections.OrderedDict(w=weight, tied=weight.t(), p=torch.nn.Parameter(torch.ones(2))),
        "sparse": torch.tensor([[0, 1.0], [2, 0]]).to_sparse(),
        "rows": torch.tensor([[0, 1.0], [2, 0]]).to_sparse_csr(),
        "meta": torch.empty(3, device="meta"),
        "nan": torch.tensor([float("nan")]),
        "list": [1, (torch.zeros(0), "text")],
    }


def saved(folder: Path, name: str, what: object, **how: object) -> str:
    torch.save(what, folder / name, **how)
    return str(folder / name)


OTHER = torch.tensor([[1.0, 0], [2, 0]])


def answer(folder: Path, change: object, *devices: str) -> dict[str, object]:
    """What is said of a copy that differs from the original by what `change` does to it."""
    other = value()
    if callable(change):
        change(other)
    return load_check.compare(
        saved(folder, "copy.pt", other), saved(folder, "one.pt", value()), list(devices)
    )


def test_equal_files_are_equal(tmp_path: Path) -> None:
    found = answer(tmp_path, None, "cpu", "meta")
    assert found == {
        "torch": torch.__version__,
        "verdict": "equal",
        "detail": "",
        "missing": [],
        "call": "torch.load(path)",
        "tensors": 8,
    }


def test_devices_that_are_not_here_are_not_tried(tmp_path: Path) -> None:
    found = answer(tmp_path, None, "cpu", "cuda:99", "moon:0", "_C")
    assert found["verdict"] == "equal"
    assert found["missing"] == ["_C", "cuda:99", "moon:0"]
    assert found["call"] == "torch.load(path, map_location='cpu')"


def set_model(name: str, tensor: torch.Tensor):
    def change(other: dict) -> None:
        other["model"][name] = tensor

    return change


@table(
    ("change", "said"),
    [
        (set_model("w", torch.arange(6.0).reshape(2, 3) + 1), "model/w is with other values"),
        (set_model("w", torch.arange(6).reshape(2, 3)), "model/w is with another dtype"),
        (set_model("w", torch.arange(6.0).reshape(3, 2)), "model/w is with another shape"),
        (set_model("w", torch.arange(6.0).reshape(3, 2).t()), "model/w is laid out in another way"),
        (set_model("w", torch.arange(9.0)[:6].reshape(2, 3)), "model/w is with a storage of another size"),
        (set_model("p", torch.ones(2)), "model/p is of another type"),
        (set_model("new", torch.ones(2)), "model is with other keys"),
        (lambda other: other.update(list=[1]), "list is of another length"),
        (lambda other: other.update(list=(1, 2)), "list is of another type"),
        (lambda other: other.update(sparse=OTHER.to_sparse()), "sparse/_indices is with other values"),
        (lambda other: other.update(rows=OTHER.to_sparse_csr()), "rows/col_indices is with other values"),
    ],
)
def test_what_differs_is_named(tmp_path: Path, change: object, said: str) -> None:
    found = answer(tmp_path, change, "cpu")
    assert found["verdict"] == "differs"
    assert str(found["detail"]).startswith(said)


def test_the_whole_is_named_too(tmp_path: Path) -> None:
    one, other = saved(tmp_path, "a.pt", torch.ones(2)), saved(tmp_path, "b.pt", [1])
    assert load_check.compare(other, one, [])["detail"] == "the whole is of another type"


def test_a_copy_that_does_not_load_has_failed(tmp_path: Path) -> None:
    one = saved(tmp_path, "a.pt", value())
    (tmp_path / "b.pt").write_bytes(b"PK\x03\x04 and nothing more")
    found = load_check.compare(str(tmp_path / "b.pt"), one, [])
    assert found["verdict"] == "failed"
    assert "RuntimeError: PytorchStreamReader" in str(found["detail"])


def test_what_would_run_code_is_not_loaded(tmp_path: Path) -> None:
    one = saved(tmp_path, "a.pt", collections.defaultdict(list))
    found = load_check.compare(one, one, [])
    assert found["verdict"] == "unchecked"
    assert str(found["detail"]).startswith("torch does not load the original: UnpicklingError")


def test_large_files_are_mapped_and_legacy_ones_wait_for_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_check, "_MAPPED_NBYTES", 10)
    assert answer(tmp_path, None, "cpu")["verdict"] == "equal"
    monkeypatch.setattr(load_check, "_MOST_SHARE", 1e-12)
    assert answer(tmp_path, None, "cpu")["verdict"] == "equal"  # mapped files take no memory
    one = saved(tmp_path, "old.pt", value()["model"], _use_new_zipfile_serialization=False)
    assert load_check.compare(one, one, [])["detail"] == "both files together take more memory than is free"


def test_a_file_alone_is_loaded_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(what: object) -> object:
        ((found, _),) = load_check.answer({"copy": saved(tmp_path, "a.pt", what)}, iter(()))
        return found["verdict"]

    assert tried(value()) == "loads"
    assert tried(Path("x")) == "failed"  # nothing but weights is loaded
    monkeypatch.setattr(load_check, "_MOST_SHARE", 1e-12)
    assert tried(value()) == "unchecked"


def test_systems_that_do_not_tell_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **named: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert answer(tmp_path, None, "cpu")["verdict"] == "equal"


@pytest.mark.wide
def test_a_child_answers_and_takes_a_descriptor(tmp_path: Path) -> None:
    one = saved(tmp_path, "a.pt", value())
    fd = os.open(one, os.O_RDONLY)
    head = {"copy": f"/proc/self/fd/{fd}", "original": one, "devices": ["cpu"]}
    with Worker(pass_fds=[fd]) as worker:
        found = worker.ask(worker_script("load_check"), head, progress=Progress(), timeout_s=600)
    os.close(fd)
    assert found.head["verdict"] == "equal"
