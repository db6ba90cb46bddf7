"""Every file of the corpus in every style that torch alone runs: what code claims to load is loaded."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import _extension, filesystem
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from inspector.cli import main
from inspector.containers.notes import NoteKind
from inspector.errors import CheckpointError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.obstacles import find_obstacle
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.torch.running import Loadable
from tests.unit.containers.test_gguf import gguf as build_gguf
from tests.unit.containers.test_gguf import tensor as tensor_row

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

_MOST_MODELS = 20
_RUN = ("plain", "resume", "module-weights")
# What the code cannot bring: a process group, a package of the file's classes, another program.
_READERS = (ModuleNotFoundError, AttributeError)  # packages and classes that the file names
_NEEDS = {"dist/sharded_tensor.pt"}


def play(code: str, **own: Any) -> dict[str, Any]:
    """Run code; what it does not bring is the reader's model."""
    for _ in range(_MOST_MODELS):
        names = dict(own)
        try:
            exec(compile(code, "snippet", "exec"), names)
        except NameError as error:
            own[error.name] = Loadable()
        else:
            return names
    raise AssertionError(code)


def _files(folder: Path) -> list[Path]:
    """The corpus; its folder in a place that code may write beside."""
    shutil.copytree(CORPUS / "dcp/plain", folder / "plain")
    files = [path for path in sorted(CORPUS.rglob("*")) if path.is_file() and "oracle" not in path.parts]
    return [*files, CORPUS / "hf_sharded", folder / "plain"]


def test_what_code_claims_to_load_is_loaded(tmp_path: Path) -> None:
    failed, ran = {}, 0
    for path in _files(tmp_path):
        try:
            checkpoint = open_checkpoint(str(path))
        except CheckpointError:
            continue
        name = "/".join(path.parts[-2:])
        for style in styles(checkpoint):
            if style.id not in _RUN or judge(checkpoint).may_harm or name in _NEEDS:
                continue
            try:
                code = render(checkpoint, style=style.id, target=CPU_ONLY)
            except PlanError:
                assert find_obstacle(checkpoint) is not None
                continue
            if "# checkpoint-inspector export" in code:
                continue  # the copy that it loads is written in the tests below
            try:
                play(code)
            except _READERS:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the code said it would load
                failed[f"{name} {style.id}"] = f"{type(error).__name__}: {error}"[:200]
            ran += 1
    assert failed == {}
    assert ran > 100


@pytest.mark.parametrize(
    "name",
    ["zip/noversion.pt", "old/t1.4_py27_zip_cuda_sd.pt", "old/t1.4_py27_zip_opt.pt", "legacy/nested.pt"],
)
def test_what_torch_refuses_is_loaded_by_way_of_a_copy(name: str, tmp_path: Path) -> None:
    path = tmp_path / Path(name).name
    shutil.copy(CORPUS / name, path)
    checkpoint = open_checkpoint(str(path))
    with pytest.raises(Exception):  # noqa: B017, PT011 - the words are those that `check` forecasts
        torch.load(path, map_location="cpu", weights_only=False)
    _follow(render(checkpoint, style=None, target=CPU_ONLY))


def _follow(code: str) -> dict[str, Any]:
    """Run the command that code names, and then the code."""
    lines = [line.lstrip("# ").rstrip("\\") for line in code.splitlines() if line.startswith("#")]
    at = next(number for number, line in enumerate(lines) if line.startswith("checkpoint-inspector"))
    end = at + 1 + lines[at].endswith(" ")
    words = shlex.split(" ".join(lines[at:end]).removeprefix("checkpoint-inspector"))
    assert main(words) == 0
    return play(code)


def test_parts_that_only_a_copy_puts_together(tmp_path: Path) -> None:
    folder, net = tmp_path / "st", torch.nn.Linear(3, 2)
    format_ = filesystem.SerializationFormat.SAFETENSORS
    writer = filesystem.FileSystemWriter(folder, serialization_format=format_)
    dcp.save({"model": net.state_dict()}, storage_writer=writer)
    code = render(open_checkpoint(str(folder)), style=None, target=CPU_ONLY)
    found = _follow(code)
    assert torch.equal(found["checkpoint"]["model"]["weight"], net.weight)


@pytest.mark.parametrize("style", ["plain", "distributed"])
@pytest.mark.parametrize("keys", [(), ("model",), ("app", "model"), ("state_dict", "net")])
def test_models_of_a_distributed_checkpoint_are_asked_for_by_their_keys(
    keys: tuple[str, ...], style: str, tmp_path: Path
) -> None:
    saved, filled = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    state: Any = saved.state_dict()
    for key in reversed(keys):
        state = {key: state}
    folder = tmp_path / "step"
    dcp.save(state, checkpoint_id=folder)
    checkpoint = open_checkpoint(str(folder))
    play(render(checkpoint, style=style, target=CPU_ONLY), **dict.fromkeys(("model", "net", "app"), filled))
    assert torch.equal(filled.weight, saved.weight)


def test_two_models_and_none(tmp_path: Path) -> None:
    nets = {"netG": torch.nn.Linear(3, 2), "netD": torch.nn.Linear(2, 1)}
    dcp.save({name: net.state_dict() for name, net in nets.items()}, checkpoint_id=tmp_path / "two")
    found = {"netG": torch.nn.Linear(3, 2), "netD": torch.nn.Linear(2, 1)}
    code = render(open_checkpoint(str(tmp_path / "two")), style="distributed", target=CPU_ONLY)
    play(code, **found)
    assert all(torch.equal(found[name].weight, nets[name].weight) for name in nets)
    dcp.save({"step": 3}, checkpoint_id=tmp_path / "none")
    checkpoint = open_checkpoint(str(tmp_path / "none"))
    assert [style.id for style in styles(checkpoint)] == ["plain"]
    assert play(render(checkpoint, style=None, target=CPU_ONLY))["checkpoint"]["step"] == 3


@pytest.mark.parametrize("more", [{}, {"f": np.ones(2)}])
def test_bfloat16_of_jax_is_viewed_as_such(more: dict[str, Any], tmp_path: Path) -> None:
    values = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)
    untyped = values.view(torch.uint16).numpy().view("V2")
    np.savez(tmp_path / "a.npz", w=untyped, **more)
    np.save(tmp_path / "a.npy", untyped)
    one, several = (
        play(render(open_checkpoint(str(tmp_path / name)), style=None, target=CPU_ONLY))
        for name in ("a.npy", "a.npz")
    )
    assert torch.equal(one["tensor"], values)
    assert torch.equal(several["state_dict"]["w"], values)
    assert several["state_dict"].keys() == {"w", *more}


def test_parts_compressed_with_zstd_are_read(tmp_path: Path) -> None:
    pytest.importorskip("zstandard", reason="torch writes such parts with it")
    net = torch.nn.Linear(300, 200)
    net.weight.data = net.weight.data.t().contiguous().t()  # which lies in the file as it is
    writer = filesystem.FileSystemWriter(tmp_path / "z", _extensions=[_extension.ZStandard()])
    dcp.save({"model": net.state_dict(), "note": ["a", 1]}, storage_writer=writer)
    checkpoint = open_checkpoint(str(tmp_path / "z"))
    assert not [note for note in checkpoint.notes if note.kind is NoteKind.PACKED_PARTS]
    assert judge(checkpoint).verdict == "weights-only"
    out = tmp_path / "out.pth"
    assert main(["remap", str(tmp_path / "z"), "-o", str(out)]) == 0
    found = torch.load(out)
    assert torch.equal(found["model"]["weight"], net.weight)
    assert torch.equal(found["model"]["bias"], net.bias)
    assert found["note"] == ["a", 1]


def test_gguf_is_asked_for_what_it_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package, which dequantizes neither plain integers nor some blocks."""
    kinds = {0: "F32", 8: "Q8_0", 15: "Q8_K", 24: "I8", 28: "F64"}
    rows = tuple(tensor_row(name.encode(), (256,), kind, 4096 * kind) for kind, name in kinds.items())
    path = tmp_path / "a.gguf"
    path.write_bytes(build_gguf(rows, data=bytes(1 << 17)))

    def dequantize(data: Any, kind: Any) -> Any:
        assert kind.name in {"F32", "Q8_0"}
        return data.astype(np.float32)

    def reader(_path: str) -> Any:
        made = [
            SimpleNamespace(name=name, tensor_type=SimpleNamespace(name=name), data=np.zeros(4, np.int8))
            for name in kinds.values()
        ]
        return SimpleNamespace(tensors=made)

    monkeypatch.setitem(sys.modules, "gguf", SimpleNamespace(GGUFReader=reader, dequantize=dequantize))
    found = play(render(open_checkpoint(str(path)), style=None, target=CPU_ONLY))["state_dict"]
    assert {name: tensor.dtype for name, tensor in found.items()} == {
        "F32": torch.float32,
        "Q8_0": torch.float32,
        "I8": torch.int8,
        "F64": torch.int8,
    }


def test_parts_that_torch_itself_writes_wrong_are_lost(tmp_path: Path) -> None:
    """It counts the bytes of safetensors before they are compressed, and cannot read them."""
    pytest.importorskip("zstandard", reason="torch writes such parts with it")
    writer = filesystem.FileSystemWriter(
        tmp_path / "z",
        serialization_format=filesystem.SerializationFormat.SAFETENSORS,
        _extensions=[_extension.ZStandard()],
    )
    dcp.save({"model": torch.nn.Linear(300, 200).state_dict()}, storage_writer=writer)
    with pytest.raises(BaseException, match=r"(?i)zstd|frame"):
        dcp_to_torch_save(tmp_path / "z", tmp_path / "z.pth")
    checkpoint = open_checkpoint(str(tmp_path / "z"))
    assert checkpoint.refusal
    with pytest.raises(PlanError):
        render(checkpoint, style=None, target=CPU_ONLY)
