"""What a fix does to the choices of a session."""

from __future__ import annotations

from inspector.records import replace
from inspector.remap.rules import Rule
from inspector.report.colours import device_name
from inspector.session.document import Document
from inspector.session.state import State


def with_choice(state: State, device: str, to: str) -> State:
    """Send the tensors of one original device elsewhere."""
    return replace(state, chosen=tuple({**dict(state.chosen), device: to}.items()))


def with_rule(state: State, rule: Rule, document: Document) -> State:
    """Add a rule to the map: for a part of the tree, or for each device of the file that it names."""
    if rule.path is not None:
        others = [known for known in state.branches if known.path != rule.path]
        return replace(state, branches=(rule, *others))
    going = {
        device_name(total.device): rule.to for total in document.totals if rule.matches(total.device, ())
    }
    return replace(state, chosen=tuple({**dict(state.chosen), **going}.items()))
