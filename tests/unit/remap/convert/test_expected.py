from __future__ import annotations

from inspector.model.tensors.rebuild import describe_tensor
from inspector.remap.planner import describe_facts, describe_row
from tests.builders import pickles
from tests.unit.remap.form_samples import mapping, opened, tensor


def test_rows_and_facts_of_a_tensor_are_described_alike(tmp_path) -> None:
    (row,) = opened(tmp_path, mapping({"a.b": tensor(geometry="1;1,2;9,1")})).tensors
    facts = describe_tensor(pickles.read(tensor(geometry="1;1,2;9,1")).root)
    assert facts is not None
    expected = ("a.b", "float32", (1, 2), (9, 1), "strided", False)
    assert describe_row(row) == describe_facts("a.b", "float32", facts) == expected
    assert describe_row(row, named=False) == ("", *expected[1:])
    (alone,) = opened(tmp_path, tensor()).tensors
    assert describe_row(alone)[0] == ""
