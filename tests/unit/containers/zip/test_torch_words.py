"""The words are torch's own: each is got out of torch."""

from __future__ import annotations

import io

import pytest

from inspector.containers.zip.directory import (
    NO_VERSION,
    UNDECODABLE,
    MinizError,
    miniz_words,
    no_folder_words,
)
from tests.builders.zips import Record, build_zip
from tests.sweep import table

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
PICKLE = Record(name="a/data.pkl", data=b"\x80\x02N.")
VERSION = Record(name="a/version", data=b"3\n")


@table(
    ("records", "words"),
    [
        ([PICKLE], NO_VERSION),
        ([Record(name="data.pkl")], no_folder_words("data.pkl")),
        ([PICKLE, VERSION, Record(name="b/x")], no_folder_words("b/x", "a/")),
        ([PICKLE, VERSION, Record(name=b"a/\xff")], UNDECODABLE),
        ([VERSION], miniz_words("locating file data.pkl", MinizError.NOT_FOUND)),
        (
            [VERSION, Record(name="a/data.pkl", data=b"1234", flags=1)],
            miniz_words("retrieving file meta-data for data.pkl", MinizError.ENCRYPTED),
        ),
        (
            [VERSION, Record(name="a/data.pkl", data=b"1234", method=99)],
            miniz_words("retrieving file meta-data for data.pkl", MinizError.METHOD),
        ),
    ],
)
def test_words(records: list[Record], words: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        torch.load(io.BytesIO(build_zip(*records)))
    said = f"{type(caught.value).__name__}: {caught.value}"
    kind, _, rest = words.partition(": ")
    assert said.startswith(kind)
    assert rest in said
