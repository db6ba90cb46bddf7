from __future__ import annotations

from inspector.containers.formats import FORMATS
from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.records import replace
from inspector.safety.verdict import ARCHIVES, judge, judge_archive
from tests.unit.report.rows import checkpoint

RUNS = Note(NoteKind.RUNS_AT_LOAD, ("code/a.py:2",))
FILES = Note(NoteKind.FILE_ACCESS, ("torch.save in code/a.py:3",))


def archive(form: str, *names: str, notes: tuple[Note, ...] = ()) -> Checkpoint:
    uses = tuple(GlobalUse(name=name, count=1) for name in names)
    return replace(checkpoint(format=form), globals=uses, notes=notes)


def test_each_is_a_format_that_torch_load_does_not_read_restricted() -> None:
    rows = {entry.name: entry.format() for entry in FORMATS}
    for name, row in ARCHIVES.items():
        assert name in rows
        assert not rows[name].torch_loads
        assert judge(archive(name)).verdict == "runs-code"
        assert row.refusal.endswith(".")


def test_what_torch_load_opens_is_judged_elsewhere() -> None:
    assert judge_archive(archive("zip")) is None
    assert judge(archive("zip")).archive is None


def test_names_of_the_archive_are_no_names_of_python() -> None:
    found = judge(archive("torchscript", "__torch__.Net", "torch.jit._pickle.build_intlist", "torch.device"))
    assert (found.verdict, found.weights_only) == ("runs-code", False)
    assert found.globals[:2] == ("unknown", "unknown")
    assert "runs when the model is called" in found.reasons[0]
    assert found.calls == ()


def test_dangers_are_told_apart() -> None:
    cases = {
        (): "",
        ("os.system",): "a pickle in it is made to run commands",
        (RUNS,): "",
        (FILES,): "",
        (RUNS, FILES): "loading it can read and write files",
    }
    found = {}
    for what in cases:
        names = [one for one in what if isinstance(one, str)]
        notes = tuple(one for one in what if isinstance(one, Note))
        verdict = judge_archive(archive("torchscript", *names, notes=notes))
        found[what] = verdict.danger
    assert found == cases
    reasons = judge(archive("torchscript", "os.system", notes=(RUNS, FILES))).reasons
    assert any("names os.system" in one for one in reasons)
    assert any("__setstate__ in code/a.py:2" in one for one in reasons)
    assert any("torch.save in code/a.py:3" in one for one in reasons)


def test_packages_import_what_they_name() -> None:
    python = Note(NoteKind.PYTHON_INSIDE, ("the source of a.b",))
    found = judge(archive("package", "posix.system", notes=(python,)))
    assert (found.verdict, found.danger) == ("dangerous", "loading it can run commands")
    assert found.reasons[0] == "Loading it imports posix.system, which can run anything."
    assert (
        found.reasons[-1] == "The file holds Python, which runs as soon as it is imported: the source of a.b."
    )
    assert judge(archive("package", "torch._utils._rebuild_tensor_v2")).verdict == "runs-code"


def test_what_programs_read_differently_is_said() -> None:
    found = judge(archive("torchscript", notes=(Note(NoteKind.TWO_FORMATS),)))
    assert found.reasons[-1].startswith("Programs read different things")
