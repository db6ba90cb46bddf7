"""Lines to paste: the shortest first, and none that torch, the planner or the file system would refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.report.remedies import first_remedies, load_text, remedies_for
from inspector.target.evidence import Evidence
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import Judged, judge_load
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor

ROWS = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
GPU = parse_target("cuda")
EMPTY = Fix(rule="*=cpu")


def on(*devices: str, **fields: object) -> Checkpoint:
    rows: list[object] = []
    for key, device in enumerate(devices):
        rows += [storage(str(key), device, 8), tensor(f"w{key}", device=device, storage=str(key))]
    return checkpoint(*rows, **fields)


def lines(made: Checkpoint, fix: Fix | None, target: Profile = CPU_ONLY) -> dict[str, str]:
    load = judge_load(made, target)
    remedies = remedies_for(fix, Judged(checkpoint=made, target=target, load=load))
    assert [one.language == "python" for one in remedies] == [one.kind == "load" for one in remedies]
    return {one.kind: one.text for one in remedies}


def given(made: Checkpoint, rule: str, target: Profile) -> str:
    """The argument of the call that stands first."""
    return lines(made, Fix(rule=rule), target)["load"].partition("map_location=")[2].removesuffix(")")


def test_the_shortest_argument_that_does_what_the_rule_does() -> None:
    for devices, rule, target, argument in (
        (["cuda:0"], "cuda:0=cpu", CPU_ONLY, '"cpu"'),
        (["cuda:0", "cpu"], "cuda:0=cpu", CPU_ONLY, '"cpu"'),
        (["cuda:1"], "cuda:1=cuda:0", GPU, '"cuda:0"'),
        (["cuda:1", "cuda:3"], "cuda:*=cuda:0", GPU, '"cuda:0"'),
        (["cuda:1", "cpu"], "cuda:1=cuda:0", GPU, '{"cuda:1": "cuda:0"}'),
        (["cuda:1", "cuda:0"], "cuda:1=cpu", GPU, '{"cuda:1": "cpu"}'),
        (["cpu", *(f"cuda:{index}" for index in range(1, 7))], "cuda:*=cuda:0", GPU, '"cpu"'),
        (["cuda:0", "meta"], "cuda:0=mps", parse_target("mps"), '"mps"'),
    ):
        assert given(on(*devices), rule, target) == argument, (devices, rule)


def test_what_stays_on_the_cpu_is_not_sent_along() -> None:
    state = tensor("rng_state", role="rng", on_cpu_by_design=True, storage="r")
    made = checkpoint(*ROWS, storage("r", "cpu", 8), state)
    assert given(made, "*=cuda:1", parse_target("2xcuda")) == '{"cuda:0": "cuda:1"}'
    alone = checkpoint(storage("r", "cpu", 8), state, storage("0", "cpu", 8), tensor("w", storage="0"))
    assert given(alone, "*=cuda:0", GPU) == '"cpu"'


def test_code_stands_in_for_a_call_that_torch_refuses() -> None:
    made = checkpoint(*ROWS, globals=(GlobalUse(name="m.Net", count=1),))
    assert lines(made, Fix(rule="cuda:0=cpu")) == {
        "code": "checkpoint-inspector snippet best.pth --target cpu",
    }  # a copy would be refused for its name as well
    old = Profile(id="this", label="", torch_version="2.5.1")  # it does not ask
    assert lines(made, Fix(rule="cuda:0=cpu"), old)["load"] == 'torch.load("best.pth", map_location="cpu")'
    assert lines(made, Fix(option=("map_location", "'cpu'"))) == {
        "code": "checkpoint-inspector snippet best.pth --target cpu"
    }


def test_an_answer_begins_with_code_that_is_short() -> None:
    fix = Fix(rule="cuda:0=cpu")

    def kinds(made: Checkpoint) -> list[str]:
        judged = Judged(checkpoint=made, target=CPU_ONLY, load=judge_load(made, CPU_ONLY))
        return [one.kind for one in first_remedies(fix, judged)]

    made = checkpoint(*ROWS, globals=(GlobalUse(name="m.Net", count=1),))
    assert kinds(made) == ["trusted"]
    several = tuple(GlobalUse(name=f"m{number}.Net{number}", count=1) for number in range(20))
    assert kinds(checkpoint(*ROWS, globals=several)) == ["code"]
    assert kinds(replace(made, globals=(GlobalUse(name="os.system", count=1),))) == []
    assert kinds(replace(made, globals=())) == ["load", "copy"]
    gzipped = replace(made, format="legacy", notes=(Note(NoteKind.GZIP, ("gzip",)),))
    assert kinds(gzipped) == ["code"]
    assert kinds(replace(made, module_class="m.Net")) == ["trusted", "weights"]
    assert kinds(replace(made, tensors=(), storages=(), module_class="m.Net")) == ["trusted"]


def test_nothing_helps_to_load_what_must_not_be_loaded() -> None:
    made = checkpoint(*ROWS, globals=(GlobalUse(name="os.system", count=1),))
    for fix in (Fix(rule="cuda:0=cpu"), Fix(style="plain"), Fix(option=("map_location", "'cpu'")), None):
        assert lines(made, fix) == {}


def test_a_compressed_file_is_loaded_by_code() -> None:
    made = checkpoint(*ROWS, format="legacy", notes=(Note(NoteKind.GZIP, ("gzip",)),), path="best.pth.gz")
    assert lines(made, Fix(rule="cuda:0=cpu")) == {
        "code": "checkpoint-inspector snippet best.pth.gz --target cpu",
        "copy": "checkpoint-inspector remap best.pth.gz -o best.cpu.pth --map cuda:0=cpu",
    }


def test_a_damaged_file_gets_no_copy() -> None:
    made = checkpoint(*ROWS, refusal="RuntimeError: no")
    assert lines(made, Fix(rule="cuda:0=cpu")) == {}
    assert lines(made, Fix(option=("map_location", "'cpu'"))) == {}
    assert lines(made, Fix(recovers=True)) == {
        "recover": "checkpoint-inspector recover best.pth -o best.recovered.pth"
    }


def test_other_arguments_and_styles() -> None:
    stored = checkpoint(storage("0", "cpu", 8)._replace(file_offset=64), tensor("w", storage="0"))
    assert lines(stored, Fix(option=("mmap", "True"))) == {"load": 'torch.load("best.pth", mmap=True)'}
    assert lines(stored, Fix(option=("mmap", "False"))) == {"load": 'torch.load("best.pth", mmap=False)'}
    this = replace(CPU_ONLY, id="this")
    styled = lines(stored, Fix(style="resume"), this)
    assert styled == {"code": "checkpoint-inspector snippet best.pth --style resume"}
    read = replace(CPU_ONLY, id="node 7", evidence=Evidence())  # out of a file, which this does not know
    assert lines(stored, Fix(style="plain"), read) == {"code": "checkpoint-inspector snippet best.pth"}


def test_the_code_is_for_the_device_that_is_wanted() -> None:
    for word, expected in (
        ("cuda:1", " --target cuda:1"),
        ("4xcuda:1", " --target 4xcuda@cuda:1"),
        ("4xcuda@cpu", " --target 4xcuda@cpu"),
        ("2xcuda", " --target 2xcuda"),
    ):
        target = parse_target(word)
        found = lines(on("cuda:0"), Fix(style="plain"), target)["code"]
        assert found == f"checkpoint-inspector snippet best.pth{expected}", word
        assert parse_target(found.split()[-1]).wanted == target.wanted
    here = replace(CPU_ONLY, id="this", accelerators=(("cuda", 2),), wanted="cuda:1", evidence=Evidence())
    assert lines(on("cuda:0"), Fix(style="plain"), here)["code"].endswith("best.pth --target this@cuda:1")


def test_a_rule_for_a_branch_is_for_a_copy() -> None:
    assert lines(on("cuda:0"), Fix(rule="path:w0@cpu"), GPU) == {
        "copy": "checkpoint-inspector remap best.pth -o best.cpu.pth --map path:w0@cpu"
    }
    assert lines(on("cpu"), EMPTY, GPU) == {"load": 'torch.load("best.pth", map_location="cpu")'}


def test_a_rule_that_is_no_line_is_none() -> None:
    name = "x" * 400
    made = checkpoint(storage("0", "cuda:0", 8), tensor(name, device="cuda:0", storage="0"))
    assert lines(made, Fix(rule=f"path:{name}@cpu"), GPU) == {}


# --- what the file system says ------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("best.pth")
    path.touch(0o644)
    return path


def has_in_place(**fields: object) -> bool:
    made = checkpoint(*ROWS, **fields)
    return "in-place" in lines(made, Fix(rule="cuda:0=cpu"))


def test_the_file_itself_is_changed_last(file: Path) -> None:
    found = lines(on("cuda:0"), Fix(rule="cuda:0=cpu"))
    assert list(found) == ["load", "copy", "in-place"]
    assert found["in-place"] == "checkpoint-inspector remap best.pth --in-place --map cuda:0=cpu"


def test_no_change_in_place_that_would_be_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_in_place()
    assert not has_in_place(notes=(Note(NoteKind.GZIP, ("gzip",)),))
    assert not has_in_place(notes=(Note(NoteKind.SHARED_NAME),))
    os.link(file, "other.pth")
    assert not has_in_place()
    Path("other.pth").unlink()
    Path("best.pth.undo").touch()
    assert not has_in_place()
    Path("best.pth.undo").unlink()
    file.chmod(0o444)
    assert not has_in_place()
    file.chmod(0o644)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not has_in_place()


def test_longer_names_need_room(file: Path) -> None:
    for form, device, to, fits in (
        ("zip", "mps", "cuda:0", True),
        ("legacy", "mps", "cuda:0", False),
        ("legacy", "cuda:0", "cpu", True),
        ("legacy", "cuda", "mps", True),
        ("tar", "cuda", "mps", False),  # nothing is one byte long
        ("tar", "cuda:0", "cpu", True),
    ):
        made = on(device, format=form)
        found = lines(
            made,
            Fix(rule=f"{device}={to}"),
            # A newer torch refuses tar files, wherever their tensors are.
            Profile(id="x", label="", accelerators=(("mps", 1), ("cuda", 1)), torch_version="2.5.1"),
        )
        assert ("in-place" in found) == fits, (form, device, to)
    # The name of a tensor is the same text, and stays: the device is written beside it.
    shared = checkpoint(
        storage("0", "cuda:0", 8), tensor("cuda:0", device="cuda:0", storage="0"), format="legacy"
    )
    assert "in-place" not in lines(shared, Fix(rule="cuda:0=cpu"))


def test_a_copy_of_a_file_in_a_folder_that_takes_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, _mode: folder != "/data")
    found = lines(on("cuda:0", path="/data/best.pth"), Fix(rule="cuda:0=cpu"))
    assert found["copy"] == "checkpoint-inspector remap /data/best.pth -o best.cpu.pth --map cuda:0=cpu"


def test_a_name_that_asks_for_another_form() -> None:
    found = lines(on("cuda:0", path="model.safetensors"), Fix(rule="cuda:0=cpu"))
    assert found["copy"] == "checkpoint-inspector remap model.safetensors -o model.cpu.pth --map cuda:0=cpu"


def test_hostile_names_are_quoted() -> None:
    found = lines(on("cuda:0", path='-a "b"\n$(c).pth'), Fix(rule="cuda:0=cpu"))
    assert found["load"] == 'torch.load(\'-a "b"\\n$(c).pth\', map_location="cpu")'
    if os.name != "nt":
        name = r"$'./-a\040\042b\042\012\044\050c\051.pth'"
        assert found["copy"].startswith(f"checkpoint-inspector remap {name} -o ")


def test_pickle_load_takes_an_open_file_and_nothing_else() -> None:
    assert (
        load_text("a.pkl", 'map_location="cpu"', loader="pickle.load") == 'pickle.load(open("a.pkl", "rb"))'
    )
    assert load_text("a.pt", 'map_location="cpu"') == 'torch.load("a.pt", map_location="cpu")'
