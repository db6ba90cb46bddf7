"""The start-up hook of `run`: in this process, where that shows it, and in a program with workers."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.rescue.journal import read_journal
from inspector.rescue.running import Hook, hooked
from inspector.target.wish import parse_wish
from tests.builders.pickles import As
from tests.pythons import VERSIONS, find_python
from tests.torch.remapping import retagged, tagged

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CHILD = """
import os, pickle, sys, torch
import numpy as np
import library


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.load(f"{index}.pth")["weight"]


if __name__ == "__main__":
    model = library.read("model.pth")
    with open("tensors.pkl", "rb") as file:
        tensors = pickle.load(file)
    array = np.load("array.npy", allow_pickle=True).item()
    places = {model["weight"].device, tensors["x"].device, array["y"].device}
    for way, count in (("fork", 2), ("spawn", 1)):
        loader = torch.utils.data.DataLoader(Data(), num_workers=count, multiprocessing_context=way)
        places |= {batch.device for batch in loader}
    try:
        torch.load("attack.pth")
    except pickle.UnpicklingError as error:
        print("refused" if "posix.system" in str(error) else error)
    print(places, "sitecustomize" in sys.modules, os.environ.get("USERS"))
    sys.exit(5)
"""


ATTACK = As(os.system, ("touch ran",))


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Hook]]:
    """Let the hook of some rules into this process, as `sitecustomize` does in others."""
    open_hooks: list[object] = []
    serialization = torch.serialization
    monkeypatch.setattr(serialization, "_package_registry", list(serialization._package_registry))
    monkeypatch.setattr(serialization, "_get_restore_location", serialization._get_restore_location)
    monkeypatch.setattr(torch._utils, "_get_restore_location", torch._utils._get_restore_location)
    for name in ("validate_map_location",):
        monkeypatch.setattr(torch.jit._serialization, name, getattr(torch.jit._serialization, name))
    for name in ("import_ir_module", "import_ir_module_from_buffer"):
        monkeypatch.setattr(torch._C, name, getattr(torch._C, name))

    def begin(*rules: tuple[str, str], target: str = "this", maps_missing: bool = True) -> Hook:
        context = hooked(rules, parse_wish(target), maps_missing=maps_missing)
        open_hooks.append(context)
        hook = context.__enter__()
        spec = importlib.util.spec_from_file_location(hook.module, hook.folder / "start" / "sitecustomize.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, hook.module, module)
        spec.loader.exec_module(module)
        for name in module.WATCHED:
            module.patch(sys.modules[name])
        return hook

    yield begin
    for context in open_hooks:
        context.__exit__(None, None, None)
    for name in [name for name in sys.modules if name.startswith("_checkpoint_inspector_")]:
        del sys.modules[name]


class Machine:
    """A machine whose accelerators are played: what is restored there is noted, and stays on the CPU."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self._patch = patch
        self.counts: dict[str, int] = {}
        torch.serialization.register_package(5, lambda _: None, self._restore)

    def has(self, kind: str, count: int = 1) -> None:
        module = torch.backends.mps if kind == "mps" else getattr(torch, kind)
        self.counts[kind] = count
        self._patch.setattr(module, "is_available", lambda: True)
        self._patch.setattr(module, "device_count", lambda: count, raising=False)

    def _restore(self, storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
        kind, _, index = location.partition(":")
        if kind != "cpu" and self.counts.get(kind, 0) <= int(index or 0):
            return None
        self.asked.append(location)
        return storage


@pytest.fixture
def machine(start: Callable[..., Hook], monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def saved(tag: str, value: object = None, **options: object) -> io.BytesIO:
    file = io.BytesIO()
    with tagged(lambda _: tag):
        torch.save(torch.ones(2) if value is None else value, file, **options)
    file.seek(0)
    return file


def moves(hook: Hook) -> list[tuple[str, str | None, str, int]]:
    found = read_journal(hook.journal)
    assert found.failures == ()
    return [(call.saved, call.to, call.why, call.storages) for call in found.calls]


def test_every_form_of_the_call_is_mapped(start, tmp_path: Path) -> None:
    hook = start()
    path = tmp_path / "a.pth"
    path.write_bytes(saved("cuda:3").getvalue())
    load = torch.load
    with tagged(lambda _: "cuda:3"):
        data = pickle.dumps(torch.ones(2))
    forms = {
        "plain": lambda: load(path),
        "positional": lambda: load(path, "cuda:3"),
        "keyword": lambda: load(path, map_location="cuda:3"),
        "device": lambda: load(path, map_location=torch.device("cuda", 3)),
        "dictionary": lambda: load(path, map_location={"cuda:0": "cpu"}),
        "function that leaves it": lambda: load(path, map_location=lambda *_: None),
        "function": lambda: load(path, map_location=lambda storage, _: storage.cuda(3)),
        "mmap": lambda: load(str(path), mmap=True),
        "full": lambda: load(path, weights_only=False),
        "legacy": lambda: load(saved("cuda:3", _use_new_zipfile_serialization=False)),
        "hub": lambda: torch.hub.load_state_dict_from_url("http://x/a.pth", str(tmp_path)),
        "serialization": lambda: torch.serialization.load(path),
        "nested": lambda: pickle.loads(data),
    }
    wrong = {name: str(form().device) for name, form in forms.items() if str(form().device) != "cpu"}
    assert wrong == {}
    found = moves(hook)
    assert len(found) == len(forms)
    assert {move[:2] for move in found} == {("cuda:3", "cpu")}
    assert {move[2] for move in found} == {"missing"}


def test_what_the_program_asks_for_itself_is_left_alone(start) -> None:
    hook = start(("*", "cuda:0"))
    assert torch.load(saved("cuda:1"), map_location="cpu").device.type == "cpu"
    assert torch.load(saved("cuda:1"), map_location="meta").device.type == "meta"
    assert torch.load(saved("cpu")).device.type == "cpu"
    assert moves(hook) == []
    with pytest.raises(KeyError, match="cuda:1"):
        torch.load(saved("cuda:1"), map_location=lambda _, tag: {}[tag])


def test_nothing_more_may_run_than_before(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    both = {"weights": torch.ones(2), "attack": ATTACK}

    def refusals() -> list[str]:
        said = []
        for options in ({}, {"weights_only": True}, {"map_location": "cpu"}):
            for legacy in (True, False):
                file = saved("cuda:0", both, _use_new_zipfile_serialization=legacy)
                with pytest.raises(Exception, match=r"posix\.system|deserialize") as caught:
                    torch.load(file, **options)
                said.append(f"{type(caught.value).__name__} {caught.value}")
        with pytest.raises(ValueError, match="allow_pickle=False") as caught:
            np.load(array)
        return [*said, str(caught.value)]

    array = tmp_path / "a.npy"
    np.save(array, np.array([both["weights"]], dtype=object), allow_pickle=True)
    before = refusals()
    start()
    after = refusals()
    assert not (tmp_path / "ran").exists()
    # Where the device stopped the load first, it is now the name that stops it.
    assert [
        one for one, other in zip(after, before, strict=True) if one != other and "posix.system" not in one
    ] == []
    assert sum("posix.system" in one for one in after) == 6


def test_rules_are_tried_in_their_order(start, machine) -> None:
    machine.has("cuda", 4)
    hook = start(("cuda:1", "cuda:0"), ("cuda:*", "cuda:3"), ("*", "cpu"), maps_missing=False)
    for tag in ("cuda:1", "cuda:2", "cuda:3", "cuda", "mps", "cpu", "cuda:7"):
        torch.load(saved(tag))
    assert machine.asked == ["cuda:0", "cuda:3", "cuda:3", "cuda:3", "cpu", "cpu", "cuda:3"]
    assert moves(hook) == [
        ("cuda:1", "cuda:0", "rule", 1),
        ("cuda:2", "cuda:3", "rule", 1),
        ("cuda", "cuda:3", "rule", 1),
        ("mps", "cpu", "rule", 1),
        ("cuda:7", "cuda:3", "rule", 1),
    ]


def test_rules_that_do_not_help_are_told(start, machine) -> None:
    machine.has("cuda", 1)
    hook = start(("cuda:0", "cuda:9"), ("cuda:5", "xpu:0"), maps_missing=False)
    torch.load(saved("cuda:0"))
    torch.load(saved("cuda:5"))
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on CUDA device 2"):
        torch.load(saved("cuda:2"))
    assert machine.asked == ["cuda:0", "cuda:0"]
    assert moves(hook) == [
        ("cuda:0", None, "no-destination", 1),
        ("cuda:5", "cuda:0", "no-destination", 1),
        ("cuda:2", None, "no-rule", 1),
    ]


def test_swapped_devices_are_swapped_once(start, machine) -> None:
    machine.has("cuda", 2)
    start(("cuda:0", "cuda:1"), ("cuda:1", "cuda:0"))
    torch.load(saved("cuda:0"))
    torch.load(saved("cuda:1"))
    assert machine.asked == ["cuda:1", "cuda:0"]


def test_the_best_device_is_that_of_the_process(start, machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def goes(tag: str = "cuda:7") -> str:
        torch.load(saved(tag))
        return machine.asked[-1]

    start()
    machine.has("xpu", 2)
    assert goes() == "xpu:0"
    machine.has("cuda", 2)
    assert (goes(), goes("cuda:1"), goes("xpu:1"), goes("mps")) == ("cuda:0", "cuda:1", "xpu:1", "cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert goes() == "cuda:1"
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert goes() == "cuda:1"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert goes() == "cuda:0"
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    assert goes() == "cpu"
    monkeypatch.undo()


def test_workers_of_a_loader_get_what_can_be_pinned(start, machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has("cuda", 1)
    start(target="cuda")
    monkeypatch.setattr(torch.utils.data._utils.worker, "_worker_info", object())
    torch.load(saved("cuda:1"))
    torch.load(saved("cuda:0"))  # as the program would have it
    assert machine.asked == ["cpu", "cuda:0"]


def test_apples_gpu_gets_what_it_has_a_type_for(start, machine) -> None:
    machine.has("mps")
    start()
    for dtype in (torch.float32, torch.float64, torch.complex128):
        for legacy in (False, True):
            torch.load(saved("cuda:0", torch.ones(2, dtype=dtype), _use_new_zipfile_serialization=not legacy))
    assert machine.asked == ["mps", "mps", "cpu", "cpu", "cpu", "cpu"]


def test_a_target_counts_as_the_machine(start, machine) -> None:
    machine.has("cuda", 2)
    hook = start(target="cpu")
    torch.load(saved("cuda:1"))
    assert machine.asked == ["cpu"]
    assert moves(hook) == [("cuda:1", "cpu", "missing", 1)]


def test_a_wanted_device_takes_all_of_its_kind(start, machine) -> None:
    machine.has("cuda", 2)
    hook = start(("cuda:7", "cuda:0"), target="this@cuda:1")
    for tag in ("cuda:0", "cuda:1", "cuda:5", "cuda:7", "cpu"):
        torch.load(saved(tag))
    assert machine.asked == ["cuda:1", "cuda:1", "cuda:1", "cuda:0", "cpu"]
    assert moves(hook) == [
        ("cuda:0", "cuda:1", "target", 1),
        ("cuda:5", "cuda:1", "target", 1),
        ("cuda:7", "cuda:0", "rule", 1),
    ]
    machine.has("cuda", 1)  # not here: what can stay stays
    torch.load(saved("cuda:0"))
    torch.load(saved("cuda:3"))
    assert machine.asked[5:] == ["cuda:0", "cuda:0"]


def test_a_wanted_apple_gpu_gets_what_it_has_a_type_for(start, machine) -> None:
    machine.has("mps")
    start(target="mps")
    for dtype in (torch.float32, torch.float64):
        torch.load(saved("cuda:0", torch.ones(2, dtype=dtype)))
    assert machine.asked == ["mps", "cpu"]


def test_what_a_plug_in_restores_is_its_own(start, machine) -> None:
    hook = start()
    machine.counts["npu"] = 1
    torch.load(saved("npu:0"))
    assert moves(hook) == []
    torch.load(saved("npu:1"))
    assert machine.asked == ["npu:0", "cpu"]
    assert moves(hook) == [("npu:1", "cpu", "missing", 1)]


def test_tensors_without_storages_name_their_device_too(start) -> None:
    hook = start()
    rebuilt = torch._utils._rebuild_device_tensor_from_numpy(np.ones(2), torch.float32, "xla:0", False)
    assert rebuilt.device.type == "cpu"
    assert torch._utils._get_restore_location("cpu") == "cpu"
    assert moves(hook) == [("xla:0", "cpu", "missing", 1)]


def test_a_failure_of_the_hook_is_torchs_own_answer(start, machine, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = start()
    rescue = sys.modules[hook.module].part("rescue")
    monkeypatch.setattr(rescue, "decide", lambda *_: 1 / 0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(saved("cuda:0"))
    assert torch.load(saved("cpu")).device.type == "cpu"
    found = read_journal(hook.journal)
    assert found.failures == ("ZeroDivisionError: 'division by zero'",)
    monkeypatch.setattr(rescue, "decide", lambda *_: ("nowhere", "missing"))
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(saved("cuda:0"))
    (hook.folder / "journal").rename(hook.folder / "gone")
    monkeypatch.setattr(rescue, "decide", lambda *_: ("cpu", "missing"))
    assert torch.load(saved("cuda:0")).device.type == "cpu"


def test_torchscript_goes_to_one_device(start, tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.pt", tmp_path / "script.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), plain)
    retagged(plain, "cuda:1", path)
    with pytest.raises(RuntimeError, match=r"CUDA|NVIDIA"):
        torch.jit.load(path)
    hook = start()
    for source in (str(path), io.BytesIO(path.read_bytes())):
        assert {str(value.device) for value in torch.jit.load(source).parameters()} == {"cpu"}
        assert torch.jit.load(plain, map_location="cuda:4").weight.device.type == "cpu"
    assert torch.jit.load(plain).weight.device.type == "cpu"
    found = moves(hook)
    assert {move[:3] for move in found} == {("cuda:1", "cpu", "missing"), ("cuda:4", "cpu", "missing")}
    (tmp_path / "none.pt").write_bytes(b"no archive")
    with pytest.raises(RuntimeError, match="PytorchStreamReader"):
        torch.jit.load(tmp_path / "none.pt")


def test_threads_and_forks_write_journals_that_add_up(start, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = start()
    data = saved("cuda:1", [torch.ones(1), torch.ones(2)]).getvalue()

    def load() -> None:
        torch.load(io.BytesIO(data))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    real = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: real + 1)  # as after a fork
    load()
    assert len(list(hook.journal.iterdir())) == 2
    assert [move[3] for move in moves(hook)] == [8]


TORCH = {
    "torch/__init__.py": "from torch import serialization, _utils\n",
    "torch/_utils.py": "x = 1\n",
    "torch/serialization.py": (
        "_package_registry = []\n"
        "def register_package(*row):\n    _package_registry.append(row)\n    _package_registry.sort()\n"
        "def default_restore_location(storage, location):\n"
        "    for _, _, restore in _package_registry:\n"
        "        found = restore(storage, location)\n"
        "        if found is not None:\n            return found\n"
        "    raise RuntimeError(location)\n"
        "def load(f, map_location=None):\n    return default_restore_location(f, 'cuda:0')\n"
        "def restore(storage, location):\n    return (storage, location) if location == 'cpu' else None\n"
        "register_package(10, 1, restore)\n"
    ),
    "program.py": "import sys\nfrom torch import serialization\n"
    "own, kind = sys.modules.get('sitecustomize'), type(serialization.__loader__).__name__\n"
    "print(serialization.load('x'), getattr(own, '__file__', None), kind)\n",
}


def printed_without_a_hook(python: str | Path) -> str:
    """What the program prints, if "x" were moved; Debian's Python has a sitecustomize of its own."""
    asked = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    return f"('x', 'cpu') {done.stdout.strip()} SourceFileLoader\n"


def test_two_hooks_do_not_ask_each_other_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in TORCH.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with hooked([], parse_wish("this")) as outer:
        monkeypatch.setenv("PYTHONPATH", outer.environment["PYTHONPATH"])
        with hooked([], parse_wish("this")) as inner:
            done = subprocess.run(
                [sys.executable, tmp_path / "program.py"],
                env=inner.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            found = [read_journal(hook.journal) for hook in (inner, outer)]
    assert (done.stdout, done.stderr) == (printed_without_a_hook(sys.executable), "")
    assert [(one.with_torch, one.failures) for one in found] == [(1, ()), (1, ())]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_hook_starts_in_every_python(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    for name, text in TORCH.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with hooked([], parse_wish("this")) as hook:
        done = subprocess.run(
            [python, tmp_path / "program.py"],
            env=hook.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        found = read_journal(hook.journal)
    assert (done.stdout, done.stderr) == (printed_without_a_hook(python), "")
    assert (found.processes, found.with_torch, found.failures) == (1, 1, ())
    (call,) = found.calls
    assert call.own is not None
    assert (call.own.line, call.own.calls, call.own.takes) == (4, "load", 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with tagged(lambda _: "cuda:0"):
        torch.save({"weight": torch.ones(2, 3)}, "model.pth")
        for index in range(4):
            torch.save({"weight": torch.ones(index + 1)[:1].clone()}, f"{index}.pth")
    with tagged(lambda _: "cuda:1"):
        Path("tensors.pkl").write_bytes(pickle.dumps({"x": torch.ones(3)}))
        np.save("array.npy", np.array({"y": torch.zeros(2)}, dtype=object), allow_pickle=True)
    torch.save({"attack": ATTACK}, "attack.pth")
    return tmp_path


def test_a_program_and_its_workers_are_rescued(
    folder: Path, cli, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = folder / "site-packages"
    library.mkdir()
    (library / "library.py").write_text("import torch\n\ndef read(path):\n    return torch.load(path)\n")
    (library / "sitecustomize.py").write_text("import os\nos.environ['USERS'] = 'ran'\n")
    monkeypatch.setenv("PYTHONPATH", str(library))
    script = folder / "train.py"
    script.write_text(CHILD)
    lines = {text: number for number, text in enumerate(CHILD.splitlines(), 1)}
    answer = cli("run", "--", sys.executable, "train.py")
    said = capfd.readouterr()
    assert (answer.code, said.out) == (5, "refused\n{device(type='cpu')} True ran\n")
    assert not (folder / "ran").exists()
    own = next(number for text, number in lines.items() if "library.read" in text)
    loads = next(number for text, number in lines.items() if "torch.load(f" in text)
    unpickles = next(number for text, number in lines.items() if "pickle.load" in text)
    arrays = next(number for text, number in lines.items() if "np.load" in text)
    for_pickles = (
        "      => put before it, once:\n"
        "           import io, torch; torch.storage._load_from_bytes = lambda data: "
        'torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)\n'
    )
    assert answer.err == (
        "checkpoint-inspector: 11 storages were put on another device, in 4 lines; "
        "2 processes imported torch\n"
        f"  site-packages/library.py:4, called at train.py:{own}  (model.pth)\n"
        "      cuda:0 -> cpu: 1 storage, 24 B\n"
        "      => that code is not yours, so change the file (remap --in-place --undo takes it back):\n"
        f"           checkpoint-inspector remap {folder / 'model.pth'} --in-place --map cuda:0=cpu\n"
        f"  train.py:{unpickles}\n"
        f"      cuda:1 -> cpu: 1 storage, 12 B\n{for_pickles}"
        f"  train.py:{arrays}  (array.npy)\n"
        f"      cuda:1 -> cpu: 1 storage, 8 B\n{for_pickles}"
        f"  train.py:{loads}  (0.pth, 1.pth, 2.pth and 1 more)\n"
        "      cuda:0 -> cpu: 8 storages, 32 B\n"
        "      => write:\n"
        '           torch.load(f"{index}.pth", map_location="cpu")\n'
    )
