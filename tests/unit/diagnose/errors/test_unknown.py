"""What is said of a text that no row knows: short, about the step, the file and the lines that would help."""

from __future__ import annotations

import pytest

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import UNRECOGNIZED, Explanation
from inspector.errors import DamagedError
from inspector.model.build import open_checkpoint
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS, varied
from tests.sweep import table

PLAIN = open_checkpoint(str(CORPUS / "zip" / "state_dict.pt"))
TRAIN = open_checkpoint(str(CORPUS / "zip" / "train.pt"))
CALL = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in main
    {code}
  File "/venv/lib/python3.10/site-packages/{place}", line 3, in {function}
    do_it()
ArithmeticError: nobody knows {more}
"""
STEPS = {
    "torch/serialization.py": "load",
    "torch/nn/modules/conv.py": "_conv_forward",
    "torch/optim/adam.py": "load_state_dict",
    "torch/utils/data/dataloader.py": "__next__",
    "torch/nn/parallel/data_parallel.py": "forward",
    "a_package/of_somebody.py": "do",
}


def words(found: Explanation) -> int:
    return sum(
        len(part.split()) for part in (found.title, found.cause, found.where, found.here, found.advice)
    )


def traceback(place: str, code: str = "run(model)", more: str = "why") -> str:
    return CALL.format(place=place, function=STEPS[place], code=code, more=more)


@table(
    "text", ["", "   \n\t", "It does not work.", "SyntaxError: invalid syntax", "ZeroDivisionError: division"]
)
def test_unknown_text_says_so_and_what_would_help(text: str) -> None:
    found = explain_error(text, PLAIN, CPU_ONLY)
    assert (found.id, found.fits, found.fix, found.finding) == (UNRECOGNIZED, "unknown", None, "")
    assert found.here == "Nothing is known to be wrong with this file."
    assert found.title == ("There is no text" if not text.strip() else "This message is not recognized")
    assert "'Traceback'" in found.advice
    name = text.partition(":")[0]
    assert found.cause == (f"Recognized: {name}." if ":" in text else "No error stands in it.")


def test_the_error_its_place_and_step_are_named() -> None:
    found = explain_error(traceback("torch/optim/adam.py"), PLAIN, CPU_ONLY)
    assert found.cause == "Recognized: ArithmeticError, raised by torch while optimizer state was loaded."
    assert found.where == "train.py, line 12, in main: run(model)"
    assert found.here == "This file holds no optimizer state that could cause it."
    assert "only its optimizer state" in explain_error(traceback("torch/optim/adam.py"), TRAIN).here
    assert "names, shapes" in explain_error(traceback("torch/nn/modules/conv.py"), PLAIN).here
    assert "probably no part" in explain_error(traceback("torch/utils/data/dataloader.py"), PLAIN).here


@pytest.mark.wide
def test_it_has_at_most_sixty_words_whatever_the_file() -> None:
    """Also where the line and the message are long."""
    long = (
        "net = build(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, 1, 2, 3)"
    )
    files = [
        PLAIN,
        TRAIN,
        *(open_checkpoint(str(case.path)) for case in varied() if case.container != "invalid"),
    ]
    for place in STEPS:
        text = traceback(place, code=long, more="of it " * 200)
        longest = max(words(explain_error(text, file, CPU_ONLY)) for file in files)
        assert 20 < longest <= 60, place


def test_a_file_that_cannot_be_read_is_not_called_none() -> None:
    unread = DamagedError("the file ends too early")
    for text in (
        "it is bad",
        "RuntimeError: unexpected EOF, expected 9 more bytes.",
        "KeyError: 'state_dict'",
    ):
        found = explain_error(text, None, CPU_ONLY, unread=unread)
        assert found.here == "The given file cannot be read: the file ends too early."
        assert found.fits == ("yes" if "EOF" in text else "unknown")
