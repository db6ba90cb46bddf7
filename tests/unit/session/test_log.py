from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.errors import ContainerError
from inspector.records import replace
from inspector.session import log
from inspector.session.export.page import ExportWish
from inspector.session.log import with_log
from inspector.session.state import State
from tests.unit.session.documents import saved_on


def told(session) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in session.screen.log]


def test_what_is_done_with_a_file_is_noted(real, copy) -> None:
    real.set_mapping("cuda:0", "cuda:1")
    real.undo_map()
    real.redo_map()
    real.start_job("check")
    real.begin_export()
    real.change_export(ExportWish(kind="safetensors"))
    real.export(str(copy.with_name("out.safetensors")))
    real.begin_export()
    real.export(str(copy))
    real.close()
    lines = told(real)
    assert lines[1] == ("done", "Opening demo.pth")
    assert lines[2][1].startswith("Opened demo.pth: zip, 283 tensors, 788 KB, in ")
    assert [line for line in lines[3:] if "eaves out" not in line[1] and "eft out" not in line[1]] == [
        ("done", "Done: map cuda:0 to cuda:1"),
        ("done", "Undone: map cuda:0 to cuda:1"),
        ("done", "Done: map cuda:0 to cuda:1"),
        ("done", "The check of every byte: done"),
        ("done", "The copy is ready: out.safetensors"),
        ("warning", "The target is not this machine."),
        ("error", "No copy was written: the copy would replace the file itself"),
        ("done", "Closed the file"),
    ]
    assert any(kind == "warning" and text.startswith("Leaves out") for kind, text in lines)
    assert lines[0] == ("done", "Target: cpu")
    assert [line.at for line in real.screen.log] == sorted(line.at for line in real.screen.log)


def test_failures_and_facts_are_noted_and_nothing_invisible_is(session, files) -> None:
    files["/x\u202e.pth"] = ContainerError("it is\ncut off")
    session.open("/x\u202e.pth")
    assert told(session) == [
        ("done", "Opening x\\u202e.pth"),
        ("error", "This file cannot be opened: it is\\u000acut off"),
    ]
    notes = Note(NoteKind.PART_OF, ("x",)), Note(NoteKind.REFUSED, ("net.Net",))
    files["/a.pth"] = saved_on("cpu", notes=notes)
    session.open("/a.pth")
    assert any("net.Net" in text for _, text in told(session))
    assert "" not in {text for _, text in told(session)}


def test_a_cancelled_export_is_no_error_and_a_failed_check_is_one(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("out.pth")))
    real.cancel_export()
    runner.go_on()
    assert told(real)[-1][0] == "done"
    assert told(real)[-1][1].startswith("No copy was written: ")
    real.end_export()
    runner.waits = False
    copy.unlink()
    real.start_job("check")
    assert told(real)[-1][0] == "error"
    assert told(real)[-1][1].startswith("The check of every byte: failed: ")


def test_the_log_is_bounded(opened, monkeypatch) -> None:
    monkeypatch.setattr(log, "MOST_LINES", 3)
    monkeypatch.setattr(log, "_MOST_CHARS", 12)
    for index in range(6):
        opened.set_mapping("cuda:0", f"cuda:{index + 1}")
    assert len(told(opened)) == 3
    assert all(len(text) <= 12 for _, text in told(opened))
    assert with_log(State(), State()) == State()
    assert with_log(State(), replace(State(), target="cpu")).log[0].text == "Target: cpu"
