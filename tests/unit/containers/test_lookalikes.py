"""Every row of the table has a sample, and every sample is told by its row, by the way people open files."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import lookalikes as folders
from inspector.containers.formats import FILES
from inspector.containers.lookalikes import (
    FOLDER_LOOKALIKES,
    JSON_LOOKALIKES,
    LOOKALIKES,
    MARKED_TEXTS,
    ZIP_LOOKALIKES,
    Look,
    is_part,
    is_unpacked,
    name_folder,
    name_lookalike,
    name_unopened,
    name_zip,
    pack_again,
    read_plain_text,
)
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import (
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
    UnsupportedFormatError,
)
from tests.builders import legacy, zips
from tests.builders.pickles import NONE, stream
from tests.builders.zips import Record, build_zip
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
    "coreml": (bytes.fromhex("080112200a0e0a01781a092a070a010310c08004520e0a01791a"), ""),
    "executorch": (b"\x28\0\0\0ET12\x1c\0\x20\0eh00" + FLOATS, ""),
    "tf-savedmodel": (b"\x08\x01" + protobuf(2, protobuf(1, b"\x12\x05serve" * 40)), ""),
    "tf-checkpoint": (b"\0\0\x06\x08\x01\x1a\x02\x08\x01\0\x05\x10dense" + FLOATS, "model.ckpt-5.index"),
    "onnx": (b"\x08\x08" + protobuf(2, b"pytorch") + protobuf(3, b"2.3.0") + protobuf(7, FLOATS), ""),
    "tf-graph": (protobuf(1, NODE), ""),
    "tensorrt": (b"ptrt\0\0\0\0" + FLOATS, ""),
    "lightgbm": (b"tree\nversion=v4\nnum_class=1\n", ""),
    "xgboost": (
        bytes.fromhex("7b4c00000000000000076c6561726e65727b4c000000000000000a617474726962757465737b7d"),
        "",
    ),
    "matlab": (b"MATLAB 5.0 MAT-file Platform: posix, Created on: Sat" + bytes(72) + FLOATS, ""),
    "paddle-program": (protobuf(1, b"\x08\0\x10" + b"\xff" * 9 + b"\x01" + bytes(200)), ""),
    "paddle-parameters": (bytes(16) + b"\x06\0\0\0\x08\x05\x10\x02\x10\x03" + FLOATS, ""),
    "tfrecord": (bytes.fromhex("0300000000000000b099490e") + b"abc" + bytes(4), ""),
    "ocdbt": (bytes.fromhex("0cdb3a2a7100000000000000000128b52ffd") + FLOATS, ""),
    "torch7": (struct.pack("<3l", 4, 1, 3) + b"V 1\x11\0\0\0nn.Sequential", ""),
    "mxnet": (struct.pack("<QQQ", 0x112, 0, 2) + FLOATS, ""),
    "msgpack": (bytes.fromhex("81a6706172616d7381a177c71e0193920202a7666c6f61743332c410") + FLOATS, ""),
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


OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 1234567890\n"
PAGE = "<!DOCTYPE html>\n<html><head><title>Google Drive - Virus scan\n warning</title></head><body>"

FINDINGS = {"html": "html-page", **dict.fromkeys(("git-lfs", "git-annex", "dvc", "xet"), "lfs-pointer")}

# (text, form, words of what it is, words of the remedy)
TEXTS = [
    (
        LFS,
        "git-lfs",
        f"Git LFS pointer of 135 B in place of the file: the real file has 1.2 GB, its SHA-256 is {OID}",
        "git lfs pull",
    ),
    (LFS.replace("git-lfs.github.com", "hawser.github.com"), "git-lfs", "the real file has 1.2 GB", ""),
    ("version https://git-lfs.github.com/spec/v1\n", "git-lfs", "pointer of 43 B in place of the file", ""),
    (f"version https://git-lfs.github.com/spec/v1\nsize {'9' * 30}\n", "git-lfs", "in place of the file", ""),
    ("/annex/objects/SHA256E-s1048576--abc.pth\n", "git-annex", "git-annex pointer", "git annex get"),
    ("outs:\n- md5: a304afb96060aad90176268345e10355\n  path: best.pth\n", "dvc", "DVC pointer", "dvc pull"),
    ("# xet version 0\nfilesize = 5\nhash = 'ab'\n", "xet", "Xet pointer", "hf download"),
    (
        PAGE,
        "html",
        "a web page (HTML) titled 'Google Drive - Virus scan warning', not the file itself",
        "link",
    ),
    ("\ufeff\n  <html lang=en><body>404", "html", "a web page (HTML), not the file itself", ""),
    ("<!-- cached --><HTML><title> </title>", "html", "a web page (HTML), not", ""),
    ('<?xml version="1.0"?><!DOCTYPE html><html xmlns="x">', "html", "a web page", ""),
    (
        '<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
        "xml-error",
        "an error message of a storage service that says 'AccessDenied', 'Access Denied'",
        "download",
    ),
    ("<Error></Error>", "xml-error", "an error message of a storage service", ""),
    ("<?xml version='1.0'?><note>", "xml", "an XML document", ""),
    (
        "<?xml version='1.0'?>\n<net name='Model0' version='11'>",
        "openvino",
        "an OpenVINO model",
        "openvino.Core",
    ),
    (
        '{"error": "Repository not found"}',
        "json-error",
        "an error message (JSON) that says 'Repository not found'",
        "refused",
    ),
    (
        json.dumps({"metadata": {}, "weight_map": {"a": "b.safetensors"}}),
        "shard-index",
        "the index of a model",
        "beside",
    ),
    ('{"architectures": ["Bert"]}', "json", "a JSON document", "beside"),
    ('{"learner":{"attributes":{},"feature_names":[]', "xgboost-json", "an XGBoost model", "xgboost.Booster"),
    ('{"name": "tree", "version": "v4", "num_class": 1', "lightgbm-json", "a LightGBM model", "save_model"),
    ('{\n  "shape": [3],\n  "zarr_format": 3', "zarr-json", "a part of a Zarr store", "zarr.open"),
    ('{"tree_metadata": {"(\'a\',)": {', "orbax-json", "a part of an Orbax checkpoint", "orbax.checkpoint"),
    ('{"base_code":{"magic":"pir","version":1', "paddle-json", "a Paddle inference model", "paddle.jit.load"),
    ("[[1, 2], [3, 4]]", "json", "a JSON document", ""),
    ("import torch\nprint(1)\n", "source", "program code", "download"),
    ("#!/bin/sh\necho\n", "source", "program code", ""),
    ("epoch,loss,acc\n1,0.5,0.9\n2,0.4,0.95\n", "csv", "a table in a text file (CSV)", "read_csv"),
    ("a\tb\n1\t2\n", "csv", "a table", ""),
    ("# config\nmodel: resnet\nlayers:\n  - 64\n  - 128\nlr: 0.1\n", "yaml", "a YAML text", "beside"),
    ("---\nname: x\n", "yaml", "a YAML text", ""),
    ("Not Found", "text", "a text file that begins with 'Not Found'", "download"),
    ("one\ntwo\n", "text", "a text file that begins with 'one'", ""),
    ("Entry not found \u202e\n", "text", "begins with 'Entry not found \\u202e'", ""),
]


@table(("text", "form", "what", "remedy"), TEXTS, ids=lambda value: str(value)[:20])
def test_text_is_named_with_the_next_step(write: Write, text: str, form: str, what: str, remedy: str) -> None:
    path = write(text.encode())
    with pytest.raises(NotACheckpointError) as caught:
        read_container(path)
    error = caught.value
    assert (error.form, error.finding, error.where) == (form, FINDINGS.get(form, "not-a-checkpoint"), path)
    assert what in error.what
    assert error.remedy is not None
    assert remedy in error.remedy


def test_every_kind_of_text_is_among_the_samples() -> None:
    readings = [read for text, *_ in TEXTS for read in MARKED_TEXTS if read(Look(text.encode(), 99, "x"))]
    assert set(readings) == set(MARKED_TEXTS)
    assert {row.form for row in JSON_LOOKALIKES} <= {form for _, form, *_ in TEXTS}


def test_what_a_page_says_is_escaped_and_cut() -> None:
    page = b"<html><title>\x1b[31m" + b"a" * 3000 + b"</title>"
    error = name_lookalike(Look(page, len(page), "x"), "x")
    assert error is not None
    assert "'\\u001b[31maaa" in error.what
    assert len(error.what) < 220


def test_json_in_a_large_file_is_no_error_message() -> None:
    head = b'{"message": "hello", "data": ['
    error = name_lookalike(Look(head, 1 << 20, "x"), "x")
    assert isinstance(error, NotACheckpointError)
    assert error.form == "json"


@table(
    "data",
    [
        b"",
        b"\x00\x01\x02",
        b"\xff\xfe\xfd",
        b"plain\x00zero",
        b"   \n ",
        b'{"a": \xff\xff\xff\xff\xff}',
        "\x85".encode(),
    ],
)
def test_what_is_no_text(data: bytes) -> None:
    assert read_plain_text(Look(data, len(data), "x")) is None
    assert [read(Look(data, len(data), "x")) for read in MARKED_TEXTS] == [None] * len(MARKED_TEXTS)


def test_character_that_the_end_of_the_head_cuts_in_two_is_no_matter() -> None:
    for cut in (1, 2, 3):
        data = ("notes: " + "\U0001f600" * 9).encode()[:-cut]
        assert read_plain_text(Look(data, 999, "x")) is not None


@table(
    "head", [b"\n" * 4096, b" \n" * 2048, b"a: \n" * 1024, b"<title>" * 600, b'"error":"' * 450, b"- " * 2048]
)
def test_no_text_makes_the_search_run_away(head: bytes) -> None:
    """A pattern that tries each way to split such a text would not end within the time limit of a test."""
    for start in (b"", b"<html>", b'{"', b"<?xml", b"version https://git-lfs.github.com/spec/v1\n"):
        found = name_lookalike(Look(start + head, 1 << 30, "x"), "x")
        assert found is None or found.what


# The names that each format's writer puts into its zip.
SAMPLES_ZIPS = {
    "keras": ["metadata.json", "config.json", "model.weights.h5"],
    "docx": ["[Content_Types].xml", "_rels/.rels", "word/document.xml"],
    "xlsx": ["[Content_Types].xml", "xl/workbook.xml"],
    "pptx": ["[Content_Types].xml", "ppt/presentation.xml"],
    "opendocument": ["mimetype", "content.xml"],
    "apk": ["AndroidManifest.xml", "classes.dex", "META-INF/MANIFEST.MF"],
    "torchserve": ["MAR-INF/MANIFEST.json", "model.pt"],
    "jar": ["META-INF/MANIFEST.MF", "com/x/Main.class"],
    "wheel": ["torch/__init__.py", "torch-2.4.dist-info/METADATA"],
    "coreml": ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel"],
    "tf-savedmodel": ["saved/saved_model.pb", "saved/variables/variables.index"],
    "zipped-folder": ["backup/", "backup/best/data.pkl", "backup/best/data/0"],
}


def test_every_row_has_its_sample_zips() -> None:
    assert list(SAMPLES_ZIPS) == [row.form for row in ZIP_LOOKALIKES]


@table("form", SAMPLES_ZIPS)
def test_sample_is_named_with_the_next_step_zips(write: Callable[..., str], form: str) -> None:
    path = write(build_zip(*(Record(name=name) for name in SAMPLES_ZIPS[form])))
    with pytest.raises(NotACheckpointError) as caught:
        read_container(path)
    row = next(row for row in ZIP_LOOKALIKES if row.form == form)
    error = caught.value
    assert (error.form, error.what, error.remedy) == (form, f"this is {row.what}", row.remedy)
    assert (error.where, error.finding) == (path, "not-a-checkpoint")


def test_checkpoints_in_a_zip_are_pointed_at() -> None:
    error = name_zip(["runs/", "runs/a/last\x1b.ckpt", "runs/best.PTH"], "x")
    assert error.what == "this is a zip with other files in it, among them runs/best.PTH"
    assert "unpack" in (error.remedy or "")
    assert "\\u001b" in name_zip(["a/last\x1b.ckpt"], "x").what
    assert len(name_zip(["a" * 5000 + ".pt"], "x").what) < 150


def test_zip_of_anything_else() -> None:
    for names in ([], ["readme.txt"]):
        error = name_zip(names, "x")
        assert error.form == "zip"
        assert error.what == "this zip holds no data.pkl, so torch.save did not write it"


def test_only_so_many_names_are_looked_at() -> None:
    names = (name for name in [*(f"{number}.txt" for number in range(10_000)), "AndroidManifest.xml"])
    assert name_zip(names, "x").form == "zip"


def unpacked(path: Path) -> str:
    with zipfile.ZipFile(CORPUS / "zip" / "train.pt") as archive:
        archive.extractall(path)
    return os.fspath(path)


def refused_folders(path: str) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read_container(path)
    return caught.value


def test_unpacked_checkpoint_is_packed_with_the_folder_of_its_parts(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "best.pth")
    (tmp_path / "best.pth" / "__MACOSX").mkdir()  # what archives of a Mac leave
    inner = os.fspath(tmp_path / "best.pth" / "train")
    for path in (folder, inner):
        error = refused_folders(path)
        assert isinstance(error, NotACheckpointError)
        assert "unpacked checkpoint" in error.what
        assert (error.form, error.where) == ("unpacked", path)
        assert str(error.remedy).endswith("zip -0 -r packed.pth train")
    assert is_unpacked(inner)
    assert not is_unpacked(folder)


def test_packing_it_again_brings_the_checkpoint_back(tmp_path: Path) -> None:
    inner = Path(unpacked(tmp_path / "best.pth")) / "train"
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(packed, "w") as archive:  # as zip -0 -r does, folders included
        for path in [inner, *sorted(inner.rglob("*"))]:
            archive.write(path, path.relative_to(inner.parent))
    assert read_container(os.fspath(packed)).format == "zip"


def test_part_of_it_leads_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Path(unpacked(tmp_path / "best.pth")) / "train"
    error = refused_folders(os.fspath(inner / "data.pkl"))
    assert isinstance(error, UnsupportedFormatError)
    assert error.form == "unpacked"
    monkeypatch.chdir(inner)
    assert is_part("data.pkl")
    assert not is_part("version")
    (inner / "version").unlink()
    assert not is_part("data.pkl")


FOLDERS = {
    "savedmodel-folder": ("saved_model.pb", "variables"),
    "orbax-folder": ("_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt", "d"),
    "zarr-folder": ("zarr.json", "c"),
    "coreml-folder": ("Manifest.json", "Data"),
    "paddle-folder": ("inference.pdmodel", "inference.pdiparams"),
}


def test_every_row_has_its_sample_folders() -> None:
    assert list(FOLDERS) == [row.form for row in FOLDER_LOOKALIKES]


@table("form", FOLDERS)
@table("above", ["", "3", "3/default"])
def test_folder_of_another_program_is_named(tmp_path: Path, form: str, above: str) -> None:
    """By itself, or by the number of a step as the only thing in a folder."""
    (tmp_path / above).mkdir(parents=True, exist_ok=True)
    for name in FOLDERS[form]:
        (tmp_path / above / name).write_bytes(b"x")
    row = next(row for row in FOLDER_LOOKALIKES if row.form == form)
    error = refused_folders(os.fspath(tmp_path))
    assert isinstance(error, NotACheckpointError)
    assert (error.what, error.remedy, error.form) == (f"this is {row.what}", row.remedy, form)


def test_weights_of_openvino_are_told_by_the_graph_beside_them(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(FLOATS)
    assert "OpenVINO" not in refused(os.fspath(path)).what
    (tmp_path / "net.xml").write_text("<?xml version='1.0'?><note/>", encoding="utf-8")
    assert "OpenVINO" not in refused(os.fspath(path)).what
    (tmp_path / "net.xml").write_text("<?xml version='1.0'?>\n<net name='a'>", encoding="utf-8")
    assert refused(os.fspath(path)).what == "this holds the weights of an OpenVINO model"


def test_engine_behind_a_text_of_its_own() -> None:
    text = b'{"description": "a model"}'
    head = len(text).to_bytes(4, "little") + text
    for engine, form in ((b"ftrt", "tensorrt"), (b"abcd", None)):
        found = name_lookalike(Look(head + engine + FLOATS, 999, "best.engine"), "x")
        assert getattr(found, "form", None) == form


def test_other_folder_names_its_largest_checkpoint(tmp_path: Path) -> None:
    assert name_folder(os.fspath(tmp_path)).remedy == "give the path of a file in it"
    (tmp_path / "optimizer.pt").write_bytes(b"1")
    (tmp_path / "pytorch_model.bin").write_bytes(b"12")
    (tmp_path / "log.txt").write_bytes(b"123")
    (tmp_path / "a folder.pt").mkdir()
    wanted = os.fspath(tmp_path / "pytorch_model.bin")
    assert str(name_folder(os.fspath(tmp_path)).remedy).endswith(f"such as {folders.file_word(wanted)}")


def test_folder_that_may_not_be_read_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> object:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    assert name_folder(os.fspath(tmp_path)).remedy == "give the path of a file in it"


def test_file_that_is_gone_meanwhile_is_the_smallest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> int:
        raise FileNotFoundError

    (tmp_path / "best.pt").touch()
    monkeypatch.setattr(os.path, "getsize", refuse)
    assert "best.pt" in str(name_folder(os.fspath(tmp_path)).remedy)


def test_name_of_the_folder_is_a_word_of_the_shell() -> None:
    assert pack_again("/data/my model; ls/").endswith("packed.pth 'my model; ls'")
    assert pack_again("/data/-rf").endswith("packed.pth ./-rf")


def name(path: Path) -> tuple[str, str] | None:
    with pytest.raises(CheckpointError) as caught:
        read_container(os.fspath(path))
    return name_unopened(os.fspath(path), caught.value)


def test_folder_with_an_index_leads_to_that(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    assert name(tmp_path) == ("pretrained", os.fspath(tmp_path))
    (tmp_path / "pytorch_model.bin.index.json").touch()  # unreadable
    assert name(tmp_path) == ("sharded", os.fspath(tmp_path / "pytorch_model.bin.index.json"))
    (tmp_path / "config.json").unlink()  # a download of the weights alone
    assert name(tmp_path) == ("sharded", os.fspath(tmp_path / "pytorch_model.bin.index.json"))


def test_index_that_cannot_be_read_is_named_itself(tmp_path: Path) -> None:
    for file in ("pytorch_model.bin.index.json", "other.safetensors.index.json"):
        path = tmp_path / file
        path.write_text("{")
        assert name(path) == ("sharded", os.fspath(path))


def test_what_has_no_name(tmp_path: Path) -> None:
    assert name(tmp_path) is None
    path = os.fspath(tmp_path / "missing.index.json")
    assert name_unopened(path, NotACheckpointError("missing")) is None


def test_what_is_within_gzip_is_not_named(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "model.safetensors.gz"
    path.write_bytes(gzip.compress((CORPUS / "safetensors/all.safetensors").read_bytes()))
    assert name(path) is None  # its loader would not open it either
