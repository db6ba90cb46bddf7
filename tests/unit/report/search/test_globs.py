from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.report.terms import Glob, glob_of, has_wildcards
from tests.work import growth

COVERED = {
    "*.bias": ["a.bias", "m/a.b.bias", ".bias"],
    "layer?.conv*": ["model/layer1.conv1.weight", "layer2.conv", "layer.layer3.conv"],
    "w?": ["a.w1", "w2", "a/w3"],
    "*": ["", "a", "a.b/c"],
    "a*": ["a", "x.ab", "b/a.c"],
    "*a*b*": ["xaxbx", "ab"],
    "a*a": ["aa", "axa", "x/a.a"],
    "??": ["ab", "x.ab"],
    "[x]*": ["[x]", "m.[x]y"],
}
LEFT = {
    "*.bias": ["a.bias_hh", "bias", "a.biases"],
    "layer?.conv*": ["layer12.conv", "mylayer1.conv1", "layer1.bn"],
    "w?": ["w", "a.w12", "aw1"],
    "a*": ["ba", ""],
    "*a*b*": ["ba", "a", "b"],
    "a*a": ["a", "xa.b"],
    "??": ["a", "abc", "x.a"],
    "[x]*": ["x"],
}


def test_what_patterns_cover_and_what_they_leave() -> None:
    wrong = [(p, n) for p, names in COVERED.items() for n in names if glob_of(p).spans(n) is None]
    wrong += [(p, n) for p, names in LEFT.items() for n in names if glob_of(p).spans(n) is not None]
    assert wrong == []
    assert [has_wildcards(text) for text in ("a*", "?", "a.b[0]")] == [True, True, False]


def test_the_pieces_are_marked() -> None:
    assert glob_of("*.bias").spans("m/a.bias") == [(3, 8)]
    assert glob_of("layer?.*.bias").spans("m/layer1.0.bias") == [(2, 9), (10, 15)]
    assert glob_of("a?").spans("m/ab") == [(2, 4)]


@pytest.mark.wide
@given(st.text("ab*?./", max_size=8), st.text("ab./", max_size=12))
def test_it_is_what_a_regular_expression_of_stars_would_find(pattern: str, name: str) -> None:
    body = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    truth = re.search(rf"(?:^|(?<=[/.])){body}\Z", name, re.DOTALL) is not None
    assert (Glob(pattern).spans(name) is not None) == truth


def test_no_pattern_takes_more_than_its_pieces() -> None:
    pieces = growth(lambda count: lambda: Glob("*a" * count + "*b").spans("a" * 2000), 20, 80)
    assert pieces < 1.2
