from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.records import replace
from inspector.report.query import matching_nodes, parse_query, searchable
from inspector.report.terms import Term
from inspector.report.tree import build_tree
from tests.sweep import table
from tests.unit.report.rows import checkpoint, tensor, value

ROWS = checkpoint(
    tensor("model", "layer1.0.Weight", device="cuda:1", dtype="bfloat16", shape=(64, 3, 7, 7), nbytes=18_816),
    value("model", "weight_names"),
    tensor("model", "layer1.0.bias", device="cuda:10", dtype="float16", shape=(64,), nbytes=128),
    tensor("rng", device="cpu", dtype="uint8", shape=(), nbytes=1, role="rng"),
    tensor(
        "optimizer",
        "state",
        0,
        "exp_avg",
        device="cuda:0",
        shape=(164, 3),
        nbytes=1 << 20,
        role="optimizer",
        parameter="layer1.0.Weight",
        slot="exp_avg",
    ),
)
WEIGHT, BIAS, RNG, SLOT = range(4)


@table(
    ("query", "tensors", "values"),
    [
        ("", [WEIGHT, BIAS, RNG, SLOT], [0]),
        ("  ", [WEIGHT, BIAS, RNG, SLOT], [0]),
        ("weight", [WEIGHT, SLOT], [0]),
        ("WEIGHT model", [WEIGHT], [0]),
        ("exp_avg layer1", [SLOT], []),
        ("state/0", [SLOT], []),
        ("path:rng", [RNG], []),
        ("Path:rng", [RNG], []),
        ('"model/layer1.0.weight"', [WEIGHT], []),
        ('"layer1.0.weight/exp_avg"', [SLOT], []),
        ('"optimizer/state/0/exp_avg"', [SLOT], []),
        ('"model/weight_names"', [], [0]),
        ('"layer1"', [], []),
        ('"layer1', [WEIGHT, BIAS, SLOT], []),
        ('""', [WEIGHT, BIAS, RNG, SLOT], [0]),
        ('"', [WEIGHT, BIAS, RNG, SLOT], [0]),
        ("nothing", [], []),
        ("device:cuda", [WEIGHT, BIAS, SLOT], []),
        ("device:cuda:", [WEIGHT, BIAS, SLOT], []),
        ("device:cuda:1", [WEIGHT], []),
        ("device:cuda:10", [BIAS], []),
        ('device:"cuda:1"', [WEIGHT], []),
        ('device:"cuda"', [], []),
        ("device:CPU weight", [], []),
        ("device:", [WEIGHT, BIAS, RNG, SLOT], [0]),
        ("dtype:bf16", [WEIGHT], []),
        ("dtype:f16", [BIAS], []),
        ("dtype:fp16", [BIAS], []),
        ("dtype:u8", [RNG], []),
        ("dtype:float", [BIAS, SLOT], []),
        ('dtype:"float"', [], []),
        ("dtype:BFloat", [WEIGHT], []),
        ("role:opt", [SLOT], []),
        ("role:rng", [RNG], []),
        ("shape:64x3", [WEIGHT], []),
        ("shape:64×3×", [WEIGHT], []),
        ("shape:7x7", [WEIGHT], []),
        ("shape:64", [WEIGHT, BIAS], []),
        ('shape:"64"', [BIAS], []),
        ('shape:"164x3"', [SLOT], []),
        ("shape:scalar", [RNG], []),
        ("size>1KB", [WEIGHT, SLOT], []),
        ("size>=128", [WEIGHT, BIAS, SLOT], []),
        ("size<128b", [RNG], []),
        ("size<=128", [BIAS, RNG], []),
        ("SIZE>=1MiB", [SLOT], []),
        ("size>1.5M", [], []),
        ("size>" + "9" * 400, [], []),
        ("size>1000000 weight", [SLOT], []),
        ("size>big", [], []),
        ("path:size>1KB", [], []),
    ],
)
def test_query_finds(query: str, tensors: list[int], values: list[int]) -> None:
    found = parse_query(query).find(searchable(ROWS))
    assert [list(rows) for rows in found] == [tensors, values]


def test_words_are_tried_before_what_takes_longer() -> None:
    words = parse_query("device:cpu weight").terms
    assert words == (Term("path", "weight", written="weight"), Term("device", "cpu", written="device:cpu"))


def test_narrowing_keeps_the_rest_of_the_checkpoint() -> None:
    narrowed = parse_query("model").narrow(ROWS)
    assert [row.path for row in narrowed.tensors] == ["model/layer1.0.Weight", "model/layer1.0.bias"]
    assert [row.path for row in narrowed.values] == ["model/weight_names"]
    assert narrowed.path == ROWS.path


def test_matching_rows_stand_in_the_order_of_display() -> None:
    tree = build_tree(ROWS, {})
    matches = matching_nodes(parse_query("weight"), searchable(ROWS), tree)
    assert matches is not None
    assert list(matches) == sorted(matches)
    assert [tree.nodes[id_].name for id_ in matches] == ["Weight", "weight_names", "exp_avg"]


def test_an_empty_query_is_no_search() -> None:
    assert matching_nodes(parse_query(" "), searchable(ROWS), build_tree(ROWS, {})) is None


def test_what_the_tree_hides_is_not_found() -> None:
    rows = checkpoint(value("._modules", "._buffers", text="{}"), value("buffers"))
    tree = build_tree(rows, {})
    assert matching_nodes(parse_query("buffers"), searchable(rows), tree) == (tree.value_nodes[1],)


@given(st.text(alphabet=st.sampled_from('ab:"xX×<>=size19.KMiB path\u202e\n'), max_size=30))
def test_no_query_is_malformed(text: str) -> None:
    parse_query(text).find(searchable(ROWS))


@table(
    ("query", "tensors", "values"),
    [
        ("-weight", [BIAS, RNG], []),
        ("-model", [RNG, SLOT], []),
        ("weight -model", [SLOT], []),
        ('-"rng"', [WEIGHT, BIAS, SLOT], [0]),
        ("*.bias", [BIAS], []),
        ("layer?.*.weight", [WEIGHT], []),
        ("layer?.*.weight/*", [SLOT], []),
        ("-*weight*", [BIAS, RNG], []),
        ("weight_*", [], [0]),
        ('"*.bias"', [], []),
        ("-device:cpu", [WEIGHT, BIAS, SLOT], []),
        ("device:cuda:?", [WEIGHT, SLOT], []),
        ("dtype:*16", [WEIGHT, BIAS], []),
        ("params>100", [WEIGHT], []),
        ("-params>0", [RNG, SLOT], []),
        ("size=128", [BIAS], []),
        ("-size>=128", [RNG], []),
        ("storage:7", [RNG], []),
        ("-storage:7", [WEIGHT, BIAS, SLOT], []),
        ("nan:", [], []),
        ("-nan:", [], []),
    ],
)
def test_query_with_signs_finds(query: str, tensors: list[int], values: list[int]) -> None:
    table = list(ROWS.tensors)
    table[RNG] = table[RNG]._replace(storage="7")
    found = parse_query(query).find(searchable(replace(ROWS, tensors=tuple(table))))
    assert [list(rows) for rows in found] == [tensors, values]


def test_what_a_scan_found_is_found() -> None:
    rows = replace(searchable(ROWS), odd={"nan": frozenset({BIAS, RNG})})
    assert [list(found) for found in parse_query("nan:").find(rows)] == [[BIAS, RNG], []]
    assert [list(found) for found in parse_query("-nan: size>10").find(rows)] == [[WEIGHT, SLOT], []]
    assert list(parse_query("inf:").find(rows)[0]) == []
    assert [parse_query(text).needs_scan for text in ("nan:", "-huge: a", "size>1 a")] == [True, True, False]


def test_what_words_match_in_a_path_is_told_for_highlighting() -> None:
    assert parse_query("layer 1 -bias device:cpu").spans("Layer1.layer") == [(0, 5), (5, 6), (7, 12)]
    assert parse_query("*.bias").spans("a.bias") == [(1, 6)]
    assert parse_query("*.bias").spans("a.weight") == []
    assert parse_query('"a.b"').spans("a.b") == [(0, 3)]
    assert parse_query('"a.b"').spans("a.bc") == []
    assert parse_query("i").spans("\u0130i") == []


def test_a_name_with_a_slash_is_found_as_it_is_and_as_it_is_escaped() -> None:
    rows = checkpoint(tensor("encoder/layer_1/kernel"), value("a~b"), tensor("other"))
    for text in ("encoder/layer_1", '"encoder/layer_1/kernel"', "encoder~1layer", "layer_1/*"):
        assert list(parse_query(text).find(searchable(rows))[0]) == [0], text
    assert list(parse_query('"a~b"').find(searchable(rows))[1]) == [0]
