"""Files that were changed in place load in torch in every way it has, and are given back to the last bit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from torch.utils.serialization import config

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.remap.plan import plan_remap
from inspector.remap.relabel.export import export_copy
from inspector.remap.relabel.in_place import Patched, patch_in_place, undo_patch
from inspector.remap.rules import Rule, Rules, parse_rule
from inspector.resources import demo_path
from tests.corpus import Case
from tests.property.test_remap_torch import SETTINGS, Saved, rules, saves
from tests.torch.pictures import lend_classes, picture
from tests.torch.remapping import loaded
from tests.torch.test_remap_corpus import LOADED, is_mappable, load

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _classes(monkeypatch: pytest.MonkeyPatch) -> None:
    lend_classes(monkeypatch)


@pytest.fixture(params=LOADED, ids=lambda case: case.name)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Case, Path]]:
    """A genuine file to change, which must be as it was after its change is taken back."""
    case: Case = request.param
    path = Path(shutil.copy(case.path, tmp_path / "in.pt"))
    yield case, path
    if path.with_name("in.pt.undo").exists():
        undo_patch(str(path))
    assert path.read_bytes() == case.path.read_bytes()


def changed(path: Path, *texts: str, move_all: bool = False) -> Patched:
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(text) for text in texts], move_all=move_all)
    return patch_in_place(str(path), plan)


ZIPS = pytest.mark.parametrize(
    "opened", [case for case in LOADED if case.container == "zip"], indirect=True, ids=lambda case: case.name
)


def test_what_is_sent_to_the_cpu_loads_there(opened: tuple[Case, Path]) -> None:
    case, path = opened
    if case.name == "devices/legacy_memo_cuda.pt":  # its tags share a text that other values need
        with pytest.raises(ExportError, match="a file of this format has no room"):
            changed(path, "*=cpu")
        return
    changed(path, "*=cpu")
    assert load(path) == load(case.path, map_location="cpu")
    if case.weights_only:
        after = torch.load(path, weights_only=True)
        assert picture(after) == picture(torch.load(case.path, map_location="cpu", weights_only=True))


@ZIPS
def test_longer_names_load_in_every_way(opened: tuple[Case, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    case, path = opened
    changed(path, "*=cuda:11", move_all=True)
    wanted = load(case.path, map_location="cpu")
    assert load(path, map_location="cpu") == wanted
    if case.name.startswith("zip/rezip"):
        return  # Python's zipfile wrote it: torch's own check of the layout fails before and after
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    assert load(path, map_location="cpu") == wanted
    if is_mappable(case):
        assert load(path, map_location="cpu", mmap=True) == load(case.path, map_location="cpu", mmap=True)
        with config.patch("load.calculate_storage_offsets", True):
            assert load(path, map_location="cpu", mmap=True) == wanted


@ZIPS
def test_a_file_changed_in_place_can_be_copied_and_changed_again(opened: tuple[Case, Path]) -> None:
    case, path = opened
    if changed(path, "*=cuda:11", move_all=True).record is None:
        assert not open_checkpoint(str(path)).storages
        return
    (path.parent / "in.pt.undo").rename(path.parent / "first")
    changed(path, "*=cuda:127", move_all=True)
    undo_patch(str(path))
    copy = path.with_name("copy.pt")
    export_copy(str(path), copy, plan_remap(open_checkpoint(str(path)), [Rule(device="*", to="cpu")]))
    assert load(copy) == load(case.path, map_location="cpu")
    (path.parent / "first").rename(path.parent / "in.pt.undo")


@SETTINGS
@given(saved=saves(), rules=rules())
def test_we_agree_with_map_location(saved: Saved, rules: list[Rule]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        saved.write(path)
        original = path.read_bytes()
        before, tags = loaded(path)
        plan = plan_remap(open_checkpoint(str(path)), rules, move_all=True)
        try:
            done = patch_in_place(str(path), plan)
        except ExportError:
            assert not saved.new  # a legacy file whose device names would grow
            assert path.read_bytes() == original
            return
        after, moved = loaded(path)
        assert moved == [Rules(rules).by_device(tag) or tag for tag in tags]
        assert picture(after) == picture(before)
        if done.record is not None:
            undo_patch(str(path))
        assert path.read_bytes() == original


@pytest.mark.parametrize("rule", ["*=cpu", "*=cuda:0"])
def test_torch_has_the_last_word_on_a_copy(tmp_path: Path, rule: str) -> None:
    """The whole way: a child with the real torch opens a file that has no name yet."""
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_remap(checkpoint, [parse_rule(rule)])
    done = export_copy(checkpoint.path, tmp_path / "out.pth", plan, verify="torch")
    assert done.torch is not None
    assert (done.torch.verdict, done.torch.tensors) == ("equal", len(checkpoint.tensors))
    assert done.torch.torch == torch.__version__
    has_cuda = torch.cuda.is_available()
    assert done.torch.missing == (("cuda:0",) if rule == "*=cuda:0" and not has_cuda else ())
