"""The hostile files once more, whole and without their end: saved what is in them, or refused in words.

Recovering writes the objects again, so it must not run, recurse into or choke on what opening survives.
"""

from __future__ import annotations

from pathlib import Path

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.remap.recover import check_file, recover
from tests.hostile.cases import CASES, Case
from tests.sweep import IS_SWEEP, table

SLOW_GROUP = 20  # bombs that end at a budget before any object is there, in seconds each
LARGE_NBYTES = 100_000  # the time of the larger ones is that of reading, which the suite measures


def ended(path: Path) -> str:
    """How saving and checking a file ended; a file that is written must open."""
    out = path.with_name("out.pt")
    try:
        recover(str(path), out, overwrite=True)
    except CheckpointError as error:
        answer = str(error)
    else:
        open_checkpoint(str(out))
        answer = "saved"
    try:
        check_file(str(path))
    except CheckpointError as error:
        assert str(error)  # noqa: PT017 - whichever of the two ways it ends
    return answer


@table("case", [case for case in CASES if case.group != SLOW_GROUP], ids=str)
def test_hostile_file_is_saved_or_refused(case: Case, tmp_path: Path) -> None:
    data = case.build()
    path = tmp_path / "hostile.pt"
    if len(data) > LARGE_NBYTES:
        data = data[:LARGE_NBYTES]
    start = data.find(b"PK\1\2")
    parts = [data, data[:start] if start > 0 else data[: len(data) // 2]]
    # What saving and checking cost is the same for both: every second case is cut, the others are whole.
    for part in parts if IS_SWEEP else [parts[CASES.index(case) % 2]]:
        path.write_bytes(part)
        assert ended(path)
        assert path.read_bytes() == part
