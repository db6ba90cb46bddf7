"""Calls with arguments that a function does not take."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error

FRAME = '  File "a.py", line 2, in f\n    {}\n'


def test_whose_function_it_is() -> None:
    text = "TypeError: {}() got an unexpected keyword argument 'device'"
    assert "safetensors" in explain_error(text.format("load_model"), None).advice
    assert "requirements.txt" in explain_error(text.format("build"), None).advice
    missing = explain_error("TypeError: __init__() missing 1 required positional argument: 'layers'", None)
    assert "save_hyperparameters" in missing.advice
    saved = FRAME.format("model = Net(**hparams)") + text.format("__init__")
    assert "Settings that were saved" in explain_error(saved, None).cause


def test_imports() -> None:
    text = "ImportError: cannot import name 'a' from {}'pack.b' (x/pack/b.py)"
    assert "the pack that is installed" in explain_error(text.format(""), None).cause
    assert "in a circle" in explain_error(text.format("partially initialized module "), None).title
    assert (
        "the pack that is" in explain_error("AttributeError: module 'pack' has no attribute 'a'", None).cause
    )
