"""What is said of the time after `torch.load` against torch: parts x ways of restoring x devices.

torch runs in one child process, see `restoring.py`. The standard suite takes a fixed share of the cells of
each kind, a sweep all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.target.after_load import Code, Complaint, Course, Way, follow
from inspector.target.call import LoadCall, MapLocation, TagMap
from inspector.target.parts import parts_of
from inspector.target.profile import Profile
from inspector.target.simulate import simulate
from tests.sweep import tries
from tests.torches import run_with_torch

pytestmark = [pytest.mark.torch, pytest.mark.slow]
MACHINE = Profile(id="two", label="2 GPUs", accelerators=(("cuda", 2),))

MODELS = ("net", "words", "normed", "average", "pos_weight", "weight")
WHOLE = ("net", "masked", "parallel", "average", "weight")
CAPTURABLE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop", "RMSprop", "ASGD")
OPTIMIZERS = (*CAPTURABLE, "SGD", "Adagrad", "Adafactor", "LBFGS")
TAGS = (("cpu",), ("cuda:0",), ("cuda:1",), ("cuda:0", "cuda:1"), ("cuda:0", "cpu"))
MAPS = (None, "cpu", "cuda:1", {"cuda:1": "cuda:0"})


class Cell(NamedTuple):
    kind: str
    what: str
    tags: tuple[str, ...]
    numbers: str
    map: Any
    code: Code
    options: tuple[str, ...] = ()

    @property
    def is_real(self) -> bool:
        """Whether nothing has to be played: there is no GPU, or all of it goes to the CPU at once."""
        if self.kind == "rng":
            return self.map is not None or self.tags != ("cuda:0",)
        return "meta" in [*self.tags, self.map, self.code.built_on, self.code.moved_to]

    def file(self) -> dict[str, Any]:
        name = "-".join([self.kind, self.what, *self.tags, self.numbers, *self.options]).replace(":", "")
        options = dict.fromkeys(self.options, True)
        known = {"kind": self.kind, "what": self.what, "tags": self.tags, "numbers": self.numbers}
        return {**known, "name": f"{name}.pt", "options": options}

    def request(self) -> dict[str, Any]:
        code = {
            name: getattr(self.code, name)
            for name in ("built_on", "built_as", "moved_to", "inputs", "foreach")
        }
        way = str(self.code.way or Way.COPY)
        return {"file": self.file(), "map": self.map, "real": self.is_real, "code": {**code, "way": way}}


def cells() -> Iterator[Cell]:
    yield from states()
    yield from modules()
    yield from optimizers()
    for tag, place, inputs in product(("cpu", "cuda:0", "cuda:1"), MAPS, ("", "cpu", "cuda:0")):
        for what in ("class_weights", "anchors"):
            yield Cell("tensors", what, (tag,), "cpu", place, Code(inputs=inputs))
    for tag, place in product(("cpu", "cuda:0", "meta"), (None, "cpu", "meta")):
        yield Cell("rng", "rng", (tag,), "cpu", place, Code())


def states() -> Iterator[Cell]:
    """Yield the cells of state dicts, then those in which the meta device takes part."""
    for what, tags, place, way in product(MODELS, TAGS, MAPS, (Way.COPY, Way.ASSIGN)):
        for home, moved_to, inputs in product(("cpu", "cuda:0", "cuda:1"), ("", "cuda:0"), ("", "cuda:0")):
            code = Code(way=way, built_on=home, moved_to=moved_to, inputs=inputs)
            yield Cell("state", what, tags, "cpu", place, code)
    for what, place, way in product((*MODELS, "lazy"), (None, "meta"), (Way.COPY, Way.ASSIGN)):
        for home, moved_to, inputs in product(("cpu", "meta"), ("", "cpu", "meta"), ("", "cpu")):
            # Lazy parameters have no memory yet; an embedding on the meta device does not look at its input.
            odd = (what == "lazy" and home == "meta") or (what == "words" and inputs)
            if "meta" in {place, home, moved_to} and not odd:
                code = Code(way=way, built_on=home, moved_to=moved_to, inputs=inputs)
                yield Cell("state", what, ("cpu",), "cpu", place, code)


def modules() -> Iterator[Cell]:
    """Yield the cells of whole modules: their counters are numbers, with a device of their own."""
    for what, tags, numbers, place in product(WHOLE, TAGS, ("cpu", "cuda:0"), MAPS):
        for moved_to, inputs in product(("", "cuda:0", "cpu"), ("", "cuda:0")):
            code = Code(way=Way.USE, moved_to=moved_to, inputs=inputs)
            yield Cell("whole", what, tags, numbers, place, code)


def optimizers() -> Iterator[Cell]:
    """Yield the cells of optimizers: their counters are numbers, with a device of their own."""
    gpus = ("cpu", "cuda:0", "cuda:1")
    for what, tag, numbers, way in product(OPTIMIZERS, gpus, gpus, (Way.COPY, Way.USE)):
        for built_on, moved_to, foreach in product(gpus, ("", "cuda:0"), (False, True)):
            built_as = "bfloat16" if way is Way.COPY and moved_to else ""
            code = Code(way=way, built_on=built_on, built_as=built_as, moved_to=moved_to, foreach=foreach)
            yield Cell("optimizer", what, (tag,), numbers, None, code)
            if what in CAPTURABLE and way is Way.COPY:
                yield Cell("optimizer", what, (tag,), numbers, None, code, ("capturable",))
    for what, tag, numbers, moved_to, place in product(("Adam", "SGD"), gpus, gpus, ("", "cuda:0"), MAPS):
        for tags, foreach in product(((tag,), (tag, "cuda:0")), (False, True)):
            code = Code(way=Way.USE, moved_to=moved_to, foreach=foreach)
            yield Cell("whole optimizer", what, tags, numbers, place, code)


def map_of(place: Any) -> MapLocation:
    return TagMap(pairs=tuple(place.items())) if isinstance(place, dict) else place


def predict(made: Checkpoint, cell: Cell) -> Course:
    outcome = simulate(made, MACHINE, LoadCall(map_location=map_of(cell.map), weights_only=False))
    assert outcome.failure is None, outcome.failure
    code = Code(**{name: getattr(cell.code, name) for name in Code.__slots__})
    return follow(made, parts_of(made)[0], code, outcome.tensors)


def compare(made: Checkpoint, ours: Course, said: dict[str, Any]) -> str:
    for name in ("error", "warning", "failure"):
        mine, real = getattr(ours, name) or "", said[name]
        if mine not in real or bool(mine) != bool(real):
            return f"{name}: torch says {real[:120]!r}, and we said {mine[:120]!r}"
        if name == "error" and mine:
            return ""
    for row, place in zip(parts_of(made)[0].rows, ours.places, strict=True):
        path = made.tensors[row].path
        real = said["places"].get(path)
        if real is not None and real != [place.device, place.dtype]:
            return f"{path} is {real}, and we said {place}"
    return ""


class Result(NamedTuple):
    """One cell: what differs, whether torch placed tensors in it, and what we said."""

    cell: Cell
    differs: str
    is_placed: bool
    course: Course


def ask(folder: Path, wanted: Iterable[Cell]) -> list[Result]:
    wanted = list(wanted)
    child = run_with_torch(
        Path(__file__).with_name("restoring.py"),
        folder,
        given=json.dumps([cell.request() for cell in wanted]) + "\n",
    )
    assert child.returncode == 0, child.stderr[-2000:]
    opened: dict[str, Checkpoint] = {}
    results = []
    for cell, said in zip(wanted, json.loads(child.stdout), strict=True):
        name = cell.file()["name"]
        made = opened.setdefault(name, open_checkpoint(str(folder / name)))
        course = predict(made, cell)
        results.append(Result(cell, compare(made, course, said), bool(said["places"]), course))
    return results


def test_what_follows_from_a_file_follows_in_torch(tmp_path: Path) -> None:
    kinds: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells():
        kinds.setdefault((cell.kind, cell.what, cell.options, cell.is_real), []).append(cell)
    # What is real takes no time.
    wanted = [cell for key, found in kinds.items() for cell in found[:: tries(3 if key[-1] else 107, 1)]]
    results = ask(tmp_path, wanted)
    differing = Counter(f"{one.cell.kind} {one.cell.what}: {one.differs}" for one in results if one.differs)
    shown = "\n".join(f"{count} x {text}" for text, count in differing.most_common(40))
    assert not differing, f"{differing.total()} of {len(results)} differ\n{shown}"
    assert len(results) > tries(140, 9000)
    assert sum(one.is_placed for one in results) > len(results) / 2
    # The comparison is not between cells in which nothing happens.
    said = {one for result in results for one in (result.course.error, result.course.failure)}
    assert said | {result.course.warning for result in results} == {None, *Complaint}
