"""Old names, as torch and Python translate them."""

from __future__ import annotations

import _compat_pickle

import pytest

from inspector.pickles.values import MODULES, NAMES, present_name
from tests.sweep import table


@pytest.mark.torch
def test_tables_are_torchs() -> None:
    utils = pytest.importorskip("torch._utils")
    assert MODULES == utils.IMPORT_MAPPING
    assert {".".join(old): ".".join(new) for old, new in utils.NAME_MAPPING.items()} == NAMES


def test_tables_are_part_of_pythons() -> None:
    assert MODULES.items() <= _compat_pickle.IMPORT_MAPPING.items()
    theirs = {".".join(old): ".".join(new) for old, new in _compat_pickle.NAME_MAPPING.items()}
    assert NAMES.items() <= theirs.items()


@table(
    ("old", "new"),
    [
        ("__builtin__.set", "builtins.set"),
        ("__builtin__.xrange", "builtins.range"),
        ("__builtin__.intern", "sys.intern"),
        ("copy_reg._reconstructor", "copyreg._reconstructor"),
        ("UserDict.UserDict", "collections.UserDict"),
        ("UserDict.DictMixin", "collections.DictMixin"),
        ("torch.FloatStorage", "torch.FloatStorage"),
        ("collections.OrderedDict", "collections.OrderedDict"),
        ("__builtin__", "builtins"),
        ("", ""),
    ],
)
def test_present_names(old: str, new: str) -> None:
    assert present_name(old) == new
