"""The kept files of the frameworks, with what their oracles say and what the program says of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from tests.corpus import Case, Document, cases
from tests.documents import show_document

FILES = Path(__file__).parents[1] / "data" / "frameworks"


def every() -> list[Case]:
    return cases(root=FILES)


@cache
def opened(path: Path) -> Checkpoint | CheckpointError:
    """Open a file as `show` does; several tests look at the same."""
    try:
        return open_checkpoint(str(path), beside=True)
    except CheckpointError as error:
        return error


@cache
def document(path: Path) -> Document:
    checkpoint = opened(path)
    if isinstance(checkpoint, CheckpointError):
        return {"error": {"message": str(checkpoint)}}
    safety = judge(checkpoint)
    found: Document = show_document(checkpoint, safety, diagnose(checkpoint, safety), open_seconds=0.0)
    return found


def claims(case: Case) -> Iterator[tuple[Document, Document | None]]:
    """Yield what the oracle says of each tensor, with the program's row of it."""
    rows: dict[str, Document] = {}
    for row in document(case.path).get("tensors", []):
        rows.setdefault(_name(row["keys"]), row)
    for tensor in case.oracle()["tensors"]:
        yield tensor, rows.get(_name(tensor["path"]))


def _name(keys: list[Any]) -> str:
    return json.dumps([str(key) for key in keys])


@dataclass(frozen=True, slots=True)
class Measured:
    """How many slots of optimizers are named `right`, `unnamed` and `wrong`, by file, and each wrong one."""

    counts: dict[str, Counter[str]]
    wrong: list[tuple[str, str, str, str]]

    @property
    def total(self) -> Counter[str]:
        return sum(self.counts.values(), Counter())


def measure_names(files: list[Case]) -> Measured:
    """Compare the parameter's name of every slot with the live objects that were saved."""
    measured = Measured({}, [])
    for case in files:
        counts: Counter[str] = Counter()
        for tensor, row in claims(case):
            truth = tensor.get("parameter")
            if truth is None or _is_part(tensor["path"], case):
                continue
            said = None if row is None else row["parameter"]
            outcome = "unnamed" if said is None else "right" if said == truth else "wrong"
            counts[outcome] += 1
            if outcome == "wrong":
                measured.wrong.append((case.name, "/".join(map(str, tensor["path"])), truth, str(said)))
        if counts:
            measured.counts[case.name] = counts
    return measured


def _is_part(path: list[Any], case: Case) -> bool:
    """Return whether a row is a part of another; slots of subclasses are counted once."""
    return str(path[-1]).startswith(".") and case.container != "sb3"
