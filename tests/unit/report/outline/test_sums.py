from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from inspector.report.details import look_up
from inspector.report.jsonable import row_document
from inspector.report.outline.chosen import total_of
from inspector.report.outline.node import Node
from inspector.report.outline.nodes import parameters_text, quantities_text
from inspector.report.outline.strip import strip_of
from inspector.report.tree import Tree, build_tree
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.work import growth


def named(tree: Tree, *names: str) -> Node:
    node = tree.nodes[0]
    for name in names:
        node = next(tree.nodes[child] for child in node.children if tree.nodes[child].name == name)
    return node


def below(tree: Tree, node: Node) -> Iterator[Node]:
    for child in node.children:
        yield tree.nodes[child]
        yield from below(tree, tree.nodes[child])


VIEWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
        st.sampled_from(["0", "1"]),
        st.integers(0, 6),
        st.integers(0, 6),
        st.sampled_from(["parameter", "parameter", "buffer", "optimizer"]),
    ),
    max_size=9,
)


@given(VIEWS)
def test_each_byte_and_each_parameter_of_a_group_counts_once(views: list[tuple]) -> None:
    rows = [
        tensor(
            *way, f"t{place}", storage=key, storage_offset=at, shape=(count,), nbytes=2 * count, role=role,
            dtype="bfloat16", device=f"cuda:{key}",
        )
        for place, (way, key, at, count, role) in enumerate(views)
    ]  # fmt: skip
    stored = [storage(key, nbytes=24, tensors=9) for key in "01"]
    tree = build_tree(checkpoint(*rows, *stored), {})
    for node in tree.nodes:
        if node.kind != "group":
            continue
        elements: set[tuple[str, int]] = set()
        parameters: set[tuple[str, int]] = set()
        for leaf in below(tree, node):
            if leaf.kind == "tensor":
                _, key, at, count, role = views[leaf.index]
                covered = {(key, element) for element in range(at, at + count)}
                elements |= covered
                parameters |= covered if role == "parameter" else set()
        assert node.nbytes == 2 * len(elements) == sum(nbytes for _, nbytes in node.devices)
        assert node.parameters == len(parameters)


def test_a_group_of_values_between_tensors_of_one_device_has_no_device() -> None:
    between = [value("scheduler", "last_epoch"), value("scaler", "step"), value("config", "depth")]
    empty = tensor("empty", "w", device="cpu", shape=(0,), nbytes=0)
    first, last = tensor("model", "w", device="cpu"), tensor("ema", "w", device="cpu")
    tree = build_tree(checkpoint(first, *between, empty, last), {})
    found = {node.name: (node.device_text, node.type_text) for node in tree.nodes if node.kind == "group"}
    found.pop(tree.nodes[0].name)
    of_values = dict.fromkeys(("scheduler", "scaler", "config"), ("", ""))
    assert found == of_values | dict.fromkeys(("model", "empty", "ema"), ("cpu", "1 tensor"))


def test_tied_weights_count_once_where_both_stand() -> None:
    shared = {"storage": "0", "nbytes": 48, "shape": (3, 4), "stride": (4, 1)}
    rows = checkpoint(
        tensor("m", "emb.weight", **shared),
        tensor("m", "fc.weight", nbytes=16, storage="1"),
        tensor("m", "head.weight", **shared),
        tensor("o", "state", 0, "exp_avg", role="optimizer", nbytes=48, shape=(3, 4)),
        tensor("m", "bn.running_mean", role="buffer"),
        storage("0", nbytes=48, tensors=2),
    )
    tree = build_tree(rows, {})
    assert (named(tree, "m").nbytes, named(tree, "m").parameters) == (48 + 16 + 16, 12 + 4)
    assert named(tree, "m", "head").nbytes == 48
    assert (named(tree, "m").shape_text, named(tree, "m").type_text) == ("16 params", "4 tensors")
    assert named(tree, "o/state/0").shape_text == ""
    assert tree.nodes[0].parameters == 16


def test_packed_weights_are_named_and_not_counted() -> None:
    packed = {"role": "buffer", "dtype": "int32", "shape": (8, 8)}
    rows = checkpoint(
        tensor("m", "q.qweight", **packed),
        tensor("m", "q.norm"),
        tensor("n", "q", **packed),
        tensor("n", "index", role="buffer", dtype="int64", shape=(8, 8)),
        tensor("n", "mask", role="buffer", dtype="uint8", shape=(1, 8, 8)),
    )
    tree = build_tree(rows, {})
    assert named(tree, "m/q").shape_text == parameters_text(named(tree, "m/q")) == "4 params + 1 int"
    assert named(tree, "n").shape_text == "1 int weight"
    assert quantities_text(1, 0) == "1 param"


def test_a_packed_parameter_that_is_tied_counts_once() -> None:
    """Of two elements in a byte, the bytes say nothing."""
    half = {"storage": "0", "nbytes": 2, "shape": (4,), "dtype": "quint4x2"}
    tree = build_tree(checkpoint(tensor("a", **half), tensor("b", **half), storage("0", tensors=2)), {})
    assert tree.nodes[0].parameters == 4


def test_a_part_that_stands_nowhere_counts_nowhere() -> None:
    rows = checkpoint(tensor("a", part_of=1), tensor("b", part_of=0), tensor("c"))
    tree = build_tree(rows, {})
    assert list(tree.tensor_nodes[:2]) == [-1, -1]
    assert tree.nodes[0].parameters == 4


def test_a_storage_that_all_rows_share_is_no_more_work_than_rows() -> None:
    def prepare(count: int):
        way = [f"g{level}" for level in range(20)]
        rows = [tensor(*way[: place % 20], f"t{place}", storage="0") for place in range(count)]
        made = checkpoint(*rows, storage("0", tensors=count))
        return lambda: build_tree(made, {})

    assert growth(prepare, 200, 800) < 1.3


def test_a_shape_without_end_is_counted_and_not_written_out() -> None:
    endless = {"shape": (1 << 62,) * 300, "nbytes": (1 << 62) ** 300}
    both = tensor("m", "a", **endless), tensor("m", "b", **endless, storage="0")
    rows = checkpoint(*both, tensor("m", "c", storage="0"), storage("0", tensors=2))
    tree = build_tree(rows, {})
    assert named(tree, "m").shape_text == "over 10^30 params"
    assert total_of(tree, [1]).parameters > 10**4300
    assert strip_of(rows, tree, look_up(rows), [1]).facts[1:3] == ("over 10^30 params", "over 10^30 B")
    assert row_document(rows, tree.nodes[1])["parameters"] is None
