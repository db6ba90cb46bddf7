from __future__ import annotations

import pytest

from inspector.diagnose.run import diagnose
from inspector.errors import PlanError
from inspector.model.checkpoint import Safety
from inspector.model.findings import Finding
from inspector.records import replace
from inspector.remap.plan import plan_remap
from inspector.safety.verdict import judge
from inspector.session.device_map import DeviceMap, Pairs, map_devices
from inspector.session.document import Document
from inspector.session.export.outlook import planned
from inspector.session.present.banner import after_reading, banner, safety_chip
from inspector.session.present.banner import saved_on as sentence
from inspector.session.screen import Banner
from inspector.target.profile import Profile
from inspector.target.simulate import DefaultLoad, Judged, LoadFailure, judge_load
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.report.rows import checkpoint, is_harmless, storage, tensor, value
from tests.unit.session.documents import document_of, saved_on

THEN = "export a fixed copy, or use the loading code."
RUN = "cuda:0-7"
SHORT = "It stops with: RuntimeError: short. Fetch it."
NET = {"names": ("net.Net",), "module_class": "net.Net"}
_ONE_LINE = 80
"""Characters that stand beside the buttons of a wide window."""
EIGHT = tuple(f"cuda:{index}" for index in range(8))
PROTOCOL_4 = Safety(opcodes=("STACK_GLOBAL",), protocol=4, oddities=(), unread=())


def say(document: Document, target: str = "cpu", chosen: Pairs = (), *findings: Finding) -> Banner:
    judged = judged_on(document, target)
    device_map = map_devices(document, judged.target, chosen)
    return banner(document, judged, device_map, judge_planned(document, judged, device_map), findings)


def judge_planned(document: Document, judged: Judged, device_map: DeviceMap) -> DefaultLoad:
    return judge_load(planned(document.checkpoint, device_map.plan), judged.target)


def judged_on(document: Document, target: str) -> Judged:
    profile = parse_target(target)
    return Judged(checkpoint=document.checkpoint, target=profile, load=verdict_of(document, profile))


def verdict_of(document: Document, target: Profile) -> DefaultLoad:
    return judge_load(document.checkpoint, target, judge(document.checkpoint))


def finding(severity: str, title: str = "Something Is Odd", **fields: object) -> Finding:
    return Finding(**{"id": "x", "severity": severity, "title": title, "detail": "See.", **fields})


def stopped(document: Document, target: Profile, failure: LoadFailure) -> DefaultLoad:
    load = judge_load(document.checkpoint, target)
    return replace(load, failure=failure, stop=failure, way="other")


SAYINGS = (
    (
        document_of(checkpoint(value("epoch"))),
        "cpu",
        "good: This file holds no tensors. Loads on every machine: torch.load works there.",
    ),
    (
        saved_on("cpu", "cpu"),
        "mps",
        "good: Saved on the CPU (8.0 KB). Loads on every machine: torch.load works there.",
    ),
    (
        saved_on("meta", "meta"),
        "cpu",
        "good: Saved on meta: 2 tensors without data. Loads on every machine: torch.load works there.",
    ),
    (
        saved_on("cuda:0", "cpu"),
        "2xcuda:1",
        (
            "good: Saved on cuda:0 (4.0 KB) and the CPU (4.0 KB). Loads on a machine with 2 NVIDIA "
            f"GPUs: torch.load works there. -> cuda:1 is wanted: map cuda:0 to cuda:1: {THEN}"
        ),
    ),
    (
        saved_on("cuda:0"),
        "cpu",
        (
            "bad: Saved on cuda:0 (4.0 KB). Does not load on a machine without a GPU: saved on "
            f"cuda:0. -> Map cuda:0 to cpu: {THEN}"
        ),
    ),
    (
        saved_on(*EIGHT),
        "2xcuda",
        (
            f"bad: Saved on {RUN} (32.0 KB). Does not load on a machine with 2 NVIDIA GPUs: saved on "
            f"cuda:2-7. -> Map cuda:2 to cuda:0, cuda:3 to cuda:1, cuda:4 to cuda:0 and 3 more: {THEN}"
        ),
    ),
    (
        saved_on("odd\u202edevice"),
        "cpu",
        (
            "bad: Saved on odd\\u202edevice (4.0 KB). Does not load on a machine without a GPU: saved "
            f"on odd\\u202edevice. -> Map odd\\u202edevice to cpu: {THEN}"
        ),
    ),
    (
        saved_on("cuda:0", "cuda:2", "cuda:4", "mps", "xpu:0", "cpu"),
        "cpu",
        (
            "bad: Saved on cuda:0 (4.0 KB), cuda:2 (4.0 KB), cuda:4 (4.0 KB) and 3 more. Does not "
            "load on a machine without a GPU: saved on cuda:0, cuda:2, cuda:4, +2. -> Map cuda:0, "
            f"cuda:2, cuda:4 and 2 more to cpu: {THEN}"
        ),
    ),
    (
        saved_on("cuda:0", names=("a.B", "c.D")),
        "cuda",
        (
            "warning: Saved on cuda:0 (4.0 KB). Does not load on a machine with 1 NVIDIA GPU: refused"
            " until 2 names are allowed."
        ),
    ),
    (
        saved_on("cpu", **NET),
        "cpu",
        (
            "warning: A whole module (net.Net), saved on the CPU (4.0 KB). Does not load on any "
            "machine: refused until 1 name is allowed."
        ),
    ),
    (
        saved_on("cuda:0", safety=PROTOCOL_4),
        "cpu",
        (
            "bad: Saved on cuda:0 (4.0 KB). Does not load on a machine without a GPU: refused without"
            f" weights_only=False, and saved on cuda:0. -> Map cuda:0 to cpu: {THEN}"
        ),
    ),
    (
        saved_on("cuda:0", names=("os.system",)),
        "cpu",
        (
            "bad: Dangerous: loading it can run commands: os.system. Saved on cuda:0 (4.0 KB). -> "
            "Loading it with weights_only=False imports os.system, which can run anything. Do not "
            "load it unless you made it yourself; a fixed copy would be no safer."
        ),
    ),
)
"""Document, target, and the banner: its tone, its headline and after an arrow its advice."""


@table(("document", "target", "words"), SAYINGS)
def test_banner_says(document: Document, target: str, words: str) -> None:
    said = say(document, target)
    assert f"{said.tone}: {said.headline}" + (f" -> {said.advice}" if said.advice else "") == words
    assert (said.error_text is not None) == ("saved on" in said.verdict)
    assert said.aside
    assert len(said.verdict) <= _ONE_LINE, said.verdict


def test_the_error_is_torchs_own_with_nothing_invisible_in_it() -> None:
    assert say(saved_on("cuda:0")).error_text.startswith(
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is"
    )
    assert is_harmless(say(saved_on("a\u202eb")).error_text)


def test_an_error_that_no_device_raises_comes_on_every_machine(monkeypatch) -> None:
    failure = LoadFailure(finding="truncated", device="", storage="0", message="RuntimeError: short")
    monkeypatch.setitem(globals(), "verdict_of", lambda *asked: stopped(*asked, failure))
    said = say(
        saved_on("cuda:0"), "cpu", (), finding("error"), finding("error", id="truncated", detail=SHORT)
    )
    assert said.headline == "Saved on cuda:0 (4.0 KB). Does not load on any machine: something Is Odd."
    assert (said.advice, said.error_text) == ("Fetch it.", "RuntimeError: short")
    assert say(saved_on("cuda:0")).advice == ""


def test_a_device_that_no_map_reaches_gets_no_advice_to_map_it(monkeypatch) -> None:
    failure = LoadFailure(finding="hidden-device", device="cuda:3", storage="", message="RuntimeError: no")
    monkeypatch.setitem(globals(), "verdict_of", lambda *asked: stopped(*asked, failure))
    said = say(saved_on("cuda:0"), "cpu", (), finding("note", id="hidden-device", detail="A generator."))
    assert said.headline.endswith("Does not load on a machine without a GPU: saved on cuda:3.")
    assert said.advice == "A generator."


def test_a_warning_is_the_advice_and_the_tone() -> None:
    said = say(saved_on("cpu"), "cpu", (), finding("note", "Small"), finding("warning"))
    assert said.tone == "warning"
    assert said.headline == "Saved on the CPU (4.0 KB). Loads on every machine: torch.load works there."
    assert said.advice == "Something Is Odd."


def test_what_the_headline_says_is_not_said_again() -> None:
    said = say(saved_on("cpu", names=("a.B",)), "cpu", (), finding("warning", id="needs-allow-list"))
    assert (said.tone, said.advice) == ("warning", "")


def test_damage_is_said_before_anybody_hopes() -> None:
    said = say(saved_on("cpu"), "cpu", (), finding("error", "Bytes are missing", detail="Fetch it\nagain."))
    assert said == Banner(
        tone="bad",
        verdict="Does not load on any machine: bytes are missing.",
        aside=r"Fetch it\u000aagain.",
        headline="Saved on the CPU (4.0 KB). Does not load on any machine: bytes are missing.",
        advice=r"Fetch it\u000aagain.",
        error_text=None,
    )


def test_a_destination_that_is_not_there_is_no_help() -> None:
    said = say(saved_on("cuda:0", "cpu"), "cpu", (("cuda:0", "cuda:1"),))
    assert said.advice == (
        "The map leaves tensors on cuda:1, and a machine without a GPU has no such device: choose another."
    )


def test_a_map_that_cannot_be_carried_out_says_why() -> None:
    document = saved_on("cpu")
    refused = DeviceMap(
        checkpoint=document.checkpoint,
        going=(("cpu", "cuda:0"),),
        branches=(),
        plan=plan_remap(document.checkpoint, ()),
        refusal=PlanError("tensors disagree"),
    )
    judged = judged_on(document, "cuda")
    said = banner(document, judged, refused, judged.load, ())
    assert (said.tone, said.advice) == ("warning", "This map cannot be carried out: tensors disagree.")


def test_a_danger_without_a_reason_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    document = saved_on("cpu", names=("os.system",))
    bare = replace(judge(document.checkpoint), reasons=(), globals=())
    monkeypatch.setitem(globals(), "judge", lambda _checkpoint: bare)
    assert say(document).advice.startswith("Do not load it unless")


def test_devices_without_stored_bytes_are_counted() -> None:
    from tests.unit.report.rows import tensor

    rows = checkpoint(tensor("a", device="xla:0"), tensor("b", device="xla:0"), tensor("c", device="meta"))
    assert sentence(document_of(rows)) == "Saved on xla:0 (2 tensors) and meta (1 tensor)."


@table(
    ("document", "text", "tone"),
    [
        (saved_on("cpu"), "safe", "good"),
        (saved_on("cpu", names=("a.B",)), "needs your trust", "warning"),
        (saved_on("cpu", safety=PROTOCOL_4), "needs your trust", "warning"),
        (saved_on("cpu", names=("os.system",)), "dangerous", "bad"),
    ],
)
def test_chip_tells_the_safety(document: Document, text: str, tone: str) -> None:
    chip = safety_chip(judge(document.checkpoint))
    assert (chip.text, chip.tone) == (text, tone)
    assert chip.tooltip.lower().startswith(f"{text}: ")


def test_what_keeps_torch_from_the_gpu_is_said_first() -> None:
    for device, advice in (("cuda:0", f"No driver. Map cuda:0 to cpu: {THEN}"), ("cpu", "")):
        document = saved_on(device)
        judged = judged_on(document, "cpu")
        device_map = map_devices(document, judged.target, ())
        found = banner(document, judged, device_map, judged.load, (), "No driver")
        assert found.advice == advice


def test_what_does_not_fit_is_read_all_the_same() -> None:
    document, target = saved_on("cuda:0"), parse_target("cuda@0.001mb")
    rows = diagnose(document.checkpoint, judge(document.checkpoint), target)
    found = say(document, "cuda@0.001mb", (), *rows)
    assert found.headline.endswith(
        "Does not fit on a machine with 1 NVIDIA GPU of 0.001 MB: torch.load takes 4.1 KB of cuda:0, which "
        "has 1.0 KB."
    )


def test_damage_is_told_before_devices() -> None:
    rows = (tensor("a", device="cuda:0", storage="0"), storage("0", "cuda:0", 4000, missing=True))
    for form in ("zip", "legacy"):
        document = document_of(checkpoint(*rows, format=form))
        target = parse_target("cpu")
        found = diagnose(document.checkpoint, judge(document.checkpoint), target)
        assert found[0].id == "truncated"
        said = say(document, "cpu", (), *found)
        assert said.verdict == "Does not load on any machine: bytes of 1 tensor are missing."
        assert said.aside.startswith("The file is truncated")


def test_what_reading_found_takes_the_green_away() -> None:
    green, red = say(saved_on("cpu")), say(saved_on("cuda:0"))
    assert (green.tone, red.tone) == ("good", "bad")
    nan, note = finding("warning", "1 tensor with NaN"), finding("note")
    seen = after_reading(green, (note, nan))
    assert (seen.tone, seen.aside) == ("warning", f"1 tensor with NaN. {green.aside}")
    assert after_reading(green, (finding("error"),)).tone == after_reading(red, (nan,)).tone == "bad"
    assert after_reading(green, (note,)) is green
