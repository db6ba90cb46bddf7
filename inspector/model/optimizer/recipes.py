"""How programs hand parameters over in several groups, where shapes alone leave several ways.

Each recipe splits a model's parameters into classes, one for each group, and keeps the model's order within
them. It is taken where every group has the size and the shapes of one class. A name by a recipe is what this
custom says, not a proof (code may sort a group by name, or swap layers of one shape); so the optimizer says
which recipe it was and whether shapes left it open, and where two recipes disagree there is no name.

Sources: `param_groups_weight_decay` and `param_groups_layer_decay` of timm (`timm/optim/_param_groups.py`),
BEiT's `optim_factory.py`, `Trainer.get_decay_parameter_names` of transformers, `configure_optimizers` of
nanoGPT and minGPT (which sorts by name), `build_optimizer` of ultralytics (`engine/trainer.py`), and torch's
own per-parameter options (https://docs.pytorch.org/docs/stable/optim.html).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from inspector.model.checkpoint import Key
from inspector.model.optimizer.parameters import Parameters, Shape
from inspector.records import dataclass

# Optimizers that leave out whole layers: a frozen backbone, or one of several optimizers of one model.
#
# What a module registers itself (a weight with its bias) is trained together or not at all. So a parameter
# that can stand nowhere in the groups says that its whole layer was left out, and that may decide the rest.
# Names are given only where one way is left.

_MOST_ROUNDS = 64
_PASSES = 4

Spend = Callable[[int], bool]
"""Counts parts that are about to be compared, and returns whether that may still be done."""


def names_of_layers(
    groups: Sequence[Sequence[Key]],
    shapes: Mapping[Key, Shape],
    classes: Sequence[Sequence[int]],
    model: Parameters,
    spend: Spend,
) -> dict[Key, str] | None:
    """Name the parameters of groups that are each a class without some layers; None where that is not clear.

    Args:
        classes: For each group, the parameters of the model it may hold, by number, in order.
    """
    names, offered = model.names, model.shapes
    layers = [name.rpartition(".")[0] for name in names]
    wanted = [[shapes.get(key) for key in group] for group in groups]
    left = [list(places) for places in classes]
    for _ in range(_MOST_ROUNDS):
        ways = [_ways(shape, places, offered, spend) for shape, places in zip(wanted, left, strict=True)]
        if any(way is None for way in ways):
            return None
        possible = {place for way in ways if way is not None for places in way for place in places}
        gone = {layers[place] for places in left for place in places if place not in possible}
        if not gone:
            return _only(groups, [way or [] for way in ways], names)
        left = [[place for place in places if layers[place] not in gone] for places in left]
    return None


def _ways(
    wanted: Sequence[Shape | None], places: Sequence[int], offered: Sequence[Shape], spend: Spend
) -> list[list[int]] | None:
    """Return all places that each parameter of a group can be at, in order; None where there is no way."""
    if not spend(_PASSES * len(places)):
        return None
    first = _earliest(wanted, places, offered)
    last = _earliest(wanted[::-1], places[::-1], offered)
    if first is None or last is None:
        return None
    rank = {place: number for number, place in enumerate(places)}
    bounds = list(zip(wanted, first, reversed(last), strict=True))
    if not spend(sum(rank[late] - rank[early] for _, early, late in bounds)):
        return None
    return [
        [place for place in places[rank[early] : rank[late] + 1] if shape in {None, offered[place]}]
        for shape, early, late in bounds
    ]


def _earliest(
    wanted: Sequence[Shape | None], places: Sequence[int], offered: Sequence[Shape]
) -> list[int] | None:
    found: list[int] = []
    left = iter(places)
    for shape in wanted:
        place = next((place for place in left if shape in {None, offered[place]}), None)
        if place is None:
            return None
        found.append(place)
    return found


def _only(
    groups: Sequence[Sequence[Key]], ways: Sequence[list[list[int]]], names: Sequence[str]
) -> dict[Key, str] | None:
    pairs = [
        (key, places)
        for group, way in zip(groups, ways, strict=True)
        for key, places in zip(group, way, strict=True)
    ]
    if any(len(places) != 1 for _, places in pairs):
        return None
    return {key: names[places[0]] for key, places in pairs}


_MOST_GROUPS = 512
_MOST_CHILDREN = 24
_MOST_APART = 4
_LEFT_OUT = ", whole layers left out"
_NORM = re.compile(
    r"(?:^|[._])(?:ln|bn|gn|norm|layer_?norm|rms_?norm|batch_?norm|group_?norm)[a-z0-9_]{0,20}\."
)
_EMBEDDING = re.compile(r"(?:^|[._])(?:wte|wpe|pos_?emb|tok_?emb|[a-z_]{0,20}embed[a-z_]{0,20})(?:$|\.)")
_TOKEN = re.compile(r"(?:^|\.)(?:cls_token|dist_token|reg_token|mask_token|pos_embed|absolute_pos_embed)$")
_HEAD = re.compile(r"(?:head|head_dist|fc|classifier)\.")
_LAYER = re.compile(r"(?:^|\.)([A-Za-z_]{1,40}\.[0-9]{1,4})\.")

Class = Sequence[int]
"""Parameters of a model by number, in the order in which a group lists them."""


class Traits:
    """What tells the parameters of one model apart; each list is made once, when a recipe asks for it."""

    def __init__(self, model: Parameters) -> None:
        """Describe a model's parameters."""
        self.model = model

    @cached_property
    def bias(self) -> list[bool]:
        """Whether each is a bias, by its name."""
        return [name.endswith("bias") for name in self.model.names]

    @cached_property
    def flat(self) -> list[bool]:
        """Whether each has one dimension at most."""
        return [len(shape) < 2 for shape in self.model.shapes]

    @cached_property
    def spared(self) -> list[bool]:
        """Whether each is a bias or has one dimension: most code spares these from weight decay."""
        return [bias or flat for bias, flat in zip(self.bias, self.flat, strict=True)]

    @cached_property
    def norm(self) -> list[bool]:
        """Whether each is a bias or of a norm layer, by its name."""
        names = zip(self.model.names, self.bias, strict=True)
        return [bias or _NORM.search(name.lower()) is not None for name, bias in names]

    @cached_property
    def embedding(self) -> list[bool]:
        """The same with embeddings."""
        names = zip(self.model.names, self.norm, strict=True)
        return [norm or _EMBEDDING.search(name.lower()) is not None for name, norm in names]

    @cached_property
    def named_norm(self) -> list[bool]:
        """The same with whatever has `bias` anywhere in its name."""
        names = zip(self.model.names, self.norm, strict=True)
        return [norm or "bias" in name.lower() for name, norm in names]

    @cached_property
    def excused(self) -> list[bool]:
        """Whether each has one dimension, or is a token or position that models ask to spare."""
        names = zip(self.model.names, self.spared, strict=True)
        return [spared or _TOKEN.search(name) is not None for name, spared in names]

    @cached_property
    def depth(self) -> list[str]:
        """The depth of each: before the blocks, a block with what follows it, or the head."""
        last, found = "", []
        for name in self.model.names:
            match = _LAYER.search(name)
            if match is not None:
                last = match[1]
            found.append("head" if match is None and _HEAD.match(name) else last)
        return found

    @cached_property
    def depth_with_end(self) -> list[str]:
        """The same, where what follows the last block belongs to the head."""
        layers = zip(self.depth, self.model.names, strict=True)
        return ["head" if depth and _LAYER.search(name) is None else depth for depth, name in layers]

    @cached_property
    def layer(self) -> list[str]:
        """The layer of each: what ends in a number, or a part of the model beside the layers."""
        found = ((_LAYER.search(name), name) for name in self.model.names)
        return [match[1] if match is not None else name.rpartition(".")[0] for match, name in found]

    @cached_property
    def child(self) -> list[str]:
        """The part of the model that each belongs to, below the steps that all names have in common."""
        level = self._common()
        return [".".join(name.split(".", level + 1)[: level + 1]) for name in self.model.names]

    def _common(self) -> int:
        names = self.model.names
        common = names[0].split(".")[:-1]
        for name in names:
            while common and not name.startswith(".".join(common) + "."):
                common.pop()
        return len(common)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A custom of filling groups.

    Attributes:
        groups: How many groups it makes, at least and at most.
        by_name: Whether a group lists its parameters by name rather than in the model's order.
    """

    reason: str
    keys: Callable[[Traits], Iterable[object]]
    groups: tuple[int, int] = (2, 2)
    by_name: bool = False

    def classes(self, traits: Traits) -> list[Class]:
        """Split a model, in the order in which the classes begin."""
        found: dict[object, list[int]] = {}
        for place, key in enumerate(self.keys(traits)):
            found.setdefault(key, []).append(place)
        if self.by_name:
            return [sorted(places, key=traits.model.names.__getitem__) for places in found.values()]
        return list(found.values())


_ORDER = "each in the model's order"
_MANY = (2, _MOST_GROUPS)
RECIPES = (
    Recipe(
        reason="a group for each parameter, in the model's order",
        keys=lambda traits: traits.model.names,
        groups=_MANY,
    ),
    Recipe(
        reason=f"tensors of two or more dimensions in one group and the others in another, {_ORDER}",
        keys=lambda traits: traits.flat,
    ),
    Recipe(
        reason=f"biases and tensors of one dimension without weight decay, {_ORDER}",
        keys=lambda traits: traits.spared,
    ),
    Recipe(reason=f"biases and norm layers without weight decay, {_ORDER}", keys=lambda traits: traits.norm),
    Recipe(
        reason=f"norm layers, and all that is called bias, without weight decay, {_ORDER}",
        keys=lambda traits: traits.named_norm,
    ),
    Recipe(reason=f"biases in a group of their own, {_ORDER}", keys=lambda traits: traits.bias),
    Recipe(
        reason=f"biases, norm weights and other weights in three groups, {_ORDER}",
        keys=lambda traits: zip(traits.bias, traits.spared, strict=True),
        groups=(3, 3),
    ),
    Recipe(
        reason="biases, norm layers and embeddings without weight decay, each group sorted by name",
        keys=lambda traits: traits.embedding,
        by_name=True,
    ),
    Recipe(
        reason="a group for each layer, in the model's order", keys=lambda traits: traits.layer, groups=_MANY
    ),
    Recipe(
        reason="two groups for each layer, with and without weight decay, in the model's order",
        keys=lambda traits: zip(traits.layer, traits.spared, strict=True),
        groups=_MANY,
    ),
    Recipe(
        reason="two groups for each depth, with and without weight decay, in the model's order",
        keys=lambda traits: zip(traits.depth, traits.excused, strict=True),
        groups=_MANY,
    ),
    Recipe(
        reason="two groups for each depth, the last norm with the head, in the model's order",
        keys=lambda traits: zip(traits.depth_with_end, traits.excused, strict=True),
        groups=_MANY,
    ),
    Recipe(
        reason=f"a group for each part of the model, {_ORDER}",
        keys=lambda traits: traits.child,
        groups=_MANY,
    ),
    Recipe(
        reason=f"two groups for each part of the model, with and without weight decay, {_ORDER}",
        keys=lambda traits: zip(traits.child, traits.spared, strict=True),
        groups=_MANY,
    ),
)


def _recipes(traits: Traits, sizes: Sequence[int]) -> Iterator[Recipe]:
    """Yield those that make so many groups, with those that set one part of this model, its head, apart."""
    yield from (recipe for recipe in RECIPES if recipe.groups[0] <= len(sizes) <= recipe.groups[1])
    if len(sizes) > _MOST_APART:
        return
    counts = Counter(traits.child)
    for child, count in counts.items() if 2 < len(counts) <= _MOST_CHILDREN else ():
        if _can_be_sum(count, sizes):
            yield from _apart(child)


def _can_be_sum(count: int, sizes: Sequence[int]) -> bool:
    return count in sizes or any(count == one + other for one, other in combinations(sizes, 2))


def _apart(child: str) -> Iterator[Recipe]:
    yield Recipe(
        reason=f"{child} apart from the rest, {_ORDER}",
        keys=lambda traits: [own == child for own in traits.child],
    )
    yield Recipe(
        reason=f"{child} apart from the rest, each with and without weight decay, {_ORDER}",
        keys=lambda traits: zip([own == child for own in traits.child], traits.spared, strict=True),
        groups=(3, 4),
    )


# --- groups against classes ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recognized:
    """What recipes say of an optimizer."""

    by_id: dict[Key, str]
    reason: str


def recognize(
    groups: Sequence[Sequence[Key]], shapes: Mapping[Key, Shape], model: Parameters, spend: Spend
) -> Recognized | None:
    """Name parameters by the recipes that fit; None where none does.

    Args:
        model: The parameters of a model, of which the groups hold all, or all but whole layers.
    """
    filled = [group for group in groups if group]
    listed = sum(map(len, filled))
    if not 1 < len(filled) <= _MOST_GROUPS or listed > len(model.names):
        return None
    match, ending = (_match, "") if listed == len(model.names) else (_match_fewer, _LEFT_OUT)
    found: Recognized | None = None
    traits = Traits(model)
    for recipe in _recipes(traits, [len(group) for group in filled]):
        if not spend(len(model.names)):
            return None
        names = match(filled, shapes, model, recipe.classes(traits), spend)
        if names is not None and found is None:
            found = Recognized(names, recipe.reason + ending)
        elif names is not None and found is not None:
            same = {key: name for key, name in found.by_id.items() if names[key] == name}
            found = Recognized(same, found.reason)
    return found


def _match(
    groups: list[Sequence[Key]],
    shapes: Mapping[Key, Shape],
    model: Parameters,
    classes: list[Class],
    spend: Spend,
) -> dict[Key, str] | None:
    """Name all parameters by the only way in which each group is one class, or return None."""
    if sorted(map(len, groups)) != sorted(map(len, classes)):
        return None

    def fits(group: Sequence[Key], places: Class) -> bool:
        return len(group) == len(places) and all(
            shapes.get(key, model.shapes[place]) == model.shapes[place]
            for key, place in zip(group, places, strict=True)
        )

    order = _order(groups, classes, fits, spend)
    if order is None:
        return None
    return {
        key: model.names[place]
        for group, places in zip(groups, order, strict=True)
        for key, place in zip(group, places, strict=True)
    }


def _match_fewer(
    groups: list[Sequence[Key]],
    shapes: Mapping[Key, Shape],
    model: Parameters,
    classes: list[Class],
    spend: Spend,
) -> dict[Key, str] | None:
    """Name all parameters by the only way in which each group is one class without some whole layers."""
    if len(groups) != len(classes) or len(groups) > _MOST_APART:
        return None
    ways = [names_of_layers(groups, shapes, way, model, spend) for way in (classes, classes[::-1])]
    found = [names for names in ways if names is not None]
    return found[0] if len(found) == 1 else None


Fits = Callable[[Sequence[Key], Class], bool]


def _order(groups: list[Sequence[Key]], classes: list[Class], fits: Fits, spend: Spend) -> list[Class] | None:
    """Return the class of each group: in the model's order, backwards, or as only the shapes allow."""
    ways = [way for way in (classes, classes[::-1]) if all(map(fits, groups, way))]
    if len(ways) == 1:
        return ways[0]
    if ways or not spend(len(groups) * len(classes)):
        return None
    fitting = [[places for places in classes if fits(group, places)] for group in groups]
    order = [found[0] for found in fitting if len(found) == 1]
    is_clear = len(order) == len(groups) and len({places[0] for places in order}) == len(order)
    return order if is_clear else None
