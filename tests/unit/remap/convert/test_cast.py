from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import CancelledError, ExportError
from inspector.progress import Progress
from inspector.remap import storages
from inspector.remap.storages import Caster

HALVES = """
def answer(head, blocks):
    assert head == {"source": "float32", "target": "float16"}
    for block in blocks:
        yield {"overflowed": 1}, block[::2]
"""


@pytest.fixture
def caster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Caster]:
    """Lets another script cast."""

    def caster(code: str) -> Caster:
        script = tmp_path / "script.py"
        script.write_text(code, encoding="ascii")
        monkeypatch.setattr(storages, "worker_script", lambda _name: script)
        return Caster("float16")

    return caster


def test_chunks_go_over_and_come_back(caster: Callable[[str], Caster]) -> None:
    with caster(HALVES) as halves:
        found = [list(halves.cast(chunks, Progress())) for chunks in ([b"abcd", b"", b"efgh"], [b"ij"])]
    assert (found, halves.overflowed) == ([[b"ac", b"", b"eg"], [b"i"]], 4)


def test_nothing_is_started_for_nothing(caster: Callable[[str], Caster]) -> None:
    with caster("raise SystemExit") as ends:
        assert list(ends.cast([], Progress())) == []


def test_child_that_ends_is_an_error(caster: Callable[[str], Caster]) -> None:
    with caster("raise SystemExit") as ends, pytest.raises(ExportError, match="torch failed to cast"):
        list(ends.cast([b"abcd"], Progress()))


def test_a_python_without_torch_is_named(caster: Callable[[str], Caster]) -> None:
    with (
        caster("raise ModuleNotFoundError(name='torch')") as ends,
        pytest.raises(ExportError, match="this Python has none") as error,
    ):
        list(ends.cast([b"abcd"], Progress()))
    assert str(error.value).startswith(f"a cast needs torch, and this Python has none: {sys.prefix}")


def test_it_can_be_cancelled(caster: Callable[[str], Caster]) -> None:
    progress = Progress()
    with caster(HALVES) as halves:
        chunks = halves.cast([b"ab"] * 9, progress)
        next(chunks)
        progress.cancel()
        with pytest.raises(CancelledError):
            next(chunks)
