from __future__ import annotations

from inspector.model.checkpoint import Key, OddKey
from inspector.model.values.text import TwinNumber, TwinOddKey, TwinText, twin_of
from tests.sweep import table


@table(("key", "kind"), [("a", TwinText), (OddKey("None"), TwinOddKey), (7, TwinNumber)])
def test_a_twin_is_equal_to_its_key_and_of_its_kind(key: Key, kind: type) -> None:
    twin = twin_of(key, 3)
    assert (twin, type(twin), twin.turn) == (key, kind, 3)
    assert isinstance(twin, type(key))
    assert hash(twin) == hash(key)
