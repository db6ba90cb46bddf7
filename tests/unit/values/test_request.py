"""What is asked of the child, and what is refused before it is."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.errors import ValuesError
from inspector.values.request import Requests
from tests.unit.values.rows import Encoding, checkpoint, stored, tensor


def asked(*tensors: Any, storages: Any = (), row: int = 0, **more: Any) -> dict[str, Any]:
    return Requests(checkpoint(*tensors, *(storages or (stored(),)), **more)).of(row)


def refused(*tensors: Any, **more: Any) -> str:
    with pytest.raises(ValuesError) as caught:
        asked(*tensors, **more)
    assert caught.value.where == tensors[0].path
    return caught.value.what


def test_a_plain_tensor_is_a_view_of_bytes_in_the_file() -> None:
    request = asked(tensor(storage_offset=1))
    assert (request["shape"], request["stride"], request["offset"]) == ([2, 3], [3, 1], 1)
    assert request["place"] == {"key": "0", "nbytes": 24, "part": "", "file_offset": 64}
    assert not request["swapped"]
    assert asked(tensor(), versions=(("byteorder", "big"),))["swapped"]
    assert asked(tensor(layout="storage", shape=(6,), stride=None, storage_offset=None))["stride"] == [1]


def test_bytes_in_pieces_have_no_place_of_their_own() -> None:
    pieces: Any = (object(),)
    assert asked(tensor(), storages=(stored(pieces=pieces),))["place"]["file_offset"] is None


def test_the_file_is_named_with_what_it_looked_like() -> None:
    found = Requests(checkpoint(path="/a/b.pt", stamp=(1, 2, 3))).file
    assert found == {"path": "/a/b.pt", "stamp": [1, 2, 3]}
    assert Requests(checkpoint(path="/a/b.pt", stamp=None)).file["stamp"] is None


def test_what_has_no_values_says_why() -> None:
    assert "runs past" in refused(tensor(problem="it runs past its storage"))
    assert "meta device" in refused(tensor(device="meta"))
    assert "does not hold its bytes" in refused(tensor(), storages=(stored(missing=True),))
    assert "does not hold its bytes" in refused(tensor(storage=None))
    assert "int4 elements" in refused(tensor(dtype="int4"))
    assert "q4_0 elements" in refused(tensor(dtype="q4_0"))
    assert "unknown way" in refused(tensor(), encodings=((0, Encoding(is_readable=False)),))


def test_lazy_bits_and_scales_come_along() -> None:
    assert asked(tensor(), encodings=((0, Encoding(conj=True)),))["conj"]
    one = asked(tensor(dtype="qint8"), encodings=((0, Encoding(scale=0.5, zero_point=3)),))
    assert (one["scale"], one["zero_point"]) == (0.5, 3)
    parts = [tensor("w", name, part_of=0, shape=(3,), stride=(1,)) for name in ("scales", "zero_points")]
    channels = asked(tensor(dtype="qint8"), *parts, encodings=((0, Encoding(axis=1)),))
    assert (channels["axis"], channels["scales"]["shape"]) == (1, [3])
    assert "not tensors" in refused(tensor(dtype="qint8"), encodings=((0, Encoding(axis=1)),))


def test_composites_are_read_by_their_parts() -> None:
    values = tensor("w", "values", part_of=0, shape=(4,), stride=(1,))
    indices = tensor("w", "indices", part_of=0, dtype="int64", shape=(2, 4), stride=(4, 1))
    coo = asked(tensor(storage=None, layout="sparse_coo"), indices, values)
    assert (coo["layout"], coo["whole"], coo["shape"], coo["indices"]["dtype"]) == (
        "sparse_coo",
        [2, 3],
        [4],
        "int64",
    )
    csr = asked(tensor(storage=None, layout="sparse_csr"), tensor("w", "crow_indices", part_of=0), values)
    assert "indices" not in csr
    assert asked(tensor(storage=None, layout="jagged"), values)["part"] == "values"
    buffer = tensor("w", "buffer", part_of=0)
    assert asked(tensor(storage=None, layout="nested"), buffer)["part"] == "buffer"


def test_a_wrapper_around_one_plain_tensor_is_that() -> None:
    wrapper = tensor(storage=None, stride=None)
    inner = tensor("w", "._data", part_of=0)
    scale = tensor("w", "._scale", part_of=0, shape=())
    deeper = tensor("w", "._data", ".x", part_of=1)
    assert asked(wrapper, inner, deeper, scale, tensor("x"))["part"] == "._data"
    assert "listed below" in refused(wrapper, inner, tensor("w", "._other", part_of=0))
    local = tensor("w", "._local_tensor", part_of=0, shape=(1, 3))
    assert asked(wrapper, local)["shape"] == [1, 3]
