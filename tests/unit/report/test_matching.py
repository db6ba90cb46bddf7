from __future__ import annotations

import pytest

from inspector.report.charts.bars import Bar, Chart, Segment
from inspector.report.matching import completions, matching, query_words
from inspector.report.query import parse_query

ACTIONS = ("File: Open", "File: Open folder", "Edit: Copy the map as a command", "View: Map", "Help: Log")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("map", [2, 3]),
        ("OPEN fo", [1]),
        ("op", [0, 1, 2]),  # inside of `Copy` comes last
        ("map copy", [2]),
        ("nothing", []),
    ],
)
def test_letters_find_actions(typed: str, found: list[int]) -> None:
    assert matching(typed, ACTIONS) == found


def chart_of(*queries: str) -> Chart:
    parts = tuple(Segment(label=query, color=0, nbytes=1, query=query) for query in queries)
    return Chart(title="", bars=(Bar(label="", segments=parts, text=""),))


WORDS = query_words([chart_of("device:cuda:0", 'device:"cuda:1 x"', ""), chart_of("dtype:bfloat16")])


def test_what_the_file_has_comes_before_the_fields_and_each_word_is_one() -> None:
    assert WORDS[:3] == ("device:cuda:0", 'device:"cuda:1 x"', "dtype:bfloat16")
    assert len(set(WORDS)) == len(WORDS)
    for word in WORDS[3:]:
        bound = f"{word}1MB" if word.endswith(">") else f"{word}x" if word.endswith(":") else word
        assert parse_query(bound).terms[0].field != "path", word


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", ()),
        ("d", ()),
        ("dev", ("device:cuda:0", 'device:"cuda:1 x"', "device:")),
        ("conv1 -dt", ("-dtype:bfloat16", "-dtype:")),
        ("device:cuda:0", ()),  # nothing is left to type
        ("device:CUDA", ("device:cuda:0",)),
        ('device:"cuda:1 ', ('device:"cuda:1 x"',)),
        ('"a dev', ()),
        ("layer1", ()),
        ("is:m", ("is:missing",)),
    ],
)
def test_the_last_word_is_completed(before: str, found: tuple[str, ...]) -> None:
    assert completions(before, WORDS) == found
