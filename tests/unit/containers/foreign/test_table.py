"""Every row of the table has a sample, and every sample is told by its row, by the way people open files."""

from __future__ import annotations

import gzip
import io
import random
import struct
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.formats import FILES
from inspector.containers.lookalikes import LOOKALIKES, Look, name_lookalike
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import ContainerError, DamagedError, NotACheckpointError
from tests.builders import legacy, zips
from tests.builders.pickles import NONE, stream
from tests.corpus import CORPUS
from tests.sweep import table

Write = Callable[..., str]
FLOATS = struct.pack("<64f", *(random.Random(7).gauss(0, 1) for _ in range(64)))


def tar_of(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def protobuf(field: int, data: bytes) -> bytes:
    """One length-delimited field of a protocol buffer."""
    assert len(data) < 1 << 14
    length = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])
    return bytes([field << 3 | 2]) + length + data


NODE = protobuf(1, b"conv1/weights") + protobuf(2, b"Const")
# For each form: bytes as that format's writers make them, and a name where that matters.
SAMPLES: dict[str, tuple[bytes, str]] = {
    "tar": (tar_of("runs/best.pth"), ""),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4" + FLOATS, ""),
    "rar": (b"Rar!\x1a\x07\x01\0" + FLOATS, ""),
    "gzip": (gzip.compress(gzip.compress(FLOATS)), ""),
    "zip-empty": (zips.build_zip(), ""),
    "zip-spanned": (b"PK\x07\x08" + zips.checkpoint(stream(NONE)), ""),
    "ggml": (struct.pack("<LL", 0x67676A74, 3) + FLOATS, ""),
    "hdf5": (b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08" + FLOATS, "weights.h5"),
    "tflite": (b"\x1c\0\0\0TFL3\x14\0\x20\0" + FLOATS, ""),
    "tf-savedmodel": (b"\x08\x01" + protobuf(2, protobuf(1, b"\x12\x05serve" * 40)), ""),
    "tf-checkpoint": (b"\0\0\x06\x08\x01\x1a\x02\x08\x01\0\x05\x10dense" + FLOATS, "model.ckpt-5.index"),
    "coreml": (b"\x08\x04\x12" + FLOATS, "net.mlmodel"),
    "onnx": (b"\x08\x08" + protobuf(2, b"pytorch") + protobuf(3, b"2.3.0") + protobuf(7, FLOATS), ""),
    "tf-graph": (protobuf(1, NODE), ""),
    "tensorrt": (b"ptrt\0\0\0\0" + FLOATS, ""),
    "torch7": (struct.pack("<3l", 4, 1, 3) + b"V 1\x11\0\0\0nn.Sequential", ""),
    "mxnet": (struct.pack("<QQQ", 0x112, 0, 2) + FLOATS, ""),
    "msgpack": (b"\x82\xa6params\x81\xa5dense" + FLOATS, "flax_model.msgpack"),
    "pytorch-preview": (b"PYTORCH1" + FLOATS, ""),
    "parquet": (b"PAR1\x15\x04\x15" + FLOATS, ""),
    "arrow": (b"ARROW1\0\0" + FLOATS, ""),
    "sqlite": (b"SQLite format 3\0\x10\0" + FLOATS, ""),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ""),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", ""),
    "gif": (b"GIF89a\1\0\1\0\x80", ""),
    "webp": (b"RIFF\x24\0\0\0WEBPVP8 ", ""),
    "mp4": (b"\0\0\0\x20ftypisom\0\0\2\0", ""),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", ""),
    "elf": (Path(sys.executable).resolve().read_bytes()[:4096], ""),
    "mz": (b"MZ\x90\0" + bytes(56) + b"\x80\0\0\0" + FLOATS, ""),
    "mach-o": (b"\xcf\xfa\xed\xfe\x07\0\0\1" + FLOATS, ""),
    "aria2": (b"\0\1\0\0\0\1\0\0\0\0\0\x10" + FLOATS, "best.pth.aria2"),
    "partial-download": (b"\x11\x22\x33" + FLOATS, "best.pth.crdownload"),
    "zeros": (bytes(100_000), ""),
}
BY_FORM = {row.form: row for row in LOOKALIKES}


def refused(path: str) -> ContainerError:
    with pytest.raises(ContainerError) as caught:
        read_container(path)
    return caught.value


def test_every_row_has_its_sample() -> None:
    assert list(SAMPLES) == [row.form for row in LOOKALIKES]
    assert len(BY_FORM) == len(LOOKALIKES)


@table("form", SAMPLES)
def test_sample_is_named_with_the_next_step(write: Write, form: str) -> None:
    data, name = SAMPLES[form]
    path = write(data, name or "best.pth")
    error, row = refused(path), BY_FORM[form]
    assert error.what.removesuffix(", packed with gzip") == f"this is {row.what}"
    assert (error.where, error.remedy, error.finding) == (path, row.remedy, row.finding)
    assert isinstance(error, DamagedError) == (row.finding == "truncated")
    if isinstance(error, NotACheckpointError):
        assert error.form == form


@table("form", SAMPLES)
def test_first_row_that_matches_is_the_right_one_whatever_the_name(form: str) -> None:
    """Rows that go by the name come behind those that see the bytes, or catch nothing else."""
    data, name = SAMPLES[form]
    by_bytes = [row.form for row in LOOKALIKES if row.matches(Look(data[:4096], len(data), name))]
    assert form == by_bytes[0] or (form == "gzip" and not by_bytes[1:])


def test_tar_that_is_packed_says_both(write: Write) -> None:
    error = refused(write(gzip.compress(tar_of("runs/best.pth")), "best.tar.gz"))
    assert error.what == "this is a tar archive, packed with gzip"
    assert "tar xf" in (error.remedy or "")


@table("first", ["sys_info", "pickle", "tensors", "storages"])
def test_tar_of_torch_is_left_to_its_own_reader(write: Write, first: str) -> None:
    error = refused(write(tar_of(first)))
    assert type(error) is DamagedError
    assert "the tar file is cut off: it has no member" in error.what


def test_what_nobody_knows(write: Write) -> None:
    error = refused(write(bytes(range(200, 256)) * 40))
    assert type(error) is NotACheckpointError
    assert (error.what, error.form) == ("this is not a checkpoint of torch.save", None)
    assert error.remedy
    assert name_lookalike(Look(bytes(range(200, 256)), 56, "x"), "x") is None


def test_no_genuine_checkpoint_is_taken_for_anything_else() -> None:
    """Rows are asked before formats that are only named, so none may catch one."""
    taken = []
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and path.suffix in {".pt", ".pth", ".pkl", ".bin", ".pt2", ".ckpt", ".safetensors"}:
            head = path.read_bytes()[:4096]
            source = BytesSource(head, path.name)
            if "tar" in path.parts or any(
                (form := entry.format()).is_read and form.matches(source) for entry in FILES
            ):
                continue
            error = name_lookalike(Look(head, path.stat().st_size, path.name), path.name)
            if error is not None:
                taken.append((path.name, error.what))
    assert taken == []


def test_random_bytes_are_hardly_ever_taken_for_anything() -> None:
    source = random.Random(11)
    found = [name_lookalike(Look(source.randbytes(600), 600, "x"), "x") for _ in range(3000)]
    assert sum(error is not None for error in found) <= 2


def test_legacy_file_named_part_still_opens(write: Write) -> None:
    assert read_container(write(legacy.checkpoint(stream(NONE)), "best.pth.part")).format == "legacy"
