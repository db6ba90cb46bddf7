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


def test_what_was_assigned() -> None:
    ids = {
        "TypeError: cannot assign 'torch.FloatTensor' object to parameter 'w' (...)": "parameter-assigned",
        "TypeError: cannot assign 'dict' as child module 'fc' (torch.nn.Module)": "module-assigned",
        "AttributeError: cannot assign parameters before Module.__init__() call": "module-not-initialized",
        'NotImplementedError: Module [A] is missing the required "forward" function': "no-forward",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids


def test_what_failed_inside_counts_more_than_that_it_did() -> None:
    text = "The following operation failed in the TorchScript interpreter.\nRuntimeError: CUDA out of memory."
    assert explain_error(text, None).id == "gpu-memory"
    assert explain_error("RuntimeError: \nUnknown type name 'Foo':", None).id == "script-compile"
