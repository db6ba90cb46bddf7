"""Values of a real file, read by a real child at the click of nobody."""

from __future__ import annotations

import json
import struct
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import ValuesError
from inspector.progress import Progress
from inspector.resources import demo_path
from inspector.session.controller import Session
from inspector.session.present.banner import after_reading
from inspector.session.present.compose import ask
from inspector.session.values.page import SliceChoice
from inspector.session.values.showing import CELLS, PICTURE, SAVE, SCAN, STATISTICS
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from inspector.worker.tensor_values import answer
from tests.builders.pickles import state_dict, storage, tensor
from tests.builders.zips import DEFLATED, Record, build_zip
from tests.unit.session.documents import AtOnce, a_view
from tests.unit.values.test_statistics import NAN, weights


class Here(ValueReader):
    """A child that answers in this process."""

    asked: list[str] = []  # noqa: RUF012 - of all together
    ended = 0

    def answers(self, head: Any, progress: Progress, blocks: Any = (), *, is_short: bool = False) -> Any:
        from inspector.child import Answer

        progress.advance()
        type(self).asked.append(head["what"])
        for found, block in answer(json.loads(json.dumps(head)), iter(blocks)):
            if "error" in found:
                raise ValuesError(found["error"]["what"])
            yield Answer(head=found, block=block)

    def close(self) -> None:
        type(self).ended += 1
        super().close()


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def session(runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session with a file of two matrices."""
    monkeypatch.setattr("inspector.values.asking.ValueReader", Here)
    Here.asked, Here.ended = [], 0
    session = Session(a_view(), runner)
    session.open(weights(tmp_path, a=[1.0, 2.0, 3.0, NAN], b=[5.0] * 6))
    return session


def node(session: Session, row: int) -> int:
    document = session._ready
    assert document is not None
    return document.tree.tensor_nodes[row]


def test_values_are_read_when_they_are_looked_at(session) -> None:
    session.select(node(session, 0))
    assert Here.asked == []
    session.watch_values(True)
    page = session.screen.values
    assert (page.title, page.facts) == ("a", "16 B to read")
    assert page.statistics.nan == 1
    assert page.lines[1] == ("NaN", "1, first at [1, 1]")
    assert (page.picture.shape, page.picture.steps, page.choice.row) == ((2, 2), (1, 1), 0)
    session.watch_values(True)
    assert Here.asked == ["stats", "slice"]
    session.select(node(session, 1))
    assert session.screen.values.statistics.high == 5.0
    session.go(-1)
    assert session.screen.values.statistics.nan == 1
    session.select(None)
    session.select(None)
    assert session.screen.values.title == ""
    session.watch_values(False)
    session.select(node(session, 0))
    assert (session.screen.values.statistics, len(Here.asked)) == (None, 6)


def test_no_click_looks_all_storages_up_again(session, monkeypatch) -> None:
    looked_up: list[object] = []
    look_up = Requests._storages.func

    def noting(requests: Requests) -> Any:
        looked_up.append(requests)
        return look_up(requests)

    lazily = cached_property(noting)
    lazily.__set_name__(Requests, "_storages")
    monkeypatch.setattr(Requests, "_storages", lazily)
    session.watch_values(True)
    for row in (0, 1, 0):
        session.select(node(session, row))
        session.rank_values()
    assert Here.asked.count("rank") > 0
    assert len(looked_up) <= 1


def test_one_click_is_one_screen(session, runner) -> None:
    shown = session._desk.view.show_screen
    session.watch_values(True)
    for act in (
        lambda: session.select(node(session, 0)),
        lambda: session.select(node(session, 1)),
        lambda: session.go(-1),
        lambda: session.choose_slice(SliceChoice(row=1, column=0, index=(0, 0))),
        lambda: session.watch_values(False),
        lambda: session.watch_values(True),
    ):
        runner.waits = True
        shown.reset_mock()
        act()
        assert shown.call_count == 1
        runner.waits = False
        while runner.waiting:
            runner.go_on()
    session.watch_values(True)
    assert not shown.call_args_list[1:]


def test_who_looks_elsewhere_for_a_while_loses_nothing(session, runner) -> None:
    session.watch_values(True)
    runner.waits = True
    session.select(node(session, 0))
    running = session.screen.values.progress
    session.watch_values(False)
    session.watch_values(True)
    assert session.screen.values.progress is running
    assert not running.cancelled
    runner.go_on()
    found = session.screen.values.statistics
    session.watch_values(False)
    session.watch_values(True)
    assert session.screen.values.statistics is found
    assert Here.asked == ["stats"]


def test_what_is_large_waits_to_be_asked_for(session, monkeypatch) -> None:
    monkeypatch.setattr("inspector.session.values.showing.AUTOMATIC_NBYTES", 15)
    session.watch_values(True)
    session.select(node(session, 0))
    assert (session.screen.values.statistics, Here.asked) == (None, ["slice"])
    session.compute_values()
    assert session.screen.values.statistics is not None
    packed = Path(session._state.path).with_name("packed.pt")
    packed.write_bytes(
        build_zip(
            Record(name="a/data.pkl", data=state_dict(w=tensor(storage(numel=4), 2, 2))),
            Record(name="a/data/0", data=bytes(16), method=DEFLATED),
            Record(name="a/version", data=b"3\n"),
        )
    )
    session.open(str(packed))
    session.select(node(session, 0))
    assert Here.asked == ["slice", "stats"]


def test_who_selects_another_tensor_stops_what_was_under_way(session, runner) -> None:
    session.watch_values(True)
    runner.waits = True
    session.select(node(session, 0))
    first = session.screen.values.progress
    session.select(node(session, 1))
    assert first.cancelled
    for _ in range(4):
        runner.go_on()
    assert session.screen.values.title == "b"
    assert session.screen.values.statistics.high == 5.0
    session.compute_values()
    session.stop_values()
    runner.go_on()
    assert session.screen.values.statistics is None


def test_another_slice_and_its_cells_are_read(session) -> None:
    session.watch_values(True)
    session.select(node(session, 0))
    session.choose_slice(SliceChoice(row=1, column=0, index=(0, 0)))
    session.look_at_cells(1, 0, 32, 16, 3)
    page = session.screen.values
    assert page.choice.row == 1
    assert (page.cells.row, page.cells.texts) == (1, (("2", "nan"),))
    session.choose_slice(SliceChoice(row=None, column=0, index=(0, 1)))
    assert (session.screen.values.cells, session.screen.values.picture) == (None, None)
    session.look_at_cells(0, 0, 32, 16, 0)
    assert session.screen.values.cells.texts == (("2.0", "nan"),)
    session.choose_slice(SliceChoice(row=1, column=0, index=(0, 9)))
    assert session.screen.values.picture is not None
    session.choose_slice(SliceChoice(row=1, column=1, index=(0, 0)))
    assert session.screen.values.picture_note == "There is no such slice."


def test_a_vector_is_a_table_and_no_picture(session, tmp_path: Path) -> None:
    from tests.builders.safetensors import model

    path = tmp_path / "vector.safetensors"
    path.write_bytes(model(w=(3,)))
    session.open(str(path))
    session.watch_values(True)
    session.select(node(session, 0))
    assert Here.asked == ["stats"]
    session.look_at_cells(0, 0, 32, 16, 0)
    assert session.screen.values.cells.texts == (("0.0",), ("1.0",), ("2.0",))


def test_a_rank_is_worked_out_when_it_is_asked_for(session) -> None:
    session.rank_values()
    session.watch_values(True)
    session.select(node(session, 1))
    assert session.screen.values.has_rank
    session.rank_values()
    assert session.screen.values.lines[-3] == ("Effective rank", "1 of 2")
    assert not session.screen.values.has_rank
    session.select(node(session, 0))
    session.rank_values()
    assert "NaN or infinities" in session.screen.values.error


def test_a_scan_goes_on_while_others_are_selected(session, runner) -> None:
    runner.waits = True
    session.scan_values()
    session.select(node(session, 1))
    assert not session.screen.values.scan.progress.cancelled
    runner.go_on()
    scan = session.screen.values.scan
    assert scan.sentence == "2 tensors read: 1 with NaN, 1 constant."
    assert [(row.path, row.node) for row in scan.rows] == [("a", node(session, 0)), ("b", node(session, 1))]
    assert len(session.screen.sparks) == 2
    assert [row.id for row in session.screen.findings][:1] == ["nan-or-inf"]
    session.scan_values()
    session.stop_scan()
    assert (session.screen.values.scan.progress, session.screen.sparks) == (None, ())


def test_a_tensor_with_nan_that_was_read_alone_marks_its_row_and_is_told(session) -> None:
    """What one has looked at oneself is known: nobody has to scan all of the file for it."""
    session.watch_values(True)
    session.select(node(session, 1))
    before = session.screen.banner
    assert session.screen.row_marks.words == {}
    spoiled = node(session, 0)
    session.select(spoiled)
    assert session.screen.row_marks.words == {spoiled: "NaN"}
    assert session.screen.values.statistics.nan == 1
    found = session.screen.findings[0]
    assert (found.id, found.count) == ("nan-or-inf", 1)
    assert session.screen.banner == after_reading(before, ask(session._state, "read"))
    assert session.screen.banner.aside.startswith("1 tensor with NaN or infinities.")
    session.select(node(session, 1))
    session.select(spoiled)
    assert session.screen.row_marks.words == {spoiled: "NaN"}
    assert session.screen.findings[0].count == 1  # however often it is read
    session.reload()
    assert session.screen.row_marks.words == {}  # of bytes that may be others


def test_an_array_is_saved_whole_or_not_at_all(session, tmp_path: Path) -> None:
    import numpy as np

    session.save_values(str(tmp_path / "none.npy"))
    session.select(node(session, 0))
    path = tmp_path / "a.npy"
    session.save_values(str(path))
    assert session.screen.values.saved == f"Saved as {path}."
    assert np.load(path).tolist()[0] == [1.0, 2.0]
    session.save_values(str(tmp_path / "missing" / "a.npy"))
    assert session.screen.values.saved.startswith("No such folder")
    Path(session._state.path).write_bytes(b"changed")
    session.save_values(str(tmp_path / "late.npy"))
    assert "changed" in session.screen.values.saved
    assert sorted(one.name for one in tmp_path.glob("*.npy")) == ["a.npy"]


def test_a_tensor_is_saved_as_it_is_stored_and_never_over_its_file(session, tmp_path: Path) -> None:
    from inspector.model.build import open_checkpoint

    session.select(node(session, 0))
    page = session.screen.values
    assert page.forms == ((".npy", "NumPy array"), (".safetensors", "safetensors"))
    source = Path(session._state.path)
    before = source.read_bytes()
    session.save_values(str(source))
    assert "would replace the file itself" in session.screen.values.saved
    assert source.read_bytes() == before
    path = tmp_path / "new.safetensors"
    session.save_values(str(path))
    assert session.screen.values.saved == f"Saved as {path}."
    (row,) = open_checkpoint(str(path)).tensors
    assert (row.keys, row.shape, row.dtype) == (("a",), (2, 2), "float32")
    assert struct.unpack("<3f", path.read_bytes()[-16:-4]) == (1.0, 2.0, 3.0)


def test_a_tensor_is_not_saved_as_what_cannot_hold_it(session, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("inspector.session.values.showing.forms_of", lambda *_: ((".npy", ""),))
    session.select(node(session, 0))
    session.save_values(str(tmp_path / "a.safetensors"))
    assert session.screen.values.saved.startswith("Float32 cannot be saved as .safetensors")
    assert not (tmp_path / "a.safetensors").exists()


def test_a_tensor_is_saved_while_others_are_looked_at_until_that_is_cancelled(
    session, runner, tmp_path: Path
) -> None:
    runner.waits = True
    session.select(node(session, 0))
    session.save_values(str(tmp_path / "a.npy"))
    session.select(node(session, 1))
    page = session.screen.values
    assert (page.title, page.is_saving, page.saved) == ("b", True, "Saving \u2026")
    runner.go_on()
    assert session.screen.values.saved == f"Saved as {tmp_path / 'a.npy'}."
    session.select(node(session, 0))
    assert session.screen.values.saved == ""
    session.save_values(str(tmp_path / "b.npy"))
    session.stop_saving()
    runner.go_on()
    assert (session.screen.values.is_saving, session.screen.values.saved) == (False, "")
    assert not (tmp_path / "b.npy").exists()


def test_code_is_given_for_a_tensor(session) -> None:
    tensor = node(session, 0)
    session.select(tensor)
    assert session.screen.values.no_code == ""
    assert "tensor" in session.tensor_code(tensor)
    compile(session.tensor_code(tensor), "code", "exec")
    assert session.tensor_code(0) == ""
    session.close()
    assert session.tensor_code(tensor) == ""


def test_nothing_is_asked_without_a_tensor(session) -> None:
    session.watch_values(True)
    session.select(0)
    session.compute_values()
    session.choose_slice(SliceChoice(row=0, column=1, index=(0, 0)))
    session.look_at_cells(0, 0, 1, 1, 0)
    session.close()
    session.scan_values()
    assert Here.asked == []
    assert {STATISTICS, PICTURE, CELLS, SCAN, SAVE}.isdisjoint(job.kind for job in session._state.jobs)


def test_children_end_with_the_window(session) -> None:
    session.watch_values(True)
    session.select(node(session, 0))
    session.dispose()
    assert Here.ended == 2


def test_rows_are_dragged_out_as_files_that_stay_where_they_were_dropped(
    session, runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "temporary"
    root.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(root))
    assert session.screen.taken is None
    runner.waits = True
    taking = session.take_out((node(session, 0), node(session, 1)))
    assert (session.screen.taken.stage, list(root.iterdir())) == ("writing", [])
    runner.go_on()
    assert session.screen.taken.stage == "ready"
    files = [Path(path) for path, _ in taking.files]
    assert [path.name for path in files] == ["a.npy", "b.npy"]
    runner.waits = False
    session.end_taking(taking, kept=True)
    assert session.screen.taken is None
    assert all(path.exists() for path in files)
    session.remove_left()
    assert all(path.exists() for path in files)  # a file manager may still read them
    monkeypatch.setattr("inspector.session.values.taken.KEPT_S", 0)
    session.remove_left()
    assert list(root.iterdir()) == []


def test_a_drag_that_comes_to_nothing_leaves_nothing(
    session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "temporary"
    root.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(root))
    taking = session.take_out((node(session, 0),))
    assert len(list(root.iterdir())) == 1
    session.end_taking(taking, kept=False)
    assert list(root.iterdir()) == []
    Path(session._state.path).write_bytes(b"changed")
    taking = session.take_out((node(session, 0),))
    page = session.screen.taken
    assert (page.stage, "changed" in page.sentence, list(root.iterdir())) == ("failed", True, [])
    session.end_taking(taking, kept=False)
    monkeypatch.setattr("inspector.session.values.taking.MOST_NBYTES", 0)
    taking = session.take_out((node(session, 0),))
    assert (taking.files, session.screen.taken) == ((), None)
    session.end_taking(taking, kept=False)
    assert session.take_out(()) is None
    session.close()
    assert session.take_out((1,)) is None


def test_the_values_of_scalars_are_shown_with_their_facts(runner, tmp_path: Path) -> None:
    session = Session(a_view(), runner)
    session.open(str(demo_path()))
    document = session._ready
    row = next(
        at for at, one in enumerate(document.checkpoint.tensors) if one.path.endswith("num_batches_tracked")
    )
    text = session.screen.scalars[row]
    assert text.isdecimal()
    session.select(document.tree.tensor_nodes[row])
    assert session.screen.strip.facts[0] == f"value {text}"
    session.pick((1, 2))
    assert not session.screen.strip.facts[0].startswith("value")
    session.open(weights(tmp_path, a=[1.0, 2.0]))
    assert session.screen.scalars is None  # nothing to read
