from __future__ import annotations

import contextlib
import gc
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import source
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.errors import CancelledError, ContainerError
from inspector.progress import Progress
from tests.builders import legacy, zips
from tests.builders.pickles import NONE, stream

Write = Callable[..., str]
ZIP = zips.checkpoint(stream(NONE))


def test_path_is_kept_as_it_was_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(write(ZIP))
    monkeypatch.chdir(path.parent)
    assert read_container(path.name).path == path.name


def test_file_is_closed_whatever_happens(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def lowest_free() -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = lowest_free()
    for data in (ZIP, b"", ZIP[:50], gzip.compress(ZIP), gzip.compress(legacy.checkpoint(stream(NONE)))):
        with contextlib.suppress(ContainerError):
            read_container(write(data))
        assert lowest_free() == before

    def fail(*_given: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(source, "_pread", fail)
    with pytest.raises(ContainerError, match="cannot be read"):
        open_source(write(ZIP))
    assert lowest_free() == before


def test_collector_rests_while_reading(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    states = []
    monkeypatch.setattr(Progress, "advance", lambda self, units=0: states.append(gc.isenabled()))
    read_container(write(ZIP))
    assert states[-1] is False
    assert gc.isenabled()


def test_cancelled_before_it_begins(write: Write) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_container(write(ZIP), progress=progress)
