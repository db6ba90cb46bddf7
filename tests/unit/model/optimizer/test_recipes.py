"""Recipes for several groups: which fits, and where none does; `test_naming_torch` runs the code of each."""

from __future__ import annotations

import pytest

from inspector.model.optimizer import recipes
from inspector.model.optimizer.parameters import Parameters, Shape
from inspector.model.optimizer.recipes import Recipe, Recognized, Traits, recognize

A, B = (4, 4), (4,)
STEM, HEAD = (4, 3), (2, 4)


def model(**shapes: Shape) -> Parameters:
    return Parameters("model", [name.replace("__", ".") for name in shapes], list(shapes.values()))


LAYERS = model(
    stem__weight=STEM,
    l__0__weight=A,
    l__0__bias=B,
    l__1__weight=A,
    l__1__bias=B,
    head__weight=HEAD,
)


def told(model: Parameters, *groups: list[str], room: int = 1000) -> Recognized | None:
    """What is said of groups that hold these parameters, numbered in a row; None in a shape is unknown."""
    left = [room]

    def spend(parts: int) -> bool:
        left[0] -= parts
        return left[0] >= 0

    shape_of = dict(zip(model.names, model.shapes, strict=True))
    listed, shapes = [], {}
    for group in groups:
        first = len(shapes)
        shapes |= {first + place: shape_of[name] for place, name in enumerate(group)}
        listed.append(list(range(first, first + len(group))))
    return recognize(listed, shapes, model, spend)


def named(model: Parameters, *groups: list[str]) -> str:
    """The recipe that names all of these groups rightly."""
    found = told(model, *groups)
    assert list(found.by_id.values()) == [name for group in groups for name in group]
    return found.reason


def test_each_class_is_a_group() -> None:
    stem, weight, bias, other, other_bias, head = LAYERS.names
    assert "dimensions" in named(LAYERS, [stem, weight, other, head], [bias, other_bias])
    assert "dimensions" in named(LAYERS, [bias, other_bias], [], [stem, weight, other, head])
    layers = [[stem], [weight, bias], [other, other_bias], [head]]
    assert "each layer" in named(LAYERS, *layers)
    assert "each layer" in named(LAYERS, *layers[::-1])
    assert "each parameter" in named(LAYERS, *([name] for name in LAYERS.names))
    assert "part of the model" in named(LAYERS, [head], [stem], [weight, bias, other, other_bias])
    assert "stem apart" in named(LAYERS, LAYERS.names[1:], [stem])
    assert "l apart" in named(LAYERS, [weight, other], [bias, other_bias], [stem, head])


def test_groups_that_could_change_places_have_no_names() -> None:
    square = model(a__0__weight=A, a__0__bias=B, b__0__weight=A, b__0__bias=B)
    assert told(square, ["a.0.weight", "b.0.weight"], ["a.0.bias", "b.0.bias"]) is not None
    assert told(square, ["a.0.weight", "a.0.bias"], ["b.0.weight", "b.0.bias"]) is None
    assert told(square, *([name] for name in square.names)) is not None  # a weight comes before its bias


def test_groups_without_a_whole_layer_are_told_so() -> None:
    stem, weight, bias, other, other_bias, _ = LAYERS.names
    for groups in (([stem, weight, other], [bias, other_bias]), ([bias, other_bias], [stem, weight, other])):
        found = told(LAYERS, *groups)
        assert list(found.by_id.values()) == [*groups[0], *groups[1]]
        assert found.reason.endswith(", whole layers left out")


def test_groups_that_follow_no_custom_have_no_names() -> None:
    stem, weight, bias, other, other_bias, head = LAYERS.names
    assert told(LAYERS, [stem, bias, other], [weight, other_bias, head]) is None
    assert told(LAYERS, LAYERS.names) is None
    assert told(LAYERS, [stem, weight, other], [bias, head]) is None


def test_a_group_that_is_sorted_by_name_spares_embeddings_too() -> None:
    """As minGPT has it: the eleventh layer comes second."""
    layers = [f"h__{number}__{part}" for number in range(11) for part in ("weight", "bias")]
    many = model(
        wte__weight=HEAD, **{name: A if name.endswith("t") else B for name in layers}, zz__weight=STEM
    )
    spared = [name for name in sorted(many.names) if name.endswith("bias") or name == "wte.weight"]
    decayed = [name for name in sorted(many.names) if name not in spared]
    assert "sorted by name" in named(many, decayed, spared)
    biases = [name for name in many.names if name.endswith("bias")]
    assert "dimensions" in named(many, [name for name in many.names if name not in biases], biases)


def test_what_recipes_disagree_about_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = Recipe(reason="b", keys=lambda traits: traits.flat, by_name=True)
    monkeypatch.setattr(recipes, "RECIPES", (Recipe(reason="a", keys=lambda traits: traits.flat), by_name))
    two = model(c=STEM, d=A, f=B, e=A, b=B)
    found = told(two, ["c", "d", "e"], ["f", "b"])
    assert found == Recognized({0: "c", 1: "d", 2: "e"}, "a")


def test_room_that_is_used_up_ends_it() -> None:
    stem, weight, bias, other, other_bias, head = LAYERS.names
    groups = [stem, weight, other, head], [bias, other_bias]
    assert told(LAYERS, *groups, room=5) is None
    assert told(LAYERS, *groups[::-1], room=7) is None
    assert told(LAYERS, *groups) is not None


def test_parts_of_a_model_are_looked_for_below_what_all_names_share() -> None:
    wrapped = Parameters("model", [f"module.net.{name}" for name in LAYERS.names], LAYERS.shapes)
    assert Traits(wrapped).child == [f"module.net.{name.partition('.')[0]}" for name in LAYERS.names]
    assert Traits(model(weight=A)).child == ["weight"]
