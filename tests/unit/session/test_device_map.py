from __future__ import annotations

import pytest

from inspector.errors import PlanError
from inspector.progress import Progress
from inspector.remap.rules import Rule
from inspector.resources import demo_path
from inspector.session import device_map as mapping
from inspector.session.device_map import (
    Pairs,
    choices_for_all,
    device_rows,
    is_mappable,
    landing,
    map_devices,
)
from inspector.session.document import Document, open_document
from inspector.session.screen import DeviceRow
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import document_of, saved_on


def rows_of(document: Document, target: str = "cpu", *chosen: tuple[str, str]) -> dict[str, DeviceRow]:
    profile = parse_target(target)
    device_map = map_devices(document, profile, chosen)
    return {row.device: row for row in device_rows(document, profile, device_map, {"cuda:0": 0})}


def moves(document: Document, target: str = "cpu", *chosen: tuple[str, str]) -> Pairs:
    return map_devices(document, parse_target(target), chosen).moves


def test_a_map_follows_the_target_until_somebody_chooses() -> None:
    document = saved_on("cuda:0", "cuda:1", "cpu")
    assert moves(document) == (("cuda:0", "cpu"), ("cuda:1", "cpu"))
    assert moves(document, "2xcuda") == ()
    assert moves(document, "cuda") == (("cuda:1", "cuda:0"),)
    assert moves(document, "cuda", ("cuda:1", "cpu"), ("cuda:7", "cpu")) == (("cuda:1", "cpu"),)
    assert moves(document, "cpu", ("cuda:0", "cuda:0")) == (("cuda:1", "cpu"),)


def test_the_plan_is_that_of_the_map() -> None:
    device_map = map_devices(saved_on("cuda:0", "cpu"), parse_target("cpu"), ())
    assert device_map.plan.storages == {"0": "cpu"}
    assert device_map.refusal is None
    assert device_map.going == (("cuda:0", "cpu"), ("cpu", "cpu"))


def test_rows_say_what_lies_where_and_what_may_be_chosen() -> None:
    rows = rows_of(saved_on("cuda:0", "cuda:0", "cpu"), "2xcuda")
    assert rows["cuda:0"] == DeviceRow(
        device="cuda:0",
        color=0,
        summary="2 tensors, 8.0 KB",
        to="cuda:0",
        choices=("cuda:0", "cuda:1", "cpu"),
        note="",
    )
    assert rows["cpu"].color == -1


def test_a_note_stands_only_where_it_helps() -> None:
    document = saved_on("cuda:0", "cuda:1", "cpu")
    assert {row.note for row in rows_of(document, "2xcuda").values()} == {""}
    assert rows_of(document, "cuda")["cuda:1"].note == ""
    assert rows_of(document, "cuda")["cuda:0"].note == "kept as saved"
    missing = rows_of(document, "cpu", ("cuda:1", "cuda:1"))
    assert missing["cuda:1"].note == "the target has no cuda:1"
    assert [name for name, row in missing.items() if row.is_missing] == ["cuda:1"]


def test_what_stays_on_the_cpu_by_design_is_counted() -> None:
    document = document_of(
        checkpoint(
            tensor("a", storage="0"),
            tensor("rng", storage="1", on_cpu_by_design=True),
            storage("0"),
            storage("1"),
        )
    )
    rows = rows_of(document, "cuda", ("cpu", "cuda:0"))
    assert rows["cpu"].note == "1 tensor kept on cpu by design (step, RNG state)"


def test_nothing_is_offered_that_torch_would_refuse() -> None:
    rows = rows_of(saved_on("cpu:0", "odd\nname", "hpu:0", "meta"))
    assert rows["meta"].choices == ("meta",)
    assert rows[r"odd\u000aname"].choices == ("hpu:0", "cpu", r"odd\u000aname")
    assert rows["hpu:0"].choices == ("hpu:0", "cpu")


def test_all_can_be_sent_where_each_can_be_sent() -> None:
    rows = tuple(rows_of(saved_on("cpu:0", "odd\nname", "hpu:0", "meta"), "cuda").values())
    assert choices_for_all(rows) == ("cuda:0", "hpu:0", "cpu")
    assert choices_for_all(tuple(rows_of(saved_on("meta")).values())) == ()


def test_a_device_with_an_odd_name_is_mapped_by_the_name_that_is_shown() -> None:
    document = saved_on("odd\nname")
    assert rows_of(document)[r"odd\u000aname"].to == "cpu"
    assert moves(document, "cpu", (r"odd\u000aname", "cuda:0")) == (("odd\nname", "cuda:0"),)
    kept = rows_of(document, "cpu", (r"odd\u000aname", r"odd\u000aname"))
    assert kept[r"odd\u000aname"].to == r"odd\u000aname"


def test_a_hundred_thousand_devices_are_not_all_listed() -> None:
    rows = [tensor(str(index), device=f"odd{index}") for index in range(300)]
    assert len(rows_of(document_of(checkpoint(*rows)))) == 64


def test_a_map_that_the_planner_refuses_is_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_remap = mapping.plan_remap

    def refuse(rows, rules):
        if rules:
            raise PlanError("tensors disagree")
        return plan_remap(rows, rules)

    monkeypatch.setattr(mapping, "plan_remap", refuse)
    device_map = map_devices(saved_on("cuda:0"), parse_target("cpu"), ())
    assert device_map.refusal is not None
    assert device_map.refusal.what == "tensors disagree"
    assert device_map.plan.is_empty
    assert device_map.moves == (("cuda:0", "cpu"),)


@pytest.mark.parametrize(
    ("devices", "target", "chosen", "is_there"),
    [
        (("cpu",), "cpu", (), False),
        (("cpu",), "cpu", (("cpu", "cuda:0"),), True),  # something is mapped
        (("cpu",), "cuda", (), True),  # something can be
        (("cuda:0", "cpu"), "cpu", (), True),
        (("cuda:0",), "cpu", (("cuda:0", "cuda:0"),), True),
        ((), "cpu", (), False),
    ],
)
def test_a_map_is_there_where_something_is_or_can_be_mapped(devices, target, chosen, is_there) -> None:
    document, profile = saved_on(*devices), parse_target(target)
    routes = map_devices(document, profile, chosen)
    assert is_mappable(profile, routes, "") is is_there
    assert not is_mappable(profile, routes, "no devices are stored here")


def test_where_nothing_is_mapped_all_can_still_be_sent_to_a_gpu() -> None:
    assert choices_for_all(tuple(rows_of(saved_on("cpu")).values())) == ("cuda:0", "mps", "cpu")


def test_each_row_says_where_it_goes() -> None:
    document = saved_on("cuda:0", "cuda:1", "cpu")
    shown = {node.device_text for node in document.tree.nodes if node.device_text}
    assert "cuda:1" in shown

    def texts(*chosen: tuple[str, str], rules: tuple[Rule, ...] = ()) -> list[str]:
        found = landing(map_devices(document, parse_target("2xcuda"), chosen, rules))
        assert found is not None
        return [found.text(node) for node in document.tree.nodes if node.device_text][1:]

    assert landing(map_devices(document, parse_target("2xcuda"), ())) is None
    to_cpu = texts(("cuda:0", "cpu"), ("cuda:1", "cpu"))
    assert to_cpu[0] == "cuda:0-1 \u2192 cpu"
    assert {"cuda:0 \u2192 cpu", "cuda:1 \u2192 cpu", "cpu"} <= set(to_cpu)
    assert texts(("cuda:1", "cuda:0"))[0] == "cuda:1, cpu \u2192 cuda:0, cpu"
    tensor_path = document.checkpoint.tensors[0].path
    one = texts(rules=(Rule(path=tensor_path, to="cpu"),))
    assert "cuda:0 \u2192 cpu" in one
    assert "\u2192" not in one[0]  # of which nobody knows how many move


def test_a_group_of_which_the_cpu_keeps_some_names_no_place() -> None:
    """Adam's steps stay where torch wants them, whatever is chosen for the CPU."""
    document = open_document(str(demo_path()), Progress())
    chosen = (("cuda:0", "cuda:1"), ("cpu", "cuda:1"))
    found = landing(map_devices(document, parse_target("2xcuda"), chosen))
    assert found is not None
    nodes = document.tree.nodes
    texts = {nodes[child].name: found.text(nodes[child]) for child in nodes[0].children}
    assert (texts["model"], texts["optimizer"]) == ("cuda:0 \u2192 cuda:1", "cuda:0-1, cpu")
