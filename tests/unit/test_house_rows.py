"""A finding, an error text, a doctor's cause, a snippet style and a device type are each added in one place.

Each test adds one from outside, and sees it wherever a user does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from inspector.diagnose import run
from inspector.diagnose.case import Case
from inspector.diagnose.errors import explain
from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied
from inspector.doctor import examine
from inspector.doctor.diagnosis import Diagnosis
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import DEVICE_TYPES, DeviceType
from inspector.progress import Progress
from inspector.report.words.verdicts import place
from inspector.resources import demo_path
from inspector.session.document import open_document
from inspector.session.screen import Screen
from inspector.session.targets import kinds
from inspector.snippet.styles import table
from inspector.snippet.styles.table import Style
from inspector.target.evidence import Evidence, TorchFound
from inspector.target.profile_file import build_profile
from inspector.target.wish import parse_target
from tests.corpus import CORPUS
from tests.unit.session.present.test_compose import ready


def screen_of(path: Path | str, **fields: object) -> Screen:
    document = open_document(str(path), Progress())
    return ready(document, **fields)


# --- a finding ----------------------------------------------------------------------------------------------


def odd_names(case: Case) -> Iterator[Finding]:
    paths = [tensor.path for tensor in case.checkpoint.tensors if tensor.role == "parameter"]
    yield finding("odd-names", "warning", "The names are odd", "Rename them.", paths, fix=Fix(rule="*=cpu"))


def test_a_finding(monkeypatch, cli) -> None:
    monkeypatch.setattr(run, "RULES", (*run.RULES, odd_names))
    listed = {
        row["id"]: row
        for row in json.loads(cli("check", demo_path(), "--target", "cpu", "--json").out)["findings"]
    }
    assert listed["odd-names"]["title"] == "The names are odd"
    assert listed["odd-names"]["count"] > 1
    assert "The names are odd" in cli("check", demo_path(), "--target", "cpu").out
    shown = {row.id: row for row in screen_of(demo_path()).findings}
    assert (shown["odd-names"].title, shown["odd-names"].fix) == ("The names are odd", Fix(rule="*=cpu"))
    assert shown["odd-names"].nodes


# --- an error text ------------------------------------------------------------------------------------------


def count_tensors(context: Context) -> Tied:
    count = len(context.checkpoint.tensors)
    return Tied(fits="yes", here=f"{count} tensors and {context.groups['what']}.")


def test_an_error_text(monkeypatch, cli) -> None:
    row = ErrorKind(
        id="warp-drive",
        title="The warp drive is off",
        pattern=r"WarpError: no (?P<what>\w{1,20})",
        cause="Nobody turned it on.",
        advice="Turn it on.",
        tie=count_tensors,
    )
    monkeypatch.setattr(explain, "ERROR_KINDS", (row, *explain.ERROR_KINDS))
    text = "Traceback (most recent call last):\nWarpError: no Dilithium"
    said = json.loads(cli("check", demo_path(), "--target", "cpu", "--json", "--error-text", text).out)[
        "explanation"
    ]
    assert (said["id"], said["title"], said["advice"]) == (row.id, row.title, row.advice)
    assert said["here"].endswith("tensors and Dilithium.")
    card = screen_of(demo_path(), error_text=text).explanation
    assert card is not None
    assert (card.id, card.title) == (row.id, row.title)
    assert ("What to do", row.advice) in card.facts


# --- a cause that the GPU doctor knows ----------------------------------------------------------------------


def too_hot(found: Evidence) -> Diagnosis | None:
    if found.torch.version != "9.9":
        return None
    return Diagnosis(id="too-hot", severity="error", title="The GPU is too hot", explanation="It glows.")


def test_a_cause(monkeypatch, cli, tmp_path: Path) -> None:
    monkeypatch.setattr(examine, "RULES", (*examine.RULES, too_hot))
    evidence = {"torch": {"state": "imported", "version": "9.9"}}
    path = tmp_path / "hot.json"
    path.write_text(json.dumps({"checkpoint_inspector_profile": 1, **evidence}))
    listed = json.loads(cli("target", "--target", path, "--json").out)["diagnoses"]
    assert "too-hot" in [row["id"] for row in listed]
    assert "The GPU is too hot" in cli("target", "--target", path).out
    hot = build_profile(Evidence(torch=TorchFound(state="imported", version="9.9")), id="this", name="this")
    screen = screen_of(demo_path(), target="this", this_machine=hot)
    assert "The GPU is too hot" in [card.title for card in screen.doctor]


# --- a style of loading code --------------------------------------------------------------------------------


def test_a_style(monkeypatch, cli) -> None:
    module = ModuleType("inspector.snippet.styles.poem")
    module.render = lambda request: f"# {len(request.models)} model, {request.target.id}\n"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    style = Style(id="poem", label="A poem", fits=lambda traits: traits.has_optimizer, module=".poem")
    monkeypatch.setattr(table, "STYLES", (style, *table.STYLES))
    assert cli("snippet", demo_path(), "--style", "poem", "--target", "cpu").out == "# 1 model, cpu\n"
    assert "did you mean poem? styles are poem, " in cli("snippet", demo_path(), "--style", "prose").err
    code = screen_of(demo_path(), target="cpu", style="poem").code
    assert code is not None
    assert (code.styles[0].label, code.style, code.text) == ("A poem", "poem", "# 1 model, cpu\n")
    assert "offers no snippet" in cli("snippet", CORPUS / "zip" / "many_storages.pt", "--style", "poem").err


# --- a type of device ---------------------------------------------------------------------------------------


@pytest.fixture
def warped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    row = DeviceType(
        name="warp",
        noun="warp core",
        place="a starship",
        labels=("1 warp core", "{count} warp cores"),
        presets=(1,),
        lacks=frozenset({"complex128"}),
        since=(2, 0),
        available="torch.warp.is_available()",
        collective="wccl",
    )
    monkeypatch.setitem(DEVICE_TYPES, row.name, row)
    path = tmp_path / "warped.pt"
    path.write_bytes((CORPUS / "devices" / "legacy_cuda_0.pt").read_bytes().replace(b"cuda:0", b"warp:0"))
    return path


def test_a_device_type_is_a_target(warped: Path, cli) -> None:
    (kind,) = (kind for kind in kinds() if kind.id == "warp")
    assert (kind.label, kind.is_counted) == ("warp core", True)
    assert place(parse_target("warp")) == "a starship"
    assert "warp" in cli("check", warped, "--target", "none").err
    assert json.loads(cli("target", "--target", "warp", "--json").out)["target"]["devices"] == [
        "warp:0",
        "cpu",
    ]


def test_a_device_type_is_judged(warped: Path, cli) -> None:
    assert cli("check", warped, "--target", "warp").code == 0
    refused = cli("check", warped, "--target", "cpu", "--json")
    assert refused.code
    (row,) = (row for row in json.loads(refused.out)["findings"] if row["severity"] == "error")
    assert row["id"] == "unknown-device"
    assert "Attempting to deserialize object on a WARP device" in row["detail"]
    there = cli("check", CORPUS / "devices" / "legacy_cuda_0.pt", "--target", "warp", "--json")
    fixes = [row["fix"] for row in json.loads(there.out)["findings"]]
    assert "cuda:0=warp:0" in [fix["map"] for fix in fixes if fix and fix["kind"] == "rule"]


def test_a_device_type_is_mapped_and_loaded(warped: Path, cli) -> None:
    source = CORPUS / "devices" / "legacy_cuda_0.pt"
    copy = warped.with_name("copy.pt")
    assert cli("remap", source, "-o", copy, "--map", "cuda:*=warp:0").code == 0
    assert json.loads(cli("show", copy, "--json").out)["devices"][0]["device"] == "warp:0"
    assert 'device = "warp:0"' in cli("snippet", warped).out
    assert 'init_process_group("wccl")' in cli("snippet", warped, "--style", "distributed").out
    screen = screen_of(warped, target="warp")
    assert [(row.device, row.to, row.color) for row in screen.device_map] == [
        ("warp:0", "warp:0", 0),
        ("cpu", "cpu", -1),
    ]
