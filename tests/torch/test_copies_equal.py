"""Copies of random checkpoints in every form: torch loads the same objects, shared in the same way."""

from __future__ import annotations

import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import plan_remap
from inspector.remap.recover import recover
from inspector.remap.rules import parse_rule
from tests.sweep import table, tries
from tests.torch.random_values import OLD_PICKLE, Maker
from tests.torch.sameness import differences

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
Write = Callable[[Path, Path], None]
Expect = Callable[[Any], Any]


def _plan(source: Path, rule: str) -> Any:
    return plan_remap(open_checkpoint(str(source)), [parse_rule(rule)])


def _same(source: Path, copy: Path) -> None:
    export_copy(str(source), copy, _plan(source, "cuda:7=cpu"))


def _mapped(source: Path, copy: Path) -> None:
    export_copy(str(source), copy, _plan(source, "*=cuda:11"))


def _in_place(source: Path, copy: Path) -> None:
    shutil.copyfile(source, copy)
    patch_in_place(str(copy), _plan(copy, "*=xpu"))  # as long as `cpu`: a legacy file has no room for more


def _undone(source: Path, copy: Path) -> None:
    _in_place(source, copy)
    if copy.with_name(f"{copy.name}.undo").exists():
        undo_patch(str(copy))
    assert copy.read_bytes() == source.read_bytes()


def _form(**asked: Any) -> Write:
    return lambda source, copy: export_form(str(source), copy, None, Form(**asked)) and None


def _without(value: Any) -> Any:
    return {key: item for key, item in value.items() if key not in {"dropped", b"dropped"}}


def _model(value: Any) -> Any:
    model = value["model"] if "model" in value else value[b"model"]
    return OrderedDict(model)


def _all(value: Any) -> Any:
    return value


FORMS: dict[str, tuple[Write, Expect]] = {
    "same": (_same, _all),
    "mapped": (_mapped, _all),
    "in place": (_in_place, _all),
    "undone": (_undone, _all),
    "compact": (_form(compact=True), _all),
    "excluded": (_form(exclude=("dropped",)), _without),
    "zip": (_form(container="zip", exclude=("dropped",)), _without),
    "legacy": (_form(container="legacy", exclude=("dropped",)), _without),
    "compact legacy": (_form(container="legacy", compact=True), _all),
    "state dict": (_form(shape="state-dict", path="model"), _model),
    "recovered": (lambda source, copy: recover(str(source), copy) and None, _all),
}


def loaded(path: Path, encoding: str) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=False, encoding=encoding)
    except Exception as error:  # noqa: BLE001 - whatever it is, a copy must do the same
        return error


def wrongs(
    source: Path, folder: Path, encodings: tuple[str, ...] = ("utf-8",)
) -> Iterator[tuple[str, str, str]]:
    """Write every form of a file, and return what became of each: name, `same`, `refused` or `wrong`, why."""
    for name, (write, expect) in FORMS.items():
        copy = folder / "copy.pt"
        for path in folder.glob("copy.pt*"):
            path.unlink()
        try:
            write(source, copy)
        except CheckpointError as error:
            yield name, "refused", str(error)
            continue
        found = [*_compared(source, copy, name, expect, encodings)]
        yield name, "wrong" if found else "same", "; ".join(found[:3])


def _compared(
    source: Path, copy: Path, name: str, expect: Expect, encodings: tuple[str, ...]
) -> Iterator[str]:
    for encoding in encodings:
        one, other = loaded(source, encoding), loaded(copy, encoding)
        if isinstance(one, Exception):
            continue  # a copy of what torch does not load is compared with nothing
        if isinstance(other, Exception):
            yield f"{encoding}: the copy does not load: {other!r:.200}"
            continue
        yield from differences(expect(one), other, compact="compact" in name)


# What a legacy file cannot hold, and a model that cannot be told from what is around it.
REFUSALS = ("torch cannot read untyped storages", "no weights stand at model")


def save(path: Path, seed: int, *, protocol: int, legacy: bool, old: bool) -> bool:
    value = Maker(seed, old=old, protocol=protocol, legacy=legacy).checkpoint()
    how: dict[str, Any] = {"pickle_module": OLD_PICKLE} if old else {}
    new = not legacy
    try:
        torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=new, **how)
    except RuntimeError as error:
        if "view the same data as different types" not in str(error):
            raise
        return False
    return True


@table("protocol", [0, 1, 2, 3, 4, 5])
@table("legacy", [False, True])
def test_copies_of_random_checkpoints_load_as_the_same(protocol, legacy, tmp_path) -> None:
    seed = protocol * 10 + legacy
    check(range(seed, seed + tries(1, 4)), tmp_path, protocol=protocol, legacy=legacy, old=False)


@pytest.mark.parametrize("legacy", [False, True])
def test_copies_of_files_of_python_2_load_as_the_same_in_any_encoding(legacy, tmp_path) -> None:
    check(range(tries(2, 6)), tmp_path, protocol=2, legacy=legacy, old=True)


def check(seeds: range, folder: Path, **how: Any) -> None:
    encodings = ("utf-8", "latin1", "bytes") if how["old"] else ("utf-8",)
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        source = folder / "source.pt"
        if not save(source, seed, **how):
            continue
        for form, outcome, why in wrongs(source, folder, encodings):
            outcomes[outcome] += 1
            assert outcome == "same" or why.startswith(REFUSALS), f"seed {seed}, {form}: {outcome}, {why}"
    assert outcomes["same"] > outcomes["refused"]
