"""What a file costs is paid for: steps and memory stay in proportion to the parts counted and to its length.

Every wide thing in every place is a thousand files; a part of them, spread evenly, is tried in each run, and
`python -m tests.property.test_crowds` tries them all and prints the worst.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.limits import Limits, Work
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.remap.describe import describe_plan
from inspector.remap.export import export_copy
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.remap.plan import plan_remap
from inspector.remap.recover import recover
from inspector.remap.rules import parse_rule
from inspector.report.jsonable import write_show
from inspector.safety.verdict import judge
from inspector.session.document import open_document
from inspector.session.present.compose import compose
from inspector.session.state import State
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import judge_load
from tests.builders import zips
from tests.builders.pickles import MARK, NONE, op, proto, stream, text
from tests.property.crowds import PLACES, THINGS, crowd
from tests.sweep import table, tries
from tests.work import count_steps

WIDE, OFTEN, PARTS = 1500, 200, 10_000
MOST_STEPS = 100  # for each part or byte: a row of a tensor takes a few hundred, a byte none
MOST_NBYTES = 400  # of memory, for the same
SPARE = 2000  # parts' worth of what every file takes
TOO_DEEP = 255
EVERY = tries(50, 17)
PAIRS = list(itertools.product(THINGS, PLACES))


def show(path: Path, limits: Limits) -> int:
    """Open a file as `show --json` does; returns the length of what is printed."""
    try:
        checkpoint = open_checkpoint(str(path), limits)
        safety = judge(checkpoint)
        return sum(map(len, write_show(checkpoint, safety, diagnose(checkpoint, safety), open_seconds=0)))
    except CheckpointError as error:
        return len(str(error))


def costs(path: Path, pickle_nbytes: int) -> tuple[float, float]:
    """Return steps and bytes of memory for each part that was counted or stands in the pickle."""

    def opening() -> tuple[Work, Callable[[], int]]:
        limits = Limits(parts=PARTS, seconds=1000).started()
        return limits.counted(), lambda: show(path, limits)

    work, run = opening()
    steps = count_steps(run)
    paid = work.parts + pickle_nbytes + SPARE
    work, run = opening()
    tracemalloc.start()
    try:
        run()
        return steps / paid, tracemalloc.get_traced_memory()[1] / paid
    finally:
        tracemalloc.stop()


def cost_of_crowd(folder: Path, thing: str, place: str, depth: int) -> tuple[float, float]:
    pickle = crowd(thing, place, WIDE, OFTEN, depth)
    path = folder / "crowd.pt"
    path.write_bytes(zips.checkpoint(pickle))
    return costs(path, len(pickle))


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import and cache what is imported and cached once, so that no case pays for it."""
    cost_of_crowd(tmp_path_factory.mktemp("first"), "dtype", "dtypes of scalars", 0)


@table(("thing", "place"), PAIRS[::EVERY])
def test_shared_parts_are_paid_for(thing: str, place: str, tmp_path: Path) -> None:
    steps, nbytes = cost_of_crowd(tmp_path, thing, place, 0)
    assert steps < MOST_STEPS
    assert nbytes < MOST_NBYTES


@table(("thing", "place"), PAIRS[5 :: 3 * EVERY])
def test_shared_parts_that_are_too_deep_are_paid_for(thing: str, place: str, tmp_path: Path) -> None:
    steps, nbytes = cost_of_crowd(tmp_path, thing, place, TOO_DEEP)
    assert steps < MOST_STEPS
    assert nbytes < MOST_NBYTES


FOUND = [
    ("size", "all arguments of tensors"),
    ("size", "items of a list"),
    ("tuple", "arguments of sizes"),
    ("pairs", "arguments of OrderedDicts"),
    ("dict", "states of parameters"),
    ("dict of numbers", "states of optimizers"),
    ("list", "parameters of optimizers"),
    ("dtype", "dtypes of scalars"),
    ("dtype", "dropped scalars"),
    ("integer", "keys of a dict"),
    ("mesh", "items of lists"),
    ("array of objects", "items of a list"),
    ("OrderedDict of arguments", "items of a list"),
    ("list", "items of a list"),
    ("list", "arguments of sets"),
    ("set", "items of a list"),
    ("tuple", "keys of a dict"),
    ("tuple", "all arguments of objects"),
    ("dict of numbers", "states of objects"),
    ("tuple", "shapes and strides"),
]


@table("depth", [0, TOO_DEEP])
@table(("thing", "place"), FOUND)
def test_what_once_took_for_ever_is_paid_for(thing: str, place: str, depth: int, tmp_path: Path) -> None:
    assert cost_of_crowd(tmp_path, thing, place, depth)[0] < MOST_STEPS


def check(path: Path, _out: Path) -> None:
    checkpoint = open_checkpoint(str(path))
    diagnose(checkpoint, judge_load(checkpoint, CPU_ONLY).safety, CPU_ONLY)


def snippet(path: Path, _out: Path) -> None:
    checkpoint = open_checkpoint(str(path))
    for style in styles(checkpoint):
        render(checkpoint, style=style.id, target=CPU_ONLY)


def remap(path: Path, out: Path) -> None:
    checkpoint = open_checkpoint(str(path))
    plan = plan_remap(checkpoint, [parse_rule("*=cuda:1")])
    describe_plan(checkpoint, plan)
    export_copy(str(path), out, plan, overwrite=True)


def convert(path: Path, out: Path) -> None:
    export_form(str(path), out, None, Form(compact=True), overwrite=True)


def save_what_is_whole(path: Path, out: Path) -> None:
    recover(str(path), out, overwrite=True)


def look(path: Path, _out: Path) -> None:
    document = open_document(str(path), Progress())
    for node in (0, len(document.tree.nodes) - 1):
        state = State(phase="ready", path=str(path), document=document, target=CPU_ONLY.id, selected=node)
        assert compose(state).banner


OTHERS = (check, snippet, remap, convert, save_what_is_whole, look)
MOST_STEPS_OF_OTHERS = 300  # a copy is opened twice more, and compared


@table("program", OTHERS)
@table(("thing", "place"), FOUND[:: tries(4, 1)])
def test_what_other_programs_do_is_paid_for(
    thing: str, place: str, program: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    pickle = crowd(thing, place, 200, 40)
    path = tmp_path / "crowd.pt"
    path.write_bytes(zips.checkpoint(pickle))
    limits = Limits(seconds=1000).started()
    show(path, limits)

    def run() -> None:
        with contextlib.suppress(CheckpointError):
            program(path, tmp_path / "out.pt")

    run()  # imports
    paid = limits.counted().parts + len(pickle) + SPARE
    assert count_steps(run) / paid < MOST_STEPS_OF_OTHERS


CHARS = 200_000
KEYS = {"ascii": "k", "chinese": "\u4e2d", "astral": "\U0001f600", "invisible": "\u202e", "control": "\x01"}


@table("char", KEYS)
@table("depth", [0, 100])
def test_what_is_written_is_paid_for(char: str, depth: int, tmp_path: Path) -> None:
    key, many = text(KEYS[char] * 512), 3000
    down, up = (op("EMPTY_DICT") + key) * depth, op("SETITEM") * depth
    leaves = op("EMPTY_DICT") + MARK + key + op("BINPUT", b"\1") + NONE
    leaves += (op("BINGET", b"\1") + op("BINGET", b"\1")) * many + op("SETITEMS")
    path = tmp_path / "names.pt"
    path.write_bytes(zips.checkpoint(stream(proto(), down, leaves, up)))
    limits = Limits(chars=CHARS).started()
    tracemalloc.start()
    try:
        # Paths and keys are two spellings of the same, and both may be written.
        assert show(path, limits) < 4 * CHARS
        assert tracemalloc.get_traced_memory()[1] < 20 * CHARS
    finally:
        tracemalloc.stop()
    assert limits.counted().chars < 2 * CHARS


@table("dimensions", [5, 64, 256])
def test_shapes_are_paid_for(dimensions: int, tmp_path: Path) -> None:
    size = op("LONG1", b"\x08" + b"\xff" * 7 + b"\x7f")
    shape = MARK + size * dimensions + op("TUPLE")
    path = tmp_path / "shapes.pt"
    path.write_bytes(
        zips.checkpoint(
            stream(proto(), op("POP").join([shape + op("BINPUT", b"\2"), PLACES["shapes and strides"](2000)]))
        )
    )
    limits = Limits(chars=CHARS).started()
    assert show(path, limits) < 4 * CHARS
    assert limits.counted().chars < 2 * CHARS


def main() -> None:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        cost_of_crowd(Path(folder), "dtype", "dtypes of scalars", 0)
        for (thing, place), depth in itertools.product(PAIRS, (0, TOO_DEEP)):
            found.append((*cost_of_crowd(Path(folder), thing, place, depth), thing, place, depth))
    most_steps, most_nbytes = max(found), max(found, key=lambda row: row[1])
    sys.stdout.write(f"{len(found)} crowds; most steps: {most_steps}; most memory: {most_nbytes}\n")


if __name__ == "__main__":
    main()
