from __future__ import annotations

from inspector.containers.dcp_metadata import Nesting
from inspector.pickles.values import Dict, Value


def plain(value: Value) -> object:
    if isinstance(value, Dict):
        return {key: plain(item) for key, item in value.pairs}
    return [plain(item) for item in value] if isinstance(value, list) else value


def nested(*entries: tuple[str, tuple[str | int, ...]]) -> object:
    nesting = Nesting(len(entries))
    for number, (name, path) in enumerate(entries):
        nesting.put(name, path, number)
    return plain(nesting.root)


def test_names_are_put_where_their_keys_lead() -> None:
    assert nested(
        ("a", ("a",)), ("m.w", ("m", "w")), ("m.b", ("m", "b")), ("l.1.x", ("l", 1, "x")), ("l.0", ("l", 0))
    ) == {
        "a": 0,
        "m": {"w": 1, "b": 2},
        "l": [4, {"x": 3}],
    }


def test_keys_that_lead_nowhere_leave_the_name_flat() -> None:
    assert nested(("a", ("a",)), ("a.b", ("a", "b"))) == {"a": 0, "a.b": 1}
    assert nested(("a", ("a",)), ("a.again", ("a",))) == {"a": 0, "a.again": 1}
    assert nested(("l.0", ("l", 0)), ("l.x", ("l", "x"))) == {"l": [0], "l.x": 1}
    assert nested(("l.0", ("l", 0)), ("l.x.y", ("l", "x", "y"))) == {"l": [0], "l.x.y": 1}
    assert nested(("l.x", ("l", "x")), ("l.0", ("l", 0))) == {"l": {"x": 0}, "l.0": 1}
    assert nested(("0", (0,))) == {"0": 0}


def test_lists_are_not_longer_than_there_are_entries() -> None:
    assert nested(("l.far", ("l", 1 << 40))) == {"l": [], "l.far": 0}
    assert nested(("l.far", ("l", 1 << 40, "x"))) == {"l": [], "l.far": 0}


def test_values_are_kept_apart_from_what_nests() -> None:
    nesting = Nesting(2)
    nesting.put("a", ("a",), Dict([]))
    nesting.put("a.b", ("a", "b"), 1)
    assert plain(nesting.root) == {"a": {}, "a.b": 1}
