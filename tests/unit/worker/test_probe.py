"""The stand-alone probe, with a torch, a driver and a machine that have what the test wants."""

from __future__ import annotations

import ast
import getpass
import importlib.util
import json
import os
import socket
import subprocess
import sys
import sysconfig
import textwrap
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from inspector.resources import PROBE, resource_path
from tests.pythons import THIS, VERSIONS, find_python
from tests.sweep import table

SCRIPT = resource_path(PROBE)
TOO_OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update "
    "your GPU driver by downloading and installing a new version from the URL: "
    "http://www.nvidia.com/Download/index.aspx (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)"
)
SMI_ROWS = """\
535.183.01, NVIDIA GeForce RTX 3090, 24576, [N/A], GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 8.6
535.183.01, NVIDIA A100-SXM4-40GB, 40960, Enabled, GPU-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f, 8.0
"""
SMI_HEAD = "| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: 12.2     |\n| /home/me |"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("checkpoint_inspector_probe", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A CPU-only torch of today."""
    nothing = SimpleNamespace(is_available=lambda: False, is_built=lambda: False, device_count=lambda: 0)
    cuda = SimpleNamespace(
        is_available=lambda: False, device_count=lambda: 0, init=lambda: None, get_arch_list=list
    )
    module = SimpleNamespace(
        __version__="2.13.0+cpu",
        version=SimpleNamespace(cuda=None, hip=None),
        cuda=cuda,
        xpu=nothing,
        backends=SimpleNamespace(mps=nothing),
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def commands(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What programs answer: their output, or what is raised; all others are missing."""
    answers: dict[str, object] = {}

    def run(command: list[str], **_options: object) -> SimpleNamespace:
        answer = answers.get(" ".join(command))
        if answer is None:
            raise FileNotFoundError(command[0])
        if isinstance(answer, BaseException):
            raise answer
        code, text = answer
        return SimpleNamespace(returncode=code, stdout=text.encode(), stderr=b"")

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script, "SMI_OF_WSL", "/nowhere/nvidia-smi")
    return answers


def device(**properties: object) -> SimpleNamespace:
    return SimpleNamespace(**properties)


def test_a_machine_without_a_gpu(script, torch) -> None:
    assert script.torch_answers() == {
        "state": "imported",
        "version": "2.13.0+cpu",
        "cuda": None,
        "hip": None,
        "xpu": None,
        "messages": [],
        "cuda_available": False,
        "cuda_count": 0,
        "cuda_messages": [],
        "cuda_devices": [],
        "arch_list": [],
        "mps_built": False,
        "mps_available": False,
        "xpu_available": False,
        "xpu_messages": [],
        "xpu_devices": [],
        "hpu": False,
    }


def test_a_machine_with_everything(script, torch) -> None:
    torch.version.cuda = "12.4"
    found = [
        device(name="NVIDIA L4", total_memory=23 << 30, major=8, minor=9),
        device(name="AMD Radeon", total_memory=16 << 30, gcnArchName="gfx1030"),
    ]
    torch.cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 3,
        init=lambda: warnings.warn("sm_89 is fine", stacklevel=1),
        get_arch_list=lambda: ["sm_80", "compute_90"],
        get_device_properties=lambda index: found[index],  # the third one fails
    )
    torch.backends.mps = SimpleNamespace(is_built=lambda: True, is_available=lambda: True)
    torch.xpu = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda index: device(name="Intel Arc", total_memory=8 << 30),
    )
    torch.hpu = SimpleNamespace(is_available=lambda: True)
    answers = script.torch_answers()
    assert answers["cuda_devices"] == [
        {"name": "NVIDIA L4", "memory_nbytes": 23 << 30, "capability": [8, 9], "architecture": None},
        {"name": "AMD Radeon", "memory_nbytes": 16 << 30, "capability": None, "architecture": "gfx1030"},
        {"name": "", "memory_nbytes": None, "capability": None, "architecture": None},
    ]
    assert answers["arch_list"] == ["sm_80", "compute_90"]
    assert answers["cuda_messages"] == ["sm_89 is fine"]
    assert answers["xpu_devices"] == [{"name": "Intel Arc", "memory_nbytes": 8 << 30}]
    assert (answers["mps_built"], answers["mps_available"], answers["hpu"]) == (True, True, True)


def test_what_torch_warns_of_and_raises_is_kept(script, torch) -> None:
    def is_available() -> bool:
        warnings.warn(TOO_OLD, stacklevel=1)
        return False

    def init() -> None:
        raise RuntimeError("No CUDA GPUs are available")

    torch.version.cuda = "12.4"
    torch.cuda.is_available, torch.cuda.init = is_available, init
    answers = script.torch_answers()
    assert answers["cuda_available"] is False
    assert answers["cuda_messages"] == [TOO_OLD, "No CUDA GPUs are available"]


def test_an_old_torch_knows_neither_mps_nor_xpu_nor_architectures(script, torch) -> None:
    del torch.xpu, torch.backends.mps, torch.cuda.get_arch_list, torch.version.hip
    answers = script.torch_answers()
    assert (answers["mps_built"], answers["xpu_available"], answers["arch_list"]) == (None, False, [])


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (ImportError("No module named 'torch'", name="torch"), "missing", "No module named 'torch'"),
        (ImportError("libcudart.so.12: cannot open", name=None), "failed", "libcudart.so.12: cannot open"),
        (OSError("/home/me/my env/lib/torch/lib/libc10.so: no"), "failed", ".../libc10.so: no"),
        (ValueError(), "failed", "ValueError"),
    ],
)
def test_a_torch_that_cannot_be_imported(
    script, monkeypatch, error: Exception, state: str, said: str
) -> None:
    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "torch":
                raise error

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert script.torch_answers() == {"state": state, "error": said}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((0, 'noise\n{"state": "imported"}'), {"state": "imported"}),
        ((-11, ""), {"state": "crashed", "error": "exit code -11"}),
        ((3, "Fatal: /opt/a b/x.so"), {"state": "crashed", "error": "exit code 3 Fatal: .../x.so"}),
        ((0, "[]"), {"state": "crashed", "error": "exit code 0 []"}),
        (subprocess.TimeoutExpired("python", 1), {"state": "timeout", "error": "no answer within 75 s"}),
    ],
)
def test_torch_is_asked_in_a_child_that_may_crash(script, commands, answer: object, expected: object) -> None:
    commands[f"{sys.executable} probe.py --torch-only"] = answer
    assert script.ask_torch("probe.py") == expected


def test_a_script_that_is_no_file_asks_torch_itself(script, torch, capfd) -> None:
    torch.cuda.is_available = lambda: os.write(1, b"printed by C++\n") == 0
    assert script.ask_torch(None)["state"] == "imported"
    assert capfd.readouterr() == ("", "printed by C++\n")


def test_nvidia_smi_is_read(script, commands) -> None:
    commands["nvidia-smi"] = (0, SMI_HEAD)
    query = "nvidia-smi --query-gpu=driver_version,name,memory.total,mig.mode.current,uuid"
    commands[f"{query},compute_cap --format=csv,noheader,nounits"] = (0, SMI_ROWS)
    smi, uuids = script.nvidia_smi()
    assert smi == {
        "state": "ok",
        "exit_code": 0,
        "error": None,
        "driver": "535.183.01",
        "cuda": "12.2",
        "gpus": [
            {
                "name": "NVIDIA GeForce RTX 3090",
                "memory_nbytes": 24 << 30,
                "mig": "[N/A]",
                "capability": [8, 6],
            },
            {
                "name": "NVIDIA A100-SXM4-40GB",
                "memory_nbytes": 40 << 30,
                "mig": "Enabled",
                "capability": [8, 0],
            },
        ],
    }
    assert len(uuids) == 2


def test_an_old_nvidia_smi_does_not_know_capabilities(script, commands) -> None:
    commands["nvidia-smi"] = (0, "no head")
    query = "nvidia-smi --query-gpu=driver_version,name,memory.total,mig.mode.current,uuid"
    commands[f"{query},compute_cap --format=csv,noheader,nounits"] = (2, 'Field "compute_cap" is not a valid')
    commands[f"{query} --format=csv,noheader,nounits"] = (0, "440.33.01, Tesla K80, [N/A], [N/A], GPU-1\n\n")
    smi, _ = script.nvidia_smi()
    assert (smi["driver"], smi["cuda"]) == ("440.33.01", None)
    assert smi["gpus"] == [{"name": "Tesla K80", "memory_nbytes": None, "mig": "[N/A]", "capability": None}]


@pytest.mark.parametrize(
    ("answer", "state", "code", "said"),
    [
        (None, "missing", None, None),
        (subprocess.TimeoutExpired("nvidia-smi", 1), "timeout", None, None),
        (PermissionError("denied"), "failed", None, "denied"),
        (
            (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144"),
            "failed",
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144",
        ),
    ],
)
def test_an_nvidia_smi_that_fails(script, commands, answer, state: str, code: object, said: object) -> None:
    if answer is not None:
        commands["nvidia-smi"] = answer
    smi, uuids = script.nvidia_smi()
    assert (smi["state"], smi["exit_code"], smi["error"], smi["gpus"], uuids) == (state, code, said, [], [])


def test_a_list_of_gpus_that_hangs_is_not_asked_twice(script, commands) -> None:
    commands["nvidia-smi"] = (0, SMI_HEAD)
    query = "nvidia-smi --query-gpu=driver_version,name,memory.total,mig.mode.current,uuid"
    commands[f"{query},compute_cap --format=csv,noheader,nounits"] = subprocess.TimeoutExpired("x", 1)
    assert script.nvidia_smi()[0]["gpus"] == []


def test_variables_tell_no_uuid(script, monkeypatch) -> None:
    for name in script.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert script.environment([]) == {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0,1")
    assert script.environment([]) == {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0,1"}
    known = ["GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"]
    for value, said in [
        ("GPU-5d5ba0d6", "GPU-(found)"),
        (known[0] + ",GPU-c6d4f1ef-42e4", "GPU-(found),GPU-(not found)"),
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-(uuid)"),
        ("MIG-GPU-c6d4f1ef/7/0", "MIG-GPU-(not found)"),
    ]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert script.environment(known)["CUDA_VISIBLE_DEVICES"] == said
    assert script.environment([])["CUDA_VISIBLE_DEVICES"] == "MIG-GPU-(uuid)"


def test_texts_tell_no_folder_and_no_uuid(script, monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("USERPROFILE", r"C:\Users\John Doe")
    for text, said in [
        (TOO_OLD, TOO_OLD),
        ("/home/me/venv/lib/torch/x.so: bad", ".../x.so: bad"),
        ("in '/srv/data/me/x.so'", "in '.../x.so'"),
        (r"[WinError 126] C:\Users\John Doe\env\c10.dll or one", "[WinError 126] .../c10.dll or one"),
        ("a GPU-5d5ba0d6-d33d-2b2c b", "a GPU-(uuid) b"),
        ("and/or 1/2", "and/or 1/2"),
        ("x" * 9000, "x" * 2000),
    ]:
        assert script.clean(text).replace("~.../", ".../").replace("~", "...") == said


def test_the_machine_is_described_without_names(script, monkeypatch) -> None:
    system = script.system()
    assert set(system) == {
        *("os", "release", "machine", "macos", "rosetta", "wsl", "container", "memory_nbytes"),
    }
    assert system["memory_nbytes"] > 1 << 28
    monkeypatch.setattr(script.platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    assert script.system()["wsl"] is True


def test_an_intel_python_on_an_apple_chip(script, commands, monkeypatch) -> None:
    monkeypatch.setattr(script.platform, "system", lambda: "Darwin")
    commands["sysctl -n sysctl.proc_translated"] = (0, "1\n")
    assert script.rosetta() is True
    commands["sysctl -n sysctl.proc_translated"] = (0, "0\n")
    assert script.rosetta() is False


def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: ModuleType, texts: dict[str, str]) -> None:
    """Let the script see other files at absolute paths."""
    for path, text in texts.items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def there(function: Callable[..., object]) -> Callable[..., object]:
        return lambda path, *rest, **more: function(f"{tmp_path}{path}", *rest, **more)

    monkeypatch.setattr(script, "open", there(open), raising=False)
    real = script.glob.glob
    monkeypatch.setattr(
        script,
        "glob",
        SimpleNamespace(glob=lambda pattern: [p[len(str(tmp_path)) :] for p in real(f"{tmp_path}{pattern}")]),
    )


def test_linux_tells_cards_driver_and_toolkits(script, monkeypatch, tmp_path) -> None:
    bus = "/sys/bus/pci/devices/"
    module = (
        "NVRM version: NVIDIA UNIX {}x86_64 Kernel Module {} 535.183.01  {}Sun May 12 19:39:15 UTC 2024\n"
    )
    files(
        tmp_path,
        monkeypatch,
        script,
        {
            f"{bus}0/class": "0x030000\n",
            f"{bus}0/vendor": "0x10de\n",
            f"{bus}1/class": "0x120000\n",
            f"{bus}1/vendor": "0x1002\n",
            f"{bus}2/class": "0x020000\n",  # Intel's network card
            f"{bus}2/vendor": "0x8086\n",
            f"{bus}3/class": "0x030000\n",
            f"{bus}3/vendor": "0x1af4\n",  # a virtual one
            f"{bus}4/other": "",
            "/proc/driver/nvidia/version": module.format("", "", ""),
            "/usr/local/cuda-12.1/x": "",
            "/usr/local/cuda-11.8/x": "",
            "/usr/local/cuda-old/x": "",
        },
    )
    assert script.display_cards() == ["nvidia", "amd"]
    assert script.toolkits() == ["11.8", "12.1"]
    assert script.kernel_module() == "535.183.01"
    opened = module.format("Open ", "for x86_64 ", "Release Build  ").replace("x86_64 Kernel", "Kernel", 1)
    (tmp_path / "proc/driver/nvidia/version").write_text(opened)
    assert script.kernel_module() == "535.183.01"
    (tmp_path / "proc/driver/nvidia/version").write_text("something new")
    assert script.kernel_module() == "unknown"


def test_the_drivers_library_tells_its_cuda(script, monkeypatch) -> None:
    class Library:
        def __init__(self, name: str) -> None:
            assert name == "libcuda.so.1"

        @staticmethod
        def cuDriverGetVersion(number) -> int:  # noqa: N802 - CUDA's name
            number._obj.value = 12020
            return 0

    monkeypatch.setattr(script.ctypes, "CDLL", Library)
    assert script.libcuda() == {"found": True, "cuda": "12.2"}
    Library.cuDriverGetVersion = staticmethod(lambda number: 100)
    assert script.libcuda() == {"found": True, "cuda": None}


def test_device_files_say_whether_they_can_be_used(script, tmp_path) -> None:
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidia-caps").mkdir()
    assert script.nodes(f"{tmp_path}/nvidia*") == [{"path": f"{tmp_path}/nvidia0", "usable": True}]


def test_packages_of_pip_and_conda(script, monkeypatch, tmp_path) -> None:
    for name, version in [
        ("torch", "2.5.1"),
        ("Torch", "2.4.0"),
        ("requests", "2"),
        ("nvidia_cuda_runtime_cu12", "12"),
    ]:
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    meta = tmp_path / "conda-meta"
    meta.mkdir()
    for name in ("pytorch-2.3.1-py3.11_cpu_0", "pytorch-mutex-1.0-cpu", "numpy-1.26-py311", "history"):
        (meta / f"{name}.json").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), sysconfig.get_path("stdlib")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert script.packages() == {
        "conda:pytorch": ["2.3.1 py3.11_cpu_0"],
        "conda:pytorch-mutex": ["1.0 cpu"],
        "nvidia_cuda_runtime_cu12": ["12"],
        "torch": ["2.4.0", "2.5.1"],
    }


def test_a_compiler_on_the_path(script, commands) -> None:
    assert script.nvcc() is None
    commands["nvcc --version"] = (0, "Cuda compilation tools, release 10.2, V10.2.89")
    assert script.nvcc() == "10.2"


def test_what_fails_does_not_take_the_rest_with_it(script, commands, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("whatever")

    names = (
        "nvidia",
        "system",
        "python",
        "display_cards",
        "nodes",
        "toolkits",
        "nvcc",
        "packages",
        "environment",
    )
    for name in names:
        monkeypatch.setattr(script, name, fail)
    monkeypatch.setattr(script, "ask_torch", lambda path: {"state": "missing"})
    found = script.probe()
    assert found["torch"] == {"state": "missing"}
    assert (found["nvidia"], found["system"], found["cards"], found["packages"]) == (None, None, [], {})


@pytest.mark.parametrize("cgroup", ["max", "1000000"])
def test_a_container_may_have_less_memory(script, monkeypatch, tmp_path, cgroup: str) -> None:
    files(tmp_path, monkeypatch, script, {"/sys/fs/cgroup/memory.max": cgroup})
    assert (script.memory() == 1_000_000) == (cgroup != "max")


def test_kinds_of_containers(script, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(script, "CONTAINERS", {str(tmp_path): "docker"})
    assert script.container() == "docker"
    monkeypatch.setattr(script, "CONTAINERS", {})
    files(tmp_path, monkeypatch, script, {"/proc/1/cgroup": "0::/kubepods/burstable\n"})
    assert script.container() == "kubepods"
    (tmp_path / "proc/1/cgroup").write_text("0::/\n")
    assert script.container() is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert script.container() == "kubernetes"


# ------------------------------------------------------------------------------------------------------------
# The stand-alone probe on every Python that it promises to run on, with and without torch.


SCRIPT = resource_path(PROBE)
# A torch of a few lines: the real one is not made for all of these Pythons.
TORCH = textwrap.dedent(
    """\
    import sys, warnings
    from types import SimpleNamespace as Some
    __version__ = "2.4.1+cu121"
    version = Some(cuda="12.1", hip=None)
    def init():
        warnings.warn("on\\n\\u202ea /home/somebody/x.so")
        raise RuntimeError("No CUDA GPUs are available")
    def available():
        print("noise")
        sys.stderr.write("more noise")
        return False
    cuda = Some(is_available=available, device_count=lambda: 0, init=init, get_arch_list=lambda: ["sm_90"])
    backends = Some(mps=Some(is_built=lambda: False, is_available=lambda: False))
    """
)


def interpreter(version: str) -> str:
    return find_python(version) or pytest.skip(f"Python {version} is not installed on this machine")


def run(python: str, *arguments: str, **options: object) -> str:
    options = {"capture_output": True, "text": True, "timeout": 100, **options}
    return subprocess.run([python, *arguments], check=True, **options).stdout


def test_syntax_is_that_of_the_oldest_python() -> None:
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.wide
@table("version", VERSIONS)
def test_every_python_runs_it_without_torch(version: str, tmp_path: Path) -> None:
    # Whatever is installed there: the first torch on the path says that there is none.
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    found = json.loads(
        run(interpreter(version), str(SCRIPT), env={**os.environ, "PYTHONPATH": str(tmp_path)})
    )
    assert found["checkpoint_inspector_profile"] == 1
    assert found["python"]["version"].startswith(f"{version}.")
    assert found["system"]["os"]
    assert found["torch"] == {"state": "missing", "error": "No module named 'torch'"}


@table(
    ("version", "way"), [*((version, "file") for version in VERSIONS), (VERSIONS[0], "pipe"), (THIS, "pipe")]
)
def test_every_python_runs_it_with_a_torch(version: str, way: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TORCH)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0"}
    if way == "file":
        answer = run(interpreter(version), "-W", "error", str(SCRIPT), env=environment)
    else:
        answer = run(interpreter(version), "-", env=environment, input=SCRIPT.read_text(encoding="utf-8"))
    assert answer.isascii()
    assert answer.count("\n") == 1
    found = json.loads(answer)
    assert found["torch"]["state"] == "imported"
    assert found["torch"]["cuda_messages"] == ["on\n\u202ea .../x.so", "No CUDA GPUs are available"]
    assert found["torch"]["arch_list"] == ["sm_90"]
    assert found["environment"]["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.wide
@pytest.mark.torch
@pytest.mark.slow
def test_it_asks_the_real_torch_and_tells_nobody_s_name(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    answer = run(sys.executable, str(SCRIPT), cwd=tmp_path)
    found = json.loads(answer)
    assert found["torch"]["version"] == torch.__version__
    assert found["torch"]["cuda"] == torch.version.cuda
    assert found["packages"]["torch"] == [metadata.version("torch")]  # without the build, in pip's
    for secret in {
        socket.gethostname(),
        getpass.getuser(),
        str(Path.home()),
        str(tmp_path),
        sys.prefix,
    }:
        assert len(secret) < 4 or secret not in answer


def test_a_torch_that_crashes_leaves_the_rest(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os; os.abort()")
    answer = run(sys.executable, str(SCRIPT), env={**os.environ, "PYTHONPATH": str(tmp_path)})
    found = json.loads(answer)
    assert found["torch"]["state"] == "crashed"
    assert found["torch"]["error"].startswith("exit code -6")
    assert found["python"]["version"]
