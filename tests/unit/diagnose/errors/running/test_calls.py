"""Types of arguments, and names."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "TypeError: expected Tensor as element 0 in argument 0, but got int": "argument-type",
        "UnboundLocalError: cannot access local variable 'loss' where it is not": "name-unknown",
        "NameError: name '_C' is not defined": "extension-missing",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids
