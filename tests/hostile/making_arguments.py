"""Writes `model/arguments/arguments.json`: what each listed name takes, as torch says when it is called.

It also writes which calls torch accepted, so that tests without torch know it.

`python -m tests.hostile.making_arguments` loads every file of `combinations.py` with the installed torch, in
a child. For a name and a number of arguments the table holds, by position, the types that torch took there
while the other arguments were right.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from inspector.model.arguments.kinds import kind_of
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call
from tests.builders import zips
from tests.builders.pickles import proto, stream
from tests.builders.zips import Record
from tests.hostile.asking_torch import ask_torch
from tests.hostile.combinations import Combination, combinations
from tests.hostile.palette import STORAGES

_ROOT = Path(__file__).parents[2]
TABLE = _ROOT / "inspector" / "model" / "arguments" / "arguments.json"
ANSWERS = _ROOT / "tests" / "data" / "arguments.json"


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


def table(answers: Iterable[tuple[Combination, str]]) -> dict[str, dict[str, list[str]]]:
    """By name and number of arguments, the types taken at each position, in one line each."""
    found: dict[str, dict[str, list[set[str]]]] = {}
    for one, said in answers:
        call = call_in(one)
        rows = found.setdefault(one.callable, {})
        if said == "accepts" and call.kind == "reduce" and isinstance(call.args, tuple):
            places = rows.setdefault(str(len(call.args)), [set() for _ in call.args])
            for place, value in zip(places, call.args, strict=True):
                place.add(kind_of(value))
    return {
        name: {count: [" ".join(sorted(kinds)) for kinds in places] for count, places in sorted(rows.items())}
        for name, rows in sorted(found.items())
    }


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
    """Write the table and the answers."""
    answers = asked(combinations())
    for path, document in ((TABLE, table(answers)), (ANSWERS, packed(answers))):
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
