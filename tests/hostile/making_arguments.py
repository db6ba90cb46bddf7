"""Writes which calls of listed names torch accepts, so that tests without torch know it.

`python -m tests.hostile.making_arguments` loads every file of `combinations.py` with the installed torch, in
a child.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call
from tests.builders import zips
from tests.builders.pickles import proto, stream
from tests.builders.zips import Record
from tests.hostile.asking_torch import ask_torch
from tests.hostile.combinations import Combination, combinations
from tests.hostile.palette import STORAGES

ANSWERS = Path(__file__).parents[1] / "data" / "arguments.json"


def zipped(push: bytes, version: int = 2) -> bytes:
    """A zip of a pickle of one value, with the records of the storages that occur in it."""
    rows = [Record(name="archive/data.pkl", data=stream(proto(version), push))]
    rows += [
        Record(name=f"archive/data/{key}", data=bytes(nbytes))
        for key, (_, _, nbytes) in STORAGES.items()
        if nbytes >= 0 and key.encode() in push
    ]
    return zips.build_zip(*rows, Record(name="archive/version", data=b"3\n"))


def asked(wanted: Iterable[Combination]) -> list[tuple[Combination, str]]:
    """What torch does with each combination."""
    wanted = list(wanted)
    with tempfile.TemporaryDirectory() as folder:
        files = [(Path(folder) / f"{number}.pt", ()) for number, _ in enumerate(wanted)]
        for (path, _), combination in zip(files, wanted, strict=True):
            path.write_bytes(zipped(combination.push))
        return [(one, said) for one, (said,) in zip(wanted, ask_torch(files), strict=True)]


def call_in(combination: Combination) -> Call:
    """The call that a combination makes, unmade."""
    call = read_pickle(stream(combination.push)).root
    assert isinstance(call, Call)
    return call


def packed(answers: Iterable[tuple[Combination, str]]) -> dict[str, str]:
    """Which of a name's calls are accepted, in their order: four to a hexadecimal digit."""
    bits: dict[str, str] = defaultdict(str)
    for one, said in answers:
        bits[one.callable] += str(int(said == "accepts"))
    return {name: f"{int(row[::-1], 2):x}" for name, row in bits.items()}


def recorded() -> list[tuple[Combination, bool]]:
    """All combinations, and whether torch accepted each when the table was made."""
    numbers = {name: int(row, 16) for name, row in json.loads(ANSWERS.read_text(encoding="utf-8")).items()}
    found = []
    for one in combinations():
        found.append((one, bool(numbers[one.callable] & 1)))
        numbers[one.callable] >>= 1
    return found


def main() -> int:
    """Write the answers."""
    ANSWERS.write_text(json.dumps(packed(asked(combinations())), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
