"""Classes that are looked up by name, and versions."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "RuntimeError: There is no such class as speechbrain.Foo": "not-in-registry",
        "ERROR: No matching distribution found for torch==1.4.0": "pip-version",
        "AssertionError: MMCV==1.7.1 is used but incompatible. Please install mmcv>=2.0": "package-versions",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids
