from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.errors import CancelledError, CheckpointError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.controller import Session
from inspector.target.profile import Gpu, Profile
from inspector.target.wish import parse_target
from tests.unit.session.documents import saved_on

GPUS = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))


def test_the_probe_runs_once_after_the_first_file(view, runner, files) -> None:
    asked: list[str] = []

    def probe(progress: Progress, _python: str | None) -> Profile:
        asked.append(progress.label)
        return GPUS

    files["/a.pth"] = saved_on("cuda:1")
    session = Session(view, runner, (), probe)
    assert asked == []
    session.open("/a.pth")
    session.open("/a.pth")
    assert asked == ["looking for GPUs"]
    assert session.screen.targets[0].label == "This machine (2 CUDA GPUs)"
    assert session.screen.banner is not None
    assert session.screen.banner.headline.endswith("Loads on this machine: torch.load works there.")


def test_a_late_answer_keeps_the_choices_that_were_made_meanwhile(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:1", "cpu")
    session = Session(view, runner, (), lambda progress, python: GPUS)
    runner.waits = True
    session.open("/a.pth")
    runner.go_on()
    runner.go_on()  # the verdict
    assert session.screen.targets[0].label == "This machine (looking for GPUs \u2026)"
    session.set_mapping("cuda:1", "cpu")
    session.open("/a.pth")
    session.close()
    runner.go_on()
    assert session.screen.phase == "empty"
    assert session.screen.targets[0].label == "This machine (2 CUDA GPUs)"


def test_a_wanted_device_moves_the_map_and_is_forgotten_with_its_machine(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:0", "cpu")
    session = Session(view, runner, (), lambda progress, python: GPUS)
    session.set_wanted("cuda:1")
    assert (session.screen.devices, session.screen.wanted) == ((), "")  # nobody knows yet what it has
    session.open("/a.pth")
    assert [choice.id for choice in session.screen.devices] == ["", "cuda:0", "cuda:1"]
    assert session.screen.wanted == "cuda:1"
    assert {row.device: row.to for row in session.screen.device_map} == {"cuda:0": "cuda:1", "cpu": "cpu"}
    session.set_mapping("cuda:0", "cpu")
    session.set_wanted("cuda:0")
    assert {row.device: row.to for row in session.screen.device_map} == {"cuda:0": "cuda:0", "cpu": "cpu"}
    session.set_wanted("cuda:1")
    session.set_target("4xcuda")
    assert (len(session.screen.devices), session.screen.wanted) == (5, "")
    session.set_wanted("cuda:9")
    assert session.screen.wanted == ""
    session.set_target("cuda")
    assert session.screen.devices == ()


def test_a_machine_that_is_known_in_full_is_chosen_with_what_is_wanted(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:0")
    session = Session(view, runner)
    session.open("/a.pth")
    session.choose_machine(parse_target("2xcuda:1"))
    assert (session.screen.target, session.screen.wanted) == ("2xcuda", "cuda:1")
    session.choose_machine(parse_target("2xcuda:0@24gb"))
    assert (session.screen.target, session.screen.wanted) == ("2xcuda", "cuda:0")
    assert [choice.label for choice in session.screen.targets][1:-1] == ["2 NVIDIA GPUs of 24 GB each"]
    session.choose_machine(replace(GPUS, wanted="cuda:1"))
    assert (session.screen.target, session.screen.wanted) == ("this", "cuda:1")
    assert session.screen.targets[0].label == "This machine (2 CUDA GPUs)"


def test_devices_are_named_where_their_names_are_known(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:0")
    gpus = (Gpu(device="cuda:0", name="NVIDIA L4"), Gpu(device="cuda:1"))
    session = Session(view, runner, (), lambda progress, python: replace(GPUS, gpus=gpus))
    session.open("/a.pth")
    labels = [choice.label for choice in session.screen.devices]
    assert labels == ["any device", "cuda:0 (NVIDIA L4)", "cuda:1"]


def test_a_second_file_does_not_ask_while_the_probe_runs(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cpu")
    session = Session(view, runner, (), lambda progress, python: GPUS)
    runner.waits = True
    session.open("/a.pth")
    runner.go_on()
    runner.go_on()  # the verdict
    session.open("/a.pth")
    assert [job.kind for job in session._state.jobs] == ["probe", "open"]
    runner.waiting.pop()()
    runner.waiting.pop()()
    assert [job.kind for job in session._state.jobs] == ["probe", "look"]


@pytest.mark.parametrize("error", [CheckpointError("no torch"), OSError("no process"), CancelledError()])
def test_without_an_answer_the_label_says_so(view, runner, files, error) -> None:
    def probe(progress: Progress, _python: str | None) -> Profile:
        raise error

    files["/a.pth"] = saved_on("cpu")
    session = Session(view, runner, (), probe)
    session.open("/a.pth")
    assert session.screen.phase == "ready"
    assert session.screen.targets[0].label == "This machine (taken as CPU only)"


@pytest.mark.wide
def test_a_described_machine_becomes_the_target(opened, profile) -> None:
    opened.open(str(profile))
    assert opened.screen.target == str(profile)
    labels = {choice.id: choice.label for choice in opened.screen.targets}
    assert "node7" in labels[str(profile)]
    assert opened.screen.path == "/a.pth"
    assert opened.screen.doctor
    opened.use_machine(str(profile))
    assert [choice.id for choice in opened.screen.targets].count(str(profile)) == 1


def test_the_doctor_speaks_of_machines_that_were_looked_at_only(opened, profile) -> None:
    assert opened.screen.doctor == ()
    opened.use_machine(str(profile))
    assert opened.screen.doctor
    opened.set_target("cuda")
    assert opened.screen.doctor == ()


def test_only_so_many_machines_are_kept(opened, profile, tmp_path) -> None:
    for number in range(10):
        opened.use_machine(str(shutil.copy(profile, tmp_path / f"{number}.json")))
    known = [choice.id for choice in opened.screen.targets if choice.id.endswith(".json")]
    assert [Path(path).name for path in known] == [f"{number}.json" for number in range(9, 1, -1)]


def test_what_is_no_machine_is_told_beside_the_screen(opened, view, tmp_path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    before = opened.screen
    opened.use_machine(str(path))
    failure = view.show_notice.call_args.args[0]
    assert "machine" in failure.what
    assert opened.screen == before


def test_profiles_that_were_used_are_remembered_until_they_are_gone(view, runner, profile, tmp_path) -> None:
    session = Session(view, runner, profiles=("/old.json",))
    assert session.screen.profiles == ("/old.json",)
    copy = str(shutil.copy(profile, tmp_path / "copy.json"))
    session.use_machine(str(profile))
    session.use_machine(copy)
    session.use_machine(str(profile))
    assert session.screen.profiles == (str(profile), copy, "/old.json")
    Path(copy).unlink()
    session.use_machine(copy)
    assert session.screen.profiles == (str(profile), "/old.json")
    assert view.show_notice.call_count == 1


def test_a_machine_of_an_earlier_window_is_chosen_again(view, runner, files, profile) -> None:
    files["/a.pth"] = saved_on("cuda:0")
    session = Session(view, runner, profiles=("2xcuda@24gb", str(profile)))
    session.open("/a.pth")
    assert session.screen.target == "this"  # whatever was chosen last
    session.set_target(str(profile))
    assert session.screen.target == str(profile)
    session.set_target("2xcuda@24gb")
    assert session.screen.target == "2xcuda@24gb"
    assert session.screen.banner.tone == "warning"
    assert session.screen.profiles == ("2xcuda@24gb", str(profile))
    session.set_target("mps@32gb")  # which was described by hand
    assert session.screen.profiles == ("mps@32gb", "2xcuda@24gb", str(profile))
    assert [choice.id for choice in session.screen.targets] == [
        "this",
        "mps@32gb",
        "2xcuda@24gb",
        str(profile),
        "custom",
    ]
