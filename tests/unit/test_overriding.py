"""The mark leaves a method as it is."""

from __future__ import annotations

from inspector.overriding import override


def test_changes_nothing() -> None:
    def method() -> int:
        return 7

    assert override(method) is method
