"""Folders of many shards: the time of opening, against reading their headers one after the other, and copies.

`python benchmarks/shards.py FOLDER` makes a folder of 100 shards with 50,000 tensors below FOLDER, opens it,
and writes all of them into one file; everything is taken away again. With `--large` it does the latter with
sparse shards of 20 GB together, beside what `cp` takes to write all of their bytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.remap.convert.export import export_form
from inspector.remap.convert.forms import Form

SHARDS, TENSORS = 100, 500
_LARGE_NBYTES = 20 << 30


def make(folder: Path, nbytes: int) -> Path:
    """Write the shards, as holes behind their headers, and the index."""
    folder.mkdir(parents=True)
    each = nbytes // (SHARDS * TENSORS) // 2 * 2
    places: dict[str, str] = {}
    for number in range(SHARDS):
        file = f"model-{number + 1:05}-of-{SHARDS:05}.safetensors"
        rows = {
            f"model.layers.{number}.mlp.{index}.weight": {
                "dtype": "BF16",
                "shape": [each // 2],
                "data_offsets": [index * each, (index + 1) * each],
            }
            for index in range(TENSORS)
        }
        places |= dict.fromkeys(rows, file)
        header = json.dumps(rows, separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)
        with (folder / file).open("wb") as out:
            out.write(struct.pack("<Q", len(header)) + header)
            out.truncate(8 + len(header) + TENSORS * each)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": SHARDS * TENSORS * each}, "weight_map": places}))
    return folder


def read_headers(folder: Path) -> int:
    """Read the header of each shard; return how many tensors they name."""
    count = 0
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as source:
            (nbytes,) = struct.unpack("<Q", source.read(8))
            count += len(json.loads(source.read(nbytes)))
    return count


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def opened(folder: Path) -> None:
    """Open a folder, and report on the process that did."""
    headers = min(timed(lambda: read_headers(folder)) for _ in range(3))
    seconds = min(timed(lambda: open_checkpoint(str(folder))) for _ in range(3))
    checkpoint = open_checkpoint(str(folder))
    print(f"{len(checkpoint.tensors):,} tensors in {len(checkpoint.parts)} files: {seconds:.2f} s")
    print(f"reading the headers one after the other: {headers:.2f} s; {seconds / headers:.1f} times that")
    print(f"memory: {_most_mb():.0f} MB")


def converted(folder: Path, out: Path) -> None:
    """Write a folder as one file, and report on the process that did."""
    form = Form(shape="safetensors" if out.suffix == ".safetensors" else "state-dict")
    seconds = timed(lambda: export_form(str(folder), out, None, form))
    print(f"{out.suffix} of {out.stat().st_size / 2**30:.1f} GB: {seconds:.1f} s, memory {_most_mb():.0f} MB")


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure; each figure in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true", help="shards of 20 GB together, as holes")
    parser.add_argument("--do", choices=("open", "convert"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do is not None:
        opened(options.folder) if options.do == "open" else converted(options.folder, options.out)
        return
    place = options.folder / "shards"
    try:
        make(place / "m", _LARGE_NBYTES if options.large else SHARDS * TENSORS * 64)
        again = [sys.executable, "-P", __file__, str(place / "m")]
        subprocess.run([*again, "--do", "open"], check=True)
        for ending in ("safetensors", "pt"):
            out = place / f"one.{ending}"
            subprocess.run([*again, "--do", "convert", "--out", str(out)], check=True)
            out.unlink()
        copy = ["cp", "-r", "--sparse=never", place / "m", place / "copy"]
        copied = timed(lambda: subprocess.run(copy, check=True))
        print(f"cp: {copied:.1f} s")
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
