from __future__ import annotations

from pathlib import Path

import pytest

from inspector.diff import rest
from inspector.diff.compare import Wish, compare_paths
from inspector.diff.records import Diff, RecordChange
from inspector.diff.side import open_side
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders.scripts import CODE, script
from tests.builders.states import T, save_zip
from tests.builders.zips import Record


def compared(tmp_path: Path, a: bytes, b: bytes) -> Diff:
    for name, data in (("a", a), ("b", b)):
        (tmp_path / f"{name}.pt").write_bytes(data)
    return compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), Wish())


def test_code_is_compared_where_both_archives_have_some(tmp_path: Path) -> None:
    plain = script()
    assert compared(tmp_path, plain, plain).records == ()
    other = script(
        None,
        Record(name="net/code/__torch__/new.py", data=b"class A(Module):\n"),
        code=CODE + "# more\n",
    )
    diff = compared(tmp_path, plain, other)
    assert diff.records == (
        RecordChange("code/__torch__.py", "changed"),
        RecordChange("code/__torch__/new.py", "added"),
    )
    assert not diff.is_equal
    assert compared(tmp_path, other, plain).records[1] == RecordChange("code/__torch__/new.py", "removed")
    save_zip(tmp_path / "c.pt", {"w": T([1.0])})
    assert compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "c.pt"), Wish()).records == ()


def test_records_that_are_too_large_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_MOST_NBYTES", 8)
    assert compared(tmp_path, script(), script()).records == ()
    found = compared(tmp_path, script(), script(code=CODE.replace("class", "clasS")))
    assert found.records == ()
    assert found.uncompared == ("the record code/__torch__.py, which is too large",)
    with open_side(str(tmp_path / "a.pt"), Progress()) as side:
        progress = Progress()
        progress.cancel()
        with pytest.raises(CancelledError):
            rest.compare_records(side, side, progress)
