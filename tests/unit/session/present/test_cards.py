from __future__ import annotations

from inspector.diagnose.errors.explanation import Explanation
from inspector.doctor.diagnosis import Diagnosis
from inspector.model.findings import Finding, Fix, finding
from inspector.records import replace
from inspector.session.present import compose as cards
from inspector.session.present.compose import ailments, doctor_cards, explanation_card, finding_card
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import Judged, judge_load
from inspector.target.wish import parse_target
from tests.unit.diagnose.machines import PROFILES
from tests.unit.report.rows import checkpoint, storage, tensor

NODES = {"model/a": 3, "model/b": 4}


def test_a_finding_keeps_its_fix_and_the_rows_that_the_tree_shows() -> None:
    fix = Fix(rule="*=cpu")
    finding = Finding(
        id="mixed-devices", severity="warning", title="a\u202eb", detail="c", paths=("model/b", "x"), fix=fix
    )
    card = finding_card(finding, NODES)
    assert (card.tone, card.title, card.nodes, card.fix) == ("warning", "a\\u202eb", (4,), fix)


def test_lines_to_copy_need_the_file() -> None:
    made = checkpoint(storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
    judged = Judged(checkpoint=made, target=CPU_ONLY, load=judge_load(made, CPU_ONLY))
    found = finding("cuda-unavailable", "error", "a", "b", [], fix=Fix(rule="cuda:0=cpu"))
    assert finding_card(found, NODES).lines == ()
    assert finding_card(replace(found, fix=None), NODES, judged).lines == ()
    lines = finding_card(found, NODES, judged).lines
    assert lines[0] == ("Load it with:", 'torch.load("best.pth", map_location="cpu")')
    assert [caption for caption, _ in lines][1:] == ["Or write a copy with:"]


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
