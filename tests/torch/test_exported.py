"""torch.export and torch.package: what they write, against what their loaders make of it, and run."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.package import PackageExporter, PackageImporter

from inspector.cli import main
from inspector.containers.pt2 import _STRIDED, DTYPES, LOAD_ALL, LOAD_COMPILED
from inspector.model.agents import loader_of
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render
from inspector.target.call import LoadCall
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import simulate
from tests.builders.pickles import As
from tests.torch.remapping import rezipped
from tests.torch.running import run
from tests.torches import here

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

MODULE = """\
import torch
from torch import nn


class Made(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        return self.layer(x) + self.b
"""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.tied = self.a.weight
        self.register_buffer("mean", torch.ones(3))
        self.register_buffer("part", torch.arange(6.0)[2:5])
        self.constant = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) @ self.tied + self.mean + self.part + self.constant + torch.zeros(3, device="cpu")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "net.pt2"
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Net(), (torch.randn(2, 3),)), path)
    return path


def test_numbers_are_those_of_torch() -> None:
    from torch._export.serde.schema import Layout, ScalarType
    from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

    wrong = {
        ScalarType(number).name: (number, dtype)
        for number, dtype in _SERIALIZE_TO_TORCH_DTYPE.items()
        if DTYPES.get(ScalarType(number).value) != (str(dtype).removeprefix("torch."), dtype.itemsize)
    }
    assert wrong == {}
    assert len(DTYPES) == len(_SERIALIZE_TO_TORCH_DTYPE)
    assert Layout.Strided.value == _STRIDED


def test_program_has_the_weights_that_its_loader_finds(program: Path, tmp_path: Path) -> None:
    loaded = torch.export.load(program)
    checkpoint = open_checkpoint(str(program))
    rows = {".".join(map(str, row.keys)): row for row in checkpoint.tensors}
    for role, names in (
        ("parameter", loaded.graph_signature.parameters),
        ("buffer", loaded.graph_signature.buffers),
    ):
        assert {name for name, row in rows.items() if row.role == role} == set(names)
    for name, tensor in loaded.state_dict.items():
        assert (rows[name].shape, rows[name].stride) == (tuple(tensor.shape), tensor.stride())
    assert rows["data.constants.constant"].role == "other"
    out = tmp_path / "weights.pt"
    assert main(["export", str(program), "-o", str(out), "--format", "state-dict"]) == 0
    saved = torch.load(out)
    assert saved.keys() == loaded.state_dict.keys()
    assert all(torch.equal(saved[name], loaded.state_dict[name]) for name in saved)
    assert (loaded.state_dict["tied"].data_ptr() == loaded.state_dict["a.weight"].data_ptr()) == (
        saved["tied"].data_ptr() == saved["a.weight"].data_ptr()
    )
    assert any(one.device == "cpu" for one in checkpoint.hidden_devices)


@pytest.mark.parametrize("names", ["a", "a b", "model b"])
def test_several_programs_and_other_names(names: str, program: Path, tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    path = str(tmp_path / "several.pt2")
    package_pt2(path, exported_programs=dict.fromkeys(names.split(), torch.export.load(program)))
    if "model" not in names:
        with pytest.raises(KeyError, match="model"):
            torch.export.load(path)
    checkpoint = open_checkpoint(path)
    assert loader_of(checkpoint) == LOAD_ALL
    for target in (here(), CPU_ONLY):
        found = run(render(checkpoint, style=None, target=target))
        assert list(found.archive.exported_programs) == names.split()
        assert torch.is_tensor(found.model(torch.randn(2, 3)))


def test_what_was_compiled_is_no_exported_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "compiled.pt2")
    writer = torch._C.PyTorchFileWriter(path)
    for name, data in (
        ("data/aotinductor/model/a.so", b"\x7fELF"),
        ("archive_format", b"pt2"),
        ("archive_version", b"0"),
    ):
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    with pytest.raises(RuntimeError, match="We ran into an error when deserializing"):
        torch.export.load(path)
    caplog.clear()
    checkpoint = open_checkpoint(path)
    assert loader_of(checkpoint) == LOAD_COMPILED
    code = render(checkpoint, style=None, target=here())
    assert f"model = {LOAD_COMPILED}(" in code
    with pytest.raises(Exception, match=r"(?i)so|metadata|package|json"):  # of this one it is no library
        run(code)
    caplog.clear()


@pytest.mark.parametrize("device", ["cuda:0", "xpu:0", "mps", "privateuseone:0"])
def test_what_torch_says_to_a_device_that_is_not_there(
    device: str, program: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name, _, index = device.partition(":")

    def moved(record: str, data: bytes) -> bytes:
        if not record.endswith("weights_config.json"):
            return data
        rows = json.loads(data)
        for row in rows["config"].values():
            row["tensor_meta"]["device"] = {"type": name, "index": int(index) if index else None}
        return json.dumps(rows).encode()

    path = rezipped(program, tmp_path / "moved.pt2", moved)
    outcome = simulate(open_checkpoint(str(path)), here(), LoadCall(weights_only=False, by_loader=True))
    assert outcome.failure is not None
    with pytest.raises((AssertionError, RuntimeError, ModuleNotFoundError)) as caught:
        torch.export.load(path)
    caplog.clear()  # where the cause is told
    assert f"{caught.type.__name__}: {caught.value}".startswith(outcome.failure.message.removesuffix("."))


def test_sample_inputs_are_unpickled_without_a_list(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._export.serde import serialize

    monkeypatch.setattr(serialize.log, "warning", lambda *_args, **_more: None)  # its own call is broken
    mark = tmp_path / "mark"
    buffer = io.BytesIO()
    torch.save(As(Path.touch, (mark,)), buffer)

    def evil(name: str, data: bytes) -> bytes:
        return buffer.getvalue() if "sample_inputs" in name else data

    path = rezipped(program, tmp_path / "evil.pt2", evil)
    assert judge(open_checkpoint(str(path))).verdict in {"runs-code", "dangerous"}
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it says, the payload has run by then
        torch.export.load(path)
    assert mark.exists()


def test_package_is_copied_with_all_its_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_for_a_package.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import made_for_a_package  # type: ignore[import-not-found]

    path, out = tmp_path / "package.pt", tmp_path / "copy.pt"
    net = made_for_a_package.Made()
    with PackageExporter(path) as exporter:
        exporter.intern("made_for_a_package")
        exporter.extern(["torch.**", "collections"])
        exporter.save_pickle("model", "net.pkl", net)
        exporter.save_pickle("model", "weights", net.state_dict())
    sys.modules.pop("made_for_a_package")
    checkpoint = open_checkpoint(str(path))
    paths = {row.path: row.role for row in checkpoint.tensors}
    assert paths["model~1weights/layer.weight"] == "parameter"
    assert paths["model~1net.pkl/._buffers/b"] == "buffer"
    reasons = " ".join(judge(checkpoint).reasons)
    assert "1 module, made_for_a_package" in reasons
    for device, place in (("cuda:1", "cpu"), ("cpu", None)):
        assert main(["remap", str(path), "-o", str(out), "--force", "--map", f"*={device}"]) == 0
        importer = PackageImporter(out)
        weights = importer.load_pickle("model", "weights", map_location=place)
        again = importer.load_pickle("model", "net.pkl", map_location=place)
        assert all(torch.equal(weights[name], value) for name, value in net.state_dict().items())
        assert torch.equal(again(torch.ones(1, 3)), net(torch.ones(1, 3)))
