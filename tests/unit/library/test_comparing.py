from __future__ import annotations

import pytest

import inspector
from inspector.resources import demo_path


@pytest.fixture
def remapped(tmp_path) -> inspector.Checkpoint:
    out = tmp_path / "out.pth"
    inspector.remap(demo_path(), out, map="cuda:1=cuda:0", verify="none")
    return inspector.open(out)


def test_what_differs(demo: inspector.Checkpoint, remapped: inspector.Checkpoint) -> None:
    found = inspector.diff(demo, remapped)
    assert (found.equal, found.complete) == (False, True)
    assert (found.added, found.removed, found.renamed) == ((), (), ())
    assert {tuple(row["what"]) for row in found.changed} == {("device",)}
    assert len(found.changed) == len(demo.filter("device:cuda:1"))
    assert found.to_dict()["changed"] == list(found.changed)
    assert "cuda:1" in str(found)
    assert repr(found).endswith(
        f": equal=False, 0 added, 0 removed, 0 renamed, {len(found.changed)} changed>"
    )
    assert inspector.diff(demo, demo.path).equal


def test_a_comparison_is_neither_true_nor_false(demo: inspector.Checkpoint) -> None:
    with pytest.raises(TypeError, match=r"ask for its \.equal"):
        assert inspector.diff(demo, demo, compare="facts")


def test_rows_are_chosen_and_numbers_compared(demo: inspector.Checkpoint, remapped, tmp_path) -> None:
    chosen = inspector.diff(demo, remapped, filter="device:cuda:0 role:parameter", compare="facts")
    assert {row["what"][0] for row in chosen.changed} == {"device"}
    assert len(chosen.changed) < len(inspector.diff(demo, remapped, compare="facts").changed)
    weights = tmp_path / "weights.safetensors"
    inspector.remap(demo, weights, only="weights")
    found = inspector.diff(demo, weights, compare="numbers", rtol=1e-5, filter="stem.conv")
    assert found.renamed
    assert not any("values" in row["what"] for row in found.changed)


def test_wrong_wishes_are_told(demo: inspector.Checkpoint) -> None:
    wrong = {}
    for name, arguments, kind in (
        ("compare", {"compare": "values"}, inspector.PlanError),
        ("rtol", {"compare": "numbers", "rtol": -1.0}, inspector.PlanError),
        ("atol", {"compare": "numbers", "atol": float("nan")}, inspector.PlanError),
        ("without numbers", {"atol": 1.0}, inspector.PlanError),
        ("filter", {"filter": "size>10XB"}, inspector.QueryError),
        ("nothing", {"filter": "nothing-of-the-kind"}, inspector.PlanError),
    ):
        try:
            inspector.diff(demo, demo, **arguments)
        except inspector.CheckpointError as error:
            if not isinstance(error, kind):
                wrong[name] = error
        else:
            wrong[name] = None
    assert wrong == {}
