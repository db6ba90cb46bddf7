"""Values of real files, read by a real child process."""

from __future__ import annotations

import gzip
import os
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.child import Answer
from inspector.errors import CancelledError, ExportError, ValuesError, WorkerError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.values.asking import ValueReader, require_numpy
from inspector.values.request import Requests
from tests.builders.pickles import state_dict, storage, tensor
from tests.builders.safetensors import model
from tests.builders.zips import DEFLATED, Record, build_zip
from tests.builders.zips import checkpoint as zipped

NUMBERS = struct.pack("<2f", 1.5, -3.5)


@pytest.fixture(scope="module")
def reader() -> Iterator[ValueReader]:
    with ValueReader() as reader:
        yield reader


def written(folder: Path, data: bytes) -> str:
    path = folder / "checkpoint.pt"
    path.write_bytes(data)
    return str(path)


def test_values_are_read_whatever_they_are_packed_in(reader: ValueReader, tmp_path: Path) -> None:
    pickle = state_dict(w=tensor(storage(), 2))
    files = {
        "zip": zipped(pickle, {"0": NUMBERS}),
        "deflated": build_zip(
            Record(name="archive/data.pkl", data=pickle),
            Record(name="archive/data/0", data=NUMBERS, method=DEFLATED),
            Record(name="archive/version", data=b"3\n"),
        ),
        "gzip": gzip.compress(zipped(pickle, {"0": NUMBERS})),
        "safetensors": model(w=(2,)),
    }
    found = {}
    for name, data in files.items():
        progress = Progress()
        statistics = reader.statistics(Requests(open_checkpoint(written(tmp_path, data))), 0, progress)
        found[name] = statistics.low, statistics.high
        assert progress.total == 8
    assert found == {
        "zip": (-3.5, 1.5),
        "deflated": (-3.5, 1.5),
        "gzip": (-3.5, 1.5),
        "safetensors": (0.0, 1.0),
    }


def test_a_file_that_changed_gives_no_numbers(reader: ValueReader, tmp_path: Path) -> None:
    path = written(tmp_path, model(w=(2,)))
    opened = open_checkpoint(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValuesError, match="changed since it was opened"):
        reader.statistics(Requests(opened), 0, Progress())
    Path(path).unlink()
    with pytest.raises(ValuesError, match="no such file"):
        reader.statistics(Requests(opened), 0, Progress())


def test_cancelled_work_ends_the_child(tmp_path: Path) -> None:
    opened = open_checkpoint(written(tmp_path, model(w=(2,))))
    progress = Progress()
    with ValueReader() as reader:
        reader.statistics(Requests(opened), 0, progress)
        progress.cancel()
        with pytest.raises(CancelledError):
            reader.statistics(Requests(opened), 0, progress)


def test_a_child_that_fails_is_an_error_of_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = open_checkpoint(written(tmp_path, model(w=(2,))))

    def ended(*_: Any, **__: Any) -> Iterator[Answer]:
        yield Answer(head={"done": 8}, block=b"")
        raise WorkerError("the child process ended before it had answered")

    reader, progress = ValueReader(), Progress()
    monkeypatch.setattr(reader._worker, "request", ended)
    with pytest.raises(ValuesError) as caught:
        reader.statistics(Requests(opened), 0, progress)
    assert str(caught.value) == "the values could not be read: the child process ended before it had answered"
    assert progress.done == 8


def test_who_waits_for_another_question_can_be_cancelled(tmp_path: Path) -> None:
    opened = open_checkpoint(written(tmp_path, model(w=(2,))))
    reader, progress = ValueReader(), Progress()
    progress.cancel()
    reader._lock.acquire()
    reader.close()
    with pytest.raises(CancelledError):
        reader.ask({"what": "stats"}, progress)
    reader._lock.release()
    assert reader.statistics(Requests(opened), 0, Progress()).high == 1.0
    reader.close()
    assert reader._worker.pid is None


def test_a_python_without_numpy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_numpy()
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    with pytest.raises(ExportError, match=f"needs NumPy.*{re.escape(sys.executable)}.*install numpy"):
        require_numpy()
