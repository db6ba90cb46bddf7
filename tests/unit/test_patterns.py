from __future__ import annotations

import re

import pytest

from inspector.patterns import pattern


def test_a_pattern_is_compiled_when_it_is_used(monkeypatch):
    compiled: list[str] = []

    def compile_counted(text: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(text)
        return own(text, flags)

    own = re.compile
    monkeypatch.setattr(re, "compile", compile_counted)
    words = pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert compiled == []
    for _ in range(3):
        match = words.match("Ab1")
        assert match is not None
        assert match["word"] == "Ab"
    assert compiled == [r"(?P<word>[a-z]+)"]
    assert words.sub("x", "Ab1cd") == "x1x"
    assert (words.pattern, words.groups) == (r"(?P<word>[a-z]+)", 1)
    assert pattern(rb"\d+").findall(b"1 23") == [b"1", b"23"]


def test_what_no_pattern_has_and_a_wrong_one_are_refused():
    with pytest.raises(AttributeError, match="no_such"):
        _ = pattern("a").no_such
    with pytest.raises(re.error):
        pattern("(").match("a")
