from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.resources import PROBE, resource_path
from inspector.target import profile_file
from inspector.target.profile_file import build_profile, parse_evidence

PROFILES = Path(__file__).parents[3] / "data" / "profiles"
OLD = PROFILES / "driver-too-old-470.json"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is one with an old driver."""
    evidence = parse_evidence(OLD.read_bytes())
    profile = build_profile(evidence, id="this", name="this machine")
    monkeypatch.setattr(profile_file, "probe_this_machine", lambda progress, python=None: profile)


def test_json_is_one_document_that_holds_the_profile(cli, here, tmp_path) -> None:
    answer = cli("target", "--json")
    assert (answer.code, answer.err, answer.out.count("\n")) == (0, "", 1)
    found = json.loads(answer.out)
    assert list(found) == ["schema", "target", "profile", "diagnoses"]
    assert found["schema"] == 1
    assert found["target"]["devices"] == ["cpu"]
    assert found["profile"] == json.loads(OLD.read_bytes())
    assert [row["id"] for row in found["diagnoses"]] == ["driver-too-old"]
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(found["profile"]))
    again = json.loads(cli("target", "--json", "--target", kept).out)
    assert again["diagnoses"] == found["diagnoses"]


def test_the_probe_is_printed_as_it_is(cli) -> None:
    assert cli("target", "--probe-script").out == resource_path(PROBE).read_text(encoding="utf-8")


@pytest.mark.wide
def test_snippets_and_remaps_take_a_profile(cli, tmp_path) -> None:
    demo = resource_path("demo/demo.pth")
    answer = cli("snippet", demo, "--target", PROFILES / "driver-too-old-470.json")
    assert (answer.code, answer.err) == (0, "")
    assert "map_location" in answer.out
    copy = tmp_path / "copy.pth"
    answer = cli("remap", demo, "-o", copy, "--target", PROFILES / "works-one-of-two-3090.json")
    assert (answer.code, answer.err) == (0, "")
    devices = {row["device"] for row in json.loads(cli("show", "--json", copy).out)["devices"]}
    assert devices == {"cuda:0", "cpu"}
