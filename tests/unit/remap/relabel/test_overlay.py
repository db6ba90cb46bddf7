from __future__ import annotations

from inspector.containers.source import BytesSource
from inspector.remap.in_place import Overlay
from inspector.remap.relabel import Patch
from tests.sweep import table

DATA = bytes(range(100))
PIECES = (Patch(3, b"abc"), Patch(6, b"d"), Patch(50, b"efgh"), Patch(96, b"ijkl"))
WHOLE = DATA[:3] + b"abcd" + DATA[7:50] + b"efgh" + DATA[54:96] + b"ijkl"


@table("step", [1, 2, 3, 7, 100])
def test_pieces_are_read_in_place_of_what_is_there(step: int) -> None:
    with Overlay(BytesSource(DATA, "x"), PIECES, 100) as source:
        assert b"".join(source.read_upto(at, step) for at in range(0, 100, step)) == WHOLE
        assert source.read_upto(99, 5) == b"l"
        assert source.skip_hole(7) == 7


def test_a_file_may_be_cut_off_and_never_grows() -> None:
    with Overlay(BytesSource(DATA, "x"), PIECES, 52) as source:
        assert (source.nbytes, source.file_nbytes) == (52, 52)
        assert source.read_upto(0, 200) == WHOLE[:52]
    with Overlay(BytesSource(DATA, "x"), (), 1 << 40) as source:
        assert source.nbytes == 100
