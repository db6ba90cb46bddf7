"""Names for numbers: what shapes and order leave only one name for; see `test_naming_torch` for the truth."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from inspector.model.optimizer import naming, recipes
from inspector.model.optimizer.naming import Owned, name_parameters
from inspector.model.optimizer.parameters import Parameters, Shape, salted
from inspector.model.optimizer.recipes import Recognized
from inspector.model.optimizer.state_dict import GroupDraft, Groups, OptimizerDraft
from inspector.records import replace
from tests.sweep import table

A, B, C = (4, 4), (4,), (2, 4)


def model(*shapes: Shape, where: str = "model", prefix: str = "p") -> Parameters:
    return Parameters(where, [f"{prefix}{number}" for number in range(len(shapes))], list(shapes))


def owned(*groups: list[Shape | None], together: bool = False, first: int = 0) -> Owned:
    """An optimizer whose parameters have these shapes; None where no slot tells it."""
    drafts, shapes, number = [], {}, first
    for group in groups:
        ids = list(range(number, number + len(group)))
        shapes |= {key: shape for key, shape in zip(ids, group, strict=True) if shape is not None}
        drafts.append(GroupDraft(ids=list(ids)))
        number += len(group)
    draft = OptimizerDraft(keys=(), path="", listed=Groups(drafts), state_ids=list(shapes))
    return Owned(draft, shapes, range(first, number), together)


@table(
    ("groups", "shapes", "naming", "names"),
    [
        ([[A, B]], [A, B], "order", {0: "p0", 1: "p1"}),
        ([[A, None]], [A, B], "order", {0: "p0", 1: "p1"}),
        ([[A, B]], [C, A, B], "order", {0: "p1", 1: "p2"}),
        ([[A, B]], [A, B, C], "order", {0: "p0", 1: "p1"}),
        ([[A, B]], [A, B, A, B], "unknown", {}),
        ([[A, C]], [A, B, A, C], "partial", {1: "p3"}),
        ([[A, B]], [B, A], "unknown", {}),
        ([[A, B, C]], [A, B], "unknown", {}),
        ([[A]], [A, B], "unknown", {}),
        ([[A, C], [B]], [A, B, C], "shape", {0: "p0", 1: "p2", 2: "p1"}),
        ([[A, A], [B]], [A, B, A], "recipe", {0: "p0", 1: "p2", 2: "p1"}),
        ([[A, A], [B, B]], [A, B, A, B], "recipe", {0: "p0", 1: "p2", 2: "p1", 3: "p3"}),
        ([[A, B], [A, B]], [A, B, A, B], "unknown", {}),
        ([[A], [B]], [A, B, C], "shape", {0: "p0", 1: "p1"}),
        ([[A], [B], [C]], [A, B], "unknown", {}),
        ([[A, None], [B]], [A, B, C], "shape", {0: "p0", 2: "p1"}),
        ([], [A], "unknown", {}),
        ([[]], [A], "unknown", {}),
    ],
)
def test_outcomes(
    groups: list[list[Shape | None]], shapes: list[Shape], naming: str, names: dict[int, str]
) -> None:
    (found,) = name_parameters([owned(*groups)], [model(*shapes)])
    assert (found.naming, found.by_id) == (naming, names)
    assert found.detail.endswith(".")


def test_where_only_the_order_tells_is_said() -> None:
    for groups, shapes, by_place in (
        ([[A, B, A]], [A, B, A], True),
        ([[A, B, C]], [A, B, C], False),
        ([[A, B, None]], [A, B, A], False),
        ([[A, A], [B, B]], [A, B, A, B], True),
        ([[C, A], [A, C]], [C, A, A, C], False),
        ([[A, C], [B]], [A, B, C], False),
    ):
        (found,) = name_parameters([owned(*groups)], [model(*shapes)])
        assert found.by_place == by_place


def test_bounds_are_exact() -> None:
    """Every assignment that keeps the order is tried; a name is given just where all of them agree."""
    shapes = [A, B, C]
    random.seed(5)
    for _ in range(300):
        offered = [random.choice(shapes) for _ in range(random.randint(2, 7))]
        wanted = [random.choice([*shapes, None]) for _ in range(random.randint(2, 5))]
        ways = [
            places
            for places in itertools.combinations(range(len(offered)), len(wanted))
            if all(shape in {None, offered[place]} for shape, place in zip(wanted, places, strict=True))
        ]
        one = owned(wanted)
        (found,) = name_parameters([one], [model(*offered)])
        expected = {
            key: f"p{ways[0][key]}"
            for key in range(len(wanted))
            if ways and len({way[key] for way in ways}) == 1
        }
        if len(one.shapes) > 1 or len(wanted) == len(offered):
            assert found.by_id == expected


def test_names_in_the_file_are_believed() -> None:
    one = owned([A], [B])
    one.optimizer.listed.groups[0].names.append("x")
    assert name_parameters([one], [])[0].naming == "unknown"
    one.optimizer.listed.groups[1].names.append("y\u202e")
    (found,) = name_parameters([one], [])
    assert (found.naming, found.by_id) == ("names", {0: "x", 1: "y\\u202e"})


def test_several_models_must_agree() -> None:
    (found,) = name_parameters([owned([A, B])], [model(A, B), model(A, B, where="copy")])
    assert found.naming == "order"
    (found,) = name_parameters([owned([A, B])], [model(A, B), model(A, B, prefix="q")])
    assert (found.naming, found.by_id) == ("unknown", {})


def test_whole_match_is_preferred_to_a_part_of_another() -> None:
    (found,) = name_parameters([owned([A, B])], [model(A, B, C, prefix="q"), model(A, B)])
    assert found.by_id == {0: "p0", 1: "p1"}


@pytest.mark.parametrize("groups", [[[A, B, C]], [[A, C], [B]]])
def test_model_of_one_optimizer_lends_no_names_to_another(groups: list[list[Shape | None]]) -> None:
    first, second = name_parameters([owned(*groups), owned([A, B])], [model(A, B, C)])
    assert first.by_id
    assert (second.naming, second.by_id) == ("unknown", {})


@table(
    ("count", "wanted", "where"),
    [
        (3, (0, 2), "m0 and m2"),
        (3, (2, 1, 0), "m2 and m1 and m0"),
        (5, (3, 1), "m3 and m1"),
        (5, range(5), "m0 and m1 and m2 and m3 and m4"),
        (13, range(13), " and ".join(f"m{number}" for number in range(13))),
        (13, (0, 1), ""),
    ],
)
def test_one_optimizer_may_hold_several_models(count: int, wanted: Sequence[int], where: str) -> None:
    models = [model((2, number + 2), (number + 2,), where=f"m{number}") for number in range(count)]
    shapes: list[Shape | None] = [shape for number in wanted for shape in models[number].shapes]
    (found,) = name_parameters([owned(shapes)], models)
    if not where:
        assert found.naming == "unknown"
        return
    assert found.naming == "order"
    assert where in found.detail
    assert list(found.by_id.values()) == [f"m{number}.p{place}" for number in wanted for place in (0, 1)]


def test_custom_names_what_shapes_leave_open() -> None:
    (found,) = name_parameters([owned([A, C, A], [B, B])], [model(A, C, B, A, B)])
    assert (found.naming, found.by_place) == ("recipe", True)  # it could be filled backwards
    (found,) = name_parameters([owned([C, A, A], [B])], [model(C, A, B, A)])
    assert (found.naming, found.by_id) == ("recipe", {0: "p0", 1: "p1", 2: "p3", 3: "p2"})
    (found,) = name_parameters([owned([C, A, A], [B, B])], [model(C, A, B, A, B, B)])
    assert (found.naming, set(found.by_id)) == ("partial", {0, 1, 2})
    assert "decides 3 of 5" in found.detail


def test_order_within_groups_is_not_asked_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    # A shape that occurs once, the order within the first group, and nothing for the rest.
    one, other = owned([C, A], [A, B, B]), model(C, A, A, B, B, C)
    (found,) = name_parameters([one], [other])
    monkeypatch.setattr(naming, "MOST_COMPARED", 45)
    (poor,) = name_parameters([one], [other])
    assert set(poor.by_id) < set(found.by_id)


def test_custom_that_contradicts_the_shapes_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Recognized({0: "p1", 1: "p0", 2: "p2", 3: "p3"}, "a lie")
    monkeypatch.setattr(recipes, "recognize", lambda *_: wrong)
    (found,) = name_parameters([owned([C, A, A], [B])], [model(C, A, B, A)])
    assert (found.naming, found.by_id) == ("partial", {0: "p0", 3: "p2"})


def test_too_many_models_and_optimizers_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [owned([A, B, C]) for _ in range(20)]
    models = [model(A, B, C, prefix=f"m{number}_") for number in range(20)]
    assert {found.naming for found in name_parameters(many[:1], models[:1])} == {"order"}
    monkeypatch.setattr(naming, "MOST_COMPARED", 500)
    monkeypatch.setattr(naming, "_fits_wholly", lambda *_: compared.append(1) or False)
    compared: list[int] = []
    found = name_parameters(many, models)
    assert "too many models and optimizers" in found[-1].detail
    assert len(compared) <= 500 / 4


@pytest.mark.parametrize("most", [5, 9])
def test_what_is_left_to_compare_decides_for_each(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "MOST_COMPARED", most)
    (found,) = name_parameters([owned([A, B])], [model(A, B)])
    assert "too many models and optimizers" in found.detail


def test_shapes_made_to_have_one_hash_are_counted_quickly() -> None:
    assert len({hash(salted((0, size))) for size in range(100)}) == 100
    assert salted((1, 2)) != salted((2, 1))
    assert hash(salted((1,))) != hash((1,))


def test_model_without_an_order_tells_names_by_shapes_alone() -> None:
    def said(*shapes: Shape) -> tuple[str, dict[object, str]]:
        unordered = replace(model(*shapes), is_ordered=False)
        (found,) = name_parameters([owned([A, B])], [unordered])
        return found.naming, dict(found.by_id)

    assert said(B, A) == ("shape", {0: "p1", 1: "p0"})
    assert said(A, B, B)[1] == {0: "p0"}
    assert said(A, C) == ("unknown", {})
    (found,) = name_parameters([owned([A, A, B])], [replace(model(A, B, A), is_ordered=False)])
    assert (found.naming, found.by_id) == ("partial", {2: "p1"})
    assert "safetensors sorts its tensors" in found.detail
