from __future__ import annotations

from inspector.diagnose.script.vocabulary import words


def test_words_of_a_text() -> None:
    assert words("to  cuda\ncpu") == {"to", "cuda", "cpu"}
