from __future__ import annotations

from inspector.diagnose.script.problems import Problem, catches


def test_what_is_caught() -> None:
    rows = [
        ("", "KeyError: 'a'", True),
        ("Exception", "RuntimeError: b", True),
        ("LookupError", "KeyError: 'a'", True),
        ("RuntimeError", "AcceleratorError: c", True),
        ("UnpicklingError", "_pickle.UnpicklingError: d", True),
        ("ValueError", "KeyError: 'a'", False),
    ]
    assert [catches(handled, message) for handled, message, _ in rows] == [row[2] for row in rows]


def test_silent_problems_have_no_message() -> None:
    assert Problem(kind="x", line=1, message="", why="y").is_silent
    assert not Problem(kind="x", line=1, message="KeyError", why="y").is_silent
