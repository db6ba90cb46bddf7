"""What opens a compressed file can be read by torch, which goes back in it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any

import pytest

from inspector.containers.packings import PACKINGS
from inspector.model.build import open_checkpoint
from inspector.snippet.loading import OPENERS
from inspector.snippet.styles.table import render
from inspector.target.wish import parse_wish

torch = pytest.importorskip("torch")
PACKERS: dict[str, Any] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "zlib": zlib.compress,
}


def test_code_opens_what_each_program_packs(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(4.0)}, buffer)
    packers = dict(PACKERS)
    for name in ("zstandard", "lz4.frame"):
        try:
            packers["zstd" if name == "zstandard" else "lz4"] = __import__(
                name, fromlist=["compress"]
            ).compress
        except ImportError:
            continue
    target = parse_wish("cpu").machine
    assert target is not None
    for name, pack in packers.items():
        path = tmp_path / f"{name}.pt"
        path.write_bytes(pack(buffer.getvalue()))
        code = render(open_checkpoint(str(path)), style="plain", target=target)
        left: dict[str, Any] = {"model": torch.nn.Module()}
        exec(code.partition("# The model")[0], left)
        assert left["state_dict"]["w"].tolist() == [0, 1, 2, 3], name


def test_every_packing_has_an_opener() -> None:
    assert {one.name for one in PACKINGS} - {"joblib's zlib"} <= set(OPENERS)
