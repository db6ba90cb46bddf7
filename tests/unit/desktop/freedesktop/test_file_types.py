"""Which files the desktop takes for ours, by the two libraries that file managers ask: GLib's and Qt's."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from inspector.desktop.freedesktop.entry import read_own_types
from inspector.resources import resource_path
from tests.builders import tars

CORPUS = Path(__file__).parents[3] / "data" / "corpus"
CHECKPOINT = "application/x-pytorch-checkpoint"
LEGACY = "application/x-pytorch-legacy-checkpoint"
TAR = "application/x-pytorch-tar-checkpoint"
PICKLE, ARCHIVE = "application/x-python-pickle", "application/x-tar"
ZIP, HDF, PLAIN, UNKNOWN = "application/zip", "application/x-hdf", "text/plain", "application/octet-stream"
PAGE, PATHS = "text/x-page-template", "text/x-python-path"
NOISE = random.Random(1).randbytes(3000)
BINARY = b"\1\2SAVE" + NOISE
HDF_HEAD = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\4\0\x10\0" + bytes(800)
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"


def zip_of(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * 400)
    return buffer.getvalue()


def tar_of(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return buffer.getvalue()


OTHERS = {
    # our suffixes
    "keras.ckpt": (HDF, HDF_HEAD),
    "keras.pth": (HDF, HDF_HEAD),
    "keras.pt": (HDF, HDF_HEAD),
    "notes.ckpt": (PLAIN, b"step 100 loss 0.3\nstep 200 loss 0.2\n"),
    "state.ckpt": (UNKNOWN, b'model_checkpoint_path: "model.ckpt-100"\n'),
    "game.ckpt": (UNKNOWN, BINARY),
    "zeros.ckpt": (UNKNOWN, bytes(4096)),
    "base.ckpt": (UNKNOWN, b"SQLite format 3\0\x10\0\1\1\0@  " + bytes(900)),
    "packed.ckpt": (UNKNOWN, b"7z\xbc\xaf\x27\x1c\0\4" + NOISE),
    "archive.ckpt": (ZIP, zip_of("readme.txt")),
    "java.pt": (ZIP, zip_of("META-INF/MANIFEST.MF", "a/B.class")),
    "other.pt": (ZIP, zip_of("a/b.txt")),
    "plugin.pth": (ZIP, zip_of("x/y.class")),
    "plugin.pth.tar": (ZIP, zip_of("x/y.class")),
    "photos.pth.tar": (ARCHIVE, tar_of("img/1.jpg")),
    "noise.pth.tar": (ARCHIVE, BINARY),
    "noise.pth": (UNKNOWN, BINARY),
    "noise.pt": (UNKNOWN, BINARY),
    "paper.pt": (UNKNOWN, b"%PDF-1.4\n%\xe2\xe3\n1 0 obj\n<<>>\nendobj\n"),
    "packed.pt": (UNKNOWN, gzip.compress(b"hello" * 100, mtime=0)),
    "script.pt": (UNKNOWN, b"#!/usr/bin/env python3\nprint(1)\n"),
    "page.pt": (PAGE, b'<html xmlns:tal="x"><body tal:content="a"/></html>'),
    "page2.pt": (PAGE, b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">\n<html></html>'),
    "page3.pt": (PAGE, b'<?xml version="1.0"?>\n<tal:block/>'),
    "easy-install.pth": (PATHS, b"./numpy-1.0-py3.egg\nimport site\n"),
    "precedence.pth": (PATHS, b"import os; var = 'X'; os.environ.get(var) == 'local' and __import__('x')"),
    "pointer.pth": (PATHS, LFS),
    "values.pkl": (PLAIN, b'name = "x"\nreplicas = 3\n'),
    "noise.pkl": (UNKNOWN, BINARY),
    "noise.pickle": (UNKNOWN, BINARY),
    # and what has other names, or none that we know
    "firmware.bin": (UNKNOWN, BINARY),
    "plain.bin": (ZIP, zip_of("a/b.txt")),
    "plain.zip": (ZIP, zip_of("a/b.txt")),
    "other.tar": (ARCHIVE, tar_of("readme")),
    "dated.tar": (ARCHIVE, tars.archive({"readme": b"x"})),
    "data.json": ("application/json", b"{}"),
    "index.json": ("application/json", b"{}"),
    "letter.docx": (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        zip_of("[Content_Types].xml", "word/document.xml"),
    ),
    # formats of others that are read here
    "array.npy": ("application/x-npy", b"\x93NUMPY\1\0"),
    "arrays.npz": ("application/x-npz", zip_of("a.npy")),
    "model.safetensors.index.json": ("application/x-checkpoint-index+json", b"{}"),
    "pytorch_model.bin.index.json": ("application/x-checkpoint-index+json", b"{}"),
}
OURS = {
    "best.pth": (CHECKPOINT, "zip/state_dict.pt"),
    "best.PTH": (CHECKPOINT, "zip/state_dict.pt"),
    "model_best.pth.tar": (CHECKPOINT, "zip/train.pt"),
    "last.ckpt": (CHECKPOINT, "frameworks/lightning.ckpt"),
    "pytorch_model.bin": (CHECKPOINT, "hf_sharded/pytorch_model-00001-of-00002.bin"),
    "no_suffix": (CHECKPOINT, "zip/state_dict.pt"),
    "aligned.pt": (CHECKPOINT, "zip/align4096.pt"),
    "deflated.pt": (CHECKPOINT, "zip/rezip_deflated.pt"),
    "script.pt": (CHECKPOINT, "torchscript/conv.pt"),
    "package.pt": (CHECKPOINT, "package/pkg.pt"),
    "program.pt2": (CHECKPOINT, "export/model.pt2"),
    "torch14.pt": (CHECKPOINT, "old/t1.4_py27_zip_opt.pt"),
    "torch15.bin": (CHECKPOINT, "old/t1.5_py37_zip_sd.pt"),
    "hostile.pt": (CHECKPOINT, "hostile/os_system.pt"),
    "legacy.pth": (LEGACY, "legacy/module.pt"),
    "legacy.pth.tar": (LEGACY, "legacy/tied.pt"),
    "legacy.ckpt": (LEGACY, "legacy/tied.pt"),
    "legacy.bin": (LEGACY, "legacy/proto4.pt"),
    "proto1.pt": (LEGACY, "legacy/proto1.pt"),
    "proto5.pt": (LEGACY, "legacy/proto5.pt"),
    "torch10.pt": (LEGACY, "old/t1.0_py27_legacy_sd.pt"),
    "first.pth": (TAR, "tar/tar_cpu.pth"),
    "first.pth.tar": (TAR, "tar/tar_cpu.pth"),
    "__0_0.distcp": ("application/x-pytorch-distributed-checkpoint", "dcp/plain/__0_0.distcp"),
    "all.safetensors": ("application/x-safetensors", "safetensors/all.safetensors"),
    "small.gguf": ("application/x-gguf", "gguf/small.gguf"),
    "state2.pkl": (PICKLE, "plain_pickle/state_p2.pkl"),
    "state5.pickle": (PICKLE, "plain_pickle/state_p5.pkl"),
    "arrays.joblib": (PICKLE, "joblib/arrays_zlib.joblib"),
}
DEFAULT_OF_NOBODY = {PICKLE}
QT = """
import json, sys
from PySide6.QtCore import QMimeDatabase
base = QMimeDatabase()
print(json.dumps({path: base.mimeTypeForFile(path).name() for path in sys.argv[1:]}))
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> tuple[dict[Path, str], dict[str, str]]:
    """Write all files, and register our types in a folder of their own; return the types that are meant."""
    if any(shutil.which(tool) is None for tool in ("gio", "update-mime-database")):
        pytest.skip("needs gio (libglib2.0-bin) and update-mime-database (shared-mime-info)")
    folder = tmp_path_factory.mktemp("types")
    packages = folder / "data" / "mime" / "packages"
    packages.mkdir(parents=True)
    shutil.copy(resource_path("desktop/checkpoint-inspector.xml"), packages)
    environment = os.environ | {"XDG_DATA_HOME": str(folder / "data"), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["update-mime-database", packages.parent], env=environment, check=True, capture_output=True
    )
    meant = {}
    for group, rows in (("others", OTHERS), ("ours", OURS)):
        (folder / group).mkdir()
        for name, (kind, content) in rows.items():
            path = folder / group / name
            path.write_bytes(content if isinstance(content, bytes) else (CORPUS / content).read_bytes())
            meant[path] = kind
    return meant, environment


def test_every_file_has_its_own_type_in_glib(samples) -> None:
    meant, environment = samples
    assert wrong(meant, types_by_glib(meant, environment)) == []


def test_every_file_has_its_own_type_in_qt(samples) -> None:
    meant, environment = samples
    command = [sys.executable, "-c", QT, *map(str, meant)]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert wrong(meant, {Path(path): kind for path, kind in json.loads(said).items()}) == []


def types_by_glib(paths: dict[Path, str], environment: dict[str, str]) -> dict[Path, str]:
    command = ["gio", "info", "-a", "standard::content-type", *paths]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    types = [line.split(": ")[-1] for line in said.splitlines() if "content-type: " in line]
    return dict(zip(paths, types, strict=True))


def wrong(meant: dict[Path, str], seen: dict[Path, str]) -> list[str]:
    return [
        f"{path.parent.name}/{path.name}: {seen[path]}" for path, kind in meant.items() if seen[path] != kind
    ]


def test_another_program_may_claim_a_suffix_as_well(samples, tmp_path) -> None:
    """Its type takes what nobody recognizes, and no checkpoint."""
    meant, environment = samples
    packages = tmp_path / "mime" / "packages"
    packages.mkdir(parents=True)
    other = '<mime-type type="application/x-other"><glob pattern="*.pt"/><glob pattern="*.ckpt"/></mime-type>'
    space = "http://www.freedesktop.org/standards/shared-mime-info"
    text = f'<mime-info xmlns="{space}">{other}</mime-info>'
    (packages / "other.xml").write_text(text, encoding="utf-8")
    subprocess.run(["update-mime-database", tmp_path / "mime"], check=True, capture_output=True)
    dirs = f"{tmp_path}:{environment.get('XDG_DATA_DIRS', '/usr/local/share:/usr/share')}"
    paths = {path: kind for path, kind in meant.items() if path.suffix in {".pt", ".ckpt"}}
    expected = {path: "application/x-other" if kind == UNKNOWN else kind for path, kind in paths.items()}
    assert wrong(expected, types_by_glib(paths, environment | {"XDG_DATA_DIRS": dirs})) == []


def test_only_types_of_ours_are_opened_by_a_double_click() -> None:
    own = set(
        read_own_types(resource_path("desktop/checkpoint-inspector.desktop").read_text(encoding="utf-8"))
    )
    assert own == {kind for kind, _ in OURS.values()} - DEFAULT_OF_NOBODY
    assert not own & {kind for kind, _ in OTHERS.values()}
    assert len(OTHERS) >= 30
    assert len(OURS) >= 20
