"""Folders of many shards: the time of opening, against what any other reader has to read, and copies.

`python benchmarks/shards.py FOLDER` makes folders of 100 shards with 50,000 tensors below FOLDER: those of
safetensors, `.bin` files of `torch.save`, and a distributed checkpoint in 100,000 pieces. It opens each, and
writes the first into one file; everything is taken away again. With `--large` it only writes one, of sparse
shards of 20 GB together, beside what `cp` takes to write all of their bytes. `--update` puts the figures into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle  # noqa: TID251 - writes what is opened
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measure import put, table_in

from inspector.model.build import open_checkpoint
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form

SHARDS, TENSORS = 100, 500
_LARGE_NBYTES = 20 << 30
_DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_HEAD = "| What | Compared with | Ratio | Goal | Peak memory | Goal |  |\n|" + " --- |" * 7
_READERS = {
    "safetensors": "reading the headers one after the other",
    "bin": "`torch.load(mmap=True)` of each",
    "dcp": "torch's `read_metadata`",
}


# --- making -------------------------------------------------------------------------------------------------


def _index(folder: Path, places: dict[str, str], ending: str, nbytes: int) -> None:
    index = {"metadata": {"total_size": nbytes}, "weight_map": places}
    (folder / f"{ending}.index.json").write_text(json.dumps(index))


def make(folder: Path, nbytes: int) -> Path:
    """Write shards of safetensors, as holes behind their headers, and the index."""
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
    _index(folder, places, "model.safetensors", SHARDS * TENSORS * each)
    return folder


def make_bin(folder: Path) -> Path:
    """Write shards of `torch.save` and their index."""
    import torch  # noqa: PLC0415 - slow

    folder.mkdir(parents=True)
    places: dict[str, str] = {}
    for number in range(SHARDS):
        file = f"pytorch_model-{number + 1:05}-of-{SHARDS:05}.bin"
        names = [f"model.layers.{number}.mlp.{index}.weight" for index in range(TENSORS)]
        torch.save({name: torch.zeros(4) for name in names}, folder / file)
        places |= dict.fromkeys(names, file)
    _index(folder, places, "pytorch_model.bin", SHARDS * TENSORS * 16)
    return folder


def make_dcp(folder: Path) -> Path:
    """Write a distributed checkpoint whose tensors stand in two pieces each."""
    import torch  # noqa: PLC0415 - slow
    from torch.distributed.checkpoint import filesystem, metadata  # noqa: PLC0415 - slow

    folder.mkdir(parents=True)
    data = io.BytesIO()
    torch.save(torch.zeros(2, 4), data)
    zipped = data.getvalue()
    entries, places, paths = {}, {}, {}
    counts = [0] * SHARDS
    for number in range(SHARDS * TENSORS):
        name = f"model.layers.{number // 10}.block.{number % 10}.weight"
        chunks = []
        for half in range(2):
            rank = (2 * number + half) % SHARDS
            start = torch.Size((2 * half, 0))
            chunks.append(metadata.ChunkStorageMetadata(start, torch.Size((2, 4))))
            at, size = counts[rank] * len(zipped), len(zipped)
            place = filesystem._StorageInfo(f"__{rank}_0.distcp", at, size)  # noqa: SLF001 - what it writes
            places[metadata.MetadataIndex(name, start, half)] = place
            counts[rank] += 1
        properties = metadata.TensorProperties(torch.float32)
        entries[name] = metadata.TensorStorageMetadata(properties, torch.Size((4, 4)), chunks)
        paths[name] = ("model", name.removeprefix("model."))
    for rank, count in enumerate(counts):
        (folder / f"__{rank}_0.distcp").write_bytes(zipped * count)
    whole = metadata.Metadata(entries, paths, places, metadata.StorageMeta(), "1.0.0")
    (folder / ".metadata").write_bytes(pickle.dumps(whole))
    return folder


# --- what others read ---------------------------------------------------------------------------------------


def read_headers(folder: Path) -> int:
    """Read the header of each shard; return how many tensors they name."""
    count = 0
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as source:
            (nbytes,) = struct.unpack("<Q", source.read(8))
            count += len(json.loads(source.read(nbytes)))
    return count


def load_shards(folder: Path) -> int:
    """Load each shard without its bytes; return how many tensors there are."""
    import torch  # noqa: PLC0415 - slow

    return sum(len(torch.load(file, mmap=True)) for file in sorted(folder.glob("*.bin")))


def read_metadata(folder: Path) -> int:
    """Have torch read the description of a distributed checkpoint; return how many tensors it names."""
    from torch.distributed.checkpoint import FileSystemReader  # noqa: PLC0415 - slow

    return len(FileSystemReader(folder).read_metadata().state_dict_metadata)


_OTHERS: dict[str, Callable[[Path], int]] = {
    "safetensors": read_headers,
    "bin": load_shards,
    "dcp": read_metadata,
}


# --- measuring; each figure in a process of its own ---------------------------------------------------------


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def report(kind: str, folder: Path, out: Path | None) -> None:
    """Print the seconds and the memory that something takes, as JSON."""
    if kind == "open":
        seconds = min(timed(lambda: open_checkpoint(str(folder))) for _ in range(3))
    elif kind == "convert" and out is not None:
        form = Form(shape="safetensors" if out.suffix == ".safetensors" else "state-dict")
        seconds = timed(lambda: export_form(str(folder), out, None, form))
    else:
        read = _OTHERS[kind]
        read(folder)  # imports
        seconds = min(timed(lambda: read(folder)) for _ in range(3))
    print(json.dumps([seconds, most_mb()]))


def most_mb() -> float:
    """Return the most memory of this process; `getrusage` counts the one that started it as well."""
    with Path("/proc/self/status").open() as status:
        return next(int(row.split()[1]) / 1024 for row in status if row.startswith("VmHWM:"))


def measured(kind: str, folder: Path, *more: str) -> tuple[float, float]:
    """Return seconds and megabytes of another process."""
    command = [sys.executable, "-P", __file__, str(folder), "--do", kind, *more]
    seconds, megabytes = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return seconds, megabytes


def line(what: tuple[str, str], ratio: float, most: float, megabytes: float, most_mb: int) -> str:
    """Return a row of the table."""
    mark = "met" if ratio <= most and megabytes < most_mb else "**missed**"
    shown = f"{ratio:.2g}×" if ratio < 10 else f"{ratio:.0f}×"
    return f"| {' | '.join(what)} | {shown} | ≤ {most:g}× | {megabytes:.0f} MB | < {most_mb} MB | {mark} |"


def openings(place: Path) -> list[str]:
    """Measure opening folders of each kind."""
    rows = []
    makers = {
        "safetensors": lambda folder: make(folder, SHARDS * TENSORS * 64),
        "bin": make_bin,
        "dcp": make_dcp,
    }
    for kind, make_folder in makers.items():
        folder = make_folder(place / kind)
        theirs, (seconds, megabytes) = measured(kind, folder)[0], measured("open", folder)
        print(f"{kind}: {seconds:.2f} s, {theirs:.2f} s, {megabytes:.0f} MB", flush=True)
        what = "a distributed checkpoint in 100,000 pieces" if kind == "dcp" else f"shards, {kind}"
        rows.append(line((f"Opening {what}", _READERS[kind]), seconds / theirs, 2, megabytes, 300))
        shutil.rmtree(folder)
    return rows


def copies(place: Path, *, is_large: bool) -> list[str]:
    """Measure writing all shards into one file."""
    folder = make(place / "m", _LARGE_NBYTES if is_large else SHARDS * TENSORS * 64)
    copy = ["cp", "-r", "--sparse=never", folder, place / "copy"]
    copied = timed(lambda: subprocess.run(copy, check=True))
    shutil.rmtree(place / "copy")
    print(f"cp: {copied:.1f} s", flush=True)
    rows = []
    for ending, name in (("safetensors", "safetensors file"), ("pt", "file of `torch.save`")):
        out = place / f"one.{ending}"
        seconds, megabytes = measured("convert", folder, "--out", str(out))
        print(f"{ending}: {seconds:.1f} s, {megabytes:.0f} MB", flush=True)
        out.unlink()
        what = f"20 GB into one {name}, compared", "`cp --sparse=never`"
        rows.append(line(what, seconds / copied, 1.2, megabytes, 100))
    return rows if is_large else []


def update(rows: list[str]) -> None:
    """Put rows into the document, in the place of older ones of the same comparison."""
    kept = {row.split("|")[1]: row for row in [*table_in(_DOCUMENT, "shards")[2:], *rows]}
    put(_DOCUMENT, "shards", "\n".join([_HEAD, *kept.values()]))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true", help="copies of 20 GB together, as holes")
    parser.add_argument("--update", action="store_true", help="put the figures into docs/benchmarks.md")
    parser.add_argument("--do", choices=("open", "convert", *_OTHERS), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do is not None:
        report(options.do, options.folder, options.out)
        return
    place = options.folder / "shards"
    try:
        rows = [*([] if options.large else openings(place)), *copies(place, is_large=options.large)]
        print("\n".join([_HEAD, *rows]))
        if options.update:
            update(rows)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
