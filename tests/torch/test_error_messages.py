"""Messages that the installed torch really raises are recognized, and tied to the file that made them."""

from __future__ import annotations

import gzip
import io
import pickle
import sys
import traceback
import types
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.sweep import table

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
without_gpu = pytest.mark.skipif(
    torch.cuda.is_available() or torch.backends.mps.is_available(), reason="this torch has the device"
)


def said_by(raise_it: Callable[[], object]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        raise_it()
    return "".join(traceback.format_exception(caught.value))


def explained(raise_it: Callable[[], object], path: Path | None = None) -> Explanation:
    checkpoint = None
    if path is not None:
        try:
            checkpoint = open_checkpoint(str(path))
        except CheckpointError:
            checkpoint = None  # explained without a file, as the window does with one it cannot open
    return explain_error(said_by(raise_it), checkpoint, CPU_ONLY)


def loaded(path: Path, **options: object) -> Callable[[], object]:
    return lambda: torch.load(path, **{"weights_only": False, **options})


# --- devices ------------------------------------------------------------------------------------------------


@without_gpu
@pytest.mark.parametrize(
    ("name", "id_", "finding"),
    [
        ("zip_mixed8.pt", "device-unavailable", "cuda-unavailable"),
        ("legacy_cuda_0.pt", "device-unavailable", "cuda-unavailable"),
        ("zip_xpu_0.pt", "device-unavailable", "xpu-unavailable"),
        ("legacy_mps.pt", "device-not-recognized", "mps-unavailable"),
        ("zip_hpu.pt", "device-module-missing", "unknown-device"),
        ("legacy_privateuseone_0.pt", "device-module-missing", "unknown-device"),
        ("legacy_npu_0.pt", "device-tag-unknown", "unknown-device"),
        ("legacy_mlu_1.pt", "device-tag-unknown", "unknown-device"),
    ],
)
def test_devices(name: str, id_: str, finding: str) -> None:
    found = explained(loaded(CORPUS / "devices" / name), CORPUS / "devices" / name)
    assert (found.id, found.finding, found.fits) == (id_, finding, "yes")
    assert found.paths
    assert found.fix is not None
    assert found.fix.rule.endswith("=cpu")


@without_gpu
def test_devices_that_the_call_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(2)}, path)
    found = explained(loaded(path, map_location="cuda:3"), path)
    assert (found.id, found.fits, found.fix) == ("device-unavailable", "no", None)
    found = explained(loaded(path, map_location="cpu:0"), path)
    assert (found.id, found.fits) == ("device-tag-unknown", "no")
    assert "it was the argument map_location" in found.here
    assert explained(lambda: torch.device("gpu"), path).id == "device-string"
    assert explained(lambda: torch.device("cuda0"), path).id == "device-string"
    id_ = "torch-without-device" if torch.version.cuda is None else "no-driver"
    assert explained(lambda: torch.ones(2).cuda(), path).id == id_


def test_map_locations_that_a_file_does_not_take() -> None:
    xla = CORPUS / "devices" / "zip_xla_from_cpu_tensor.pt"
    assert explained(loaded(xla, map_location=lambda data, _: data), xla).id == "map-location-callable"
    script = next((CORPUS / "torchscript").glob("*.pt"))
    assert explained(loaded(script, map_location={"cuda": "cpu"})).id == "map-location-torchscript"
    assert explained(loaded(script, weights_only=True)).id == "weights-only-format"


def test_tensors_without_data() -> None:
    found = explained(lambda: torch.ones(2) + torch.ones(2, device="meta"), CORPUS / "zip" / "train.pt")
    assert (found.id, found.fits) == ("meta-tensor", "no")
    layer = nn.Linear(2, 2, device="meta")
    assert explained(lambda: layer(torch.ones(1, 2))).id == "meta-tensor"
    assert explained(lambda: layer.to("cpu")).id == "meta-tensor"


# --- weights_only -------------------------------------------------------------------------------------------


@table(
    ("name", "id_", "finding"),
    [
        ("zip/module_custom.pt", "unsupported-global", "needs-allow-list"),
        ("legacy/module_custom.pt", "unsupported-global", "runs-code"),
        ("legacy/python_types.pt", "unsupported-global", "runs-code"),
        ("zip/proto4.pt", "unsupported-operand", "runs-code"),
        ("hostile/os_system.pt", "blocked-global", "dangerous-global"),
    ],
)
def test_weights_only(name: str, id_: str, finding: str) -> None:
    found = explained(loaded(CORPUS / name, weights_only=True), CORPUS / name)
    assert (found.id, found.finding, found.fits) == (id_, finding, "yes")


def test_weights_only_of_another_file() -> None:
    text = said_by(loaded(CORPUS / "zip" / "module_custom.pt", weights_only=True))
    other = open_checkpoint(str(CORPUS / "zip" / "state_dict.pt"))
    found = explain_error(text, other)
    assert (found.id, found.fits, found.fix) == ("unsupported-global", "no", None)


def test_weights_only_with_a_pickle_module(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({}, path)
    found = explained(loaded(path, weights_only=True, pickle_module=pickle))
    assert found.id == "weights-only-pickle-module"


# --- names and shapes ---------------------------------------------------------------------------------------


def model(width: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


def into(target: nn.Module, path: Path, *keys: str) -> Callable[[], object]:
    def load() -> object:
        state = torch.load(path, weights_only=False)
        for key in keys:
            state = state[key]
        return target.load_state_dict(state)

    return load


@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda made: torch.compile(made, backend="eager")])
def test_prefixes_are_seen_both_ways(wrap, tmp_path: Path) -> None:
    wrapped, bare = tmp_path / "wrapped.pt", tmp_path / "bare.pt"
    torch.save({"state_dict": wrap(model()).state_dict()}, wrapped)
    torch.save({"state_dict": model().state_dict()}, bare)
    found = explained(into(model(), wrapped, "state_dict"), wrapped)
    assert (found.id, found.fits) == ("keys-differ", "yes")
    assert found.finding in {"prefix-module", "prefix-compiled"}
    assert found.count == 7
    found = explained(into(wrap(model()), bare, "state_dict"), bare)
    assert (found.id, found.fits) == ("keys-differ", "yes")
    assert "Your model is inside a wrapper" in found.here
    crossed = explain_error(said_by(into(model(), wrapped, "state_dict")), open_checkpoint(str(bare)))
    assert crossed.fits == "no"


def test_nested_wrappers(tmp_path: Path) -> None:
    path = tmp_path / "nested.pt"
    torch.save(nn.DataParallel(torch.compile(model(), backend="eager")).state_dict(), path)
    found = explained(into(model(), path), path)
    assert "module._orig_mod." in found.here
    assert "removeprefix('module._orig_mod.')" in found.advice


def test_whole_checkpoint_instead_of_its_state_dict(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"epoch": 3, "net": model().state_dict(), "best": 0.5}, path)
    found = explained(into(model(), path), path)
    assert (found.id, found.fits) == ("keys-differ", "yes")
    assert "model.load_state_dict(checkpoint['net'])" in found.advice
    found = explained(lambda: torch.load(path, weights_only=False)["state_dict"], path)
    assert (found.id, found.fits) == ("key-missing", "unknown")
    found = explained(lambda: torch.load(path, weights_only=False).eval(), path)
    assert (found.id, found.fits) == ("dict-for-model", "yes")


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(model(5).state_dict(), path)
    found = explained(into(model(3), path), path)
    assert (found.id, found.fits) == ("size-mismatch", "yes")
    assert found.count == 6
    assert "0.weight: 5 \u00d7 2 here, 3 \u00d7 2 in your model" in found.here
    other = tmp_path / "b.pt"
    torch.save(model(4).state_dict(), other)
    crossed = explain_error(said_by(into(model(3), path)), open_checkpoint(str(other)))
    assert crossed.fits == "no"


def test_what_is_no_state_dict(tmp_path: Path) -> None:
    path = tmp_path / "module.pt"
    torch.save(model(), path)
    found = explained(into(model(), path), path)
    assert (found.id, found.finding, found.fits) == ("module-given", "whole-module", "yes")
    values = tmp_path / "values.pt"
    torch.save({**model().state_dict(), "0.weight": [1.0]}, values)
    found = explained(into(model(), values), values)
    assert (found.id, found.fits) == ("not-a-tensor", "yes")
    assert "0.weight is a list in this file" in found.here


# --- training -----------------------------------------------------------------------------------------------


def trained(path: Path, groups: int = 1, **options: object) -> torch.optim.Optimizer:
    made = model()
    parts = [list(made[0].parameters()), list(made[1].parameters())]
    optimizer = torch.optim.Adam(
        [{"params": part} for part in parts] if groups == 2 else made.parameters(), **options
    )
    if not options:
        made(torch.ones(4, 2)).sum().backward()
        optimizer.step()
    torch.save({"model": made.state_dict(), "optimizer": optimizer.state_dict()}, path)
    return optimizer


def test_optimizer_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    trained(path)
    state = torch.load(path, weights_only=False)["optimizer"]
    small = torch.optim.Adam(nn.Linear(2, 2).parameters())
    found = explained(lambda: small.load_state_dict(state), path)
    assert (found.id, found.fits) == ("optimizer-group-size", "yes")
    assert "optimizer has 1 group of 4 parameters. The model in the file has 4 parameters." in found.here
    two = trained(tmp_path / "b.pt", groups=2)
    found = explained(lambda: two.load_state_dict(state), path)
    assert (found.id, found.fits) == ("optimizer-group-count", "yes")


def test_other_training_state(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    optimizer = trained(path)
    step = torch.optim.lr_scheduler.StepLR
    found = explained(lambda: step(optimizer, 5, last_epoch=3), path)
    assert (found.id, found.fits) == ("initial-lr", "yes")
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    capturable = torch.optim.Adam([weight], capturable=True, foreach=False)
    assert explained(capturable.step, path).id == "step-on-cpu"
    assert explained(lambda: torch.set_rng_state(torch.ones(9)), path).id == "rng-device"
    found = explained(lambda: torch.set_rng_state(torch.ones(9, dtype=torch.uint8)), path)
    assert (found.id, found.fits) == ("rng-size", "no")


# --- files --------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    state = model().state_dict()
    torch.save(state, tmp_path / "zip.pt")
    torch.save(state, tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    data = (tmp_path / "zip.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(data[:-500])
    old = (tmp_path / "legacy.pt").read_bytes()
    (tmp_path / "cut_legacy.pt").write_bytes(old[:-4])
    (tmp_path / "cut_pickle.pt").write_bytes(old[:200])
    (tmp_path / "empty.pt").touch()
    (tmp_path / "page.pt").write_bytes(b"<!DOCTYPE html><html></html>")
    (tmp_path / "pointer.pt").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    (tmp_path / "packed.pt").write_bytes(gzip.compress(old))
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"a": 1}, protocol=2))
    with zipfile.ZipFile(tmp_path / "flat.pt", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x02}.")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("cut.pt", "zip-directory"),
        ("cut_legacy.pt", "unexpected-eof"),
        ("cut_pickle.pt", "pickle-truncated"),
        ("empty.pt", "empty-file"),
        ("page.pt", "load-key"),
        ("pointer.pt", "load-key"),
        ("packed.pt", "load-key"),
        ("pickle.pt", "magic-number"),
        ("flat.pt", "zip-subdirectory"),
    ],
)
def test_files(files: Path, name: str, id_: str) -> None:
    found = explained(loaded(files / name), files / name)
    assert found.id == id_
    assert found.fits != "no"
    whole = explain_error(said_by(loaded(files / name)), open_checkpoint(str(files / "zip.pt")))
    assert (whole.id, whole.fits) == (id_, "no")


def test_records_and_versions() -> None:
    found = explained(loaded(CORPUS / "zip" / "noversion.pt"), CORPUS / "zip" / "noversion.pt")
    assert (found.id, found.fits) == ("zip-record", "yes")
    old = CORPUS / "old" / "t1.4_py27_zip_cuda_sd.pt"
    found = explained(loaded(old, map_location="cpu"), old)
    assert (found.id, found.finding, found.fits) == ("zip-record", "torch-refuses", "yes")


def test_ways_of_reading(files: Path) -> None:
    found = explained(loaded(files / "legacy.pt", mmap=True), files / "legacy.pt")
    assert (found.id, found.fits) == ("mmap-format", "yes")
    with (files / "zip.pt").open("rb") as file:
        assert explained(lambda: torch.load(file, mmap=True)).id == "mmap-path"
    with (files / "zip.pt").open("rb") as file:
        assert explained(lambda: pickle.load(file)).id in {"load-key", "pickle-load"}
    with zipfile.ZipFile(files / "zip.pt") as archive, archive.open("zip/data.pkl") as record:
        assert explained(lambda: pickle.load(record)).id == "pickle-load"

    class Stream(io.RawIOBase):
        def read(self, _: int = -1) -> bytes:
            return b""

    assert explained(lambda: torch.load(Stream())).id == "not-seekable"


# --- code ---------------------------------------------------------------------------------------------------


def test_classes_and_modules_that_are_gone(tmp_path: Path, monkeypatch) -> None:
    module = types.ModuleType("gone_model")
    net = type("Net", (nn.Linear,), {"__module__": "gone_model"})
    module.Net = net  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gone_model", module)
    path = tmp_path / "a.pt"
    torch.save(net(2, 2), path)
    del module.Net  # type: ignore[attr-defined]
    found = explained(loaded(path), path)
    assert (found.id, found.finding, found.fits) == ("class-missing", "whole-module", "yes")
    monkeypatch.delitem(sys.modules, "gone_model")
    found = explained(loaded(path), path)
    assert (found.id, found.finding, found.fits) == ("module-missing", "whole-module", "yes")


def test_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "a.safetensors"
    safetensors.save_file({"w": torch.ones(2)}, path)
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    assert explained(lambda: safetensors.load_file(path)).id == "safetensors-cut"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert explained(lambda: safetensors.load_file(path)).id == "safetensors-header"
    tied = torch.ones(2)
    found = explained(lambda: safetensors.save_file({"a": tied, "b": tied}, path), CORPUS / "zip" / "tied.pt")
    assert (found.id, found.fits) == ("safetensors-shared", "yes")
