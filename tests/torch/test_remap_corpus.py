"""Every genuine checkpoint that torch loads, remapped, loads in torch with the same contents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.serialization import config

from inspector.model.build import open_checkpoint
from inspector.remap.plan import plan_remap
from inspector.remap.relabel.export import export_copy
from inspector.remap.rules import parse_rule
from tests.corpus import Case, varied
from tests.torch.pictures import Picture, lend_classes, picture

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

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


def name(case: Case) -> str:
    return case.name


@pytest.fixture(autouse=True)
def _classes(monkeypatch: pytest.MonkeyPatch) -> None:
    lend_classes(monkeypatch)


def remap(case: Case | Path, folder: Path, *rules: str, move_all: bool = False) -> Path:
    path = case.path if isinstance(case, Case) else case
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules], move_all=move_all)
    destination = folder / f"{len(list(folder.iterdir()))}.pt"
    export_copy(str(path), destination, plan)
    return destination


def load(path: Path, **how: object) -> Picture:
    return picture(torch.load(path, weights_only=False, **how))


def tags(path: Path) -> list[str]:
    """The location tags that torch asks a map for, in the order of the file."""
    asked: list[str] = []

    def note(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        asked.append(tag)
        return storage

    torch.load(path, map_location=note, weights_only=False)
    return asked


@pytest.mark.parametrize("case", LOADED, ids=name)
def test_what_is_sent_to_the_cpu_loads_there(case: Case, tmp_path: Path) -> None:
    """Without `map_location`, and with what `map_location` would have given."""
    assert load(remap(case, tmp_path, "*=cpu")) == load(case.path, map_location="cpu")


@pytest.mark.parametrize("case", [case for case in LOADED if case.weights_only], ids=name)
@pytest.mark.parametrize("rules", [("*=cpu",), ("cpu=cuda:0", "cuda:*=cuda:11")], ids=["cpu", "cuda"])
def test_what_weights_only_accepts_it_still_accepts(
    case: Case, tmp_path: Path, rules: tuple[str, ...]
) -> None:
    copy = remap(case, tmp_path, *rules, move_all=True)
    after = torch.load(copy, map_location="cpu", weights_only=True)
    assert picture(after) == picture(torch.load(case.path, map_location="cpu", weights_only=True))


# A tensor that is sent to its device takes no map that is a function.
NOT_ASKED = {"devices/zip_xla_from_cpu_tensor.pt"}


@pytest.mark.parametrize("case", [case for case in LOADED if case.name not in NOT_ASKED], ids=name)
def test_there_and_back_is_what_it_was(case: Case, tmp_path: Path) -> None:
    there = remap(case, tmp_path, "cuda:0=cuda:77")
    back = remap(there, tmp_path, "cuda:77=cuda:0")
    before = tags(case.path)
    assert tags(there) == [tag.replace("cuda:0", "cuda:77") for tag in before]
    assert tags(back) == before
    assert load(back, map_location="cpu") == load(case.path, map_location="cpu")
    first, last = open_checkpoint(str(case.path)), open_checkpoint(str(back))
    assert (last.tensors, last.values) == (first.tensors, first.values)
    if not case.name.endswith(".gz"):
        assert payloads(back) == payloads(case.path)


def payloads(path: Path) -> list[bytes]:
    data = path.read_bytes()
    places = [(row.file_offset or 0, row.nbytes) for row in open_checkpoint(str(path)).storages]
    return [data[start : start + nbytes] for start, nbytes in places if start]


@pytest.mark.parametrize("case", LOADED, ids=name)
def test_one_device_onto_another(case: Case, tmp_path: Path) -> None:
    copy = remap(case, tmp_path, "cuda:0=cuda:1")
    assert load(copy, map_location="cpu") == load(case.path, map_location="cpu")


# --- growth -------------------------------------------------------------------------------------------------

GROWN = {"cuda:0": ("cpu=cuda:0",), "cuda:11": ("*=cuda:11",)}


@pytest.mark.parametrize("device", GROWN)
@pytest.mark.parametrize("case", LOADED, ids=name)
def test_longer_names_load_in_every_way(
    case: Case, tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = remap(case, tmp_path, *GROWN[device], move_all=True)
    wanted = load(case.path, map_location="cpu")
    assert load(copy, map_location="cpu") == wanted
    if case.container != "zip":
        return
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    assert load(copy, map_location="cpu") == wanted
    if is_mappable(case):
        assert load(copy, map_location="cpu", mmap=True) == load(case.path, map_location="cpu", mmap=True)
        with config.patch("load.calculate_storage_offsets", True):
            assert load(copy, map_location="cpu", mmap=True) == wanted


def is_mappable(case: Case) -> bool:
    """Whether torch maps the file itself rightly: it takes records for stored ones, and swaps no bytes."""
    return case.name not in {"zip/rezip_deflated.pt", "zip/be_src.pt"}


@pytest.mark.parametrize("case", [case for case in ZIPS if case.name not in NOT_ASKED], ids=name)
def test_only_what_is_held_escapes_the_map(case: Case, tmp_path: Path) -> None:
    copy = remap(case, tmp_path, "*=cuda:11", move_all=True)
    stays = sum(row.device == "cpu" for row in open_checkpoint(str(copy)).storages)
    assert len([tag for tag in tags(copy) if tag != "cuda:11"]) <= stays


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


def test_torch_s_own_assertion_of_the_layout_holds(tmp_path: Path) -> None:
    paths = [
        str(remap(case, tmp_path, *rules, move_all=True))
        for case in ZIPS
        if case.weights_only and is_mappable(case)
        for rules in (*GROWN.values(), ("*=cpu",))
        if rules != ("*=cpu",) or case.name != "zip/rezip_prefix_space.pt"  # not by torch
    ]
    assert len(paths) > 50
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(paths),
        env={"TORCH_SERIALIZATION_DEBUG": "1", "PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, "done\n"), child.stderr
