from __future__ import annotations

import pytest

from inspector.diagnose.errors.explanation import Explanation
from inspector.diagnose.run import diagnose
from inspector.doctor.diagnosis import Diagnosis
from inspector.model.build import open_checkpoint
from inspector.model.findings import Finding, Fix, finding
from inspector.records import replace
from inspector.session.present import findings as cards
from inspector.session.present.findings import (
    ailments,
    doctor_cards,
    explanation_card,
    finding_card,
    script_card,
)
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import Judged, judge_load
from inspector.target.wish import parse_target
from tests.corpus import CORPUS
from tests.unit.diagnose.machines import PROFILES
from tests.unit.diagnose.script.following import LOADED, machine, opened
from tests.unit.report.rows import checkpoint, storage, tensor

NODES = {"model/a": 3, "model/b": 4}


def test_a_finding_keeps_its_fix_and_the_rows_that_the_tree_shows() -> None:
    fix = Fix(rule="*=cpu")
    finding = Finding(
        id="mixed-devices", severity="warning", title="a\u202eb", detail="c", paths=("model/b", "x"), fix=fix
    )
    card = finding_card(finding, NODES)
    assert (card.tone, card.title, card.nodes, card.fix) == ("warning", "a\\u202eb", (4,), fix)


def judged_on_cpu(*devices: str) -> Judged:
    rows = (tensor(f"w{device}", device=device, storage=device) for device in devices)
    made = checkpoint(*(storage(device, device, 8) for device in devices), *rows)
    return Judged(checkpoint=made, target=CPU_ONLY, load=judge_load(made, CPU_ONLY))


def test_lines_to_copy_need_the_file() -> None:
    judged, fix = judged_on_cpu("cuda:0"), Fix(rule="cuda:0=cpu")
    found = finding("mixed-devices", "warning", "a", "b", [], fix=fix)
    assert finding_card(found, NODES).lines == ()
    assert finding_card(replace(found, fix=None), NODES, judged).lines == ()
    lines = finding_card(found, NODES, judged).lines
    assert lines[0] == ("Load it with:", 'torch.load("best.pth", map_location="cpu")')
    assert [caption for caption, _ in lines][1:] == ["Or write a copy with:"]


def test_what_torch_says_is_there_in_full_and_not_twice() -> None:
    judged = judged_on_cpu("cuda:0")
    error = judged.load.last_error.message
    found = next(one for one in diagnose(judged.checkpoint, judged.load.safety, CPU_ONLY))
    assert found.id == "cuda-unavailable"
    card = finding_card(found, {"wcuda:0": 3}, judged)
    assert card.lines[0] == ("torch.load says:", error)
    assert error.endswith("to map your storages to the CPU.")
    assert "Attempting to deserialize" not in card.detail
    assert card.detail.startswith("Map cuda:0 to a device of the target")
    other = finding_card(replace(found, id="mps-unavailable"), {}, judged)
    assert "Attempting to deserialize" in other.detail
    assert other.lines[0][0] == "Load it with:"


@pytest.mark.parametrize(
    ("fix", "button", "copies", "exports"),
    [
        (Fix(rule="cuda:0=cpu"), "Export fixed copy\u2026", "", True),
        (
            Fix(option=("map_location", "'cpu'")),
            "Copy loading code",
            'torch.load("best.pth", map_location="cpu")',
            False,
        ),
        (Fix(style="resume"), "Show the loading code", "", False),
        (Fix(recovers=True), "Save what is intact\u2026", "", False),
        (None, "", "", False),
    ],
)
def test_each_fix_is_one_button(fix: Fix | None, button: str, copies: str, exports: bool) -> None:
    judged = judged_on_cpu("cuda:0")
    card = finding_card(finding("x", "warning", "a", "b", [], fix=fix), NODES, judged)
    assert (card.button, card.copies, card.exports) == (button, copies, exports)


def test_without_a_file_only_an_argument_can_be_copied() -> None:
    card = finding_card(finding("x", "note", "a", "b", [], fix=Fix(option=("mmap", "True"))), NODES)
    assert (card.button, card.copies) == ("Copy mmap=True", "mmap=True")
    assert finding_card(finding("x", "note", "a", "b", [], fix=Fix(rule="*=cpu")), NODES).button == ""


@pytest.mark.parametrize(
    ("found", "query"),
    [
        (
            finding("cuda-unavailable", "error", "a", "b", ["model/a"], fix=Fix(rule="cuda:*=cpu")),
            "device:cuda",
        ),
        (
            finding("cuda-index-out-of-range", "error", "a", "b", ["model/a"], fix=Fix(rule="cuda:1=cpu")),
            "device:cuda:1",
        ),
        (finding("truncated", "error", "a", "b", ["model/a"], fix=Fix(recovers=True)), "is:missing"),
        (finding("mixed-devices", "warning", "a", "b", ["model/a"]), "finding:mixed-devices"),
        (finding("hidden-device", "warning", "a", "b", ["a value"]), ""),
    ],
)
def test_a_search_finds_the_tensors_of_a_finding(found: Finding, query: str) -> None:
    assert finding_card(found, NODES).query == query


def test_a_headline_does_not_repeat_the_banner() -> None:
    found = finding("dangerous-global", "error", "Dangerous: loading it runs x", "It imports x.", [])
    assert finding_card(found, {}).title == "Do not load this file, unless you made it yourself"
    cut = "Save what is intact to a new file (checkpoint-inspector recover)."
    assert (
        finding_card(finding("truncated", "error", "a", cut, []), {}).detail
        == "Save what is intact to a new file."
    )


def test_an_explanation_says_why_what_and_where() -> None:
    explanation = Explanation(
        id="device-unavailable",
        finding="cuda-unavailable",
        title="No GPU",
        quoted="RuntimeError: ...",
        cause="because",
        here="",
        fits="yes",
        advice="map it",
        paths=("model/a",),
        also=("one", "two"),
    )
    card = explanation_card(explanation, NODES)
    assert (card.id, card.tone, card.nodes) == ("cuda-unavailable", "bad", (3,))
    assert card.detail == "RuntimeError: ..."
    assert card.facts == (
        ("Why", "because"),
        ("What to do", "map it"),
        ("Also in the text", "one; two"),
    )


def test_an_error_about_a_device_names_what_ails_the_machine() -> None:
    about = Explanation(
        id="device-unavailable",
        finding="cuda-unavailable",
        title="No GPU",
        quoted="",
        cause="because",
        here="",
        fits="yes",
        advice="",
    )
    made = checkpoint(tensor("w"))

    def facts(about: Explanation, name: str) -> dict[str, str]:
        machine = parse_target(str(PROFILES / f"{name}.json"))
        judged = Judged(checkpoint=made, target=machine, load=judge_load(made, machine))
        return dict(explanation_card(about, NODES, judged, ailments(doctor_cards(machine))).facts)

    old = facts(about, "driver-too-old-470")
    assert old["On the target"] == "The NVIDIA driver is too old for this torch"
    assert "On the target" not in facts(about, "works-one-of-two-3090")
    assert "On the target" not in facts(replace(about, finding=""), "driver-too-old-470")


def test_a_machine_that_nobody_looked_at_has_no_cards() -> None:
    assert doctor_cards(CPU_ONLY) == ()


def test_a_diagnosis_shows_what_was_seen_and_what_to_do() -> None:
    diagnosis = Diagnosis(
        id="no-driver",
        severity="error",
        title="No driver",
        explanation="why",
        evidence=("nvidia-smi: not found", "no /dev/nvidia0"),
        steps=("sudo apt install nvidia-driver",),
        certainty="likely",
    )
    card = cards._diagnosis_card(diagnosis)
    assert card.facts == (("Seen", "nvidia-smi: not found\nno /dev/nvidia0"), ("Certainty", "likely"))
    assert card.steps == ("sudo apt install nvidia-driver",)
    assert card.tone == "bad"


FAILS = 'import torch\nsd = torch.load("sd_cuda.pth")\n'


def test_card_of_a_line_that_fails() -> None:
    card = script_card(FAILS, "train.py", opened("sd_cuda.pth"), machine("cpu"))
    assert (card.id, card.tone, card.title) == ("load-fails", "bad", "Line 2 fails.")
    assert card.detail == '2: sd = torch.load("sd_cuda.pth")'
    assert [caption for caption, _ in card.facts] == ["What torch says", "Why", "What to do"]
    assert card.patch.startswith("--- a/train.py\n+++ b/train.py\n")


def test_card_of_a_script_that_works() -> None:
    card = script_card(LOADED, "", opened("sd_cpu.pth"), machine("cpu"))
    assert (card.id, card.tone, card.patch) == ("script", "good", "")
    assert card.detail.startswith("12: model.load_state_dict(")
    assert card.facts == (("Limits", "Not judged: whether all names and shapes fit the model."),)


def test_card_of_what_is_no_script() -> None:
    card = script_card("import torch\ndef (:", "", opened("sd_cpu.pth"), machine("cpu"))
    assert (card.tone, card.title) == ("warning", "This script cannot be read")
    assert card.detail == "this is not valid Python: invalid syntax: script.py, line 2"
    long = script_card("import torch\n" + "x" * (2 << 20), "", opened("sd_cpu.pth"), machine("cpu"))
    assert long.detail.startswith("this script is too long")


def test_card_of_a_script_that_lets_the_file_run_commands_is_never_green() -> None:
    text = 'import torch\nx = torch.load("os_system.pt", weights_only=False)\n'
    evil = open_checkpoint(str(CORPUS / "hostile" / "os_system.pt"))
    card = script_card(text, "", evil, machine("cpu"))
    assert (card.tone, card.patch) == ("bad", "")
    assert card.title.startswith("Do not run this script")
