from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from inspector.errors import CancelledError, ExportError
from inspector.progress import Progress
from inspector.remap.convert import cast as form_cast
from inspector.remap.convert.cast import Caster

# Speaks as the worker does: every second byte of a chunk, and one overflow for each.
CHILD = """
import struct, sys
while head := sys.stdin.buffer.read(8):
    data = sys.stdin.buffer.read(*struct.unpack("<Q", head))[::2]
    sys.stdout.buffer.write(struct.pack("<2Q", 1, len(data)) + data)
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Lets the child process be a script."""

    def say(code: str) -> None:
        script = tmp_path / "child.py"
        script.write_text(code, encoding="ascii")
        monkeypatch.setattr(form_cast, "worker_script", lambda name: script)

    return say


def test_chunks_go_over_and_come_back(say) -> None:
    say(CHILD)
    with Caster("float16") as caster:
        found = list(caster.cast([b"abcd", b"", b"efgh"], Progress()))
    assert (found, caster.overflowed) == ([b"ac", b"", b"eg"], 3)


def test_nothing_is_started_for_nothing(say) -> None:
    say("raise SystemExit")
    with Caster("float16") as caster:
        assert list(caster.cast([], Progress())) == []


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit",
        "import sys; sys.stdin.buffer.read(12); sys.stdout.write('\\0' * 8 + '\\t' + '\\0' * 7 + 'short')",
    ],
)
def test_child_that_ends_is_an_error(say, code) -> None:
    say(code)
    with Caster("float16") as caster, pytest.raises(ExportError, match="torch does not cast the weights"):
        list(caster.cast([struct.pack("<f", 1)] * 99, Progress()))


def test_child_that_cannot_start_is_an_error(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with Caster("float16") as caster, pytest.raises(ExportError, match="torch does not cast the weights"):
        list(caster.cast([b"abcd"], Progress()))


def test_it_can_be_cancelled_and_leaves_no_child(say) -> None:
    say(CHILD)
    progress = Progress()
    with Caster("float16") as caster:
        chunks = caster.cast([b"ab"] * 9, progress)
        next(chunks)
        child = caster._child
        progress.cancel()
        with pytest.raises(CancelledError):
            next(chunks)
    assert child is not None
    assert child.returncode is not None
