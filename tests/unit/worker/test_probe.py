"""The probe, with a torch that has what the test wants."""

from __future__ import annotations

import json
import runpy
import sys
from types import SimpleNamespace

import pytest

from inspector.worker.probe import probe


def part(count: int) -> SimpleNamespace:
    return SimpleNamespace(is_available=lambda: count > 0, device_count=lambda: count)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    module = SimpleNamespace(
        __version__="2.13.0", cuda=part(0), xpu=part(0), backends=SimpleNamespace(mps=part(0))
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_machine_without_a_gpu(torch) -> None:
    assert probe() == {"torch": "2.13.0", "cuda": 0, "mps": False, "xpu": 0}


def test_a_machine_with_everything(torch) -> None:
    torch.cuda, torch.xpu, torch.backends.mps = part(4), part(2), part(1)
    assert probe() == {"torch": "2.13.0", "cuda": 4, "mps": True, "xpu": 2}


def test_an_old_torch_knows_neither_mps_nor_xpu(torch) -> None:
    del torch.xpu, torch.backends.mps
    assert probe() == {"torch": "2.13.0", "cuda": 0, "mps": False, "xpu": 0}


def test_devices_that_cannot_be_used_do_not_count(torch) -> None:
    torch.cuda = SimpleNamespace(is_available=lambda: False, device_count=lambda: 1)
    assert probe()["cuda"] == 0


def test_the_answer_is_one_line_of_json(torch, capsys) -> None:
    torch.cuda = part(1)
    sys.modules.pop("inspector.worker.probe", None)
    runpy.run_module("inspector.worker.probe", run_name="__main__")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"torch": "2.13.0", "cuda": 1, "mps": False, "xpu": 0}


def test_without_torch_the_import_error_says_so(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError):
        probe()
