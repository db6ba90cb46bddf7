"""Archives larger than 4 GiB, laid out by us, as torch's own reader understands them; full of holes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from inspector.remap.zip_layout import Record, write_zip
from tests.sweep import table

pytestmark = pytest.mark.torch
GIB = 1 << 30


def write(path: Path, sizes: dict[str, int], alignment: int) -> dict[str, int]:
    """Lay out an archive; return where the contents of each record start."""
    places = {}
    with path.open("wb") as file:

        def skip(name: str) -> int:
            places[name] = file.tell()
            if name == "version":
                file.write(b"3\n")
            file.seek(places[name] + sizes[name])
            return 0

        rows = [Record(f"a/{name}", nbytes, nbytes, partial(skip, name)) for name, nbytes in sizes.items()]
        write_zip(rows, alignment, file.write)
    return places


@table("alignment", [64, 4096])
@table("large", [GIB, 4 * GIB - 1, 4 * GIB, 5 * GIB])
def test_torch_finds_and_computes_every_place(tmp_path: Path, large: int, alignment: int) -> None:
    sizes = {
        "data.pkl": 100,
        "data/0": large,
        "data/1": 7,
        "data/2": large,
        "data/3": 0,
        "data/4": 9,
        "version": 2,
    }
    path = tmp_path / "large.pt"
    places = write(path, sizes, alignment)
    reader = torch._C.PyTorchFileReader(str(path))
    assert set(reader.get_all_records()) == set(sizes)
    assert {name: reader.get_record_offset(name) for name in sizes} == places
    # What `calculate_storage_offsets` does: from the end of one record to the contents of the next.
    for name, following in pairwise(sizes):
        start = reader.get_record_header_offset(following)
        assert start == places[name] + sizes[name] + descriptor(
            sizes[name], reader.get_record_header_offset(name)
        )
        computed = reader.get_record_offset_no_read(start, following, sizes[following], alignment)
        assert computed == places[following]


def descriptor(nbytes: int, start: int) -> int:
    """What torch's `_get_offset` reckons with behind a record."""
    if not nbytes:
        return 0
    return 24 if max(nbytes, start) >= 0xFFFFFFFF else 16
