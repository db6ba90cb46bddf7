from __future__ import annotations

import pytest

from inspector.containers.source import BytesSource
from inspector.containers.table.row import Format
from inspector.errors import NotACheckpointError, UnsupportedFormatError


def test_a_row_without_a_reader_names_its_format() -> None:
    source = BytesSource(b"x", "a.bin")
    with pytest.raises(UnsupportedFormatError, match="this is an x file, which this version does not read"):
        Format(name="x", what="an x file").reader_for(source)
    with pytest.raises(NotACheckpointError, match="this is an x file"):
        Format(name="x", what="an x file", is_foreign=True).reader_for(source)
