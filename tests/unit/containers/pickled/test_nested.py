from __future__ import annotations

import pytest

from inspector.containers.pickle_source import Place
from inspector.containers.pickled import Folded, NestedFiles
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError
from inspector.limits import Limits
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from tests.builders.pickles import call, op, proto, stream, text


def test_what_folds_nothing_is_nothing() -> None:
    assert Folded().stream() is None


def test_many_programs_are_one_that_does_what_all_do() -> None:
    folded = Folded()
    one = read_pickle(stream(proto(), call("a.B"), op("POP"), call("c.D")))
    other = read_pickle(stream(proto(), call("a.B", text("x")), op("EXT1", b"\1") + op("POP")))
    folded.add([one, other])
    found = folded.stream()
    assert found is not None
    assert {node.dotted: node.count for node in found.globals} == {
        "a.B": 2,
        "c.D": 1,
        "copyreg.extension_1": 1,
    }
    assert len(found.calls) == 3
    assert len(found.oddities) == 1
    assert found.opcodes == one.opcodes | other.opcodes
    assert (found.data, found.root, found.persistent_ids) == (b"", None, ())


def test_what_was_read_of_a_broken_file_is_kept() -> None:
    data = stream(proto(), call("posix.system", text("id")))
    files = NestedFiles(BytesSource(data, "a"), Limits(), Progress())
    with pytest.raises(CheckpointError):
        files.read(Place(0, len(data)), len(data))
    found = files.programs.stream()
    assert found is not None
    assert [node.dotted for node in found.globals] == ["posix.system"]
