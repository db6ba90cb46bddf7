"""The order in which a model registers its parameters, where the file that holds them sorted their names.

safetensors sorts (`serialize` of `safetensors/src/tensor.rs`), while optimizers number parameters in the
order of `Module.parameters`: a module's own, then those of its parts, as they were registered. So names that
share a beginning stand together, numbers count up, and a weight comes before its bias. What is left open is
the order of parts with names: for models of transformers `orders.json` has it; else all orders of a few parts
are returned, and the shapes of the optimizer's slots decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from math import prod
from pathlib import Path

from inspector.model.checkpoint import Key
from inspector.model.optimizer.naming import Names, Owned, name_parameters
from inspector.model.optimizer.parameters import Parameters
from inspector.records import replace

_MOST_PARAMETERS = 20_000
_MOST_ORDERS = 24
_MOST_PARTS = 4
_EVERYWHERE = (
    ("weight", "bias"),
    ("base_layer", "lora_A", "lora_B"),
    ("lora_embedding_A", "lora_embedding_B"),
)

Siblings = tuple[str, ...]
"""Names below one beginning, sorted."""
Tree = dict[str, "Tree"]


def registered_orders(model: Parameters, kind: str) -> list[Parameters]:
    """Return a model in each order in which it can have registered its parameters; none where too many.

    Args:
        model: Its parameters in any order.
        kind: The type of model as transformers calls it in `config.json`, or nothing.
    """
    if len(model.names) > _MOST_PARAMETERS:
        return []
    tree: Tree = {}
    for name in model.names:
        node = tree
        for step in name.split("."):
            node = node.setdefault(step, {})
    rows = (*_EVERYWHERE, *_rows_of(kind))
    options = {siblings: _orders_of(siblings, rows) for siblings in _siblings(tree)}
    if prod(map(len, options.values())) > _MOST_ORDERS:
        return []
    ways = ({*zip(options, way, strict=True)} for way in product(*options.values()))
    return [_sorted(model, tree, dict(way)) for way in ways]


def _rows_of(kind: str) -> list[Siblings]:
    text = Path(__file__).with_name("orders.json").read_text(encoding="utf-8")
    return [tuple(row.split()) for row in json.loads(text)["types"].get(kind, ())]


def _siblings(tree: Tree) -> Iterator[Siblings]:
    seen: set[Siblings] = set()
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        nodes += node.values()
        names = tuple(sorted(node))
        if len(names) > 1 and names not in seen:
            seen.add(names)
            yield names


def _orders_of(names: Siblings, rows: Sequence[Siblings]) -> list[Siblings]:
    """Return the orders that names can have; none where nothing is known of so many."""
    if all(name.isdecimal() and len(name) < 9 for name in names):
        return [tuple(sorted(names, key=int))]
    told = [row for row in rows if all(name in row for name in names)]
    if told:
        return list(dict.fromkeys(tuple(name for name in row if name in names) for row in told))
    return list(permutations(names)) if len(names) <= _MOST_PARTS else [() for _ in range(_MOST_ORDERS + 1)]


def _sorted(model: Parameters, tree: Tree, order: Mapping[Siblings, Siblings]) -> Parameters:
    ranks = {siblings: {name: rank for rank, name in enumerate(names)} for siblings, names in order.items()}

    def key(place: int) -> list[int]:
        node, found = tree, []
        for step in model.names[place].split("."):
            names = tuple(sorted(node)) if len(node) > 1 else ()
            found.append(ranks[names][step] if names else 0)
            node = node[step]
        return found

    places = sorted(range(len(model.names)), key=key)
    return replace(
        model,
        is_ordered=True,
        names=[model.names[place] for place in places],
        shapes=[model.shapes[place] for place in places],
        views=(),
    )


def name_in_any_order(owned: Sequence[Owned], ways: Sequence[Sequence[Parameters]]) -> list[Names]:
    """Name the parameters of all optimizers by models whose order is not known: as all orders that fit say.

    Args:
        ways: The models, in each order in which they may have registered their parameters.
    """
    outcomes = [name_parameters(owned, models) for models in ways]
    return [_common(names) for names in zip(*outcomes, strict=True)]


def _common(outcomes: Sequence[Names]) -> Names:
    """Return what the orders say that explain most, without what another that tells anything contradicts."""
    telling = sorted((names for names in outcomes if names.by_id), key=lambda names: -len(names.by_id))
    if not telling:
        return outcomes[0]
    first, *others = telling
    named = first.by_id.items()
    same = {key: name for key, name in named if all(_agrees(names, first, key, name) for names in others)}
    if same == first.by_id:
        return first
    detail = "The file beside it does not have the model's order, and several orders fit."
    return Names(same, "partial" if same else "unknown", detail, first.models if same else ())


def _agrees(names: Names, first: Names, key: Key, name: str) -> bool:
    """Return whether an outcome says the same; one that explains less may say nothing."""
    silent = None if len(names.by_id) == len(first.by_id) else name
    return names.by_id.get(key, silent) == name
