"""No number that JSON does not have, however large those in a file are."""

from __future__ import annotations

import json
import math
import struct

import pytest

from inspector.diff.compare import Wish, compare_paths
from inspector.diff.series import compare_series
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.series import series_document
from inspector.report.jsonable import finite
from inspector.report.values import scan_document, statistics_document
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from inspector.values.statistics import scan_checkpoint
from tests.schemas import check_lines
from tests.unit.remap.samples import call, group, mapping, name, stream, text, written, zip_of


def test_null_stands_for_what_is_no_number() -> None:
    given = {"a": [1, 2.5, math.nan, {"b": math.inf, "c": "nan", "d": None}], "e": -math.inf, "f": True}
    assert finite(given) == {"a": [1, 2.5, None, {"b": None, "c": "nan", "d": None}], "e": None, "f": True}


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two matrices whose difference, norm and greatest singular value no double can hold."""
    storage = group(text("storage"), name("torch", "DoubleStorage"), text("0"), text("cpu"), b"K\x04") + b"Q"
    hooks = call(name("collections", "OrderedDict"))
    geometry = (b"K\x00", b"K\x02K\x02\x86", b"K\x02K\x01\x86", b"\x89", hooks)
    matrix = call(name("torch._utils", "_rebuild_tensor_v2"), storage, *geometry)
    found = []
    for number, values in enumerate(((1.7e308, -1.7e308, 1.0, 2.0), (-1.7e308, 1.7e308, 1e-320, 0.0))):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = zip_of(stream(mapping(w=matrix)), {"0": struct.pack("<4d", *values)})
        found.append(str(written(folder, data)))
    return found


def test_documents_of_numbers_that_overflow(files: list[str]) -> None:
    checkpoint = open_checkpoint(files[0])
    with ValueReader() as reader:
        found = reader.statistics(Requests(checkpoint), 0, Progress())
        ranks = reader.ranks(Requests(checkpoint), 0, Progress())
        scan = scan_checkpoint(checkpoint, reader, Progress())
    assert not math.isfinite(ranks.largest)
    diff = diff_document(compare_paths(*files, Wish(mode="numbers")))
    for command, document in (
        ("stats", statistics_document(checkpoint, 0, found, ranks)),
        ("stats", scan_document(checkpoint, scan, ())),
        ("diff", diff),
        ("diff", series_document(compare_series(files, Progress()))),
    ):
        check_lines(command, json.dumps(document))
    assert diff["changed"][0]["distance"] is None
