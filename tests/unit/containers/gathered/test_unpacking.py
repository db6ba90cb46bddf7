from __future__ import annotations

import json
import re

import pytest

from inspector.containers.container import Chunk, Gathered, Place
from inspector.containers.gathered import UNPACKERS
from inspector.containers.source import BytesSource
from inspector.errors import ContainerError, DamagedError
from tests.builders.dcp import saved_tensor, saved_value, saved_zip
from tests.builders.pickles import call, name, number, op, proto, storage, stream, tuple_
from tests.builders.zips import Record
from tests.sweep import table

DATA = bytes(range(24))


def unpack(
    packing: str,
    data: bytes,
    *,
    dtype: str = "float32",
    sizes: tuple[int, ...] = (2, 3),
    before: int = 5,
    **own: int,
) -> Place:
    chunk = Chunk((0,) * len(sizes), sizes, 0, before, own.get("length", len(data)), packing)
    gathered = Gathered("w", dtype, 4, sizes, (chunk,))
    return UNPACKERS[packing](BytesSource(bytes(before) + data, "__0_0.distcp"), gathered, chunk)


def rebuilt(
    *arguments: bytes, function: str = "_rebuild_tensor_v2", cls: str = "torch.FloatStorage"
) -> bytes:
    root = call(f"torch._utils.{function}", storage("0", cls, numel=6), *arguments)
    return saved_zip(stream(proto(), root), {"0": DATA})


SIZES, STEPS = tuple_(number(2), number(3)), tuple_(number(3), number(1))
REST = (op("NEWFALSE"), call("collections.OrderedDict"))


def test_a_tensor_of_torch_save_is_found() -> None:
    data = saved_tensor(DATA, (2, 3))
    assert unpack("zip", data) == Place(5 + data.index(DATA))
    across = unpack("zip", saved_tensor(DATA, (2, 3), strides=(1, 2)))
    assert across.strides == (1, 2)


def test_a_tensor_may_begin_within_its_storage() -> None:
    inner = rebuilt(number(2), tuple_(number(2), number(2)), tuple_(number(2), number(1)), *REST)
    assert unpack("zip", inner, sizes=(2, 2)).offset == 5 + inner.index(DATA) + 8


def test_the_third_generation_names_its_type() -> None:
    data = rebuilt(number(0), SIZES, STEPS, *REST, name("torch.uint32"), function="_rebuild_tensor_v3")
    assert unpack("zip", data, dtype="uint32").strides is None
    with pytest.raises(DamagedError, match="where float32 "):
        unpack("zip", data)
    for odd in (number(3), name("os.float32")):
        with pytest.raises(DamagedError, match="a way of its own"):
            unpack("zip", rebuilt(number(0), SIZES, STEPS, *REST, odd))


def test_steps_of_single_elements_are_anything() -> None:
    one = rebuilt(number(0), tuple_(number(1), number(6)), tuple_(number(99), number(1)), *REST)
    assert unpack("zip", one, sizes=(1, 6)).strides is None


@table(
    ("data", "why"),
    [
        (saved_tensor(DATA, (3, 2)), "the file holds float32 [3, 2], where float32 [2, 3] is expected"),
        (saved_tensor(DATA, (2, 3), cls="torch.LongStorage"), "int64"),
        (saved_tensor(DATA[:8], (2, 3)), "not all in the file"),
        (rebuilt(number(1), SIZES, STEPS, *REST), "not all in the file"),
        (saved_tensor(DATA, (2, 3), strides=(3, 2)), "not all in the file"),
        (saved_tensor(DATA, (2, 3), strides=(3, 9)), "not all in the file"),
        (saved_value(number(3)), "a way of its own"),
        (saved_value(call("torch._utils._rebuild_qtensor", number(3))), "a way of its own"),
        (rebuilt(number(0), SIZES), "a way of its own"),
        (rebuilt(number(0), number(2), STEPS, *REST), "a way of its own"),
        (rebuilt(number(0), SIZES, tuple_(number(1)), *REST), "a way of its own"),
        (rebuilt(number(-1), SIZES, STEPS, *REST), "a way of its own"),
        (saved_tensor(DATA, (2, 3))[:-1], "damaged"),
        (b"no zip at all, but as long as one would be ........", "cannot be read"),
        (
            saved_zip(
                stream(
                    proto(),
                    call(
                        "torch._utils._rebuild_tensor_v2",
                        storage("0", numel=6),
                        number(0),
                        SIZES,
                        STEPS,
                        *REST,
                    ),
                ),
                {"0": DATA},
                Record(name="archive/byteorder", data=b"big"),
            ),
            "big-endian",
        ),
    ],
)
def test_what_is_something_else_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(DamagedError, match=re.escape(why)):
        unpack("zip", data)


def test_little_endian_is_said_by_newer_files() -> None:
    root = call("torch._utils._rebuild_tensor_v2", storage("0", numel=6), number(0), SIZES, STEPS, *REST)
    data = saved_zip(stream(proto(), root), {"0": DATA}, Record(name="archive/byteorder", data=b"little"))
    assert unpack("zip", data).strides is None


def test_plain_bytes_must_be_there() -> None:
    assert unpack("", DATA) == Place(5)
    for nbytes in (20, 24):
        with pytest.raises(DamagedError, match="ends before"):
            unpack("", DATA[:20], length=nbytes)


def safetensors(header: object, data: bytes = DATA) -> bytes:
    told = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(told).to_bytes(8, "little") + told + data


def entry(**changed: object) -> dict[str, object]:
    return {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24], **changed}}


def test_a_tensor_of_safetensors_is_found_by_its_name() -> None:
    data = safetensors(entry())
    assert unpack("safetensors", data, length=24) == Place(5 + len(data) - 24)


@table(
    "header",
    [
        {},
        [],
        {"w": 3},
        b"{",
        entry(dtype="F64"),
        entry(dtype="XX"),
        entry(shape=[3, 2]),
        entry(data_offsets=[0, 25]),
        entry(data_offsets=[-4, 20]),
        entry(data_offsets=[4, 28]),
        entry(data_offsets=["0", 24]),
        entry(data_offsets=[0.0, 24.0]),
        entry(dtype=[]),
    ],
)
def test_other_safetensors_are_refused(header: object) -> None:
    with pytest.raises(DamagedError):
        unpack("safetensors", safetensors(header), length=24)


def test_the_header_of_safetensors_is_bounded() -> None:
    with pytest.raises(DamagedError, match="not where it should be"):
        unpack("safetensors", (1 << 40).to_bytes(8, "little") + bytes(99))


def test_what_is_compressed_is_named() -> None:
    with pytest.raises(ContainerError, match="compressed in a way that is not read here"):
        unpack("transformed", DATA)
