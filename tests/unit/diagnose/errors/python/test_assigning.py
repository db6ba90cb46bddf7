"""What is assigned to modules."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_what_was_assigned() -> None:
    ids = {
        "TypeError: cannot assign 'torch.FloatTensor' object to parameter 'w' (...)": "parameter-assigned",
        "TypeError: cannot assign 'dict' as child module 'fc' (torch.nn.Module)": "module-assigned",
        "AttributeError: cannot assign parameters before Module.__init__() call": "module-not-initialized",
        'NotImplementedError: Module [A] is missing the required "forward" function': "no-forward",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids
