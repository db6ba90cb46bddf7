from __future__ import annotations

import pytest

from inspector.target import versions
from inspector.target.versions import NEWEST, release_of
from tests.sweep import table


@table(
    ("text", "release"),
    [
        ("2.13.0+cpu", (2, 13)),
        ("1.4.0", (1, 4)),
        ("2.6.0a0+git1234", (2, 6)),
        (None, NEWEST),
        ("", NEWEST),
        ("unknown", NEWEST),
        ("99999999999999.1", NEWEST),
    ],
)
def test_release_of(text: str | None, release: tuple[int, int]) -> None:
    assert release_of(text) == release


def test_the_newest_is_the_torch_that_texts_are_compared_with() -> None:
    torch = pytest.importorskip("torch")
    assert release_of(torch.__version__) == NEWEST


def test_no_change_is_younger_than_the_newest() -> None:
    changes = [value for name, value in vars(versions).items() if name.isupper() and isinstance(value, tuple)]
    assert len(changes) > 10
    assert all(change <= NEWEST for change in changes)
