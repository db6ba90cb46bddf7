from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.forms import Patterns
from inspector.remap.rules import parse_rule
from inspector.report.outline.strip import pattern_of
from inspector.report.tree import Tree, build_tree
from tests.corpus import varied
from tests.sweep import IS_SWEEP
from tests.unit.report.rows import checkpoint, optimizer, tensor, value

MOST_TENSORS = 10_000 if IS_SWEEP else 300


def tensors_below(tree: Tree, id_: int) -> set[int]:
    """The tensors of a row: its own, and those below it; a part goes wherever its tensor goes."""
    found, todo = set(), [id_]
    while todo:
        node = tree.nodes[todo.pop()]
        todo += node.children
        if node.kind == "tensor":
            found.add(node.index)
    return found


def named_by_rule(rows: Checkpoint, pattern: str) -> set[int]:
    """The tensors that a rule covers, as a plan asks it."""
    rule = parse_rule(f"path:{pattern}@cpu")
    paths = [
        (row.path, *(() if row.part_of is None else (rows.tensors[row.part_of].path,)))
        for row in rows.tensors
    ]
    return {index for index, row in enumerate(rows.tensors) if rule.matches(row.device, paths[index])}


def wrong_rows(rows: Checkpoint) -> list[str]:
    """The rows of which the pattern covers other tensors than stand there."""
    tree, wrong = build_tree(rows, {}), []
    parts = {index for index, row in enumerate(rows.tensors) if row.part_of is not None}
    for id_ in range(1, len(tree.nodes)):
        pattern = pattern_of(tree.nodes[id_])
        if not pattern:
            assert tree.nodes[id_].kind == "bucket"
            continue
        shown = tensors_below(tree, id_)
        if tree.nodes[id_].kind == "group":  # a part may be named as if it stood beside its tensor
            shown -= parts
        excluded = Patterns([pattern])
        left_out = {index for index, row in enumerate(rows.tensors) if excluded.cover(row.path)}
        for what, covered in (("path:", named_by_rule(rows, pattern)), ("--exclude", left_out)):
            found = covered - (parts if tree.nodes[id_].kind == "group" else set())
            if found != shown:
                wrong.append(f"{what} {pattern}: {sorted(found ^ shown)[:4]}")
    return wrong


def test_the_pattern_of_each_row_of_each_file_covers_what_the_row_shows() -> None:
    """Go over the corpus; a few files in the standard run, since some have thousands of rows."""
    wrong, seen = [], 0
    for case in varied():
        try:
            rows = open_checkpoint(str(case.path))
        except CheckpointError:
            continue
        if len(rows.tensors) > MOST_TENSORS:
            continue
        seen += len(rows.tensors)
        wrong += [f"{case.name}: {row}" for row in wrong_rows(rows)]
    assert wrong == []
    assert seen > 300


def test_names_that_mean_something_in_patterns_are_covered_alone() -> None:
    special = ["*", "**", "?", "[*]", "[[]", "[?]", "[[?", "[", "a*", "ab", "a[0]", "a0"]
    others = ['q"uote', "it's", "with space", "back\\slash", "per%cent", "a@cpu", "tab\tbed"]
    names = [*special, *others, "dot.ted.*.name", "dot.ted.x.name", "dot.ted.[*].name"]
    rows = checkpoint(
        *(tensor("m", name) for name in names),
        *(tensor("s", name, "inner") for name in names),
        *(tensor(name) for name in names),
        tensor("m/x", "y"),
        tensor("m~x", "y"),
        tensor("", "y"),
    )
    assert wrong_rows(rows) == []


def test_a_mapping_and_a_prefix_of_one_name_are_two_rows() -> None:
    rows = checkpoint(tensor("a", "x"), tensor("a", "y"), tensor("a.x"), tensor("a.y"))
    tree = build_tree(rows, {})
    assert [tree.nodes[id_].name for id_ in tree.nodes[0].children] == ["a", "a"]
    assert wrong_rows(rows) == []


def test_a_name_with_others_below_it_is_covered_without_them() -> None:
    """As bitsandbytes writes them: `q.weight` and `q.weight.absmax`."""
    rows = checkpoint(tensor("q.weight"), tensor("q.weight.absmax"), tensor("q.weight.quant_map"))
    assert wrong_rows(rows) == []


def test_chains_slots_and_wrappers_have_the_path_of_the_file() -> None:
    rows = checkpoint(
        tensor("state_dict", "model", "l.0.w"),
        tensor("state_dict", "model", "l.0.b"),
        tensor("opt", "state", 0, "exp_avg", slot="exp_avg", parameter="l.0.w"),
        tensor("net", "._modules", "fc", "._parameters", "w"),
        tensor("net", "._modules", "fc", "._parameters", "b"),
        optimizer("opt"),
    )
    tree = build_tree(rows, {})
    ways = {tree.nodes[id_].name: tree.nodes[id_].path for id_ in range(1, len(tree.nodes))}
    assert ways["state_dict/model/l.0"] == "state_dict/model/l.0."
    assert ways["opt/l.0.w"] == "opt/state/0/"
    assert ways["net/fc"] == "net/._modules/fc/"
    assert ways["exp_avg"] == "opt/state/0/exp_avg"
    assert wrong_rows(rows) == []


def test_the_only_tensor_of_a_file_is_everything_and_a_slice_has_no_pattern() -> None:
    rows = checkpoint(tensor())
    assert pattern_of(build_tree(rows, {}).nodes[1]) == "**"
    assert wrong_rows(rows) == []
    many = checkpoint(*(tensor(f"t{place}") for place in range(2001)))
    tree = build_tree(many, {})
    assert [pattern_of(tree.nodes[id_]) for id_ in tree.nodes[0].children] == ["", "", ""]


def test_a_value_has_its_path() -> None:
    rows = checkpoint(value("args", "lr*"))
    assert pattern_of(build_tree(rows, {}).nodes[2]) == "args/lr[*]"
