"""The table of torch's functions that make tensors, against torch and against what uses it."""

from __future__ import annotations

import importlib
import inspect

import pytest

from inspector.containers.rebuilds import EXPECTED, JAGGED, JUDGED, PARAMETERS, REBUILDS, SENT, VIEWS
from inspector.model.arguments.tensors import TENSOR_RULES
from inspector.model.tensors import rebuild
from inspector.safety.names import default_allow_list


def test_functions_of_torchs_list_are_judged() -> None:
    names = {name for name in default_allow_list().names if name.rpartition(".")[2].startswith("_rebuild")}
    assert {name.rpartition(".")[2] for name in names - JUDGED} == {JAGGED}  # imported by torch.nested alone
    assert names > JUDGED


def test_each_function_is_described_and_all_that_are_described_are_here() -> None:
    assert rebuild._REBUILDS.keys() == {one.name for one in REBUILDS}
    assert {name for name in TENSOR_RULES if "._rebuild" in name} <= JUDGED


def test_groups_are_told_by_the_table() -> None:
    arities = {one.dotted: one.arity for one in REBUILDS if one.arity > 0}
    assert EXPECTED.common == {"collections.OrderedDict": -1, **arities}
    assert (len(SENT), len(PARAMETERS), len(VIEWS)) == (3, 2, 4)


@pytest.mark.torch
def test_functions_are_where_the_table_says_and_take_what_it_says() -> None:
    pytest.importorskip("torch")
    for one in REBUILDS:
        found = getattr(importlib.import_module(one.module), one.name, None)
        if found is None:
            assert not one.judged, one  # of an earlier release
            continue
        places = list(inspect.signature(found).parameters)
        assert one.arity <= len(places), one
        if one.grad_at >= 0:
            assert places[one.grad_at] == "requires_grad", one
        if one.class_at >= 0:
            assert places[one.class_at] in {"cls", "type", "new_type"}, one
