from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.report.outline import chosen
from inspector.report.outline.chosen import total_of
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import Tree, build_tree
from tests.unit.report.outline.test_sums import VIEWS, below
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.work import count_steps


def views_tree(views: list[tuple]) -> Tree:
    rows = [
        tensor(
            *way, f"t{place}", storage=key, storage_offset=at, shape=(count,), nbytes=2 * count, role=role,
            dtype="bfloat16", device=f"cuda:{key}",
        )
        for place, (way, key, at, count, role) in enumerate(views)
    ]  # fmt: skip
    return build_tree(checkpoint(*rows, *(storage(key, nbytes=24, tensors=9) for key in "01")), {})


@given(VIEWS, st.data())
def test_what_several_rows_share_and_what_is_below_two_of_them_counts_once(views, data) -> None:
    tree = views_tree(views)
    if len(tree.nodes) == 1:
        return
    picked = data.draw(st.lists(st.integers(1, len(tree.nodes) - 1), min_size=1, max_size=6, unique=True))
    total = total_of(tree, picked)
    leaves = {
        leaf.index
        for id_ in picked
        for leaf in (tree.nodes[id_], *below(tree, tree.nodes[id_]))
        if leaf.kind == "tensor"
    }
    elements: set[tuple[str, int]] = set()
    parameters: set[tuple[str, int]] = set()
    for index in leaves:
        _, key, at, count, role = views[index]
        covered = {(key, element) for element in range(at, at + count)}
        elements |= covered
        parameters |= covered if role == "parameter" else set()
    assert (total.rows, total.tensors, total.nbytes) == (len(picked), len(leaves), 2 * len(elements))
    assert total.parameters == len(parameters)
    assert total.is_exact


def test_devices_stand_in_the_order_of_their_bytes() -> None:
    rows = checkpoint(tensor("a", device="cpu", nbytes=4), tensor("b", device="cuda:0", nbytes=8), value("c"))
    tree = build_tree(rows, {})
    assert total_of(tree, [1, 2, 3]).devices == ("cuda:0", "cpu")
    assert total_of(tree, [3]).tensors == 0


def test_of_many_tensors_no_rows_are_made(monkeypatch) -> None:
    count = 400
    rows = [tensor("m", f"t{place}", nbytes=4, device=f"cuda:{place % 2}") for place in range(count)]
    tree = build_tree(checkpoint(*rows, value("c")), {})
    picked = [*tree.tensor_nodes[::3], *tree.value_nodes]
    made: list[int] = []
    monkeypatch.setattr(Nodes, "__getitem__", lambda _nodes, place: made.append(place))
    assert count_steps(lambda: total_of(tree, picked)) < 40 * count
    total = total_of(tree, picked)
    assert not made
    assert (total.rows, total.tensors, total.nbytes, total.devices) == (135, 134, 536, ("cuda:0", "cuda:1"))


def test_a_million_tensors_are_not_added_up_one_by_one() -> None:
    count = 400
    rows = [tensor("m", f"t{place}", device=f"cuda:{place * 3 // count}") for place in range(count)]
    tree = build_tree(checkpoint(*rows), {})
    steps = count_steps(lambda: total_of(tree, tree.tensor_nodes))
    assert steps < 4 * count


def test_a_sparse_tensor_is_one_with_its_parts_and_none_of_them_alone() -> None:
    parts = [tensor("s", part, nbytes=4, part_of=0) for part in ("indices", "values")]
    tree = build_tree(checkpoint(tensor("s", nbytes=100, storage=None), *parts), {})
    whole, first, _ = tree.tensor_nodes
    assert (total_of(tree, [whole, first]).tensors, total_of(tree, [whole]).nbytes) == (1, 8)
    assert (total_of(tree, [first]).tensors, total_of(tree, [first]).nbytes) == (1, 4)


def test_a_device_between_the_rows_that_has_none_of_them_is_not_named() -> None:
    rows = [tensor(f"t{place}", device="cuda:0" if place == 4 else "cpu") for place in range(9)]
    tree = build_tree(checkpoint(*rows), {})
    total = total_of(tree, [id_ for id_ in tree.tensor_nodes if tree.nodes[id_].index != 4])
    assert (total.nbytes, total.devices) == (128, ("cpu",))


def test_a_file_that_shares_too_much_is_not_searched_for_all_of_it(monkeypatch) -> None:
    monkeypatch.setattr(chosen, "_MOST_VIEWS", 3)
    shared = {"storage": "0", "nbytes": 16}
    rows = checkpoint(*(tensor(f"t{place}", **shared) for place in range(4)), storage("0", tensors=4))
    total = total_of(build_tree(rows, {}), [1, 2])
    assert (total.nbytes, total.is_exact) == (32, False)
