from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.diagnose.script.problems import Lost, Problem
from inspector.report.words.scripts import further_sentences, patch_note, script_headline, script_limits

LOST = Lost(line=7, why="it ends")


def test_headlines() -> None:
    rows = [
        (ScriptAnswer(name="a", outcome="fails", line=3), "Line 3 fails."),
        (ScriptAnswer(name="a", outcome="fails", line=3, is_notebook=True), "Cell line 3 fails."),
        (ScriptAnswer(name="a", outcome="silent", line=3), "Line 3 raises nothing, and does nothing."),
        (
            ScriptAnswer(name="a", outcome="lost", lost=LOST),
            "Nothing fails before line 7. From there on it cannot be followed: it ends.",
        ),
        (
            ScriptAnswer(name="a", outcome="works"),
            "Nothing in this script fails with this file on this target.",
        ),
        (
            ScriptAnswer(name="a", outcome="not-loaded"),
            "No call of torch.load in this script loads this file.",
        ),
    ]
    assert [script_headline(answer) for answer, _ in rows] == [wanted for _, wanted in rows]


def test_what_comes_next_and_what_it_rests_on() -> None:
    further = (
        Problem(kind="a", line=4, message="KeyError: 'a'\nmore", why="w"),
        Problem(kind="b", line=5, message="", why="Nothing is loaded."),
    )
    answer = ScriptAnswer(
        name="a", outcome="fails", line=3, further=further, lost=LOST, assumed=("line 2: args.resume",)
    )
    assert further_sentences(answer) == ("Then line 4: KeyError: 'a'", "Then line 5: Nothing is loaded.")
    assert script_limits(answer) == (
        "Taken for true: line 2: args.resume.",
        "From line 7 on not all is known: it ends.",
    )
    assert script_limits(ScriptAnswer(name="a", outcome="lost", lost=LOST)) == ()


def test_what_comes_next_is_said_once_for_each_line_and_says_something() -> None:
    further = (
        Problem(
            kind="a", line=4, message='Error(s) in loading state_dict for A:\n\tMissing "w".\n\tmore', why=""
        ),
        Problem(kind="b", line=4, message="Error(s) in loading state_dict for A:", why=""),
        Problem(kind="c", line=5, message="x" * 1000, why=""),
    )
    first, second = further_sentences(ScriptAnswer(name="a", outcome="fails", line=3, further=further))
    assert first == 'Then line 4: Error(s) in loading state_dict for A: Missing "w".'
    assert len(second) < 250


def test_patches() -> None:
    assert patch_note(ScriptAnswer(name="a", outcome="fails", diff="x")).startswith("With this patch")
    assert patch_note(ScriptAnswer(name="a", outcome="fails", advice="Do this.")) == "Do this."
    assert patch_note(ScriptAnswer(name="a", outcome="fails")) == "No small change of the script mends this."
