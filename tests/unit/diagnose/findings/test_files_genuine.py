"""Findings about the file, in the cases that are less plain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CORPUS
from tests.unit.diagnose.cases import MEGABYTE, at, findings, named
from tests.unit.model.making import by_hand, numbers, pairs, saved, storage, view


def opened(name: str) -> dict[str, object]:
    from inspector.model.build import open_checkpoint

    return dict(findings(open_checkpoint(str(CORPUS / name))))


def test_what_torch_says_is_quoted() -> None:
    found = findings(by_hand(at("cpu"), versions=(("version", "99"),)))["newer-format"]
    assert "maximum supported version for reading is 10" in found.detail
    assert found.title == "The file has a newer format than torch can read"


def test_genuine_files_that_torch_refuses() -> None:
    assert "torch-refuses" in opened("legacy/gzipped.pt.gz")
    assert "torch-refuses" in opened("zip/noversion.pt")
    assert "torch-refuses" in opened("old/t1.4_py27_zip_cuda_sd.pt")
    assert "torch-refuses" not in opened("zip/state_dict.pt")


def test_lost_bytes_are_reported_though_no_tensor_views_them() -> None:
    found = findings(by_hand(pairs(w=at("cpu", "0", 0)), stored={}))
    assert "truncated" not in found


def test_waste_is_counted_over_all_storages() -> None:
    big = {key: view(storage(key, MEGABYTE + 9)) for key in ("a", "b")}
    found = findings(by_hand(pairs(**big)))["oversized-storage"]
    assert found.title == "2.1 MB are stored that no tensor uses"
    assert found.paths == ("a", "b")


def test_prefixes_are_judged_by_state_dict() -> None:
    mixed = by_hand(
        pairs(
            model=pairs(**{"module.a": at("cpu", "0"), "module.b": at("cpu", "1")}),
            teacher=pairs(**{"a": at("cpu", "2"), "module.b": at("cpu", "3")}),
        )
    )
    assert findings(mixed)["prefix-module"].paths == ("model/module.a", "model/module.b")
    assert "prefix-module" not in findings(named("module.a", "b"))
    beside = by_hand(pairs(model=pairs(**{"module.a": at("cpu", "0")}), ema=pairs(a=at("cpu", "1"))))
    assert findings(beside)["prefix-module"].paths == ("model/module.a",)


def test_nested_wrappers_are_both_told() -> None:
    for names in (("module._orig_mod.a", "module._orig_mod.b"), ("_orig_mod.module.a", "_orig_mod.module.b")):
        found = findings(named(*names))
        assert found["prefix-module"].count == found["prefix-compiled"].count == 2
        assert "Two wrappers are nested here" in found["prefix-module"].detail


@pytest.mark.wide
@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch uses what it deprecates
@pytest.mark.parametrize("wrap", ["DataParallel", "compile", "both", "AveragedModel"])
def test_genuine_wrappers(wrap: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    if wrap in {"DataParallel", "both"}:
        model = torch.nn.DataParallel(model)
    if wrap in {"compile", "both"}:
        model = torch.compile(model, backend="eager")
    if wrap == "AveragedModel":
        model = torch.optim.swa_utils.AveragedModel(model)
    found = findings(saved(tmp_path, model.state_dict()))
    assert ("prefix-module" in found) == (wrap != "compile")
    assert ("prefix-compiled" in found) == (wrap in {"compile", "both"})


def test_reasons_of_the_verdict_are_the_detail() -> None:
    detail = opened("hostile/os_system.pt")["dangerous-global"].detail  # type: ignore[attr-defined]
    assert "posix.system" in detail


def test_empty_optimizer_is_no_mismatch() -> None:
    assert "optimizer-mismatch" not in opened("zip/train.pt")


def test_sizes_of_views_do_not_matter_for_sharing() -> None:
    found = findings(by_hand(pairs(a=view(), b=view(size=numbers(2)))))["shared-storage"]
    assert found.title == "2 tensors share storage with others"
