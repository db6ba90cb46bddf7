from __future__ import annotations

from itertools import product

import pytest

from inspector.errors import PlanError
from inspector.remap.forms import Patterns, lineage_of
from inspector.remap.rules import Rule, literal_pattern


def test_patterns_cover_what_is_below() -> None:
    patterns = Patterns(("optimizer", "model/head.*", "**/bias"))
    covered = [
        path
        for path in ("optimizer/0", "optimizers", "model/head.w", "model/x", "a/b/bias")
        if patterns.cover(path)
    ]
    assert covered == ["optimizer/0", "model/head.w", "a/b/bias"]
    patterns.refuse_unused("best.pth")
    assert not Patterns(()).cover("anything")


def test_patterns_that_cover_nothing_are_mistyped() -> None:
    patterns = Patterns(("optimizer", "optimiser"))
    assert patterns.cover("x", "optimizer")
    assert not patterns.cover("x")
    with pytest.raises(PlanError, match="nothing in the file matches the pattern: optimiser"):
        patterns.refuse_unused("best.pth")


def test_lineage_begins_outermost() -> None:
    assert lineage_of("a/b/c") == ["a", "a/b", "a/b/c"]


def test_each_pattern_that_covers_something_is_told() -> None:
    patterns = Patterns(("a", "a/*", "a", "a/b", "**/b", "[*]", "c"))
    assert patterns.texts == ("a", "a/*", "a/b", "**/b", "[*]", "c")
    assert patterns.find("a/b") == {0, 1, 2, 3}
    assert patterns.find("a/b/c") == {0, 1, 2, 3}
    assert patterns.find("*") == {4}
    assert patterns.unused == ("c",)


def test_two_spellings_of_one_path_both_cover_it() -> None:
    patterns = Patterns(("a[", literal_pattern("a["), "a[[]"))
    assert patterns.find("a[/b") == {0, 1}
    assert patterns.unused == ()


def test_what_stands_above_is_looked_at_once(monkeypatch) -> None:
    patterns = Patterns(("**/x", "state/*"))
    tried = []
    find = Patterns._find
    monkeypatch.setattr(
        Patterns, "_find", lambda self, paths: tried.append(tuple(paths)) or find(self, paths)
    )
    assert not any(patterns.cover(f"model/layer{number}") for number in range(50))
    assert tried.count(("model",)) == 1
    assert len(tried) == 51


def test_patterns_that_are_looked_up_cover_what_they_would_if_they_were_tried() -> None:
    patterns = (
        "m/a.*",
        "m/a.b.*",
        "m/[*].*",
        ".*",
        "m/.*",
        "a..*",
        "a.*",
        "a[.*",
        "a[[].*",
        "m/a.b",
        "m/a**.*",
    )
    together = Patterns(patterns)
    paths = [
        "/".join(steps)
        for count in (1, 2)
        for steps in product(
            ("m", "a", "a.b", "a.b.c", "a.", "a..b", ".x", "*.b", "a[.c", "x.a.b"), repeat=count
        )
    ]
    wrong = []
    for path in paths:
        parts = lineage_of(path)
        told = {at for at, text in enumerate(patterns) if Rule(path=text, to="cpu").matches("", parts)}
        if together.find(path) != told:
            wrong.append((path, together.find(path), told))
    assert wrong == []
    assert len(together._globs) == 2
