from __future__ import annotations

import json
import random
import re
from itertools import pairwise, product
from math import prod

import pytest

from inspector.containers import gathered as reading
from inspector.containers.container import Chunk, Gathered, Place
from inspector.containers.gathered import UNPACKERS, GatheredReader, in_rows, tile
from inspector.containers.source import BytesSource
from inspector.errors import ContainerError, DamagedError, ModelError
from inspector.limits import Limits
from tests.builders.dcp import floats, saved_tensor, saved_value, saved_zip
from tests.builders.pickles import call, name, number, op, proto, storage, stream, tuple_
from tests.builders.zips import Record
from tests.sweep import table


class Counted(BytesSource):
    """Bytes that count how often and how much is read of them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "part")
        self.reads: list[int] = []

    def read_at(self, offset: int, nbytes: int) -> bytes:
        self.reads.append(nbytes)
        return super().read_at(offset, nbytes)


WHOLE = floats((6, 8), (8, 1), 0)


def columns(packing: str = "") -> tuple[list[Counted], GatheredReader]:
    """A tensor of 6 x 8 whose columns are in two files."""
    chunks, parts = [], []
    for index, (first, count) in enumerate(((0, 3), (3, 5))):
        data = floats((6, count), (8, 1), first)
        if packing:
            data = saved_tensor(data, (6, count))
        parts.append(Counted(b"--" + data))
        chunks.append(Chunk((0, first), (6, count), index, 2, len(data), packing))
    gathered = Gathered("w", "float32", 4, (6, 8), tuple(chunks))
    return parts, GatheredReader(gathered, parts.__getitem__)


@pytest.mark.parametrize("packing", ["", "zip"])
def test_columns_are_read_as_rows(packing: str) -> None:
    _, reader = columns(packing)
    assert reader.read(0, 192) == WHOLE
    for start, end in ((0, 0), (5, 9), (31, 33), (100, 192)):
        assert reader.read(start, end - start) == WHOLE[start:end]
    assert reader.extents(0, 192) is None


def test_a_window_of_each_chunk_is_kept() -> None:
    parts, reader = columns()
    assert reader.read(0, 192) == WHOLE
    assert [part.reads for part in parts] == [[72], [120]]


def test_a_window_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_AHEAD_NBYTES", 16)
    monkeypatch.setattr(reading, "_LEAST_AHEAD_NBYTES", 16)
    parts, reader = columns()
    assert reader.read(0, 192) == WHOLE
    assert parts[0].reads == [16, 16, 16, 16, 16, 12]
    assert parts[1].reads == [20] * 6  # what is longer than a window is read as it is


def rows(*, strides: tuple[int, ...] = ()) -> GatheredReader:
    data = [floats((2, 4), (4, 1), 0), saved_tensor(floats((3, 4), (4, 1), 8), (3, 4), strides=strides)]
    chunks = (
        Chunk((0, 0), (2, 4), 0, 0, 32, ""),
        Chunk((2, 0), (3, 4), 1, 0, len(data[1]), "zip"),
    )
    parts = [BytesSource(one, "part") for one in data]
    return GatheredReader(Gathered("w", "float32", 4, (5, 4), chunks), parts.__getitem__)


def test_rows_are_copied_from_where_they_are() -> None:
    found = rows().extents(16, 48)
    assert found is not None
    copied = [source.read(offset, nbytes) for source, offset, nbytes in found]
    assert copied == [floats((4,), (1,), 4), floats((4,), (1,), 8)]
    one = GatheredReader(
        Gathered("w", "int8", 1, (4,), (Chunk((0,), (4,), 0, 1, 4),)), lambda _: BytesSource(b"-abcd", "p")
    )
    assert [(offset, nbytes) for _, offset, nbytes in one.extents(1, 3) or ()] == [(2, 2)]


def test_chunks_in_another_order_are_put_in_the_order_of_rows() -> None:
    reader = rows(strides=(1, 3))
    assert reader.extents(0, 80) is None
    stored = floats((3, 4), (4, 1), 8)
    by_columns = [stored[4 * at : 4 * at + 4] for at in range(12)]
    expected = b"".join(by_columns[row + 3 * column] for row in range(3) for column in range(4))
    assert reader.read(32, 48) == expected
    assert reader.read(40, 4) == expected[8:12]


def test_only_so_much_is_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_LINED", 47)
    with pytest.raises(DamagedError, match="too large to be put in order"):
        rows(strides=(1, 3)).read(32, 4)
    monkeypatch.setattr(reading, "_MOST_LINED", 60)
    reader = rows(strides=(1, 3))
    assert len(reader.read(0, 80)) == 80  # the window of the other chunk had to go


def test_a_chunk_that_is_nowhere_is_said() -> None:
    gathered = Gathered("w", "int8", 1, (4,), (Chunk((0,), (4,), -1, 0, 4),))
    with pytest.raises(DamagedError, match="a file is missing"):
        GatheredReader(gathered, lambda _: BytesSource(b"abcd", "part")).read(0, 4)


def count_nothing(_parts: int) -> None:
    """Count nothing."""


def gathered(
    shape: tuple[int, ...], *boxes: tuple[tuple[int, ...], tuple[int, ...]], itemsize: int = 2
) -> Gathered:
    chunks = tuple(Chunk(start, sizes, 0, number, 0) for number, (start, sizes) in enumerate(boxes))
    return Gathered("t", "int16", itemsize, shape, chunks)


def pasted(one: Gathered, start: int, end: int) -> list[int]:
    """The bytes of the whole, by number, as the runs name them."""
    found = []
    for chunk, at, nbytes in tile(one, count_nothing).runs(start, end):
        assert nbytes > 0
        for byte in range(at, at + nbytes):
            number, rest = divmod(byte, one.itemsize)
            place = []
            for size in reversed(chunk.sizes):
                number, step = divmod(number, size)
                place.append(step)
            whole = 0
            for size, step, first in zip(one.shape, reversed(place), chunk.starts, strict=True):
                whole = whole * size + first + step
            found.append(whole * one.itemsize + rest)
    return found


def cut(shape: tuple[int, ...], rng: random.Random) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cut a box at random into boxes."""
    boxes = [((0,) * len(shape), shape)]
    for _ in range(rng.randrange(6)):
        start, sizes = boxes.pop(rng.randrange(len(boxes)))
        axis = rng.randrange(len(shape))
        at = rng.randrange(sizes[axis] + 1)
        for first, size in ((0, at), (at, sizes[axis] - at)):
            moved = tuple(one + first * (number == axis) for number, one in enumerate(start))
            boxes.append((moved, tuple(size if number == axis else one for number, one in enumerate(sizes))))
    rng.shuffle(boxes)
    return boxes


def test_chunks_of_any_cut_are_the_whole() -> None:
    rng = random.Random(4)
    for _ in range(150):
        shape = tuple(rng.randrange(1, 6) for _ in range(rng.randrange(1, 5)))
        one = gathered(shape, *cut(shape, rng))
        nbytes = prod(shape) * 2
        assert tile(one, count_nothing).fault == "", one
        assert pasted(one, 0, nbytes) == list(range(nbytes)), one
        start, end = sorted(rng.sample(range(nbytes + 1), 2))
        assert pasted(one, start, end) == list(range(start, end)), (one, start, end)


def test_what_is_one_run_is_told_as_one() -> None:
    rows = gathered((6, 4), ((0, 0), (2, 4)), ((2, 0), (4, 4)))
    assert [run[1:] for run in tile(rows, count_nothing).runs(0, 48)] == [(0, 16), (0, 32)]
    whole = gathered((6, 4), ((0, 0), (6, 4)))
    assert [run[1:] for run in tile(whole, count_nothing).runs(4, 48)] == [(4, 44)]
    assert list(tile(whole, count_nothing).runs(4, 4)) == []
    assert [run[1:] for run in tile(gathered((), ((), ())), count_nothing).runs(0, 2)] == [(0, 2)]


def test_nothing_is_asked_of_what_has_no_elements() -> None:
    for one in (gathered((0, 3)), gathered((0, 3), ((5, 9), (0, 1)))):
        assert tile(one, count_nothing).fault == ""
    assert tile(gathered((2,), ((0,), (2,)), ((2,), (0,))), count_nothing).fault == ""


def test_a_chunk_that_is_listed_twice_is_one() -> None:
    both = gathered((2,), ((0,), (2,)))
    again = both._replace(chunks=both.chunks * 3)
    assert tile(again, count_nothing).fault == ""
    halves = gathered((2,), ((0,), (1,)), ((1,), (1,)))
    assert tile(halves._replace(chunks=halves.chunks * 2), count_nothing).fault == ""


@table(
    ("shape", "boxes", "why"),
    [
        ((4,), [], "none of its chunks"),
        ((4,), [((0,), (5,))], "outside"),
        ((4,), [((3,), (2,))], "outside"),
        ((4,), [((-1,), (4,))], "outside"),
        ((4,), [((0, 0), (4, 1))], "other dimensions"),
        ((4,), [((0,), (4, 1))], "other dimensions"),
        ((4,), [((0,), (4,)), ((0,), (4,))], "several times"),
        ((4,), [((0,), (2,))], "in no chunk"),
        ((4,), [((2,), (2,))], "in no chunk"),
        ((4,), [((0,), (1,)), ((2,), (2,))], "in no chunk"),
        ((4,), [((0,), (3,)), ((2,), (2,))], "overlap"),
        ((4,), [((0,), (4,)), ((1,), (1,))], "overlap"),
        ((4, 4), [((0, 0), (2, 2)), ((0, 2), (2, 2)), ((2, 0), (2, 4))], ""),
        ((4, 4), [((0, 0), (2, 2)), ((2, 0), (2, 4))], "in no chunk"),
        ((4, 4), [((0, 0), (4, 2)), ((1, 2), (3, 2))], "in no chunk"),
        ((4, 4), [((0, 0), (3, 2)), ((0, 2), (3, 2))], "in no chunk"),
        ((4, 4), [((1, 0), (3, 2)), ((1, 2), (3, 2))], "in no chunk"),
        ((3, 4), [((0, 0), (1, 2)), ((0, 2), (1, 2)), ((2, 0), (1, 4))], "in no chunk"),
        ((1,) * 65, [((0,) * 65, (1,) * 65)], "65 dimensions"),
    ],
)
def test_what_is_no_whole_is_said(
    shape: tuple[int, ...], boxes: list[tuple[tuple[int, ...], tuple[int, ...]]], why: str
) -> None:
    tiling = tile(gathered(shape, *boxes), count_nothing)
    assert why in tiling.fault
    assert bool(tiling.fault) == bool(why)
    if why:
        with pytest.raises(DamagedError, match="a tensor is not whole"):
            list(tiling.runs(0, 2))


def test_a_grid_costs_what_its_chunks_do() -> None:
    edges = list(pairwise(range(0, 101, 2)))
    boxes = [((a, b), (2, 2)) for (a, _), (b, _) in product(edges, edges)]
    counted = []
    assert tile(gathered((100, 100), *boxes), counted.append).fault == ""
    assert sum(counted) < 5 * len(boxes)


def test_chunks_that_cross_each_other_too_often_are_refused() -> None:
    many = 700
    rows = [((number, 0), (1, 1)) for number in range(many)]
    columns = [((0, 1 + number), (many, 1)) for number in range(many)]
    assert "too irregular" in tile(gathered((many, many + 1), *rows, *columns), count_nothing).fault


def test_the_work_is_counted() -> None:
    work = Limits(parts=10).started().counted()
    with pytest.raises(ModelError):
        tile(gathered((9,), *(((number,), (1,)) for number in range(9))), work.look)


def LOOK(_steps: int) -> None:  # noqa: N802 - stands for the count of a file
    """Count nothing."""


def test_any_order_of_any_sizes() -> None:
    draw = random.Random(7)
    for _ in range(300):
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
        order = draw.sample(range(len(sizes)), len(sizes))
        strides = [
            prod(sizes[one] for one in order[order.index(number) + 1 :]) for number in range(len(sizes))
        ]
        itemsize = draw.choice((1, 2, 4, 8, 16))
        stored = draw.randbytes(prod(sizes) * itemsize)
        places = [0]
        for size, stride in zip(sizes, strides, strict=True):
            places = [at + index * stride for at in places for index in range(size)]
        expected = b"".join(stored[at * itemsize : (at + 1) * itemsize] for at in places)
        assert in_rows(stored, sizes, strides, itemsize, LOOK) == expected, (sizes, strides, itemsize)


def test_many_dimensions_take_steps_for_each_of_them_and_not_for_each_element() -> None:
    counted = []
    sizes = [2] * 20
    strides = [1 << number for number in range(20)]
    in_rows(bytes(1 << 20), sizes, strides, 1, counted.append)
    assert sum(counted) < 20 * (1 << 14)


def test_elements_that_overlap_are_refused() -> None:
    with pytest.raises(DamagedError, match="overlap or lie apart"):
        in_rows(bytes(4), (2, 2), (1, 1), 1, LOOK)


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
