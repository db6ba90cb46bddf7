"""What must hold for every file: genuine or damaged, it is taken apart or refused in words."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.containers.container import Container
from inspector.containers.inflated import Inflated
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError
from tests.builders import tars, zips
from tests.builders.legacy import checkpoint as legacy_checkpoint
from tests.builders.pickles import NONE, legacy_storage, state_dict, storage, stream, tensor
from tests.corpus import cases
from tests.property.bounds import LIMITS
from tests.sweep import tries

few = settings(max_examples=tries(30, 80), deadline=None)
many = settings(max_examples=tries(80, 300), deadline=None)

SMALL = [case for case in cases() if case.path.is_file() and case.path.stat().st_size < 20_000]
ZIPS = [case.path.read_bytes() for case in SMALL if case.container == "zip"]
LEGACY = [case.path.read_bytes() for case in SMALL if "legacy" in case.container]
TARS = [
    *(case.path.read_bytes() for case in SMALL if case.container == "tar"),
    tars.checkpoint(stream(NONE), [tars.Storage(1, "cuda:0", bytes(8))], [tars.Tensor(2, 1, (2,), (1,))]),
]
OTHERS = [case.path.read_bytes() for case in SMALL if case.container not in {"zip", "legacy", "tar"}]


@pytest.fixture(scope="module")
def take_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bytes], Container | None]]:
    """Take the bytes apart as a file; None when they are refused."""
    path = tmp_path_factory.mktemp("containers") / "file.pt"

    def take_apart(data: bytes) -> Container | None:
        path.write_bytes(data)
        try:
            found = read_container(str(path), LIMITS)
        except CheckpointError as error:
            return None if str(error) else pytest.fail("the error says nothing")
        for _, offset, nbytes in found.stored.values():
            assert nbytes >= 0
            assert offset is None or 0 <= offset <= offset + nbytes <= len(data)
        return found

    return take_apart


TakeApart = Callable[[bytes], "Container | None"]


@st.composite
def damaged(draw: st.DrawFn, files: list[bytes]) -> bytes:
    """A file some of whose bytes were changed, lost, doubled or cut off, mostly where its headers are."""
    data = bytearray(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 5))):
        near_end = draw(st.booleans())
        at = draw(st.integers(0, len(data)))
        at = max(len(data) - at % 600, 0) if near_end else at
        nbytes = draw(st.integers(0, 8))
        data[at : at + nbytes] = draw(
            st.binary(max_size=8)
            | st.sampled_from([b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\xff" * 8, bytes(8)])
        )
    return bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])


def test_there_is_something_to_damage() -> None:
    assert len(ZIPS) > 20
    assert len(LEGACY) > 20
    assert len(OTHERS) > 5


@many
@given(data=damaged(ZIPS))
def test_damaged_zip_is_taken_apart_or_refused(take_apart: TakeApart, data: bytes) -> None:
    take_apart(data)


@many
@given(data=damaged(LEGACY))
def test_damaged_legacy_file_is_taken_apart_or_refused(take_apart: TakeApart, data: bytes) -> None:
    take_apart(data)


@many
@given(data=damaged(TARS))
def test_damaged_tar_file_is_taken_apart_or_refused(take_apart: TakeApart, data: bytes) -> None:
    take_apart(data)


@few
@given(data=damaged(OTHERS) | st.binary(max_size=2000))
def test_any_other_file_is_taken_apart_or_refused(take_apart: TakeApart, data: bytes) -> None:
    take_apart(data)


@few
@given(data=damaged([gzip.compress(data, 1) for data in LEGACY[:5]]))
def test_damaged_gzip_file_is_taken_apart_or_refused(take_apart: TakeApart, data: bytes) -> None:
    take_apart(data)


# ------------------------------------------------------------------------------------------- honest files

numels = st.lists(st.integers(0, 300), min_size=1, max_size=12)


@few
@given(
    numels=numels, order=st.randoms(use_true_random=False), paddings=st.lists(st.integers(0, 64), min_size=12)
)
def test_storages_of_a_zip_are_where_they_were_put(
    take_apart: TakeApart, numels: list[int], order: Callable[..., None], paddings: list[int]
) -> None:
    tensors = {f"t{key}": tensor(storage(str(key), numel=numel), numel) for key, numel in enumerate(numels)}
    contents = {str(key): os.urandom(4 * numel) for key, numel in enumerate(numels)}
    records = [
        zips.Record(
            name=f"a/data/{key}", data=contents[key], extra=struct.pack("<2s", b"FB") + bytes(padding)
        )
        for key, padding in zip(contents, paddings, strict=False)
    ]
    order.shuffle(records)
    data = zips.build_zip(
        zips.Record(name="a/data.pkl", data=state_dict(**tensors)),
        zips.Record(name="a/version", data=b"3"),
        *records,
    )
    found = take_apart(data)
    assert found is not None
    assert found.notes == ()
    assert {
        key: data[offset : offset + nbytes] for key, (_, offset, nbytes) in found.stored.items()
    } == contents


@few
@given(numels=numels, protocol=st.integers(0, 5), packed=st.booleans())
def test_storages_of_a_legacy_file_are_where_they_were_put(
    take_apart: TakeApart, numels: list[int], protocol: int, packed: bool
) -> None:
    tensors = {
        f"t{key}": tensor(legacy_storage(str(key), numel=numel), numel) for key, numel in enumerate(numels)
    }
    storages = [(str(key), numel, bytes([key + 1]) * 4 * numel) for key, numel in enumerate(numels)]
    data = legacy_checkpoint(state_dict(**tensors), *storages, protocol=protocol)
    found = take_apart(gzip.compress(data, 1) if packed else data)
    assert found is not None
    assert [(key, place.nbytes) for key, place in found.stored.items()] == [
        (key, 4 * numel) for key, numel, _ in storages
    ]
    for (_, _, expected), place in zip(storages, found.stored.values(), strict=True):
        assert packed or data[place.offset or 0 :].startswith(expected)


@few
@given(
    parts=st.lists(st.binary(max_size=300) | st.integers(0, 400_000).map(bytes), max_size=4),
    reads=st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(0, 300_000)), max_size=8),
    step=st.integers(1, 5000),
)
def test_inside_of_gzip_is_what_was_compressed(
    parts: list[bytes], reads: list[tuple[int, int]], step: int
) -> None:
    plain = b"".join(parts)
    packed = b"".join(gzip.compress(part, 1) for part in parts)
    inside = Inflated(lambda offset, nbytes: packed[offset : offset + min(nbytes, step)])
    for offset, nbytes in reads:
        assert inside.read_upto(offset, nbytes) == plain[offset : offset + nbytes]
