from __future__ import annotations

import pickle

from inspector.containers.source import BytesSource
from inspector.containers.table.pickles import PICKLE_ROWS, is_pickle
from tests.sweep import table


@table("protocol", range(6))
def test_pickles_of_every_protocol(protocol: int) -> None:
    assert is_pickle(BytesSource(pickle.dumps({"a": [1, 2]}, protocol), "a"))


def test_other_bytes() -> None:
    assert not any(
        is_pickle(BytesSource(data, "a")) for data in (b"", b"\x80", b"\x80\x06N.", b"text", b"\x89PNG")
    )


def test_each_runs_whatever_it_names() -> None:
    assert [(row.name, row.loader, row.unchecked) for row in PICKLE_ROWS] == [
        ("pickle", "pickle.load", True),
        ("joblib", "joblib.load", True),
    ]
