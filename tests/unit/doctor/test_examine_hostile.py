"""Profiles come from anywhere: the doctor raises nothing, and what it says harms no terminal."""

from __future__ import annotations

import pytest
from hypothesis import given

from inspector.doctor.examine import examine
from inspector.errors import CheckpointError
from inspector.report.machine import machine_page
from inspector.report.page import plain_text
from inspector.target.profile_file import build_profile, parse_evidence
from tests.unit.target.spoiling import spoiled


@pytest.mark.wide
@given(data=spoiled())
def test_a_damaged_profile_is_refused_or_examined(data: bytes) -> None:
    try:
        machine = build_profile(parse_evidence(data), id="x", name="x")
    except CheckpointError:
        return
    text = plain_text(machine_page(machine, examine(machine)))
    assert all(line.isprintable() for line in text.splitlines())
    assert len(text) < 100_000
