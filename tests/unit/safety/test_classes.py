"""The tables of classes: every row has its reason, and what stands in them is as they say."""

from __future__ import annotations

import argparse
import datetime as dt
import decimal
import importlib
import json
import pickle
import sys
import uuid
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

import inspector.safety
from inspector.pickles.values import package_of, present_name
from inspector.safety.names import default_allow_list, judge_global, known_classes
from inspector.safety.verdict import judge
from tests.unit.model.making import by_hand

FOLDER = Path(inspector.safety.__file__).parent
ROWS = json.loads((FOLDER / "classes.json").read_text(encoding="utf-8"))
OF_TORCH = json.loads((FOLDER / "torch_classes.json").read_text(encoding="utf-8"))["names"]
# Functions that rebuild data, the only ones of the table.
RANDOM = {"__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor", "__pyx_unpickle_SeedSequence"}
REBUILDING = {"_reconstruct", "scalar", "_frombuffer", "_rebuild_from_type", "_rebuild_njt", *RANDOM}
# Of other versions of torch, NumPy and Python.
ELSEWHERE = ("torch.nn.modules.linear._LinearWithBias", "numpy.core.", "numpy.bool_", "pathlib._local.")


def test_every_row_has_its_reason_and_its_source() -> None:
    for row in ROWS:
        assert set(row) == {"why", "source", "uses", "names"}
        assert row["why"].endswith(".")
        assert row["source"]
        assert row["uses"] in {"call", "new"}
        assert row["names"] == sorted(set(row["names"]))


def test_no_name_stands_twice_or_on_torchs_list() -> None:
    names = Counter([*OF_TORCH, *(name for row in ROWS for name in row["names"])])
    assert max(names.values()) == 1
    # torch 2.13 allows these itself while it is imported; others may have to be told.
    assert {name.rpartition(".")[2] for name in names.keys() & default_allow_list().names} == {
        *("NestedTensor", "_rebuild_njt", "_FlatLayout", "_MeshLayout")
    }
    assert names.keys() == known_classes().keys()


def test_names_are_spelled_as_today_and_not_called_dangerous() -> None:
    for name in known_classes():
        assert present_name(name) == name
        assert judge_global(name) == ("tensor" if name in default_allow_list().names else "unknown")


@pytest.mark.torch
def test_what_can_be_imported_here_is_a_class() -> None:
    pytest.importorskip("torch")
    packages = {"torch", "numpy", *sys.stdlib_module_names}  # frameworks need not be here
    seen = 0
    for name in known_classes():
        module, _, last = name.rpartition(".")
        if package_of(module) not in packages or name.startswith(ELSEWHERE):
            continue
        seen += 1
        found = getattr(importlib.import_module(module), last)
        assert isinstance(found, type) or last in {*REBUILDING, "Ellipsis", "Any"}, name
    assert seen > 500


def test_plain_python_objects_need_no_more_than_the_table() -> None:
    values = [
        argparse.Namespace(a=1),
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        decimal.Decimal("1.5"),
        PurePosixPath("a/b"),
        uuid.UUID(int=5),
        range(3),
        slice(1, 2),
        frozenset({1}),
    ]
    data = pickle.dumps(values, protocol=2)
    found = judge(by_hand(data[2:-1]))
    assert (found.verdict, found.packages) == ("needs-allow-list", ())
    assert "argparse.Namespace" in found.to_allow
