from __future__ import annotations

from inspector.remap.rules import parse_rule
from inspector.session.fixing import with_rule
from inspector.session.state import State
from tests.unit.session.documents import saved_on

DOCUMENT = saved_on("cuda:0", "cuda:1", "cpu")


def test_a_device_rule_is_written_out_for_the_devices_of_the_file() -> None:
    state = with_rule(State(chosen=(("cpu", "cpu"),)), parse_rule("cuda:*=mps"), DOCUMENT)
    assert state.chosen == (("cpu", "cpu"), ("cuda:0", "mps"), ("cuda:1", "mps"))
    assert state.branches == ()


def test_a_branch_has_one_destination() -> None:
    state = with_rule(State(), parse_rule("path:a/**@cpu"), DOCUMENT)
    state = with_rule(state, parse_rule("path:b@cpu"), DOCUMENT)
    state = with_rule(state, parse_rule("path:a/**@cuda:0"), DOCUMENT)
    assert [(rule.path, rule.to) for rule in state.branches] == [("a/**", "cuda:0"), ("b", "cpu")]
