"""Names of Python 2, against the tables of torch itself."""

from __future__ import annotations

import pytest

from inspector.safety.python2 import MODULES, NAMES, present_name


def test_tables_are_those_of_torch() -> None:
    utils = pytest.importorskip("torch._utils")
    assert utils.IMPORT_MAPPING == MODULES
    assert {".".join(old): ".".join(new) for old, new in utils.NAME_MAPPING.items()} == NAMES


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__builtin__.set", "builtins.set"),
        ("__builtin__.unicode", "builtins.str"),
        ("copy_reg._reconstructor", "copyreg._reconstructor"),
        ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor"),
        ("alone", "alone"),
    ],
)
def test_names(old: str, new: str) -> None:
    assert present_name(old) == new
