from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.model.checkpoint import Checkpoint
from inspector.report.tree import BUCKET_ROWS, Node, Tree, build_tree
from tests.sweep import table
from tests.unit.report.rows import checkpoint, is_harmless, optimizer, tensor, value
from tests.work import count_steps


def named(tree: Tree, *names: str) -> Node:
    """Follow names down from the root."""
    node = tree.nodes[0]
    for name in names:
        node = next(tree.nodes[child] for child in node.children if tree.nodes[child].name == name)
    return node


def test_rows_say_what_their_columns_show() -> None:
    tree = build_tree(
        checkpoint(
            tensor("m", "a.weight", device="cuda:1", shape=(2, 3), dtype="bfloat16", nbytes=12),
            tensor("m", "a.bias", shape=(), nbytes=2),
            value("m", "epoch", type="int", text="3"),
        ),
        {"cuda:1": 0},
    )
    weight, epoch, group = named(tree, "m", "a", "weight"), named(tree, "m", "epoch"), named(tree, "m", "a")
    assert (weight.kind, weight.shape_text, weight.type_text) == ("tensor", "2 × 3", "bfloat16")
    assert (weight.device_text, weight.devices, weight.tensors) == ("cuda:1", (("cuda:1", 12),), 1)
    assert (epoch.kind, epoch.type_text, epoch.text, epoch.tensors) == ("value", "int", "3", 0)
    assert (group.kind, group.tensors, group.nbytes) == ("group", 2, 14)
    assert group.devices == (("cuda:1", 12), ("cpu", 2))
    assert group.device_text == "cuda:1, cpu"
    assert named(tree, "m", "a", "bias").shape_text == "scalar"
    assert tree.nodes[0].devices == group.devices
    assert tree.colors == {"cuda:1": 0}
    assert [tree.nodes[id_].name for id_ in (*tree.tensor_nodes, *tree.value_nodes)] == [
        "weight",
        "bias",
        "epoch",
    ]


def test_a_group_without_tensors_has_no_devices() -> None:
    group = named(build_tree(checkpoint(value("a", "b")), {}), "a")
    assert (group.devices, group.device_text, group.nbytes, group.tensors) == ((), "", 0, 0)


def test_of_many_devices_the_first_are_named() -> None:
    rows = [tensor("m", str(index), device=f"cuda:{index}") for index in range(8)]
    tree = build_tree(checkpoint(*rows, tensor("n", "x"), tensor("n", "y", device="mps")), {})
    assert named(tree, "m").device_text == "cuda:0-7"
    assert named(tree, "n").device_text == "mps, cpu"
    assert len(named(tree, "m").devices) == 8


def test_what_a_file_calls_a_device_is_shown_harmless() -> None:
    tree = build_tree(checkpoint(tensor("m", "x", device="cu\u202eda\n"), tensor("n", device="x" * 900)), {})
    assert named(tree, "m", "x").device_text == named(tree, "m").device_text == r"cu\u202eda\u000a"
    assert len(named(tree, "n").device_text) == 40


def test_a_composite_takes_what_its_parts_take() -> None:
    tree = build_tree(
        checkpoint(
            tensor("g", "sparse", nbytes=1000, storage=None),
            tensor("g", "sparse", "indices", nbytes=8, part_of=0, storage="0"),
            tensor("g", "sparse", "values", nbytes=4, part_of=0, storage="1", device="cuda:0"),
            tensor("g", "quantized", nbytes=10, storage="2"),
            tensor("g", "quantized", "scales", nbytes=5, part_of=3, storage="3"),
        ),
        {},
    )
    sparse, quantized = named(tree, "g", "sparse"), named(tree, "g", "quantized")
    assert (sparse.kind, sparse.nbytes, sparse.tensors) == ("tensor", 12, 1)
    assert (quantized.nbytes, quantized.tensors) == (15, 1)
    assert named(tree, "g").devices == (("cpu", 8 + 10 + 5), ("cuda:0", 4))
    assert (named(tree, "g").nbytes, named(tree, "g").tensors) == (27, 2)


def test_a_very_long_list_is_shown_in_slices() -> None:
    count = 2 * BUCKET_ROWS + 1
    rows = [tensor("list", index, nbytes=2) for index in range(count)]
    tree = build_tree(checkpoint(*rows, tensor("list", "named", "x")), {})
    group = named(tree, "list")
    buckets = [tree.nodes[id_] for id_ in group.children]
    assert [bucket.kind for bucket in buckets] == ["bucket"] * 3
    assert [len(bucket.children) for bucket in buckets] == [1000, 1000, 2]
    assert buckets[0].name == "0 \u2026 999"
    assert buckets[2].name == "2,000 \u2026 2,001"
    assert (buckets[1].tensors, buckets[1].nbytes, buckets[1].device_text) == (1000, 2000, "cpu")
    assert group.tensors == count + 1


def test_a_slice_may_begin_with_a_group() -> None:
    rows = [tensor("list", index, "x") for index in range(2 * BUCKET_ROWS + 1)]
    tree = build_tree(checkpoint(*rows), {})
    assert tree.nodes[named(tree, "list").children[1]].name == "1,000 \u2026 1,999"


@table("count", [0, 1, 2 * BUCKET_ROWS])
def test_a_shorter_list_is_shown_as_it_is(count: int) -> None:
    tree = build_tree(checkpoint(*(tensor(index) for index in range(count))), {})
    assert len(tree.nodes[0].children) == count


def test_the_collector_goes_on_afterwards() -> None:
    assert gc.isenabled()
    build_tree(checkpoint(), {})
    assert gc.isenabled()


# ------------------------------------------------------------------------------- whatever the paths are

KEYS = st.one_of(
    st.sampled_from(["a", "b", "a.b", "state", "._modules", "._parameters", "", "\u202e", "x/y", "~"]),
    st.text(max_size=6),
    st.integers(min_value=0, max_value=3),
)
DEVICES = st.sampled_from(["cpu", "cuda:0", "cuda:1", "meta", "odd\n"])


@st.composite
def checkpoints(draw: st.DrawFn) -> tuple[object, ...]:
    rows: list[object] = []
    tensors = 0
    for keys in draw(st.lists(st.lists(KEYS, max_size=5), max_size=30)):
        if draw(st.booleans()):
            rows.append(value(*keys, text=draw(st.sampled_from(["1", "{}", "None"]))))
            continue
        of = draw(st.none() | st.integers(0, tensors - 1)) if tensors else None
        slot = draw(st.none() | st.sampled_from(["m", "a/b"]))
        rows.append(
            tensor(
                *keys,
                device=draw(DEVICES),
                nbytes=draw(st.integers(0, 9)),
                storage=draw(st.none() | st.just("0")),
                part_of=of,
                slot=slot,
                parameter=draw(st.none() | st.just("p.q")) if slot else None,
            )
        )
        tensors += 1
    rows += [optimizer(*keys) for keys in draw(st.lists(st.lists(KEYS, max_size=2), max_size=2))]
    return checkpoint(*rows)


@pytest.mark.wide
@given(checkpoints())
def test_every_tensor_and_value_is_there_exactly_once(rows) -> None:
    tree = build_tree(rows, {})
    shown = [(node.kind, node.index) for node in tree.nodes if node.index >= 0]
    hidden = [index for index, id_ in enumerate(tree.value_nodes) if id_ < 0]
    assert sorted(shown) == sorted(
        [("tensor", index) for index in range(len(rows.tensors))]
        + [("value", index) for index in range(len(rows.values)) if index not in hidden]
    )
    assert all(rows.values[index].keys[-1] in {"._modules", "._parameters"} for index in hidden)
    assert all(tree.nodes[id_].index == index for index, id_ in enumerate(tree.tensor_nodes))


@pytest.mark.wide
@given(checkpoints())
def test_ids_stand_in_the_order_of_display_and_links_agree(rows) -> None:
    tree = build_tree(rows, {})
    order, stack = [], [0]
    while stack:
        id_ = stack.pop()
        order.append(id_)
        children = tree.nodes[id_].children
        assert [tree.nodes[child].parent for child in children] == [id_] * len(children)
        assert [tree.nodes[child].row for child in children] == list(range(len(children)))
        stack.extend(reversed(children))
    assert order == list(range(len(tree.nodes)))


@pytest.mark.wide
@given(checkpoints())
def test_sums_are_right_and_texts_harmless(rows) -> None:
    tree = build_tree(rows, {})
    parents = {tensor.part_of for tensor in rows.tensors}
    counted = [
        tensor.nbytes
        for index, tensor in enumerate(rows.tensors)
        if index not in parents or tensor.storage is not None
    ]
    root = tree.nodes[0]
    assert root.nbytes == sum(counted) == sum(nbytes for _, nbytes in root.devices)
    assert root.tensors == sum(tensor.part_of is None for tensor in rows.tensors)
    for node in tree.nodes[1:]:
        assert is_harmless(node.name + node.device_text)
        below = [tree.nodes[child] for child in node.children]
        if node.kind == "group":
            assert node.nbytes == sum(child.nbytes for child in below)
            assert node.tensors == sum(child.tensors for child in below)


def test_many_devices_share_a_sum_at_each_level() -> None:
    def many(devices: int, depth: int) -> Checkpoint:
        above = [f"g{level}" for level in range(depth)]
        return checkpoint(*(tensor(*above, f"t{at}", device=f"cuda:{at}", nbytes=1) for at in range(devices)))

    (root, *_) = build_tree(many(100, 3), {}).nodes
    assert len(root.devices) == 65
    assert root.devices[0] == ("other devices", 36)
    assert sum(nbytes for _, nbytes in root.devices) == root.nbytes == 100
    assert root.device_text == "cuda:36-99, other devices"
    made = many(500, 1), many(500, 100)
    flat, deep = (count_steps(lambda one=one: build_tree(one, {})) for one in made)
    assert (deep - flat) / 99 < 65 * 40


def test_as_many_devices_as_machines_have_are_summed_one_by_one() -> None:
    (root, *_) = build_tree(
        checkpoint(*(tensor(f"t{at}", device=f"cuda:{at}") for at in range(64))), {}
    ).nodes
    assert len(root.devices) == 64
    assert root.device_text == "cuda:0-63"
    odd = build_tree(checkpoint(*(tensor(f"t{at}", device=f"cuda:{2 * at}") for at in range(70))), {})
    assert odd.nodes[0].device_text.endswith(", +63 or more")


def test_a_number_of_a_row_has_six_digits_and_its_name_is_as_it_is() -> None:
    tree = build_tree(checkpoint(value("loss/train", type="float", text="5.813959432394e-06")), {})
    row = tree.nodes[1]
    assert (row.name, row.text, row.path) == ("loss/train", "5.81396e-06", "loss~1train")
