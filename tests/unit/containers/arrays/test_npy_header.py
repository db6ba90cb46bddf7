from __future__ import annotations

import io

import numpy as np
import pytest

from inspector.containers.npy import Header, read_header
from inspector.containers.source import BytesSource
from inspector.errors import ContainerError, DamagedError
from tests.builders.arrays import npy


def read(data: bytes) -> Header:
    return read_header(BytesSource(data, "a.npy"), lambda _: None)


def written(array: np.ndarray, version: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def test_every_version_is_read() -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for version in ((1, 0), (2, 0), (3, 0)):
        data = written(array, version)
        found = read(data)
        assert (found.version, found.shape, found.is_fortran) == (f"{version[0]}.0", (2, 3), True)
        assert data[found.start :] == array.tobytes("F")
        assert not found.is_long
    assert read(written(np.zeros(2, [("é", "<f4")]), (3, 0))).type.fields[0].name == "é"


def test_integers_of_python_2_are_read() -> None:
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 12L), }\n"
    assert read(npy(header=text)).shape == (3, 12)
    with pytest.raises(DamagedError, match="the header of an array cannot be read"):
        read(npy(header=text, version=(3, 0)))


def test_what_is_parsed_is_counted() -> None:
    looked: list[int] = []
    read_header(BytesSource(npy(), "a.npy"), looked.append)
    assert sum(looked) > 20


def test_long_headers_are_told() -> None:
    assert read(npy(header=" " * 9_000 + "{'descr':'<f4','fortran_order':False,'shape':()}")).is_long is False
    assert read(npy(header=" " * 10_000 + "{'descr':'<f4','fortran_order':False,'shape':()}")).is_long


HOSTILE: dict[str, bytes] = {
    "another version": npy(version=(4, 0)),
    "a version between": npy(version=(1, 1)),
    "no length": b"\x93NUMPY\x01\x00",
    "a header that ends early": npy()[:40],
    "a header of four gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "a header of two megabytes": npy(header=" " * (2 << 20), version=(2, 0)),
    "no literal": npy(header="__import__('os').system('id')"),
    "a call within": npy(header="{'descr': open('x'), 'fortran_order': False, 'shape': ()}"),
    "an expression": npy(header="{'descr': '<f4' * 3, 'fortran_order': False, 'shape': (2**99,)}"),
    "brackets": npy(header="(" * 30_000),
    "brackets that end": npy(header="[" * 30_000 + "]" * 30_000),
    "signs": npy(header="-" * 30_000 + "1"),
    "digits": npy(header="9" * 60_000),
    "a zero byte": npy(header="{\0}"),
    "no dict": npy(header="[1]"),
    "other keys": npy(header="{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"),
    "unhashable keys": npy(header="{[]: 1}"),
    "an order that is none": npy(fortran=1),
    "a negative shape": npy(shape=(-1,)),
    "a shape that is no tuple": npy(shape=[2]),
    "a shape of a true": npy(shape=(True,)),
    "more elements than can be counted": npy(shape=(1 << 62, 8)),
    "a type that is none": npy(descr="float32"),
    "control characters": npy(descr="\x1b[2J" * 50),
}


def test_headers_that_lie_are_one_sentence() -> None:
    for what, data in HOSTILE.items():
        with pytest.raises(ContainerError) as caught:
            read(data)
        assert len(str(caught.value)) < 400, what
        assert "\x1b" not in str(caught.value), what
