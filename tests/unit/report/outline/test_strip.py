from __future__ import annotations

from inspector.report.details import look_up, tensor_facts
from inspector.report.outline import chosen
from inspector.report.outline.strip import Strip, strip_of
from inspector.report.tree import build_tree
from tests.unit.report.rows import checkpoint, is_harmless, storage, tensor, value

TIED = {"storage": "0", "nbytes": 4800, "shape": (30, 40), "stride": (40, 1)}
ROWS = checkpoint(
    tensor("m", "emb.weight", device="cuda:1", **TIED),
    tensor("m", "head.weight", device="cuda:1", **TIED),
    tensor("m", "aux.weight", device="cuda:1", **TIED),
    tensor("o", "state", 0, "exp_avg", slot="exp_avg", parameter="emb.weight", role="optimizer", storage="1"),
    tensor("o", "state", 1, "exp_avg", slot="exp_avg", role="optimizer", stride=None, layout="sparse_coo"),
    tensor("bad", problem="runs past its storage"),
    value("lr", type="float", text="0.1"),
    value("names", 0, type="str", text="x" * 500),
    storage("0", "cuda:1", 4800, tensors=3),
    storage("1"),
)
TREE = build_tree(ROWS, {})


def strip(*names: str) -> Strip:
    ids = [id_ for id_, node in enumerate(TREE.nodes) if node.path in names or node.name in names]
    return strip_of(ROWS, TREE, look_up(ROWS), ids)


def test_a_tensor_in_two_lines() -> None:
    assert strip("m/head.weight") == Strip(
        title="m/head.weight",
        facts=(
            "cuda:1",
            "float32",
            "30 × 40",
            "4.8 KB (4,800 bytes)",
            "storage 0, shared with m/emb.weight and 1 more",
            "stride (40, 1)",
        ),
        pattern="m/head.weight",
    )
    assert "storage 0, shared with m/head.weight and 1 more" in strip("m/emb.weight").facts


def test_a_slot_names_its_parameter() -> None:
    assert "exp_avg of emb.weight" in strip("o/state/0/exp_avg").facts
    assert "storage 1" in strip("o/state/0/exp_avg").facts
    assert strip("o/state/1/exp_avg").facts[4:] == ("exp_avg of an unknown parameter", "sparse_coo")


def test_a_sparse_tensor_takes_what_its_parts_take_as_its_row_says() -> None:
    rows = checkpoint(
        tensor("s", nbytes=1_600, stride=None, layout="sparse_coo", storage=None),
        tensor("s", "indices", nbytes=3_136, part_of=0, storage="0"),
        tensor("s", "values", nbytes=784, part_of=0, storage="1"),
    )
    tree = build_tree(rows, {})
    (node,) = (id_ for id_, node in enumerate(tree.nodes) if node.path == "s")

    assert strip_of(rows, tree, look_up(rows), [node]).facts[3] == "3.9 KB (3,920 bytes)"
    assert ("Dense size", "1.6 KB (1,600 bytes)") in tensor_facts(rows, 0, look_up(rows))[0].facts


def test_a_tensor_that_cannot_be_as_it_says_says_so() -> None:
    assert strip("bad").facts[-1] == "runs past its storage"


def test_values_and_groups() -> None:
    assert strip("lr") == Strip(title="lr", facts=("float", "0.1"), pattern="lr")
    assert len(strip("names/0").facts[1]) == 160
    group = strip("m")
    assert (group.title, group.pattern) == ("m", "m/**")
    assert group.facts == ("3 tensors", "1,200 params", "4.8 KB (4,800 bytes)", "cuda:1")
    assert strip("names").facts == ("no tensors",)


def test_several_rows_are_added_up_and_what_they_share_counts_once(monkeypatch) -> None:
    both = strip("m/emb.weight", "m/head.weight", "lr")
    assert both.title == "3 rows"
    assert both.facts == ("2 tensors", "1,200 params", "4.8 KB (4,800 bytes)", "cuda:1")
    assert both.pattern == ""
    monkeypatch.setattr(chosen, "_MOST_VIEWS", 1)
    assert "at most 9.6 KB" in strip("m/emb.weight", "m/head.weight").facts


def test_of_many_devices_the_first_are_named() -> None:
    def last_fact(*devices: str) -> str:
        rows = checkpoint(*(tensor("m", f"t{at}", device=device) for at, device in enumerate(devices)))
        return strip_of(rows, build_tree(rows, {}), look_up(rows), [1]).facts[-1]

    assert last_fact("cuda:9", "mps", "cpu", "cuda:1", "meta", "xpu:0") == "cuda:1, cuda:9, mps, +3"
    assert last_fact("cpu", "cuda:2", "cuda:1", "cuda:0") == "cuda:0-2, cpu"


def test_nothing_invisible_is_shown() -> None:
    evil = "a\u202e\x1b[31m\n"
    rows = checkpoint(
        tensor(
            evil, device=evil, dtype=evil, slot=evil, parameter=evil, storage=evil, problem=evil, layout=evil
        ),
        value("v" + evil, type=evil, text=evil),
        storage(evil),
    )
    tree = build_tree(rows, {})
    for id_ in (1, 2):
        found = strip_of(rows, tree, look_up(rows), [id_])
        assert is_harmless("".join((found.title, *found.facts)))
