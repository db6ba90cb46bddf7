"""Files that were changed in place load in torch in every way it has, and are given back to the last bit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given
from torch.utils.serialization import config

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.in_place import Patched, patch_in_place, undo_patch
from inspector.remap.plan import plan_remap
from inspector.remap.rules import Rule, Rules, parse_rule
from inspector.resources import demo_path
from tests.corpus import Case
from tests.property.test_remap_torch import SETTINGS, Saved, rules, saves
from tests.sweep import put_through
from tests.torch.remapping import loaded
from tests.torch.sameness import assert_same
from tests.torch.test_remap_corpus import LOADED, ZIPS, is_mappable, load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("corpus_classes"),
]


@contextmanager
def opened(case: Case, folder: Path) -> Iterator[Path]:
    """A genuine file to change, which must be as it was after its change is taken back."""
    path = Path(shutil.copy(case.path, folder / "in.pt"))
    yield path
    if path.with_name("in.pt.undo").exists():
        undo_patch(str(path))
    assert path.read_bytes() == case.path.read_bytes()


def changed(path: Path, *texts: str, move_all: bool = False) -> Patched:
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(text) for text in texts], move_all=move_all)
    return patch_in_place(str(path), plan)


def each(check: Callable[[Case, Path], object], files: Iterable[Case], folder: Path) -> None:
    def check_one(case: Case) -> None:
        inner = Path(tempfile.mkdtemp(dir=folder))
        with opened(case, inner) as path:
            check(case, path)

    put_through(check_one, files, name=lambda case: case.name, every=2)


def test_what_is_sent_to_the_cpu_loads_there(tmp_path: Path) -> None:
    def check(case: Case, path: Path) -> None:
        if case.name == "devices/legacy_memo_cuda.pt":  # its tags share a text that other values need
            with pytest.raises(ExportError, match="everything behind them would move"):
                changed(path, "*=cpu")
            return
        changed(path, "*=cpu")
        assert_same(load(case.path, map_location="cpu"), load(path))
        if case.weights_only:
            wanted = load(case.path, map_location="cpu", weights_only=True)
            assert_same(wanted, load(path, weights_only=True))

    each(check, LOADED, tmp_path)


def test_longer_names_load_in_every_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Case, path: Path) -> None:
        changed(path, "*=cuda:11", move_all=True)
        with monkeypatch.context() as patch:
            wanted = load(case.path, map_location="cpu")
            if not case.name.startswith("zip/rezip"):
                # Python's zipfile wrote those: torch's own check of the layout fails before and after.
                patch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
            assert_same(wanted, load(path, map_location="cpu"))
            if is_mappable(case) and not case.name.startswith("zip/rezip"):
                mapped = load(case.path, map_location="cpu", mmap=True)
                assert_same(mapped, load(path, map_location="cpu", mmap=True))
                with config.patch("load.calculate_storage_offsets", True):
                    assert_same(wanted, load(path, map_location="cpu", mmap=True))

    each(check, ZIPS, tmp_path)


def test_a_file_changed_in_place_can_be_copied_and_changed_again(tmp_path: Path) -> None:
    def check(case: Case, path: Path) -> None:
        if changed(path, "*=cuda:11", move_all=True).record is None:
            assert not open_checkpoint(str(path)).storages
            return
        (path.parent / "in.pt.undo").rename(path.parent / "first")
        changed(path, "*=cuda:127", move_all=True)
        undo_patch(str(path))
        copy = path.with_name("copy.pt")
        export_copy(str(path), copy, plan_remap(open_checkpoint(str(path)), [Rule(device="*", to="cpu")]))
        assert_same(load(case.path, map_location="cpu"), load(copy))
        (path.parent / "first").rename(path.parent / "in.pt.undo")

    each(check, ZIPS, tmp_path)


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
        assert_same(before, after)
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
