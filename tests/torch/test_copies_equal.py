"""Copies of random checkpoints in every form: torch loads the same objects, shared in the same way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.sweep import table, tries
from tests.torch.copying import wrongs
from tests.torch.random_values import OLD_PICKLE, Maker

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

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
