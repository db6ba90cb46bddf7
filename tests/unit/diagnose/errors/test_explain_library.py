"""The library of error texts: nobody is sent the wrong way, and most get the right answer.

The rule is in `tests/errors_measure.py`, which also prints the table. A failure names no text of the half
that is only measured with.
"""

from __future__ import annotations

from tests.errors_measure import (
    FOLDER,
    FRESH,
    HALVES,
    PARTS,
    amiss,
    half_of,
    kinds,
    lines_of,
    measure,
    texts,
    total,
)
from tests.unit.diagnose.messages import messages

LEAST_RIGHT = {"open": 1.0, "held": 0.98, FRESH: 1.0}


def test_most_texts_are_answered_rightly_and_none_wrongly() -> None:
    for half in PARTS:
        marks = total(measure(half))
        shown = "\n".join([*lines_of(half), *(amiss(half) if half != "held" else ())])
        assert marks["wrong"] == 0, shown
        assert marks["right"] / marks.total() >= LEAST_RIGHT[half], shown


def test_library_is_of_real_threads_and_split_by_hash() -> None:
    library = [(part, text) for part in PARTS for text in texts(part)]
    assert all(half_of(text.text) == part for part, text in library if part != FRESH)
    assert all(text.source.startswith("https://") and text.why for _, text in library)
    assert {text.kind for _, text in library} <= set(kinds())
    written = [text.text.strip() for _, text in library] + [message.text.strip() for message in messages()]
    assert len(set(written)) == len(written)
    assert sorted(path.name for path in FOLDER.glob("library_*")) == [
        "library_fresh.toml",
        "library_held.toml",
        "library_kinds.toml",
        "library_open.toml",
    ]


def test_fresh_texts_are_of_threads_that_no_other_text_is_of() -> None:
    fresh = [text.source for text in texts(FRESH)]
    others = {text.source for half in HALVES for text in texts(half)}
    others |= {source for message in messages() for source in message.source.split()}
    assert len(set(fresh)) == len(fresh)
    assert others.isdisjoint(fresh)
