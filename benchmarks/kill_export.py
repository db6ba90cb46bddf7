"""Kills exports at random points and looks at what is left: `python benchmarks/kill_export.py [--update]`.

A copy and a change in place are started in turns, each in a process of its own, and killed (SIGKILL): after a
random part of the time that one takes, or half-way through a random one of its calls that write, sync or name
files, since those are over too soon to be hit by the clock. Then the original must be as it was, or become so
by --undo; and the copy must be whole or absent, with nothing half-written beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from measure import put

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.remap.in_place import record_path, undo_patch

MEGABYTE = 1_000_000
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"

# The child says when it is ready, so that the kill falls into the work and not into the start of Python.
CHILD = """
import os, signal, sys
from pathlib import Path
from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
way, path, rule, out, fatal = sys.argv[1:]
calls = 0
def fatally(real):
    def call(*args, **named):
        global calls
        calls += 1
        if calls == int(fatal):
            if real.__name__ == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **named)
    return call
for name in ("write", "fsync", "link", "ftruncate"):
    setattr(os, name, fatally(getattr(os, name)))
plan = plan_remap(open_checkpoint(path), [parse_rule(rule)])
print("ready", flush=True)
if way == "copy":
    export_copy(path, Path(out), plan)
else:
    patch_in_place(path, plan)
print(calls, flush=True)
"""


class Trial:
    """One file that is exported again and again."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.out = path.with_name("out.pt")
        self.sha256 = self._hash(path)
        self.devices = self._devices(path)
        self.counts: Counter[tuple[str, str]] = Counter()
        self._random = random.Random(seed)
        self._known: dict[tuple[str, str], tuple[float, int]] = {}  # seconds and calls that one takes

    def run(self, way: str, rule: str) -> str:
        """Start one export, kill it, look, clean up; nothing may be lost or left."""
        if (way, rule) not in self._known:
            self._known[way, rule] = self._work(way, rule)
            self._settle(way, rule)
        seconds, calls = self._known[way, rule]
        if self._random.random() < 0.5:
            self._work(way, rule, fatal_call=self._random.randint(1, calls))
        else:  # beyond the end, too, so that the last steps are hit as well
            self._work(way, rule, kill_after=self._random.uniform(0, 1.2) * seconds)
        outcome = self._settle(way, rule)
        self.counts[way, outcome] += 1
        return outcome

    def _work(
        self, way: str, rule: str, *, kill_after: float | None = None, fatal_call: int = 0
    ) -> tuple[float, int]:
        command = [sys.executable, "-c", CHILD, way, str(self.path), rule, str(self.out), str(fatal_call)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            started = time.perf_counter()
            if kill_after is not None:
                time.sleep(kill_after)
                child.kill()
            rest = child.stdout.read()
        return time.perf_counter() - started, int(rest or 0)

    def _settle(self, way: str, rule: str) -> str:
        """Return what was left, and bring the folder back to where it was."""
        outcome = self._settle_copy(rule) if way == "copy" else self._settle_change(rule)
        assert self._hash(self.path) == self.sha256, "the original is not what it was"
        left = sorted(path.name for path in self.path.parent.iterdir() if path != self.path)
        assert not left, f"left behind: {left}"
        return outcome

    def _settle_copy(self, rule: str) -> str:
        for part in self.path.parent.glob(".*.part"):  # where the system has no nameless files
            part.unlink()
        if not self.out.exists():
            return "no copy"
        assert self._devices(self.out) == {rule.partition("=")[2]}, "the copy is not whole"
        self.out.unlink()
        return "whole copy"

    def _settle_change(self, rule: str) -> str:
        record = record_path(self.path)
        try:
            devices = self._devices(self.path)
        except CheckpointError:
            devices = None
        if not record.exists():
            assert self._hash(self.path) == self.sha256, "changed without a record"
            return "unchanged"
        undo_patch(str(self.path))
        if devices == {rule.partition("=")[2]}:
            return "changed, undone"
        return "half-way, undone"

    def _hash(self, path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _devices(self, path: Path) -> set[str]:
        return {row.device for row in open_checkpoint(str(path)).storages}


def make_file(path: Path, nbytes: int, *, legacy: bool) -> None:
    """Write a file of 4,000 tensors on `cuda:0`, so that the pickle takes some writing, too."""
    import runpy  # noqa: PLC0415 - torch is needed for this alone

    import torch  # noqa: PLC0415

    script = Path(__file__).parents[1] / "resources" / "demo" / "make_demo.py"
    tensors = {f"layer{number}.weight": torch.rand(nbytes // 16_000) for number in range(4000)}
    with runpy.run_path(str(script))["location_tags"](lambda _: "cuda:0"):
        torch.save(tensors, path, _use_new_zipfile_serialization=not legacy)


def main() -> None:
    """Kill, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many kills (default: 200)")
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workdir", type=Path)
    parser.add_argument("--update", action="store_true", help="put the counts into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    cases = [("zip", "*=cpu"), ("zip", "*=cuda:11"), ("legacy", "*=cpu")]
    for number, (kind, rule) in enumerate(cases):
        with tempfile.TemporaryDirectory(dir=options.workdir, prefix="kill-") as folder:
            path = Path(folder) / "in.pt"
            make_file(path, options.megabytes * MEGABYTE, legacy=kind == "legacy")
            trial = Trial(path, options.seed + number)
            for turn in range(options.runs * (number + 1) // 3 - options.runs * number // 3):
                trial.run("copy" if turn % 2 else "in place", rule)
        for (way, outcome), count in sorted(trial.counts.items()):
            rows.append(f"| {way}, {kind} `{rule}` | {outcome} | {count} |")
            print(rows[-1], flush=True)
    print(f"{options.runs} kills, nothing lost, nothing left")
    if options.update:
        put(
            DOCUMENT,
            "kills",
            "\n".join(["| Killed | What was found | Times |", "| --- | --- | --- |", *rows]),
        )


if __name__ == "__main__":
    main()
