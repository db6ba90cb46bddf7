"""Measures what loading a file of 1 GB takes of the machine's memory, against what the program forecasts.

`python benchmarks/memory.py [--update]` prints a Markdown table; `--update` puts it into docs/benchmarks.md.
Each row is a process of its own: it imports torch, loads a small file to warm up, tells the kernel to forget
its highest mark (`/proc/self/clear_refs`), then loads. What the highest mark of resident memory (`VmHWM`) has
grown by is compared with the forecast, pages of the mapped file included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.records import dataclass
from inspector.target.call import Function, LoadCall, MapLocation, TagMap
from inspector.target.memory import HOST, LOAD_ALONE, Routine, forecast
from inspector.target.profile import CPU_ONLY

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- memory: written by benchmarks/memory.py -->", "<!-- end of memory -->"
HEAD = "| Load | Forecast | Measured | Forecast / measured | Within 10 % |\n| --- | --- | --- | --- | --- |"
MEGABYTE = 1_000_000
# Where next to nothing is taken, ten per cent of it says nothing: so much is forgiven.
GRACE_NBYTES = 5 * MEGABYTE

CHILD = """
import io, sys, warnings
warnings.simplefilter("ignore")
import torch

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

def model():
    net = torch.nn.Module()
    net.layers = torch.nn.ModuleList()
    for _ in range(100):
        layer = torch.nn.Module()
        layer.weight = torch.nn.Parameter(torch.ones(NUMEL))
        net.layers.append(layer)
    return net

def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)

for new in (True, False):
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(3)}, buffer, _use_new_zipfile_serialization=new)
    buffer.seek(0)
    torch.load(buffer)
path, what = sys.argv[1:]
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
exec(what)
print(status("VmHWM") - before)
"""
LOAD = "checkpoint = torch.load(path{})"
COPY = "net = model()\n{}\nnet.load_state_dict(checkpoint['model'])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to load.

    Attributes:
        what: Its name.
        kind: The file, see `make_files.py`.
        arguments: Those of `torch.load` but for the path.
        how: The same for the forecast.
        around: The statements, with the load in the middle.
        routine: The same for the forecast.
    """

    what: str
    kind: str
    arguments: str
    how: LoadCall
    around: str
    routine: Routine


def forms() -> Iterator[Form]:
    """Return all forms that a CPU can be asked about."""
    steps = (("", "{}", LOAD_ALONE), (", `load_state_dict`", COPY, Routine(fills_model=True)))
    for kind, name in (("cpu-1gb", "zip"), ("legacy-1gb", "legacy")):
        place: MapLocation = "cpu" if kind == "legacy-1gb" else None
        given = ", map_location='cpu'" if place else ""
        for step, around, routine in steps:
            for weights_only in (True, False) if not step else (True,):
                yield Form(
                    what=f"{name}, `weights_only={weights_only}`{step}",
                    kind=kind,
                    arguments=f"{given}, weights_only={weights_only}",
                    how=LoadCall(map_location=place, weights_only=weights_only),
                    around=around,
                    routine=routine,
                )
    for step, around, routine in steps:
        how = LoadCall(weights_only=True, mmap=True)
        what = f"zip, `mmap=True`{step or ', nothing read'}"
        yield Form(
            what=what, kind="cpu-1gb", arguments=", mmap=True", how=how, around=around, routine=routine
        )
    maps: dict[str, MapLocation] = {
        "{'cuda:0': 'cpu'}": TagMap(pairs=(("cuda:0", "cpu"),)),
        "lambda storage, tag: storage": Function(gives="storage"),
        "'meta'": "meta",
    }
    for text, place in maps.items():
        for kind, name in (("zip-1gb", "zip"), ("legacy-1gb", "legacy")):
            yield Form(
                what=f"{name} of `cuda:0`, `map_location={text}`",
                kind=kind,
                arguments=f", map_location={text}",
                how=LoadCall(map_location=place, weights_only=True),
                around="{}",
                routine=LOAD_ALONE,
            )


def measured(form: Form, path: Path, numel: int, runs: int) -> int:
    """Return the growth of a child's highest mark: the middle one of several children."""
    statements = form.around.format(LOAD.format(form.arguments))
    child = CHILD.replace("NUMEL", str(numel))
    command = [sys.executable, "-c", child, str(path), statements]
    figures = sorted(
        int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)
    )
    return figures[runs // 2]


def predicted(form: Form, path: Path) -> int:
    """Return the forecast of the same: what the host holds, and mapped pages that have been read."""
    said = forecast(open_checkpoint(str(path)), CPU_ONLY, form.how, form.routine)
    assert said.failure is None, said.failure
    return max(
        use.peak_nbytes + stage.mapped_nbytes
        for stage in said.stages
        for use in stage.uses
        if use.device == HOST
    )


def rows(folder: Path, runs: int) -> Iterator[str]:
    """Measure all forms; each file is there while it is needed."""
    wanted = list(forms())
    for kind in dict.fromkeys(form.kind for form in wanted):
        path = folder / f"{kind}.pt"
        subprocess.run([sys.executable, HERE / "make_files.py", kind, path], check=True)
        numel = next(row.shape[0] for row in open_checkpoint(str(path)).tensors if row.role == "parameter")
        for form in (form for form in wanted if form.kind == kind):
            ours, real = predicted(form, path), measured(form, path, numel, runs)
            is_near = abs(ours - real) <= max(0.1 * real, GRACE_NBYTES)
            ratio = f"{ours / real:.3f}" if real > GRACE_NBYTES else "-"
            mark = "yes" if is_near else "**no**"
            cells = (form.what, f"{ours / MEGABYTE:,.0f} MB", f"{real / MEGABYTE:,.0f} MB", ratio, mark)
            yield f"| {' | '.join(cells)} |"
        path.unlink()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="children for each row (default: 3)")
    parser.add_argument("--workdir", type=Path, help="where files are made (default: the temporary folder)")
    parser.add_argument("--update", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    print(HEAD, flush=True)
    lines = []
    with tempfile.TemporaryDirectory(dir=options.workdir, prefix="memory-") as folder:
        for line in rows(Path(folder), options.runs):
            lines.append(line)
            print(line, flush=True)
    if options.update:
        text = DOCUMENT.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        table = "\n".join([HEAD, *lines])
        after = rest.split(END)[1]
        DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
