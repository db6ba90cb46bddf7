"""Our forecast beside what `torch.load` does, for files made at random: honest ones, and mutated.

`python -m tests.torch.forecast --files 3000 --seed N` prints the table of docs/simulation.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import load_call
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import first_failure
from tests.hostile.asking_torch import ask_torch
from tests.torch.forecast_files import Made, made

HERE = replace(CPU_ONLY, torch_version=torch.__version__)
LOADS, REFUSED, UNSURE = "loads", "refused", "unsure"


class Row(NamedTuple):
    """One call: torch says `loads` or an error, we also `refused`, and `unsure` where nobody should."""

    title: str
    weights_only: bool
    ours: str
    theirs: str

    @property
    def form(self) -> str:
        return self.title.split()[1]

    @property
    def quotes(self) -> bool:
        return self.ours not in {LOADS, UNSURE, REFUSED} and self.theirs != LOADS

    @property
    def is_false_promise(self) -> bool:
        return self.ours == LOADS and self.theirs != LOADS

    @property
    def agrees(self) -> bool:
        return self.ours == UNSURE or (self.ours == LOADS) == (self.theirs == LOADS)

    @property
    def same_error(self) -> bool:
        return self.theirs.partition(":")[0] == self.ours.partition(":")[0]


def foretold(path: Path) -> tuple[dict[bool, str], bool]:
    """Return what we say by `weights_only`, and whether nothing dangerous can happen without it."""
    try:
        checkpoint = open_checkpoint(str(path))
    except CheckpointError as error:
        return {True: REFUSED, False: REFUSED}, not error.programs
    safety = judge(checkpoint)
    said = {}
    for weights_only in (True, False):
        failure = first_failure(checkpoint, HERE, load_call(checkpoint, safety, weights_only=weights_only))
        loads = UNSURE if safety.is_unsure or safety.may_harm else LOADS
        said[weights_only] = loads if failure is None else failure.message
    return said, all(verdict in {"allowed", "tensor"} for verdict in safety.globals)


def rows(files: Iterable[Made], folder: Path) -> list[Row]:
    asked: list[tuple[str, Path, bool, str]] = []
    for number, (title, data, is_honest) in enumerate(files):
        path = folder / f"{number}.pt"
        path.write_bytes(data)
        said, is_harmless = foretold(path)
        asked += [(title, path, True, said[True])]
        asked += [(title, path, False, said[False])] if is_harmless or is_honest else []
    theirs = ask_torch([(path, weights_only) for _, path, weights_only, _ in asked])
    return [
        Row(title, weights_only, ours, LOADS if answer == "accepts" else answer)
        for (title, _, weights_only, ours), (answer,) in zip(asked, theirs, strict=True)
    ]


def table(found: Iterable[Row]) -> str:
    """Count what agrees by form and argument, and list what does not, as Markdown."""
    found = list(found)
    lines = [
        "| form | `weights_only` | calls | load | agree | called LOADS and stops | same error |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for form in (*sorted({row.form for row in found}), "all"):
        for weights_only in (True, False):
            rows_of = [row for row in found if form in {row.form, "all"} and row.weights_only is weights_only]
            both = [row for row in rows_of if row.quotes]
            lines.append(
                f"| {form} | {weights_only} | {len(rows_of):,} "
                f"| {sum(row.theirs == LOADS for row in rows_of):,} "
                f"| {sum(row.agrees for row in rows_of):,} | {sum(row.is_false_promise for row in rows_of)} "
                f"| {sum(row.same_error for row in both):,} of {len(both):,} |"
            )
    odd = [row for row in found if not row.agrees]
    lines += ["", f"{len(found) - len(odd):,} of {len(found):,} agree: {1 - len(odd) / len(found):.2%}.", ""]
    lines += [
        f"- {row.title} ({row.weights_only}): {row.ours[:60]!r}, torch {row.theirs[-90:]!r}" for row in odd
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(table(rows(made(given.files, given.seed), Path(folder))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
