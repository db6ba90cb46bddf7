"""Every genuine checkpoint that torch loads, remapped, loads in torch with the same contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.serialization import config

from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from tests.corpus import Case, varied
from tests.sweep import put_through, tries
from tests.torch.sameness import assert_same
from tests.torches import run_with_torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("corpus_classes"),
]

# dist/sharded_tensor.pt wants a process group: see test_remap_wrappers.
LOADED = [
    case
    for case in varied()
    if case.container in {"zip", "legacy", "tar"}
    and case.torch_loads
    and case.name != "dist/sharded_tensor.pt"
]
ZIPS = [case for case in LOADED if case.container == "zip"]
ROOT = Path(__file__).parents[2]


class Copies:
    """Copies of genuine files, and what torch makes of the originals: each is made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[object, Path] = {}
        self._loaded: dict[object, Any] = {}

    def copy(self, case: Case, *rules: str, move_all: bool = False) -> Path:
        key = (case.name, rules, move_all)
        if key not in self._made:
            self._made[key] = remap(case.path, self._folder, *rules, move_all=move_all)
        return self._made[key]

    def wanted(self, case: Case, **how: object) -> Any:
        """What torch loads from the original onto the CPU."""
        key = (case.name, *how.items())
        if key not in self._loaded:
            self._loaded[key] = load(case.path, map_location="cpu", **how)
        return self._loaded[key]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("copies"))


def remap(path: Path, folder: Path, *rules: str, move_all: bool = False) -> Path:
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules], move_all=move_all)
    destination = folder / f"{len(list(folder.iterdir()))}.pt"
    export_copy(str(path), destination, plan)
    return destination


def load(path: Path, *, weights_only: bool = False, **how: object) -> Any:
    return torch.load(path, weights_only=weights_only, **how)


def tags(path: Path) -> list[str]:
    """The location tags that torch asks a map for, in the order of the file."""
    asked: list[str] = []

    def note(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        asked.append(tag)
        return storage

    torch.load(path, map_location=note, weights_only=False)
    return asked


def each(check: Callable[[Case], object], files: Iterable[Case]) -> None:
    put_through(check, files, name=lambda case: case.name, every=3)


def test_what_is_sent_to_the_cpu_loads_there(copies: Copies) -> None:
    """Without `map_location`, and with what `map_location` would have given."""

    def check(case: Case) -> None:
        assert_same(copies.wanted(case), load(copies.copy(case, "*=cpu")))

    each(check, LOADED)


def test_what_weights_only_accepts_it_still_accepts(copies: Copies) -> None:
    def check(case: Case) -> None:
        for rules in (("*=cpu",), ("cpu=cuda:0", "cuda:*=cuda:11")):
            copy = copies.copy(case, *rules, move_all=True)
            after = load(copy, map_location="cpu", weights_only=True)
            assert_same(copies.wanted(case, weights_only=True), after)

    each(check, [case for case in LOADED if case.weights_only])


# A tensor that is sent to its device takes no map that is a function.
NOT_ASKED = {"devices/zip_xla_from_cpu_tensor.pt"}


def test_there_and_back_is_what_it_was(copies: Copies, tmp_path: Path) -> None:
    def check(case: Case) -> None:
        there = copies.copy(case, "cuda:0=cuda:77")
        back = remap(there, tmp_path, "cuda:77=cuda:0")
        before = tags(case.path)
        assert tags(there) == [tag.replace("cuda:0", "cuda:77") for tag in before]
        assert tags(back) == before
        assert_same(copies.wanted(case), load(back, map_location="cpu"))
        first, last = open_checkpoint(str(case.path)), open_checkpoint(str(back))
        assert (last.tensors, last.values) == (first.tensors, first.values)
        if not case.name.endswith(".gz"):
            assert payloads(back) == payloads(case.path)

    each(check, [case for case in LOADED if case.name not in NOT_ASKED])


def payloads(path: Path) -> list[bytes]:
    data = path.read_bytes()
    places = [(row.file_offset or 0, row.nbytes) for row in open_checkpoint(str(path)).storages]
    return [data[start : start + nbytes] for start, nbytes in places if start]


# --- growth -------------------------------------------------------------------------------------------------

GROWN = {"cuda:0": ("cpu=cuda:0",), "cuda:11": ("*=cuda:11",)}


def test_longer_names_load_in_every_way(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Case) -> None:
        # What torch makes of the original, before it is told to check the layout of what it did not write.
        wanted = copies.wanted(case)
        with monkeypatch.context() as patch:
            patch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
            check_grown(case, wanted)

    def check_grown(case: Case, wanted: Any) -> None:
        for rules in GROWN.values():
            copy = copies.copy(case, *rules, move_all=True)
            assert_same(wanted, load(copy, map_location="cpu"))
            if case.container == "zip" and is_mappable(case):
                assert_same(copies.wanted(case, mmap=True), load(copy, map_location="cpu", mmap=True))
                with config.patch("load.calculate_storage_offsets", True):
                    assert_same(wanted, load(copy, map_location="cpu", mmap=True))

    each(check, LOADED)


def is_mappable(case: Case) -> bool:
    """Whether torch maps the file itself rightly: it takes records for stored ones, and swaps no bytes."""
    return case.name not in {"zip/rezip_deflated.pt", "zip/be_src.pt"}


def test_only_what_is_held_escapes_the_map(copies: Copies) -> None:
    def check(case: Case) -> None:
        copy = copies.copy(case, "*=cuda:11", move_all=True)
        stays = sum(row.device == "cpu" for row in open_checkpoint(str(copy)).storages)
        assert len([tag for tag in tags(copy) if tag != "cuda:11"]) <= stays

    each(check, [case for case in ZIPS if case.name not in NOT_ASKED])


CHILD = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import torch
from torch.utils.serialization import config
assert os.environ["TORCH_SERIALIZATION_DEBUG"] == "1"
for path in json.loads(sys.stdin.read()):
    for offsets in (False, True):
        with config.patch("load.calculate_storage_offsets", offsets):
            torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            torch.load(path, map_location="cpu", weights_only=True)
print("done")
"""


def test_torch_s_own_assertion_of_the_layout_holds(copies: Copies) -> None:
    paths = [
        str(copies.copy(case, *rules, move_all=True))
        for case in ZIPS[:: tries(2, 1)]
        if case.weights_only and is_mappable(case)
        for rules in (*GROWN.values(), ("*=cpu",))
        if rules != ("*=cpu",) or case.name != "zip/rezip_prefix_space.pt"  # not by torch
    ]
    assert len(paths) > tries(25, 50)
    child = run_with_torch(
        "-c", CHILD, given=json.dumps(paths), environment={"TORCH_SERIALIZATION_DEBUG": "1", "PATH": ""}
    )
    assert (child.returncode, child.stdout) == (0, "done\n"), child.stderr
