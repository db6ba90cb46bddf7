from __future__ import annotations

import gzip
from collections.abc import Callable

from inspector.containers.packed import open_source
from inspector.containers.unread import passes_for_tar
from tests.builders import legacy, zips
from tests.builders.pickles import NONE, stream
from tests.builders.tars import archive, with_header
from tests.sweep import table

Write = Callable[..., str]
TAR = archive({"a": b"x"}, mtime=0)


@table(
    ("data", "expected"),
    [
        (TAR, True),
        (with_header(TAR, 257, bytes(8)), True),
        (bytes(1024), True),
        (TAR[:511], False),
        (TAR[:148] + b"zzzzzzzz" + TAR[156:], False),
        (TAR[:148] + b"\x80\0\0\0\0\0\0\1" + TAR[156:], False),
        (TAR[:148] + b"0000001\0" + TAR[156:], False),
        (legacy.checkpoint(stream(NONE)) + bytes(600), False),
        (zips.checkpoint(stream(NONE)) + bytes(600), False),
        (gzip.compress(TAR), True),
        (b"", False),
    ],
)
def test_what_passes_for_tar(write: Write, data: bytes, *, expected: bool) -> None:
    with open_source(write(data)) as source:
        assert passes_for_tar(source) is expected
