"""What is dragged out with rows: names, limits, and the sentences where there is nothing to drag."""

from __future__ import annotations

from pathlib import PurePath

from inspector.session.values import taking as module
from inspector.session.values.taking import file_stem, plan_taking
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of

ROWS = document_of(
    checkpoint(
        tensor("m", "a.weight", storage="0", shape=(2, 3), dtype="bfloat16", nbytes=12),
        tensor("m", "A.weight", storage="0", shape=(2, 3), dtype="uint8", nbytes=6),
        tensor("m", "gone", storage=None, device="meta", shape=(4,), nbytes=0),
        tensor("m", "odd", storage="0", shape=(4,), dtype="int3", nbytes=2),
        value("m", "lr"),
        storage("0", "cpu", 12),
    )
)


def planned(*paths: str, root: str = "/t"):
    nodes = ROWS.tree.nodes
    ids = [id_ for path in paths for id_ in range(len(nodes)) if nodes[id_].path == path]
    return plan_taking(ROWS, ids, root)


def test_each_tensor_of_the_rows_is_a_file() -> None:
    taking = planned("m/a.weight", "m/A.weight", "m/a.weight")
    assert [PurePath(path).name for path, _ in taking.files] == ["m.a.weight.npy", "m.A.weight-2.npy"]
    assert {str(PurePath(path).parent) for path, _ in taking.files} == {taking.folder}
    assert taking.folder.startswith("/t/checkpoint-inspector-drag-")
    assert taking.folder != planned("m/a.weight").folder
    assert taking.nbytes == 6 * 4 + 6  # bfloat16 becomes float32
    assert taking.text == "m/a.weight\nm/A.weight\nm/a.weight"
    assert taking.why == ""


def test_a_group_stands_for_its_tensors_and_what_has_no_values_is_left_out() -> None:
    (group,) = ROWS.tree.nodes[0].children
    taking = plan_taking(ROWS, [group], "/t")
    assert (len(taking.files), taking.text) == (2, "m/**")
    assert taking.why == "2 tensors left out: it was saved from the meta device, which keeps no values."


def test_what_cannot_be_a_file_is_a_path_and_a_sentence(monkeypatch) -> None:
    nothing = {
        "m/gone": "Not dragged out as .npy: it was saved from the meta device, which keeps no values.",
        "m/lr": "There is no tensor in it to drag out as a .npy file.",
    }
    for path, why in nothing.items():
        taking = planned(path)
        assert (taking.files, taking.text, taking.why) == ((), path, why)
    monkeypatch.setattr(module, "MOST_NBYTES", 29)
    assert planned("m/a.weight", "m/A.weight").why.startswith("That is 30 B, and up to 29 B can be dragged")
    monkeypatch.setattr(module, "MOST_FILES", 1)
    assert planned("m/a.weight", "m/A.weight", "m/gone").why.startswith("Up to 1 tensors at once")
    assert planned("m/a.weight").files


def test_an_expanded_tensor_counts_as_large_as_its_file_would_be() -> None:
    shape, stride = (1 << 20, 1 << 20), (0, 0)
    rows = document_of(
        checkpoint(
            tensor("a", storage="0", shape=shape, stride=stride, nbytes=4),
            storage("0", "cpu", 4),
        )
    )
    assert plan_taking(rows, [1], "/t").why.startswith("That is 4.4 TB, and up to 1.1 GB")


def test_names_are_what_every_file_system_takes() -> None:
    expected = {
        "model/layer1.0.weight": "model.layer1.0.weight",
        "../../etc/passwd": "etc.passwd",
        "a\nb\x00c": "a_b_c",
        "\u202e\ud800x": "_x",
        "": "tensor",
        "...": "tensor",
        "C:\\x?": "C_x_",
        "gr\u00f6\u00dfe [0]": "gr\u00f6\u00dfe [0]",
    }
    assert {path: file_stem(path) for path in expected} == expected
    assert len(file_stem("\u4e2d" * 500).encode()) <= 200
