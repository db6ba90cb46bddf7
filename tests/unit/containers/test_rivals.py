from __future__ import annotations

import pytest

from inspector.containers.rivals import with_rivals
from inspector.containers.zip_directory import Entry
from inspector.errors import CancelledError, PickleError
from inspector.pickles.machine import Stream, read_pickle
from tests.builders.pickles import NONE, call, list_, name, op, stream

HONEST = read_pickle(stream(name("torch.device"), NONE, op("TUPLE2")))
EVIL = read_pickle(stream(list_(name("torch.device"), call("posix.system"))))


def entry(title: str, place: int = 0) -> Entry:
    return Entry(title, place, 0, 0, 0, 0, 0, 0)


def joined(*names: str, found: Stream | Exception = EVIL) -> Stream:
    def read(rival: Entry) -> Stream:
        assert rival.header_offset
        if isinstance(found, Exception):
            raise found
        return found

    pickle = entry("a/data.pkl")
    rivals = [entry(title, place) for place, title in enumerate(names, 1)]
    return with_rivals(HONEST, pickle, [*rivals, pickle], read)


def test_no_rival_changes_nothing() -> None:
    assert joined("a/data.pkl2", "a/version", "b/data.pkl") is HONEST


@pytest.mark.parametrize("title", ["a/data.pkl", "a/DATA.PKL", "A/data.pkl", "a/data.pkl\0.txt"])
def test_rival_is_part_of_the_verdict_and_of_nothing_else(title: str) -> None:
    both = joined(title)
    assert both.root is HONEST.root
    assert [node.dotted for node in both.globals] == ["torch.device", "posix.system"]
    assert both.calls == EVIL.calls
    assert both.opcodes == HONEST.opcodes | EVIL.opcodes
    assert [note.kind for note in both.notes] == ["rival-record"]


def test_rival_that_cannot_be_read_is_noted() -> None:
    both = joined("a/DATA.PKL", found=PickleError("it breaks off"))
    assert [note.kind for note in both.notes] == ["rival-record", "unread-rival"]
    assert "it breaks off" in str(both.notes[1])


def test_of_a_crowd_of_rivals_the_first_are_read() -> None:
    both = joined(*["a/data.pkl"] * 20)
    assert len(both.calls) == 8
    assert str(both.notes[-1]).startswith("only 8 of 20 others were read")


def test_work_can_be_cancelled() -> None:
    with pytest.raises(CancelledError):
        joined("a/DATA.PKL", found=CancelledError())
