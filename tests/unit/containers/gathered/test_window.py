from __future__ import annotations

import pytest

from inspector.containers.source import BytesSource, Window
from inspector.errors import DamagedError
from tests.sweep import table


def test_a_window_is_a_file_of_its_own() -> None:
    window = Window(BytesSource(b"0123456789", "a.bin"), 3, 4)
    assert (window.path, window.nbytes) == ("a.bin", 4)
    assert window.read(1, 3) == b"456"
    assert window.read_upto(2, 10) == b"56"
    with pytest.raises(DamagedError):
        window.read(2, 3)


@table("span", [(-1, 2), (0, -1), (0, 11), (9, 2)])
def test_a_window_is_within_its_file(span: tuple[int, int]) -> None:
    with pytest.raises(DamagedError, match="ends too early"):
        Window(BytesSource(b"0123456789", "a.bin"), *span)
