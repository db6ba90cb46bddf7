"""The way to the child and back; what torch says in it is shown by tests/unit/worker/test_load_check.py."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import CancelledError, PlanError
from inspector.progress import Progress
from inspector.pythons import choose_python
from inspector.remap import torch_check
from inspector.remap.files import OutFile
from inspector.remap.torch_check import TorchCheck, check_with_torch, try_with_torch

GOOD = {
    "verdict": "equal",
    "torch": "2.13.0",
    "tensors": 3,
    "missing": ["cuda:0"],
    "call": "torch.load(path)",
}


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Let another script answer instead of torch."""

    def say(code: str) -> Path:
        script = tmp_path / "script.py"
        script.write_text(f"import json, os\ndef answer(head, blocks):\n    {code}\n", encoding="utf-8")
        monkeypatch.setattr(torch_check, "worker_script", lambda _name: script)
        return script

    return say


def asked(
    out: OutFile | None = None, progress: Progress | None = None, python: str | None = None
) -> TorchCheck:
    out = out or OutFile(0, Path("copy.part"), Path("copy.part"))
    devices = ["cuda:0", "cpu", "c\n", "\u202e"]
    return check_with_torch(out, "original.pt", devices, progress or Progress(), python)


def test_paths_are_absolute_and_a_nameless_copy_is_handed_over(
    say: Callable[[str], Path], tmp_path: Path
) -> None:
    say(f"yield {{**{GOOD}, 'detail': json.dumps([head, open(head['copy']).read()])}}, b''")
    with (tmp_path / "copy.pt").open("w+") as file:
        file.write("copied")
        file.flush()
        out = OutFile(file.fileno(), Path(f"/proc/self/fd/{file.fileno()}"), None)
        head, text = json.loads(asked(out).detail)
    assert head == {
        "copy": str(out.path),
        "original": os.path.abspath("original.pt"),  # noqa: PTH100
        "devices": ["cpu", "cuda:0"],  # others do not reach torch
    }
    assert text == "copied"


def test_a_file_is_tried_without_another(say: Callable[[str], Path]) -> None:
    say(f"yield {{**{GOOD}, 'verdict': 'loads', 'detail': json.dumps(head)}}, b''")
    found = try_with_torch("a.pt", Progress())
    assert (found.verdict, found.is_bad) == ("loads", False)
    assert json.loads(found.detail) == {"copy": os.path.abspath("a.pt")}  # noqa: PTH100


@pytest.mark.parametrize("verdict", ["differs", "failed"])
def test_bad_news_is_made_harmless_and_cut(say: Callable[[str], Path], verdict: str) -> None:
    answer = {**GOOD, "verdict": verdict, "detail": "\x1b[2J\u202e" + "x" * 5000}
    say(f"yield {answer!r}, b''")
    found = asked()
    assert found.is_bad
    assert found.detail.startswith(r"\u001b[2J\u202exxx")
    assert len(found.detail) == 300


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("yield {}, b''", "what came back is none"),
        ("yield {'verdict': 'moon', 'torch': ''}, b''", "what came back is none"),
        ("yield {'verdict': []}, b''", "what came back is none"),
        ("yield {'verdict': 'equal', 'torch': '', 'missing': 1}, b''", "what came back is none"),
        ("raise SystemExit", "the child process ended before it had answered"),
        ("raise ValueError('\x1b')", r"the child process failed: ValueError: \u001b"),
    ],
)
def test_no_answer_is_no_verdict(say: Callable[[str], Path], code: str, why: str) -> None:
    say(code)
    found = asked()
    assert (found.verdict, found.is_bad) == ("unchecked", False)
    python = choose_python(None, Progress())
    assert found.detail == (
        f"torch gave no answer in {python.path} ($VIRTUAL_ENV): {why}; see whether "
        "python -c 'import torch' works, or name another Python with --python"
    )


def test_the_python_that_was_named_is_asked(say: Callable[[str], Path], tmp_path: Path) -> None:
    say(f"yield {GOOD}, b''")
    with pytest.raises(PlanError, match="there is no Python"):
        asked(python=str(tmp_path))


def test_it_can_be_cancelled() -> None:
    class Cancelled(Progress):
        __slots__ = ()

        def start(self, label: str, total: int = 0) -> None:
            super().start(label, total)
            self.cancel()

    with pytest.raises(CancelledError):
        asked(progress=Cancelled())
