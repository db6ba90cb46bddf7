"""The stand-alone probe on every Python that it promises to run on, with and without torch."""

from __future__ import annotations

import ast
import getpass
import json
import os
import socket
import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from inspector.resources import PROBE, resource_path
from tests.pythons import THIS, VERSIONS, find_python
from tests.sweep import table

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
