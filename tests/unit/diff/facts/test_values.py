from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.facts import compare_values
from inspector.diff.records import Rule
from inspector.diff.side import open_side
from inspector.progress import Progress
from tests.builders.states import Pairs, T, save_zip


def changes(tmp_path: Path, a: Any, b: Any, *rules: Rule) -> dict[str, tuple[str, str]]:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        found = compare_values(one, other, rules, lambda: None)
        texts = {
            one.checkpoint.values[change.a].path: (change.a_text, change.b_text) for change in found.changed
        }
        texts |= {one.checkpoint.values[number].path: ("gone", "") for number in found.removed}
        return texts | {other.checkpoint.values[number].path: ("", "new") for number in found.added}


def test_long_texts_and_lists_are_shown_where_they_differ(tmp_path: Path) -> None:
    a = {"t": "a" * 300 + "X", "s": "short", "l": [1, 2, 3], "e": [], "z": "b" * 200, "m": [1, 2]}
    b = {
        "t": "a" * 300 + "Y" * 200,
        "s": "shore",
        "l": [1, 2, 3, 4],
        "e": [5],
        "z": "c" * 200,
        "m": [1, True],
    }
    found = changes(tmp_path, a, b)
    assert found["t"] == (
        f"301 characters, from 300 on: \u2026{'a' * 24}X",
        f"500 characters, from 300 on: \u2026{'a' * 24}{'Y' * 95}\u2026",
    )
    assert found["s"] == ("short", "shore")
    assert found["l"] == ("3 items", "4 items, [3] is 4")
    assert found["e"] == ("[]", "[5]")
    assert found["z"] == (
        f"200 characters, from 0 on: {'b' * 119}\u2026",
        f"200 characters, from 0 on: {'c' * 119}\u2026",
    )
    assert found["m"] == ("2 items, [1] is 2", "2 items, [1] is True")


def test_contents_that_no_text_shows_are_said_to_differ(tmp_path: Path) -> None:
    from tests.builders import pickles as p
    from tests.builders.states import Raw

    def closed(text: str) -> Raw:
        return Raw(p.call("m.Closed", p.text("x" * 250 + text)))

    found = changes(tmp_path, {"o": closed("a")}, {"o": closed("b")})
    assert found["o"][1] == f"{found['o'][0]} (other contents)"


def test_keys_and_moved_values(tmp_path: Path) -> None:
    assert changes(tmp_path, Pairs(((1, 2.0),)), {"1": 2.0}) == {
        "1": ("under the key 1", "under the key '1'")
    }
    deep = Pairs(((1, {"a": 2.0}),)), {"1": {"a": 2.0}}
    assert changes(tmp_path, *deep) == {"1/a": ("under the key 1", "under the key '1'")}
    a, b = {"m": {"x": 1, "y": 2}, "k": 3}, {"n": {"x": 1, "z": 2}, "k": 3}
    assert changes(tmp_path, a, b, Rule("m/", "n/", 2, "prefix")) == {"m/y": ("gone", ""), "n/z": ("", "new")}
    assert set(changes(tmp_path, a, b, Rule("m.", "n.", 2, "prefix"))) == {"m/x", "m/y", "n/x", "n/z"}


def test_objects_at_two_places_are_those_of_the_first(tmp_path: Path) -> None:
    shared = {"x": 1, "w": T([1.0])}
    assert changes(tmp_path, {"p": shared, "q": shared}, {"p": shared, "q": {"x": 2, "y": 5}}) == {
        "p/x": ("1", "2"),
        "q/y": ("", "new"),
    }
    loop: dict[str, Any] = {"x": 1}
    loop["me"] = loop
    other: dict[str, Any] = {"x": 1, "in": {"y": 1}}
    other["me"] = other["in"]
    assert changes(tmp_path, loop, other)["me"] == ("the same object as the root", "the same object as in")
