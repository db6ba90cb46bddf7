from __future__ import annotations

import os

import pytest

from inspector.child import ask_child
from inspector.errors import CancelledError
from inspector.progress import Progress


def test_what_a_child_prints_is_given() -> None:
    assert "usage" in ask_child("json.tool", "--help", timeout_s=60, progress=Progress())


def test_a_child_inherits_what_it_is_handed() -> None:
    there, here = os.pipe()
    os.write(here, b'{"a": 1}')
    os.close(here)
    said = ask_child("json.tool", f"/dev/fd/{there}", timeout_s=60, progress=Progress(), pass_fds=(there,))
    os.close(there)
    assert '"a": 1' in said


def test_a_child_that_takes_too_long_is_ended() -> None:
    assert ask_child("http.server", "0", timeout_s=0.3, progress=Progress()) == ""


def test_a_child_ends_with_the_work() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        ask_child("http.server", "0", timeout_s=60, progress=progress)
