"""What is measured against what, and the goal of each."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import statistics
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import ENVIRONMENT, Figures, compare
from measure import run as _measured_run

from inspector.records import dataclass, replace

HERE = Path(__file__).parent
PYTHON = sys.executable
PROGRAM = str(Path(sys.executable).with_name("checkpoint-inspector"))
MEGABYTE = 1_000_000
_FEW_TENSORS = 1_000
MOST_SECONDS = {"plan of a device map": 0.1, "tree": 0.5}  # 0.3 s for any other answer
SIZES = {
    "zip-1gb": 1.0,
    "zip-10gb": 10.0,
    "cpu-1gb": 1.0,
    "cpu-10gb": 10.0,
    "legacy-1gb": 1.0,
    "legacy-10gb": 10.0,
    "module-1gb": 1.0,
    "module-10gb": 10.0,
    "many": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison; the goal is at most `most_ratio` times the other's seconds and `grace_seconds` more."""

    what: str
    against: str
    ours: Figures
    theirs: Figures
    most_ratio: float | None = None
    grace_seconds: float = 0.0
    most_nbytes: int | None = None

    @property
    def ratios(self) -> list[float]:
        """Our seconds by theirs in each turn, from the lowest on."""
        pairs = zip(self.ours.turns, self.theirs.turns, strict=False)
        return sorted(ours / theirs for ours, theirs in pairs) or [self.ours.seconds / self.theirs.seconds]

    @property
    def ratio(self) -> float:
        """The median of those: a disk that is slow for a while is slow for both."""
        return statistics.median(self.ratios)

    @property
    def is_met(self) -> bool:
        """Whether the goals are met."""
        fast = self.most_ratio is None or (
            self.ratio <= self.most_ratio + self.grace_seconds / self.theirs.seconds
        )
        return fast and (self.most_nbytes is None or self.ours.nbytes <= self.most_nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How to run: where files go, how often, and whether the large ones are made too."""

    folder: Path
    runs: int
    big: bool
    matching: str = ""

    @contextlib.contextmanager
    def file(self, kind: str, copies: int = 0) -> Iterator[Path]:
        """Make a file for which there is room, with so many copies, and remove it after use."""
        needed = int((1 + copies) * SIZES[kind] * 1.05e9)
        if shutil.disk_usage(self.folder).free < needed:
            raise OSError(f"{needed / 1e9:.0f} GB are needed in {self.folder}")
        path = self.folder / f"{kind}.pt"
        try:
            subprocess.run([PYTHON, HERE / "make_files.py", kind, path], check=True)
            yield path
        finally:
            path.unlink(missing_ok=True)

    def runs_for(self, kind: str) -> int:
        """Return how often to run with a file of this kind: large ones vary less and take longer."""
        return max(3, self.runs // 2) if SIZES[kind] > 1 else self.runs


def show(bench: Bench) -> Iterator[Row]:
    """Showing a file against opening it with torch, which maps the weights instead of reading them."""
    sizes = {"zip-1gb": "1 GB", "zip-10gb": "10 GB"}
    kinds = list(sizes)[: 1 + bench.big]
    with contextlib.ExitStack() as files:
        commands = []
        for path in [files.enter_context(bench.file(kind)) for kind in kinds]:
            commands += [[PROGRAM, "show", "--json", str(path)], with_torch("mmap", path)]
        figures = compare(commands, runs=2 * bench.runs)
    for kind, ours, theirs in zip(kinds, figures[::2], figures[1::2], strict=True):
        yield Row(
            what=f"`show --json`, {sizes[kind]} in 400 tensors",
            against="`torch.load(mmap=True)`",
            ours=ours,
            theirs=theirs,
            most_ratio=1 / 15,
            most_nbytes=40 * MEGABYTE,
        )
    if bench.big:
        small, _, large, _ = figures
        what, against = "`show --json`, 10 GB", "`show --json`, 1 GB"
        yield Row(what=what, against=against, ours=large, theirs=small, most_ratio=1.15)


def diff(bench: Bench) -> Iterator[Row]:
    """Two equal files against `cmp`, which reads both as well: files with holes, which take no disk."""
    for gigabytes in (1, 10) if bench.big else (1,):
        paths = [hollow(bench.folder / f"{name}.safetensors", gigabytes) for name in ("one", "other")]
        names = list(map(str, paths))
        ours, theirs = compare(
            [[PROGRAM, "diff", *names], ["cmp", *names]], runs=max(3, bench.runs // gigabytes)
        )
        for path in paths:
            path.unlink()
        yield Row(
            what=f"`diff`, two equal files of {gigabytes} GB",
            against="`cmp`",
            ours=ours,
            theirs=theirs,
            most_ratio=1.0,
            grace_seconds=0.3,
            most_nbytes=60 * MEGABYTE,
        )


def values(bench: Bench) -> Iterator[Row]:
    """Statistics of one tensor, of random numbers and of a hole, against reading and against torch."""
    sizes = {"1 MB": 10**6, "1 GB": 10**9, "8 GB": 8 * 10**9}
    for size, nbytes in sizes.items():
        path = one_tensor(bench.folder / "one.safetensors", nbytes, is_hollow=nbytes > 10**9)
        others = {"`cat`": ["cat", str(path)]} if nbytes >= 10**9 else {}
        if nbytes <= 10**9:
            others["torch, all in memory"] = [PYTHON, "-c", _TORCH_VALUES, str(path)]
        ours, *theirs = compare(
            [[PROGRAM, "stats", str(path), "w"], *others.values()], runs=bench.runs_for("zip-1gb")
        )
        path.unlink()
        kind = "a hole" if nbytes > 10**9 else "random"
        for against, figures in zip(others, theirs, strict=True):
            yield Row(
                what=f"`stats`, a tensor of {size}, {kind}",
                against=against,
                ours=ours,
                theirs=figures,
                most_nbytes=200 * MEGABYTE,
            )


_TORCH_VALUES = """
import sys
from safetensors.torch import load_file
tensor = load_file(sys.argv[1])["w"]
wide = tensor.double()
print(tensor.min(), tensor.max(), wide.mean(), wide.std(), wide.norm(), tensor.isnan().sum())
print(tensor.isinf().sum(), (tensor == 0).sum(), tensor.histc(100))
"""


def one_tensor(path: Path, nbytes: int, *, is_hollow: bool) -> Path:
    """Make a safetensors file of one float32 tensor, of numbers between -1 and 1 or of a hole."""
    rows = {"w": {"dtype": "F32", "shape": [nbytes // 4000, 1000], "data_offsets": [0, nbytes]}}
    header = json.dumps(rows).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        if is_hollow:
            file.truncate(8 + len(header) + nbytes)
            return path
        chance = random.Random(1)
        block = array("f", (chance.uniform(-1, 1) for _ in range(250_000))).tobytes()
        for _ in range(nbytes // len(block)):
            file.write(block)
    return path


def latency(bench: Bench) -> Iterator[Row]:
    """How long a hand waits for the window: with very many rows, with very many bytes, for one tensor."""
    trials = {
        "rows": (hollow(bench.folder / "rows.safetensors", 0.01, _TENSORS), f"{1.5 * _TENSORS:,.0f} rows"),
        "bytes": (hollow(bench.folder / "bytes.safetensors", 10), "10 GB"),
    }
    for trial, (path, size) in trials.items():
        found = _latency(bench, trial, path)
        path.unlink()
        for what, goal in _WAITS.get(trial, {}).items():
            yield _within(f"{what}, {size}", _seconds([each[what]["seconds"] for each in found]), goal)
        for what, steps in _GAPS[trial].items():
            for words, kind, goal in _KINDS:
                seconds = [max(each[step][kind] for step in steps) for each in found]
                row = _within(f"{words} while {what}, {size}", _seconds(seconds), 0.05)
                yield row if goal else replace(row, most_ratio=None)
    for size, nbytes in {"1 MB": 10**6, "8 GB": 8 * 10**9}.items():
        path = one_tensor(bench.folder / "one.safetensors", nbytes, is_hollow=nbytes > 10**9)
        runs = [
            (_latency(bench, "values", path, 1)[0], _measured_run([PROGRAM, "stats", str(path), "w"]))
            for _ in range(max(1, bench.runs // 2))
        ]
        path.unlink()
        ours = _seconds([found["the first histogram"]["seconds"] for found, _ in runs])
        theirs = _seconds([whole.seconds for _, whole in runs])
        yield Row(what=f"click to histogram, {size}", against="`stats`", ours=ours, theirs=theirs)


_KINDS = (("main thread busy", "busy", True), ("window stands still", "gap", False))
"""What of a gap is our work, and what the clock says, which counts what other programs do as well."""


def _latency(bench: Bench, trial: str, path: Path, runs: int = 0) -> list[dict[str, dict[str, float]]]:
    """Return what each of a few runs measured, by what was done."""
    command = [PYTHON, str(HERE / "latency.py"), trial, str(path)]
    measured = []
    for _ in range(runs or max(1, bench.runs // 2)):
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
        lines = done.stdout.splitlines()
        measured.append({found["what"]: found for found in map(json.loads, lines)})
    return measured


def _seconds(found: list[float]) -> Figures:
    seconds = statistics.median(found)
    return Figures(seconds=seconds, cpu_seconds=seconds, nbytes=0)


_TENSORS = 400_000
_WAITS = {
    "rows": {
        "key to filtered tree (1)": 0.5,
        "key to filtered tree (weight)": 0.5,
        "click to facts": 0.1,
    }
}
_ROWS = (
    "unfolding 5,000 rows",
    "sorting them by column 0",
    "sorting them by column 4",
    "selecting them",
    "copying them",
    "scrolling them",
)
_LIST = ("listing 100,000 rows", "scrolling the list", "selecting the list", "the tree again")
_GAPS = {
    "rows": {
        "opening": ("opening",),
        "scrolling": ("scrolling",),
        "filtering": ("key to filtered tree (1)", "key to filtered tree (weight)", "ending the search"),
        "unfolding, sorting and copying": _ROWS,
        "listing 100,000 rows": _LIST,
        "charting": ("the page map", "the page memory"),
        "turning to other pages": (
            "the page findings",
            "the page code",
            "the page values",
        ),
        "preparing an export": ("the export dialog",),
        "closing": ("closing",),
    },
    "bytes": {"opening": ("opening",), "scanning": ("scanning",), "exporting": ("exporting",)},
}


def hollow(path: Path, gigabytes: float, tensors: int = 400) -> Path:
    """Make a safetensors file that is a hole behind its header; of many tensors, two in each layer."""
    nbytes = round(gigabytes * 10**9) // tensors // 4 * 4
    rows = {
        (
            f"layers.{number}.weight"
            if tensors <= _FEW_TENSORS
            else f"layers.{number // 2}.{('weight', 'bias')[number % 2]}"
        ): {
            "dtype": "F32",
            "shape": [nbytes // 4],
            "data_offsets": [number * nbytes, (number + 1) * nbytes],
        }
        for number in range(tensors)
    }
    header = json.dumps(rows).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + tensors * nbytes)
    return path


def many(bench: Bench) -> Iterator[Row]:
    """Showing very many tensors."""
    with bench.file("many") as path:
        commands = [[PROGRAM, "show", "--json", str(path)], with_torch("load", path)]
        ours, theirs = compare(commands, runs=bench.runs)
    yield Row(
        what="`show --json`, 100,000 tensors",
        against="`torch.load`",
        ours=ours,
        theirs=theirs,
        most_ratio=1 / 4,
    )


def remap(bench: Bench) -> Iterator[Row]:
    """Writing a copy with other devices against copying the file."""
    cases = [
        ("zip-1gb", "*=cpu", "1 GB zip to the CPU"),
        ("cpu-1gb", "cpu=cuda:0", "1 GB zip from the CPU, its pickle grows"),
        ("legacy-1gb", "*=cpu", "1 GB legacy file to the CPU"),
        ("module-1gb", "*=cpu", "1 GB whole module to the CPU"),
        ("zip-10gb", "*=cpu", "10 GB zip to the CPU"),
        ("cpu-10gb", "cpu=cuda:0", "10 GB zip from the CPU, its pickle grows"),
        ("legacy-10gb", "*=cpu", "10 GB legacy file to the CPU"),
        ("module-10gb", "*=cpu", "10 GB whole module to the CPU"),
    ]
    for kind, rule, what in cases:
        is_big = SIZES[kind] > 1
        if is_big > bench.big or bench.matching not in what:
            continue
        out = bench.folder / "out.pt"
        with bench.file(kind, copies=1) as path:
            commands = [
                [PROGRAM, "remap", str(path), "-o", str(out), "--map", rule],
                ["sh", "-c", 'cp "$0" "$1" && sync "$1"', str(path), str(out)],
            ]
            if not is_big:  # torch would need more memory than most have
                resave = "resave-all" if kind.startswith("module") else "resave"
                commands.append(with_torch(resave, path, out))
            try:
                ours, copy, *resaves = compare(commands, runs=bench.runs_for(kind), out=out, rotate=True)
            finally:
                out.unlink(missing_ok=True)
        yield Row(
            what=f"`remap`, {what}",
            against="`cp`, `sync`",
            ours=ours,
            theirs=copy,
            most_ratio=1.05 if is_big else 1.2,
            grace_seconds=0.0 if is_big else 0.3,
            most_nbytes=(80 if is_big else 60) * MEGABYTE,
        )
        for resave in resaves:
            yield Row(what=f"`remap`, {what}", against="`torch.load`, `torch.save`", ours=ours, theirs=resave)


def in_place(bench: Bench) -> Iterator[Row]:
    """Changing the file itself: the command against copying the file, and the work alone against its goal."""
    for kind, size in [("zip-1gb", "1 GB"), ("zip-10gb", "10 GB")][: 1 + bench.big]:
        out = bench.folder / "out.pt"
        with bench.file(kind, copies=1) as path:
            for rule, what in [("*=cpu", ""), ("*=cuda:11", ", its pickle grows")]:
                commands = [
                    [PROGRAM, "remap", str(path), "--in-place", "--map", rule],
                    [PROGRAM, "remap", str(path), "--undo"],
                    ["sh", "-c", 'cp "$0" "$1" && sync "$1"', str(path), str(out)],
                ]
                ours, undo, copy = compare(commands, runs=bench.runs_for(kind), out=out)
                out.unlink(missing_ok=True)
                name = f"`remap --in-place`, {size} zip{what}"
                memory = 60 * MEGABYTE
                yield Row(what=name, against="`cp`, `sync`", ours=ours, theirs=copy, most_nbytes=memory)
                yield _within(name, ours, 0.3)
                yield _within(f"`remap --undo`, {size} zip{what}", undo, 0.3)
                seconds = _measured([PYTHON, str(HERE / "in_place.py"), str(path), rule, str(bench.runs)])
                alone = Figures(seconds=seconds, cpu_seconds=seconds, nbytes=ours.nbytes)
                yield _within(f"the change alone, {size} zip{what}", alone, 0.05)


def _within(what: str, ours: Figures, seconds: float) -> Row:
    """Compare with a goal that is a time."""
    goal = Figures(seconds=seconds, cpu_seconds=seconds, nbytes=0)
    return Row(what=what, against=f"{seconds * 1000:.0f} ms", ours=ours, theirs=goal, most_ratio=1.0)


def _measured(command: list[str]) -> float:
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def sharing(bench: Bench) -> Iterator[Row]:
    """Writing a copy where files can share blocks; nothing where no such file system can be mounted."""
    with _sharing_disk(bench.folder) as disk:
        if disk is None:
            return
        shared = Bench(folder=disk, runs=bench.runs, big=False)
        out = disk / "out.pt"
        with shared.file("zip-1gb", copies=1) as path:
            commands = [
                [PROGRAM, "remap", str(path), "-o", str(out), "--map", "*=cpu"],
                ["sh", "-c", 'cp --reflink=never "$0" "$1" && sync "$1"', str(path), str(out)],
            ]
            ours, copy = compare(commands, runs=bench.runs, out=out)
    what, against = "`remap`, 1 GB zip on btrfs", "`cp --reflink=never`, `sync`"
    yield Row(what=what, against=against, ours=ours, theirs=copy, most_ratio=1.0)


@contextlib.contextmanager
def _sharing_disk(folder: Path) -> Iterator[Path | None]:
    image, disk = folder / "image", folder / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(4 << 30)
    commands = [["mkfs.btrfs", "-q", str(image)], ["mount", "-o", "loop", str(image), str(disk)]]
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        image.unlink()


def window(bench: Bench) -> Iterator[Row]:
    """The window with the demo checkpoint against a window with nothing in it."""
    commands = [[PYTHON, str(HERE / "first_paint.py"), kind] for kind in ("demo", "empty")]
    with screen() as prefix:
        ours, theirs = compare([[*prefix, *command] for command in commands], runs=2 * bench.runs)
    yield Row(
        what="Window painted with the demo's tree",
        against="empty PySide6 window painted",
        ours=ours,
        theirs=theirs,
        most_ratio=1.5,
    )


def answers(bench: Bench) -> Iterator[Row]:
    """What an open window waits for at each change, for very many tensors."""
    with bench.file("many") as path:
        command = [PYTHON, str(HERE / "answers.py"), str(path), str(bench.runs)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for what, seconds in found.items():
        ours = Figures(seconds=seconds, cpu_seconds=seconds, nbytes=0)
        yield _within(f"{what}, 100,000 tensors", ours, MOST_SECONDS.get(what, 0.3))


def gaps(bench: Bench) -> Iterator[Row]:
    """The longest time for which the window stands still while it opens the worst hostile files."""
    sys.path.insert(0, str(HERE.parent))
    from tests.gui.test_standing_still import WORST, build  # noqa: PLC0415 - the only task that needs it

    paths = [build(number, bench.folder) for number in range(len(WORST))]
    command = [PYTHON, str(HERE / "window_gaps.py"), *paths]
    turns = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for _ in range(3)
    ]
    for name, lines in zip(WORST, zip(*turns, strict=True), strict=True):
        seconds = statistics.median(json.loads(line)["longest_gap_ms"] / 1000 for line in lines)
        ours = Figures(seconds=seconds, cpu_seconds=seconds, nbytes=0)
        yield _within(f"window stands still, {name}", ours, 0.1)


@contextlib.contextmanager
def screen() -> Iterator[list[str]]:
    """Start an X server of our own where there is one; give what to put before a command.

    Without one, Qt's offscreen platform has to do.
    """
    if shutil.which("Xvfb") is None:
        yield ["env", "QT_QPA_PLATFORM=offscreen"]
        return
    command = ["Xvfb", "-screen", "0", "1600x1000x24", "-nolisten", "tcp", "-displayfd", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            number = server.stdout.readline().strip()
            yield ["env", "-u", "WAYLAND_DISPLAY", "-u", "QT_QPA_PLATFORM", f"DISPLAY=:{number}"]
        finally:
            server.terminate()


def with_torch(action: str, *paths: Path) -> list[str]:
    """Return the command that does it with torch."""
    return [PYTHON, str(HERE / "with_torch.py"), action, *map(str, paths)]


TASKS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "show": show,
    "many": many,
    "diff": diff,
    "values": values,
    "remap": remap,
    "in-place": in_place,
    "sharing": sharing,
    "window": window,
    "answers": answers,
    "gaps": gaps,
    "latency": latency,
}
