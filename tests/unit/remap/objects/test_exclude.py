from __future__ import annotations

from typing import Any

import pytest

from inspector.errors import PlanError
from inspector.limits import Limits
from inspector.pickles.values import Dict
from inspector.remap.forms import Patterns
from inspector.remap.objects import Gone, leave_out
from inspector.remap.pickle_writer import Writing, write_pickle
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import mapping, ordered, texts

ONE, TWO = pickles.number(1), pickles.number(2)
OBJECT = pickles.call("mine.Thing", pickles.list_(mapping({"a": ONE})))


def left(root: bytes, *patterns: str) -> tuple[Any, list[str]]:
    """What is left of a value, and the paths that are gone."""
    value = pickles.read(root).root
    paths = [path for path, _ in leave_out(value, Patterns(patterns))]
    return pickles.root(write_pickle(value, Writing())[2:-1]), paths


def same(root: bytes) -> Any:
    """A value after it was written once, which spells some things in another way."""
    return pickles.root(write_pickle(pickles.read(root).root, Writing())[2:-1])


@table(
    ("root", "patterns", "expected", "paths"),
    [
        (mapping({"a": ONE, "b": TWO}), ("a",), mapping({"b": TWO}), ["a"]),
        (mapping({"a": mapping({"x": ONE}), "b": TWO}), ("a/*",), mapping({"a": b"}", "b": TWO}), ["a/x"]),
        (mapping({"a": mapping({"x": ONE}), "b": TWO}), ("a",), mapping({"b": TWO}), ["a"]),
        (ordered({"a": ONE, "b": TWO}), ("b",), ordered({"a": ONE}), ["b"]),
        (mapping({"l": pickles.list_(b"}", ONE)}), ("l/0",), mapping({"l": pickles.list_(ONE)}), ["l/0"]),
        (
            pickles.call("collections.OrderedDict", pickles.list_(pickles.list_(pickles.text("a"), ONE)))
            + b"("
            + pickles.text("b")
            + TWO
            + b"u",
            ("a",),
            ordered({"b": TWO}),
            ["a"],
        ),
        (
            pickles.name("mine.Thing") + b")\x81" + mapping({"x": ONE, "y": TWO}) + b"b",
            (".x",),
            pickles.name("mine.Thing") + b")\x81" + mapping({"y": TWO}) + b"b",
            [".x"],
        ),
        (
            pickles.name("mine.Thing") + b")\x81" + b"N" + mapping({"s": ONE}) + b"\x86b",
            (".s",),
            pickles.name("mine.Thing") + b")\x81" + b"N}\x86b",
            [".s"],
        ),
        (
            pickles.call("mine.Map") + b"(" + pickles.text("k") + ONE + pickles.text("l") + TWO + b"u",
            ("k",),
            pickles.call("mine.Map") + b"(" + pickles.text("l") + TWO + b"u",
            ["k"],
        ),
    ],
)  # fmt: skip
def test_entries_are_left_out(root, patterns, expected, paths) -> None:
    assert left(root, *patterns) == (same(expected), paths)


def test_equal_neighbours_are_told_apart() -> None:
    root = mapping({"a": mapping({"x": ONE}) + b"q\x05", "b": b"h\x05", "c": b"h\x05"})
    found, paths = left(root, "b")
    assert [key for key, _ in found[1]] == ["a", "c"]
    assert paths == ["b"]


def test_what_is_nested_too_deeply_has_no_path() -> None:
    def deep() -> Any:
        return pickles.read(mapping({"a": mapping({"a": mapping({"x": ONE})})})).root

    assert leave_out(deep(), Patterns(("**/x",)), Limits(depth=2)) == [Gone("a/a/x")]
    assert leave_out(deep(), Patterns(("**/x",)), Limits(depth=1)) == []
    deepest = pickles.read(b"]" * 50_000 + b"a" * 49_999).root
    assert leave_out(deepest, Patterns(("nowhere",))) == []


SHARED = mapping(
    {"a": mapping({"x": ONE, "y": TWO}) + b"q\x05", "b": b"h\x05", "c": pickles.tuple_(b"h\x05")}
)


@table(
    ("pattern", "gone"),
    [
        ("a/x", [Gone("a/x"), Gone("b/x", "a/x"), Gone("c/0/x", "a/x")]),
        ("b/x", [Gone("a/x", "b/x"), Gone("b/x"), Gone("c/0/x", "b/x")]),
        ("c/0/x", [Gone("a/x", "c/0/x"), Gone("b/x", "c/0/x"), Gone("c/0/x")]),
        ("?/x", [Gone("a/x"), Gone("b/x"), Gone("c/0/x", "a/x")]),
        ("a", [Gone("a")]),
    ],
)
def test_what_is_taken_out_of_a_shared_object_is_named_wherever_it_stood(pattern, gone) -> None:
    value = pickles.read(SHARED).root
    assert leave_out(value, Patterns((pattern,))) == gone
    (_, one), (_, other), *_ = value.pairs[-3:] if pattern != "a" else [(0, value.pairs[0][1])] * 3
    assert one is other
    assert [key for key, _ in one.pairs] == (["x", "y"] if pattern == "a" else ["y"])


def test_objects_that_are_shared_without_end_are_refused() -> None:
    """Each dictionary holds the one below it twice: there are a million million paths."""
    inner = Dict([("x", 1)])
    for _ in range(40):
        inner = Dict([("l", inner), ("r", inner)])
    with pytest.raises(PlanError, match="shared so often"):
        leave_out(inner, Patterns(("nowhere",)))


def test_loops_are_walked_once() -> None:
    root = b"}q\x00" + pickles.text("me") + b"h\x00s" + pickles.text("x") + ONE + b"s"
    assert left(root, "x")[1] == ["x"]


@table(
    ("root", "path"),
    [
        (mapping({"t": pickles.tuple_(b"}", ONE)}), "t/0"),
        (OBJECT, "0"),
        (pickles.call("builtins.dict", mapping({"a": ONE})), "a"),
        (pickles.name("mine.Thing") + b")\x81" + pickles.list_(mapping({"a": ONE})) + b"b", ".state"),
        (pickles.call("builtins.set", pickles.list_(b")", mapping({"a": ONE}))), "1"),
    ],
)
def test_what_others_would_take_the_place_of_cannot_be_left_out(root, path) -> None:
    with pytest.raises(PlanError, match="cannot be left out"):
        left(root, path)


def test_leaves_without_children_are_no_containers() -> None:
    assert left(mapping({"s": texts("a"), "b": ONE}), "b")[1] == ["b"]


def test_what_is_shown_by_its_meaning_has_no_entries() -> None:
    root = pickles.call("torch.Size", pickles.tuple_(ONE)) + mapping({"a": ONE}) + b"b"
    assert left(root, "a")[1] == []
