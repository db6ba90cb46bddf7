from __future__ import annotations

from inspector.diagnose.script.answer import Lost, ScriptAnswer
from inspector.diagnose.script.edits import Problem
from inspector.report.scripts import (
    further_sentences,
    message_lines,
    patch_note,
    script_headline,
    script_limits,
)

LOST = Lost(line=7, why="it is not known")


def test_headlines() -> None:
    rows = [
        (ScriptAnswer(name="a", outcome="fails", line=3), "Line 3 fails."),
        (ScriptAnswer(name="a", outcome="fails", line=3, is_notebook=True), "Cell line 3 fails."),
        (ScriptAnswer(name="a", outcome="fails", line=3, file="lib/a.py"), "lib/a.py, line 3 fails."),
        (
            ScriptAnswer(
                name="a",
                outcome="fails",
                line=3,
                assumed=("run with `eval` (line 1)", "b"),
                runs=("run with `eval` (line 1)",),
            ),
            "Line 3 fails, when run with `eval` (line 1).",
        ),
        (ScriptAnswer(name="a", outcome="silent", line=3), "Line 3 raises nothing, and does nothing."),
        (
            ScriptAnswer(name="a", outcome="lost", load_line=7, lost=LOST),
            "Not known: line 7 may load this file, and it is not known.",
        ),
        (ScriptAnswer(name="a", outcome="works", load_line=2), "Line 2 loads this file on this target."),
        (
            ScriptAnswer(name="a", outcome="not-loaded", why="Why."),
            "Nothing in this script loads this file. Why.",
        ),
    ]
    assert [script_headline(answer) for answer, _ in rows] == [wanted for _, wanted in rows]


def test_what_else_fails_is_said_once_for_each_message() -> None:
    further = (
        Problem(kind="a", line=4, message="KeyError: 'a'\nmore", why="w"),
        Problem(kind="a", line=9, message="KeyError: 'a'\nother", why="w"),
        Problem(kind="b", line=5, message="", why="Nothing is loaded."),
        Problem(kind="python-2", line=6, message="SyntaxError", why="print is a function.", file="lib.py"),
        Problem(kind="c", line=7, message="not shown", why=""),
    )
    answer = ScriptAnswer(name="a", outcome="fails", line=3, further=further, also=(8,), assumed=("x",))
    assert further_sentences(answer) == (
        "The same fails at line 8.",
        "Also lines 4, 9: KeyError: 'a'",
        "Also line 5: Nothing is loaded.",
        "Also line lib.py 6: print is a function.",
    )
    assert script_limits(answer) == ("Taken for true: x.",)
    heading = Problem(kind="a", line=4, message='Error(s) for A:\n\tMissing "w".\n\tmore', why="")
    assert further_sentences(ScriptAnswer(name="a", outcome="fails", further=(heading,))) == (
        'Also line 4: Error(s) for A: Missing "w".',
    )


def test_torch_is_quoted_without_its_advice() -> None:
    refusal = "UnpicklingError: Weights only load failed. (1) Do this.\n\tUnpickler error: GLOBAL a.B\n  more"
    assert message_lines(ScriptAnswer(name="a", outcome="fails", message=refusal)) == (
        "UnpicklingError: Weights only load failed.",
        "Unpickler error: GLOBAL a.B",
    )
    assert message_lines(ScriptAnswer(name="a", outcome="fails")) == ()


def test_patches() -> None:
    whole = ScriptAnswer(name="a", outcome="fails", diff="x")
    assert patch_note(whole).startswith("With this patch nothing in the script fails any more")
    unsure = ScriptAnswer(name="a", outcome="fails", diff="x", unjudged=("what",))
    assert patch_note(unsure) == "With this patch the load works; not judged: what."
    assert "still fail" in patch_note(ScriptAnswer(name="a", outcome="fails", diff="x", leaves=True))
    assert patch_note(ScriptAnswer(name="a", outcome="fails", advice="Do this.")) == "Do this."
    assert patch_note(ScriptAnswer(name="a", outcome="fails")) == "No small change of the script mends this."
