"""TorchScript that torch itself writes, against what torch reads from it, and from what is made of it."""

import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.cli import main
from inspector.model.build import open_checkpoint
from inspector.target.call import LoadCall
from inspector.target.simulate import simulate
from tests.torch.remapping import retagged, rezipped
from tests.torches import here

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("b", torch.ones(2))
        self.register_buffer("scratch", torch.ones(2), persistent=False)
        self.plain = torch.full((2,), 3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w.t() + self.b + self.plain + self.scratch  # type: ignore[operator]


class Net(nn.Module):
    pair: tuple[torch.Tensor, torch.Tensor]
    listed: list[torch.Tensor]
    named: dict[str, torch.Tensor]
    device: torch.device

    def __init__(self) -> None:
        super().__init__()
        self.a = Inner()
        self.c = self.a
        self.params = nn.ParameterList([nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(2))])
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.BatchNorm1d(3)])
        self.pair = (torch.zeros(1), torch.ones(1))
        self.listed = [torch.zeros(2), torch.ones(3)]
        self.named = {"k": torch.zeros(4)}
        self.device = torch.device("cuda:0")
        self.tied = self.layers[0].weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        made = torch.zeros([2], device=torch.device("cpu"))
        return self.a(x) + self.pair[0] + self.listed[0] + self.named["k"][0] + made


class Traced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + torch.tensor([1.0, 2.0])


def packed() -> torch.jit.ScriptModule:
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    return torch.jit.script(torch.ao.quantization.quantize_dynamic(net, {nn.Linear}))


def scripted() -> torch.jit.ScriptModule:
    return torch.jit.script(Net().eval())


MAKERS: dict[str, Callable[[Path], object]] = {
    "script": lambda path: torch.jit.save(scripted(), path, _extra_files={"note.txt": b"hello"}),
    "trace": lambda path: torch.jit.trace(Traced(), torch.randn(1, 3)).save(path),
    "freeze": lambda path: torch.jit.freeze(scripted()).save(path),
    "lite": lambda path: scripted()._save_for_lite_interpreter(str(path)),
    "packed": lambda path: packed().save(path),
}
EXPORTED = ("script", "trace", "lite")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("script")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in MAKERS.items():
            make(folder / f"{name}.pt")
    return {name: folder / f"{name}.pt" for name in MAKERS}


def load(path: Path, **how: object) -> torch.jit.ScriptModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.load(path, **how)


def test_weights_have_the_names_of_the_state_dict(files: dict[str, Path]) -> None:
    wrong = []
    for name, path in files.items():
        rows = {
            ".".join(map(str, row.keys)): (row.role, row.shape)
            for row in open_checkpoint(str(path)).tensors
            if row.role in {"parameter", "buffer"}
        }
        module = load(path)
        wanted = {
            key: ("buffer", tuple(value.shape)) for key, value in module.named_buffers(remove_duplicate=False)
        }
        wanted |= {
            key: ("parameter", tuple(value.shape))
            for key, value in module.named_parameters(remove_duplicate=False)
        }
        if rows != wanted:
            wrong.append((name, rows, wanted))
    assert wrong == []


def test_copies_run_and_give_the_same(files: dict[str, Path], tmp_path: Path) -> None:
    x = torch.randn(4, 3)
    wrong = []
    for name, path in files.items():
        source = retagged(path, "cuda:0", tmp_path / "cuda.pt")
        for device, how in (
            ("cpu", {}),
            ("cuda:1", {"map_location": "cpu"}),
            ("privateuseone:2", {"map_location": "cpu"}),
        ):
            out = tmp_path / "copy.pt"
            code = main(["remap", str(source), "-o", str(out), "--force", "--map", f"*={device}"])
            if code or not torch.equal(load(out, **how)(x), load(path)(x)):
                wrong.append((name, device, code))
    assert wrong == []


def test_exports_are_the_state_dict(files: dict[str, Path], tmp_path: Path) -> None:
    wrong = []
    for name in EXPORTED:
        out = tmp_path / f"{name}.sd.pt"
        assert main(["export", str(files[name]), "-o", str(out), "--format", "state-dict"]) == 0
        found, wanted = torch.load(out), load(files[name]).state_dict()
        if list(found) != list(wanted) or not all(torch.equal(found[key], wanted[key]) for key in wanted):
            wrong.append(name)
    assert wrong == []
    for name in ("freeze", "packed"):
        assert main(["export", str(files[name]), "-o", str(tmp_path / "x.pt"), "--format", "state-dict"]) == 2


def test_what_is_saved_of_a_damaged_file(files: dict[str, Path], tmp_path: Path) -> None:
    data = bytearray(files["script"].read_bytes())
    with zipfile.ZipFile(files["script"]) as archive:
        held = archive.read("script/data/0")
    start = data.index(held)  # the directory stays; some bytes of the first storage are others
    data[start : start + 4] = b"\xff\xff\xff\xff"
    path, out = tmp_path / "damaged.pt", tmp_path / "saved.pt"
    path.write_bytes(data)
    assert main(["recover", str(path), "-o", str(out)]) in {0, 1}
    saved, wanted = torch.load(out), load(files["script"]).state_dict()
    assert 0 < len(saved.keys() & wanted.keys()) < len(wanted)
    assert all(torch.equal(saved[key], wanted[key]) for key in saved.keys() & wanted.keys())
    assert "pair.0" in saved


def test_what_torch_says_to_tags(files: dict[str, Path], tmp_path: Path) -> None:
    tags = (
        "cuda:0",
        "cuda",
        "cpu:0",
        "meta",
        "mps",
        "xpu:0",
        "hpu:0",
        "xla:0",
        "npu:0",
        "vulkan",
        "privateuseone:0",
    )
    wrong = []
    for tag in tags:
        if torch.version.cuda is not None and tag.startswith("cuda"):
            continue  # pip's build asks for the driver first, which nobody quotes
        path = retagged(files["script"], tag, tmp_path / "tag.pt")
        for place in (None, "cpu"):
            outcome = simulate(
                open_checkpoint(str(path)), here(), LoadCall(map_location=place, weights_only=False)
            )
            said = "" if outcome.failure is None else outcome.failure.message
            try:
                load(path, map_location=place)
            except (RuntimeError, NotImplementedError) as error:
                truth = f"{type(error).__name__}: {error}"
            else:
                truth = ""
            if not truth.startswith(said) or bool(truth) != bool(said):
                wrong.append((tag, place, said, truth[:200]))
    assert wrong == []


def test_names_of_python_are_not_imported(files: dict[str, Path], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = f"touch {mark}".encode()
    evil = b"\x80\x02cos\nsystem\nX" + len(command).to_bytes(4, "little") + command + b"\x85R."
    path = tmp_path / "evil.pt"
    rezipped(files["trace"], path, lambda name, data: evil if name.endswith("/data.pkl") else data)
    for attempt in (lambda: load(path), lambda: torch.load(path, weights_only=False)):
        with pytest.raises(RuntimeError, match=re.escape("Unknown type name 'os.system'")):
            attempt()
    assert not mark.exists()


def test_code_can_write_files_as_soon_as_it_is_loaded(tmp_path: Path) -> None:
    class Writing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))

        @torch.jit.export
        def __getstate__(self) -> tuple[torch.Tensor, bool]:
            return (self.a, self.training)

        @torch.jit.export
        def __setstate__(self, state: tuple[torch.Tensor, bool]) -> None:
            self.a = state[0]
            self.training = state[1]
            torch.save(self.a, "MARK_OF_LOADING")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    path = tmp_path / "writing.pt"
    torch.jit.script(Writing()).save(path)
    answer = main(["show", str(path)])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        load(path)
    assert (tmp_path / "MARK_OF_LOADING").exists()
    assert answer == 0
