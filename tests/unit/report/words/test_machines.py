"""Which errors are answered with what the GPU doctor says of the machine."""

from __future__ import annotations

from inspector.diagnose.errors.explain import ERROR_KINDS, explain_error
from inspector.report.words.formats import ABOUT_MACHINE, is_about_machine
from tests.sweep import table


def test_the_ids_are_those_of_errors() -> None:
    assert {kind.id for kind in ERROR_KINDS} >= ABOUT_MACHINE


@table(
    ("text", "is_about"),
    [
        ("AssertionError: Torch not compiled with CUDA enabled", True),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", True),
        ("RuntimeError: No CUDA GPUs are available", True),
        ("KeyError: 'model'", False),
        ("something else entirely", False),
    ],
)
def test_errors_about_the_machine(text: str, is_about: bool) -> None:
    assert is_about_machine(explain_error(text, None)) is is_about


def test_without_an_error_nothing_is_about_the_machine() -> None:
    assert not is_about_machine(None)
