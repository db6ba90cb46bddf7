from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.raw import copying
from inspector.containers.source import open_source
from inspector.errors import CancelledError, ExportError, TooLargeError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.relabel import CopyWriter
from inspector.remap.rewrite import fit_pickle
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tensor, text, written, zip_of

CUDA = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:0"), "1")))
CPU = stream(mapping(a=tensor(text("cpu")), b=tensor(text("cpu"), "1")))
LONGER = stream(mapping(a=tensor(text("cuda:11")), b=tensor(text("cuda:11"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}


def copy(
    path: Path, pickle: bytes, *, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> bytes:
    target = path.with_suffix(".out")
    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        with open_source(str(path), limits) as source:
            writer = CopyWriter(
                source=source, target=fd, pickle=pickle, limits=limits, progress=progress or Progress()
            )
            if path.read_bytes().startswith(b"PK"):
                writer.write_zip()
            else:
                writer.write_legacy()
    finally:
        os.close(fd)
    return target.read_bytes()


def records(data: bytes) -> dict[str, bytes]:
    """The records of a zip by name, their CRC checked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


def differences(one: bytes, other: bytes) -> list[int]:
    assert len(one) == len(other)
    return [place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]


# --- zip: nothing moves -------------------------------------------------------------------------------------


def test_a_shorter_pickle_is_written_over_the_old_one(tmp_path: Path) -> None:
    data = zip_of(CUDA, STORAGES)
    made = copy(written(tmp_path, data), CPU)
    assert records(made)["data.pkl"] == CPU + bytes(len(CUDA) - len(CPU))
    start = data.index(CUDA)
    central = data.rindex(b"archive/data.pkl") - 46
    allowed = {*range(14, 18), *range(start, start + len(CUDA)), *range(central + 16, central + 20)}
    assert set(differences(made, data)) <= allowed


@table("name", ["zip_cuda_proto3.pt", "zip_cuda_proto4.pt", "zip_mixed8.pt"])
def test_the_checksum_behind_the_contents_is_mended(tmp_path: Path, name: str) -> None:
    path = CORPUS / "devices" / name
    pickle = stream(b"N")
    made = copy(written(tmp_path, path.read_bytes()), pickle)
    assert records(made)["data.pkl"].startswith(pickle)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        info = archive.infolist()[0]
    descriptor = made.index(b"PK\x07\x08")
    assert struct.unpack_from("<L", made, descriptor + 4) == (info.CRC,)


def test_a_checksum_that_was_left_out_stays_out(tmp_path: Path) -> None:
    path = CORPUS / "zip" / "nocrc.pt"
    made = copy(written(tmp_path, path.read_bytes()), stream(b"N"))
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.infolist()[0].CRC == 0
    grown = copy(written(tmp_path, path.read_bytes()), stream(text("x" * 9000)))
    with zipfile.ZipFile(io.BytesIO(grown)) as archive:
        assert archive.infolist()[0].CRC == 0


def test_a_descriptor_without_a_signature_is_left_alone(tmp_path: Path) -> None:
    path = CORPUS / "devices" / "zip_cuda_proto3.pt"
    data = path.read_bytes().replace(b"PK\x07\x08", b"PK\x07\x09", 1)
    made = copy(written(tmp_path, data), stream(b"N"))
    descriptor = data.index(b"PK\x07\x09")
    assert made[descriptor : descriptor + 16] == data[descriptor : descriptor + 16]


@pytest.mark.parametrize("deflated", [(), ("data.pkl",)])
def test_what_does_not_change_is_copied_whole(tmp_path: Path, deflated: tuple[str, ...]) -> None:
    data = zip_of(CUDA + b"left behind", STORAGES, deflated=deflated)
    assert copy(written(tmp_path, data), CUDA) == data


def test_a_file_system_that_clones_copies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zip_of(CUDA, STORAGES)
    path = written(tmp_path, data)

    def clone(source: int, target: int) -> bool:
        os.pwrite(target, path.read_bytes(), 0)
        return True

    monkeypatch.setattr(copying, "clone_file", clone)
    monkeypatch.setattr(copying, "copy_bytes", None)
    progress = Progress()
    assert records(copy(path, CPU, progress=progress))["data/1"] == STORAGES["1"]
    assert progress.fraction == 1.0


# --- zip: records move --------------------------------------------------------------------------------------


def test_a_longer_pickle_moves_the_records(tmp_path: Path) -> None:
    progress = Progress()
    made = copy(written(tmp_path, zip_of(CUDA, STORAGES)), LONGER, progress=progress)
    assert records(made) == {"data.pkl": LONGER, "version": b"3\n"} | {
        f"data/{key}": data for key, data in STORAGES.items()
    }
    assert made.index(STORAGES["0"]) % 64 == 0
    assert progress.fraction == 1.0


def test_a_compressed_pickle_is_written_plain_and_the_rest_as_it_was(tmp_path: Path) -> None:
    data = zip_of(CUDA, {"0": bytes(4000)}, deflated=("data.pkl", "data/0"))
    made = copy(written(tmp_path, data), CPU)
    assert records(made)["data.pkl"] == CPU
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        methods = {info.filename: info.compress_type for info in archive.infolist()}
    assert methods["archive/data/0"] == zipfile.ZIP_DEFLATED
    assert records(made)["data/0"] == bytes(4000)


@table(
    ("written_alignment", "alignment"),
    [(b"4096", 4096), (b"1", 1), (b"256\n", 256), (b"0", 64), (b"x", 64), (b"-1", 64), (b"9" * 17, 64)],
)
def test_contents_are_aligned_as_the_archive_says(
    tmp_path: Path, written_alignment: bytes, alignment: int
) -> None:
    more = {".storage_alignment": written_alignment}
    made = copy(written(tmp_path, zip_of(CUDA, STORAGES, **more)), LONGER)
    assert made.index(STORAGES["1"]) % alignment == 0


def test_an_archive_that_two_readers_understand_differently_is_refused(tmp_path: Path) -> None:
    data = zip_of(CUDA, STORAGES, **{"DATA.PKL": CPU})
    with pytest.raises(ExportError, match=r"several records are named archive/data\.pkl"):
        copy(written(tmp_path, data), CPU)


def test_records_that_overlap_are_not_multiplied(tmp_path: Path) -> None:
    data = zip_of(CUDA, STORAGES)
    for key in STORAGES:
        central = data.rindex(b"archive/data/" + key.encode()) - 46
        (start,) = struct.unpack_from("<L", data, central + 42)
        most = len(data) - start - 30  # as much as miniz lets a directory tell
        data = data[: central + 20] + struct.pack("<2L", most, most) + data[central + 28 :]
    with pytest.raises(ExportError, match="overlap or run past the end"):
        copy(written(tmp_path, data), LONGER)


# --- legacy -------------------------------------------------------------------------------------------------


@table("pickle", [CPU, CUDA])
@table("tail", [b"", b"more bytes"])
def test_nothing_moves_in_a_legacy_file_where_the_pickle_fits(
    tmp_path: Path, pickle: bytes, tail: bytes
) -> None:
    data = legacy_of(CUDA, STORAGES, tail)
    made = copy(written(tmp_path, data), pickle)
    fitted = fit_pickle(pickle, len(CUDA))
    assert made == legacy_of(fitted, STORAGES, tail)
    start = data.index(CUDA)
    assert set(differences(made, data)) <= {*range(start, start + len(CUDA))}


@table("pickle", [LONGER, stream(b"(t")])  # nothing in it can be made a byte longer
@table("tail", [b"", b"more bytes"])
def test_a_legacy_file_is_taken_apart_and_put_together(tmp_path: Path, pickle: bytes, tail: bytes) -> None:
    made = copy(written(tmp_path, legacy_of(CUDA, STORAGES, tail)), pickle)
    assert made == legacy_of(pickle, STORAGES, tail)


def test_filling_is_left_out_where_the_file_is_cut_behind_the_pickle(tmp_path: Path) -> None:
    filled = fit_pickle(CPU, len(CUDA))
    assert filled is not None
    longer = LONGER.replace(b"\x80\x02", b"\x80\x02" * 3, 1)
    made = copy(written(tmp_path, legacy_of(filled, STORAGES)), longer)
    assert made == legacy_of(LONGER, STORAGES)


def test_a_compressed_legacy_file_comes_out_plain(tmp_path: Path) -> None:
    storages = {"0": os.urandom(3 << 20)}
    path = written(tmp_path, gzip.compress(legacy_of(CUDA, storages), 1))
    assert copy(path, LONGER) == legacy_of(LONGER, storages)


def test_a_compressed_file_that_is_too_large_is_refused_rather_than_cut(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(legacy_of(CUDA, {"0": bytes(9 << 20)}), 1))
    limits = replace(DEFAULT_LIMITS, inflated_nbytes=4 << 20)
    with pytest.raises(TooLargeError, match="more than 4,194,304 bytes once unpacked"):
        copy(path, CPU, limits=limits)


# --- both ---------------------------------------------------------------------------------------------------


@table("pickle", [CPU, LONGER])
@table("make", [zip_of, legacy_of])
def test_copies_are_read_by_our_own_reader(tmp_path: Path, pickle: bytes, make) -> None:
    made = copy(written(tmp_path, make(CUDA, STORAGES)), pickle)
    container = read_container(str(written(tmp_path, made, "again.pt")))
    fitted = fit_pickle(pickle, len(CUDA)) if container.format == "legacy" else None
    assert container.stream.data[: container.stream.end] == (fitted or pickle)
    for key, stored in container.stored.items():
        assert made[stored.offset :][:NBYTES] == STORAGES[key]


@table("pickle", [CPU, LONGER])
@table("make", [zip_of, legacy_of])
def test_writing_can_be_cancelled(tmp_path: Path, pickle: bytes, make) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        copy(written(tmp_path, make(CUDA, STORAGES)), pickle, progress=progress)
