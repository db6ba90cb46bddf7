from __future__ import annotations

import random

import pytest

from inspector.model.checkpoint import ValueRow
from inspector.records import replace
from inspector.remap.forms import DROPPED, KEPT, NEVER, Form
from inspector.remap.preview import preview_form
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import BUCKET_ROWS
from inspector.session.document import Document
from inspector.session.export import choosing
from inspector.session.export.choosing import bound_rows, boxes_of, choose, join_patterns, split_patterns
from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of

ROWS = (
    "epoch",
    "model/layer1.0.weight",
    "model/layer1.0.bias",
    "model/layer1.1.weight",
    "model/layer10.weight",
    "model/layer2",
    "model/layer2.a",
    "optimizer/state/0/exp_avg",
    "optimizer/state/0/step",
    "optimizer/state/1/exp_avg",
    "odd/a*b",
    "odd/a b",
    "odd/axb",
    'odd/"q',
    "odd/..",
    "odd/.hidden.x",
)


def document(paths: tuple[str, ...] = ROWS) -> Document:
    rows: list[object] = []
    for number, path in enumerate(paths):
        steps = path.split("/")
        rows += [tensor(*steps, storage=str(number)), storage(str(number), "cpu", 4)]
    return document_of(checkpoint(*rows))


def known_by(row) -> tuple[str, ...]:
    return (row.path,)


def node_of(shown: Document, path: str) -> int:
    rows = [row.path for row in shown.checkpoint.tensors]
    return shown.tree.tensor_nodes[rows.index(path)]


def group_of(shown: Document, path: str, up: int = 1) -> int:
    node = node_of(shown, path)
    for _ in range(up):
        node = shown.tree.nodes[node].parent
    return node


def left_out(shown: Document, patterns: tuple[str, ...]) -> set[str]:
    fates = preview_form(shown.checkpoint, Form(exclude=patterns)).fates
    return {row.path for row, fate in zip(shown.checkpoint.tensors, fates, strict=True) if fate == DROPPED}


# --- patterns as text ---------------------------------------------------------------------------------------


@table(
    ("text", "patterns"),
    [
        ("", ()),
        ("  a/**   b ", ("a/**", "b")),
        ('"a b/c" d', ("a b/c", "d")),
        ('"say ""hi""" x', ('say "hi"', "x")),
        ('"not closed yet', ("not closed yet",)),
        ('""', ()),
        ('a"b a"b', ('a"b',)),
    ],
)
def test_a_line_is_split_into_patterns(text, patterns) -> None:
    assert split_patterns(text) == patterns
    assert split_patterns(join_patterns(patterns)) == patterns


# --- boxes --------------------------------------------------------------------------------------------------


def test_boxes_show_what_becomes_of_the_rows_below() -> None:
    shown = document()
    paths = [row.path for row in shown.checkpoint.tensors]
    gone = {"epoch", "model/layer1.0.bias", "optimizer/state/0/exp_avg", "optimizer/state/0/step"}
    fates = bytes(DROPPED if path in gone else NEVER if path.startswith("odd") else KEPT for path in paths)
    boxes = boxes_of(shown.tree, fates, b"")
    assert boxes.states[node_of(shown, "epoch")] == OUT
    assert boxes.states[group_of(shown, "model/layer1.0.bias")] == PARTLY
    assert boxes.states[group_of(shown, "optimizer/state/0/step")] == OUT
    assert boxes.states[group_of(shown, "optimizer/state/0/step", 2)] == PARTLY
    assert boxes.states[group_of(shown, "model/layer1.1.weight")] == WRITTEN
    assert boxes.states[group_of(shown, "odd/a b")] == NO_CHOICE


def test_values_have_boxes_and_parts_have_none() -> None:
    rows = checkpoint(
        tensor("sparse", layout="sparse_coo", storage=None),
        tensor("sparse", "indices", storage="0", part_of=0),
        tensor("sparse", "values", storage="1", part_of=0),
        value("epoch", text="3"),
        value("net", "._backward_hooks", text="{}"),  # not shown
    )
    shown = document_of(rows)
    boxes = boxes_of(shown.tree, bytes([KEPT, DROPPED, KEPT]), bytes([DROPPED, KEPT]))
    assert boxes.states[shown.tree.tensor_nodes[0]] == WRITTEN
    assert boxes.states[shown.tree.tensor_nodes[1]] == NO_CHOICE
    assert boxes.states[shown.tree.value_nodes[0]] == OUT
    assert choose(shown, known_by, (), [shown.tree.tensor_nodes[1]], written=False) == ()
    assert choose(shown, known_by, (), [shown.tree.value_nodes[0]], written=False) == ("epoch",)
    assert isinstance(rows.values[0], ValueRow)


def test_boxes_make_no_rows_and_slices_of_parts_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 * BUCKET_ROWS + 2
    parts = [tensor("w", f"part{number}", storage="0", part_of=0) for number in range(count)]
    shown = document_of(checkpoint(tensor("w", storage=None), *parts, storage("0", "cpu", 4 * count)))
    tree = shown.tree
    assert choosing._is_part(tree, tree.tensor_nodes[1])
    assert tree.nodes[tree.nodes[tree.tensor_nodes[1]].parent].kind == "bucket"
    monkeypatch.setattr(Nodes, "_make", None)
    states = boxes_of(tree, bytes([DROPPED] + [KEPT] * count), b"").states
    assert states[tree.tensor_nodes[0]] == OUT
    assert {states[node] for node in tree.tensor_nodes[1:]} == {NO_CHOICE}


# --- a click ------------------------------------------------------------------------------------------------


def test_a_click_says_in_few_patterns_what_is_left_out() -> None:
    shown = document()
    asked = {
        ("model/layer1.0.bias", 0): ("model/layer1.0.bias",),
        ("model/layer1.0.bias", 1): ("model/layer1.0.*",),
        ("model/layer1.0.bias", 2): ("model/layer1.*",),
        ("model/layer1.0.bias", 3): ("model",),
        ("optimizer/state/0/step", 1): ("optimizer/state/0",),
        ("optimizer/state/1/exp_avg", 1): ("optimizer/state/1",),
        ("model/layer2.a", 1): ("model/layer2.a",),
        ("odd/a*b", 0): ("odd/a[*]b",),
        ("epoch", 1): ("**",),
    }
    found = {
        (path, up): choose(shown, known_by, (), [group_of(shown, path, up)], written=False)
        for path, up in asked
    }
    assert found == asked


def test_a_click_leaves_other_patterns_alone_and_takes_apart_those_it_is_about() -> None:
    shown = document()
    layer = group_of(shown, "model/layer1.0.bias", 2)
    typed = ("optimizer/**", "model/layer1.0.bias", "**/exp_avg", "typo")
    assert choose(shown, known_by, typed, [layer], written=False) == (
        "optimizer/**",
        "**/exp_avg",
        "typo",
        "model/layer1.*",
    )
    both = ("**/layer1.*", "model")
    assert left_out(shown, choose(shown, known_by, both, [layer], written=True)) == {
        "model/layer10.weight",
        "model/layer2",
        "model/layer2.a",
    }
    assert choose(shown, known_by, ("**",), [0], written=True) == ()
    assert choose(shown, known_by, (), [], written=False) == ()


def test_any_clicks_do_exactly_what_the_boxes_say() -> None:
    shown = document()
    rng, nodes = random.Random(7), shown.tree.nodes
    wrong = []
    for turn in range(120):
        patterns, wanted = (), set()
        for _ in range(rng.randrange(1, 7)):
            node, written = rng.randrange(len(nodes)), rng.random() < 0.5
            below = {
                row.path
                for id_, row in zip(shown.tree.tensor_nodes, shown.checkpoint.tensors, strict=True)
                if _is_below(shown, id_, node)
            }
            wanted = wanted - below if written else wanted | below
            patterns = choose(shown, known_by, patterns, [node], written=written)
            patterns = split_patterns(join_patterns(patterns))
        if left_out(shown, patterns) != wanted:
            wrong.append((turn, patterns, wanted))
    assert wrong == []


def _is_below(shown: Document, node: int, above: int) -> bool:
    while node > above:
        node = shown.tree.nodes[node].parent
    return node == above


def test_one_of_thousands_is_written_alone() -> None:
    paths = tuple(f"state/{number}" for number in range(2 * BUCKET_ROWS + 2))
    shown = document(paths)
    bucket = group_of(shown, "state/5")
    assert shown.tree.nodes[bucket].kind == "bucket"
    patterns = choose(shown, known_by, ("state",), [node_of(shown, "state/7")], written=True)
    assert left_out(shown, patterns) == {*paths} - {"state/7"}
    assert left_out(shown, choose(shown, known_by, (), [bucket], written=False)) == {*paths[:BUCKET_ROWS]}


def test_names_with_many_dots_take_bounded_memory(monkeypatch) -> None:
    monkeypatch.setattr(choosing, "_MOST_CHARS", 40)
    shown = document(("m/a.b.c.0", "m/a.b.c.1", "m/a.b.c.2", "n"))
    counted = choosing._count([row.path for row in shown.checkpoint.tensors])
    assert sum(map(len, (*counted.paths, *counted.dotted))) <= 40
    everything = group_of(shown, "m/a.b.c.0")
    patterns = choose(shown, known_by, (), [everything], written=False)
    assert left_out(shown, patterns) == {"m/a.b.c.0", "m/a.b.c.1", "m/a.b.c.2"}
    monkeypatch.setattr(choosing, "_MOST_CHARS", 0)
    nothing = document(("m/a", "m/b"))
    assert choose(nothing, known_by, (), [node_of(nothing, "m/a")], written=False) == ("m/a",)
    assert len(list(choosing._boundaries("x." * 1000))) == choosing._MOST_BOUNDARIES + 1


# --- tuples -------------------------------------------------------------------------------------------------

TUPLES = ("pair", "nest/0", "nest/0/2")
IN_TUPLES = ("pair/0", "pair/1", "list/0", "nest/0/0", "nest/0/1/a", "nest/0/2/0", "w")


def with_tuples() -> Document:
    shown = document(IN_TUPLES)
    return document_of(replace(shown.checkpoint, tuples=TUPLES))


def test_items_of_tuples_are_bound_and_what_has_entries_is_not() -> None:
    shown = with_tuples()
    bound = bound_rows(shown.checkpoint, shown.tree)
    paths = {shown.tree.nodes[node].path.rstrip("/") for node in bound}
    assert paths == {"pair/0", "pair/1", "nest/0/0", "nest/0/2/0", "nest/0/2"}
    plain = document(IN_TUPLES)
    assert bound_rows(plain.checkpoint, plain.tree) == frozenset()
    assert boxes_of(shown.tree, bytes(len(IN_TUPLES)), b"", bound=bound).bound == bound


def test_no_pattern_names_an_item_of_a_tuple() -> None:
    shown = with_tuples()

    def chosen(*paths: str, group: str = "") -> tuple[str, ...]:
        nodes = [node_of(shown, path) for path in paths]
        nodes += [i for i, node in enumerate(shown.tree.nodes) if group and node.path == f"{group}/"]
        return choose(shown, known_by, (), nodes, written=False, tuples=TUPLES)

    assert chosen("pair/0") == ()
    assert chosen("pair/0", "pair/1") == chosen(group="pair") == ("pair",)
    assert chosen("nest/0/1/a") == ("nest/0/1/a",)
    assert chosen(group="nest/0") == ("nest",)
    assert chosen("list/0", "nest/0/0") == ("list",)
    without = choose(shown, known_by, (), [node_of(shown, "nest/0/1/a")], written=False)
    assert without == ("nest/0/1",)  # in a form without tuples
