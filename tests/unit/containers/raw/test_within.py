from __future__ import annotations

from inspector.containers.codings import TEXT, Within
from inspector.containers.source import BytesSource

OUTER = BytesSource(b"head" + b"inside" + b"tail", "a.pkl")


def test_a_part_ends_where_it_ends() -> None:
    part = Within(OUTER, 4, 6, 6)
    assert (part.nbytes, part.path) == (6, "a.pkl")
    assert part.read(1, 3) == b"nsi"
    assert part.read_upto(4, 100) == b"de"
    assert part.stored_at(2) == 6


def test_a_part_that_is_spelled_as_a_text() -> None:
    text = "a\xe9b\xff".encode()
    part = Within(BytesSource(b"XX" + text + b"!", "a.pkl"), 2, 4, len(text), TEXT)
    assert part.read(0, 4) == b"a\xe9b\xff"
    assert [part.stored_at(place) for place in range(5)] == [2, 3, 5, 6, 8]
    assert Within(OUTER, 4, 6, 2).read_upto(0, 6) == b"in"
