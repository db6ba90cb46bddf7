"""Measures reading numbers from Python: `python benchmarks/library.py [--h5py PYTHON] [--update]`.

The same float32 numbers, as safetensors, HDF5 and a file of `torch.save`: all of 250 small tensors, 1 GB in
100 tensors, and one slice of a tensor of 10 GB, which is a hole. Prints a Markdown table; `--update` puts it
into docs/benchmarks.md. h5py, which the program does not need, may be that of another Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import Figures, compare, put
from measure import run as run_once

from inspector.records import dataclass

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEAD = "| What | Reader | Compared with safetensors | Peak memory |\n| --- | --- | --- | --- |"
READERS = {
    "safetensors": """
from safetensors import safe_open
with safe_open(PATH, framework="np") as f:
    found = [f.get_tensor(name) for name in f.keys()] if PART is None else [f.get_slice("t0")[PART]]
""",
    "h5py": """
import h5py
with h5py.File(PATH) as f:
    found = [f[name][()] for name in f] if PART is None else [f["t0"][PART]]
""",
    "torch, `mmap=True`": """
import torch
f = torch.load(PATH, mmap=True)
found = [one.numpy().copy() for one in f.values()] if PART is None else [f["t0"][PART].numpy().copy()]
""",
    "inspector, safetensors": """
import inspector
with inspector.open(PATH) as f:
    found = [one.numpy() for one in f.values()] if PART is None else [f["t0"][PART]]
""",
}
READERS["inspector, `.pth`"] = READERS["inspector, safetensors"]
SUFFIXES = {"h5py": ".h5", "torch, `mmap=True`": ".pth", "inspector, `.pth`": ".pth"}
CHECK = "assert {one.shape for one in found} == {SHAPE} and {float(one[-1, -1]) for one in found} == LAST"
WRITE_HDF5 = """
import sys, h5py
path, count, rows, columns, is_hole = sys.argv[1], *map(int, sys.argv[2:])
kinds = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
kinds.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
kinds.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
with h5py.File(path, "w") as f:
    for number in range(count):
        space = h5py.h5s.create_simple((rows, columns))
        h5py.h5d.create(f.id, f"t{number}".encode(), h5py.h5t.IEEE_F32LE, space, kinds)
        if not is_hole:
            f[f"t{number}"][:] = number
"""


WRITE_TORCH = """
import contextlib, sys, torch
path, count, rows, columns, is_hole = sys.argv[1], *map(int, sys.argv[2:])
with torch.serialization.skip_data() if is_hole else contextlib.nullcontext():
    full = torch.empty if is_hole else torch.full
    torch.save({f"t{n}": full((rows, columns), *[float(n)][is_hole:]) for n in range(count)}, path)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many tensors of the same sizes, and what is read of them."""

    what: str
    count: int
    rows: int
    columns: int
    part: str = "None"

    @property
    def is_hole(self) -> bool:
        """Whether nothing is written, since it takes too long."""
        return self.part != "None"

    @property
    def nbytes(self) -> int:
        """The size of one tensor."""
        return 4 * self.rows * self.columns

    def block(self, number: int) -> bytes:
        """Return the bytes of one tensor."""
        return struct.pack("<f", number) * (self.nbytes // 4)


CASES = (
    Case(what="250 tensors of 64 KB", count=250, rows=128, columns=128),
    Case(what="1 GB in 100 tensors", count=100, rows=2500, columns=1000),
    Case(what="16 rows of 10 GB", count=1, rows=2_500_000, columns=1000, part="slice(1_000_000, 1_000_016)"),
)


def write(case: Case, folder: Path, h5py: str) -> None:
    """Write the files; in other processes what takes memory, which the peak of readers would begin with."""
    ends = [case.nbytes * number for number in range(case.count + 1)]
    kind = {"dtype": "F32", "shape": [case.rows, case.columns]}
    rows = {f"t{number}": kind | {"data_offsets": ends[number : number + 2]} for number in range(case.count)}
    header = json.dumps(rows).encode()
    header += b" " * (-len(header) % 8)
    with (folder / "x.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for number in range(0 if case.is_hole else case.count):
            file.write(case.block(number))
        file.truncate(8 + len(header) + ends[-1])
    sizes = [str(size) for size in (case.count, case.rows, case.columns, int(case.is_hole))]
    run_once([h5py, "-c", WRITE_HDF5, str(folder / "x.h5"), *sizes])
    run_once([sys.executable, "-c", WRITE_TORCH, str(folder / "x.pth"), *sizes])


def lines(case: Case, folder: Path, h5py: str, runs: int) -> Iterator[str]:
    """Measure all readers in turns."""
    write(case, folder, h5py)
    shape = (16 if case.is_hole else case.rows, case.columns)
    commands = []
    for name, code in READERS.items():
        path = folder / f"x{SUFFIXES.get(name, '.safetensors')}"
        given = f"PATH, PART, SHAPE, LAST = {str(path)!r}, {case.part}, {shape}, {set(range(case.count))}"
        commands.append([h5py if name == "h5py" else sys.executable, "-c", given + code + CHECK])
    figures: list[Figures] = compare(commands, runs=runs, rotate=True)
    for name, one in zip(READERS, figures, strict=True):
        ratio = statistics.median(a / b for a, b in zip(one.turns, figures[0].turns, strict=True))
        yield f"| {case.what} | {name} | {ratio:.2f}× | {one.nbytes / 1e6:,.0f} MB |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--h5py", default=sys.executable, metavar="PYTHON", help="a Python that has h5py")
    parser.add_argument("--runs", type=int, default=5, help="how often each reader counts (default: 5)")
    parser.add_argument("--workdir", type=Path, help="where files are made (default: the temporary folder)")
    parser.add_argument("--update", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    for case in CASES:
        with tempfile.TemporaryDirectory(dir=options.workdir, prefix="library-") as folder:
            for line in lines(case, Path(folder), options.h5py, options.runs):
                found.append(line)
                print(line, flush=True)
    if options.update:
        put(DOCUMENT, "library", "\n".join([HEAD, *found]))


if __name__ == "__main__":
    main()
