"""The first tensors of a zip of very many records, before its directory is read."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.containers.formats import find_format
from inspector.containers.source import BytesSource, Source
from inspector.containers.zip import directory
from inspector.containers.zip.beginning import show_beginning
from inspector.containers.zip.directory import ZipEntry, read_directory
from inspector.errors import CancelledError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.glimpse import watch_beginning
from inspector.pickles import machine
from inspector.progress import Progress
from tests.builders.pickles import dict_, proto, storage, stream, tensor, text
from tests.builders.zips import Record, build_zip

_PAIRS = [(text(f"layer.{n}"), tensor(storage(str(n)))) for n in range(30)]
_PICKLE = stream(proto(), dict_(*_PAIRS))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "_ASK_EACH", 4)
    monkeypatch.setattr(machine, "BATCH", 64)


def source_of(*first: Record, storages: int = 30) -> BytesSource:
    """A zip of these records, and of storages behind them."""
    behind = (Record(name=f"a/data/{n}", data=bytes(16)) for n in range(storages))
    return BytesSource(build_zip(*first, *behind), "a.pt")


def shown(source: Source, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """The names that are shown before the second batch of records is read."""
    progress, rows = Progress(), []
    watch_beginning(progress)
    parse = directory._parse_entries

    def watched(*given: Any) -> int:
        rows.append(progress.first_rows)
        return parse(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_parse_entries", watched)
        find_format(source, limits, progress)
    return tuple(name for name, _ in rows[1]) if len(rows) > 1 else ()


def test_rows_come_before_the_directory_is_read() -> None:
    found = shown(source_of(Record(name="a/data.pkl", data=_PICKLE)))
    assert found
    assert found == tuple(f"layer.{n}" for n in range(len(found)))


def test_what_is_not_as_torch_writes_it_shows_nothing() -> None:
    usual = Record(name="a/data.pkl", data=_PICKLE)
    fillers = [Record(name=f"a/x{n}") for n in range(8)]
    cases = {
        "packed in some way": [Record(name="a/data.pkl", data=_PICKLE, method=99)],
        "in another folder": [Record(name="a/x"), Record(name="b/data.pkl", data=_PICKLE)],
        "far behind": [*fillers, usual],
        "without its header": [
            Record(name="a/x"),
            Record(name="a/data.pkl", data=_PICKLE, local_signature=b"none"),
        ],
        "broken at once": [Record(name="a/data.pkl", data=b"\xff" + _PICKLE)],
        "empty": [Record(name="a/data.pkl")],
    }
    found = {name: shown(source_of(*records)) for name, records in cases.items()}
    assert found == dict.fromkeys(cases, ())
    assert shown(source_of(usual, storages=2)) == ()


def test_only_its_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.containers.zip.beginning._NBYTES", 40 * len(_PICKLE) // 100)
    found = shown(source_of(Record(name="a/data.pkl", data=_PICKLE)))
    assert 0 < len(found) < 15


def test_nobody_looks_or_cancels() -> None:
    source = source_of(Record(name="a/data.pkl", data=_PICKLE))
    seen: list[list[ZipEntry]] = []
    entries = read_directory(source, DEFAULT_LIMITS, None, lambda some: seen.append(list(some))).entries
    assert [list(entries[:4])] == seen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inspector.containers.zip.beginning.show_beginning", pytest.fail)
        find_format(source, DEFAULT_LIMITS, Progress())
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        show_beginning(source, entries, DEFAULT_LIMITS, progress)
