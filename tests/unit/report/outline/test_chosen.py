from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.model.checkpoint import Tensor, ValueRow
from inspector.records import replace
from inspector.report.outline import chosen
from inspector.report.outline.chosen import last_below, total_of
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import Tree, build_tree
from tests.unit.report.outline.test_sums import VIEWS, below, named
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
    rows = [tensor("m", f"t{place}", nbytes=4, device=f"cuda:{place % 2}") for place in range(9)]
    tree = build_tree(checkpoint(*rows, value("c")), {})
    listed = replace(tree, nodes=tuple(tree.nodes))  # whatever holds the rows, the sum is the same
    picked = [tree.tensor_nodes[place] for place in (0, 3, 5, 8)]
    made: list[int] = []
    monkeypatch.setattr(Nodes, "__getitem__", lambda _nodes, place: made.append(place))
    total = total_of(tree, picked)
    assert not made
    assert total == total_of(listed, picked)
    assert (total.rows, total.tensors, total.nbytes, total.devices) == (4, 4, 16, ("cuda:0", "cuda:1"))


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["tensor", "tensor", "tensor", "value", "sparse"]),
        st.sampled_from(["cpu", "cpu", "cpu", "cuda:0", "cuda:1"]),
        st.sampled_from(["parameter", "buffer"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.data())
def test_tensors_that_are_added_up_at_once_come_to_what_they_are_one_by_one(kinds, data) -> None:
    rows: list[Tensor | ValueRow] = []
    for place, (group, kind, device, role, nbytes) in enumerate(kinds):
        name, facts = f"t{place}", {"device": device, "role": role, "nbytes": nbytes}
        if kind == "value":
            rows.append(value(group, name))
        elif kind == "tensor":
            rows.append(tensor(group, name, **facts, shape=(3, 2), dtype="int32"))
        else:
            index = sum(isinstance(row, Tensor) for row in rows)
            rows.append(tensor(group, name, **facts))
            rows += [tensor(group, name, part, **facts, part_of=index) for part in ("indices", "values")]
    tree = build_tree(checkpoint(*rows), {})
    listed = replace(tree, nodes=tuple(tree.nodes))
    picked = data.draw(st.lists(st.integers(1, len(tree.nodes) - 1), min_size=1, unique=True))
    assert total_of(tree, picked) == total_of(listed, picked)
    tensors = [id_ for id_ in picked if tree.nodes[id_].kind == "tensor"]
    assert total_of(tree, tensors) == total_of(listed, tensors)


def test_a_million_tensors_are_not_added_up_one_by_one() -> None:
    count = 400
    rows = [tensor("m", f"t{place}", device=f"cuda:{place * 3 // count}") for place in range(count)]
    tree = build_tree(checkpoint(*rows), {})
    assert count_steps(lambda: total_of(tree, tree.tensor_nodes)) < 4 * count
    turns = [tensor("m", f"t{place}", device=f"cuda:{place % 2}") for place in range(count)]
    tree = build_tree(checkpoint(*turns), {})
    total = total_of(tree, tree.tensor_nodes)
    assert (total.tensors, total.nbytes, total.devices) == (count, 16 * count, ("cuda:0", "cuda:1"))


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


def test_a_branch_ends_with_its_last_row() -> None:
    tree = build_tree(checkpoint(tensor("a", "b.x"), tensor("a", "b.y"), tensor("c")), {})
    assert last_below(tree.nodes, 1) == named(tree, "a/b").children[-1] == 3
    assert last_below(tree.nodes, 4) == 4
