from __future__ import annotations

import pytest

from inspector.model.findings import Fix
from inspector.session.controller import Session
from inspector.session.export.page import ExportWish
from inspector.session.screen import BranchRow, Loading
from tests.unit.session.documents import saved_on

ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)


def going(session: Session) -> dict[str, str]:
    return {row.device: row.to for row in session.screen.device_map}


def test_it_starts_empty_and_shows_nothing_unasked(view, runner) -> None:
    session = Session(view, runner, ("/old.pth",))
    assert session.screen.phase == "empty"
    assert session.screen.recent == ("/old.pth",)
    view.show_screen.assert_not_called()


def test_without_a_file_there_is_nothing_to_do_or_to_cancel(session, view) -> None:
    session.reload()
    session.look_at_file()
    session.apply_fix(Fix(rule="*=cpu"))
    session.map_all("cpu")
    session.map_as_saved()
    session.map_as_suggested()
    session.start_job("check")
    session.stop_job("check")
    session.begin_export()
    session.change_export(ExportWish())
    session.look_at_destination("/somewhere.pth")
    session.export("/somewhere.pth")
    session.undo_export()
    session.save_receipt("/somewhere.json")
    session.cancel_opening()
    session.cancel_export()
    session.resume_export()
    session.end_export()
    assert view.method_calls == []


def test_a_session_that_is_disposed_of_waits_for_nothing(session, view, runner) -> None:
    session.open("/a.pth")
    runner.waits = True
    session.start_job("check")
    (job,) = session._state.jobs
    view.reset_mock()
    session.dispose()
    assert job.progress.cancelled
    runner.go_on()
    assert (session.screen.phase, session._state.jobs, view.method_calls) == ("empty", (), [])


def test_all_devices_are_mapped_at_once(opened) -> None:
    opened.set_target("2xcuda")
    suggested = going(opened)
    opened.map_all("cuda:1")
    assert set(going(opened).values()) == {"cuda:1"}
    opened.map_as_saved()
    assert all(device == to for device, to in going(opened).items())
    opened.map_all("cpu")
    opened.map_as_suggested()
    assert going(opened) == suggested
    assert opened.screen.map_choices == ("cuda:0", "cuda:1", "cpu")


def test_another_target_takes_the_map_with_it(opened) -> None:
    opened.set_mapping("cuda:0", "cuda:0")
    opened.set_target("cuda")
    assert opened.screen.target == "cuda"
    assert [row.to for row in opened.screen.device_map] == ["cuda:0", "cuda:0", "cpu"]


def test_devices_are_mapped_one_by_one(opened) -> None:
    opened.set_target("2xcuda")
    opened.set_mapping("cuda:0", "cpu")
    opened.set_mapping("cuda:1", "cuda:0")
    opened.set_mapping("cuda:0", "cuda:1")
    assert [row.to for row in opened.screen.device_map] == ["cuda:1", "cuda:0", "cpu"]


def test_selecting_searching_and_styling(opened, view) -> None:
    node = opened.screen.tree.tensor_nodes[0]
    opened.select(node)
    assert opened.screen.tensor
    opened.search("layer1")
    assert opened.screen.matches == (opened.screen.tree.tensor_nodes[1],)
    opened.search("")
    assert opened.screen.matches is None
    opened.set_code_style("resume")
    assert opened.screen.code.style == "plain"  # this file offers no other
    opened.select(None)
    assert opened.screen.tensor == ()
    assert [call.args[0].selected for call in view.show_screen.call_args_list][-5:] == [node] * 4 + [None]


def test_wishes_about_a_file_that_is_gone_are_none_about_the_next(session, runner) -> None:
    def wish_all() -> None:
        session.search("layer1")
        session.select(2)
        session.set_mapping("mps", "cpu")
        session.remove_branch("*")
        session.show_map(2)

    wish_all()
    runner.waits = True
    session.open("/b.pth")
    wish_all()
    session.explain_error("RuntimeError")
    runner.go_on()
    screen = session.screen
    assert (screen.query, screen.selected, screen.error_text) == ("", None, "")
    assert session._state.chosen == ()


def test_a_rule_for_devices_changes_the_map(opened) -> None:
    opened.set_target("2xcuda")
    assert going(opened) == {"cuda:0": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}
    opened.apply_fix(Fix(rule="cuda:*=cuda:1"))
    assert going(opened) == {"cuda:0": "cuda:1", "cuda:1": "cuda:1", "cpu": "cpu"}


def test_a_rule_for_a_branch_stands_beside_the_map_until_it_is_removed(opened) -> None:
    opened.apply_fix(Fix(rule="path:model/layer0*@mps"))
    opened.apply_fix(Fix(rule="path:model/layer0*@cpu"))
    opened.apply_fix(Fix(rule="path:model/layer1*@cuda:3"))
    assert opened.screen.branches == (
        BranchRow(pattern="model/layer1*", label="model/layer1*", to="cuda:3"),
        BranchRow(pattern="model/layer0*", label="model/layer0*", to="cpu"),
    )
    after = opened.screen.charts[0].bars[1].segments
    assert {segment.label for segment in after} == {"cpu", "cuda:3"}
    opened.remove_branch("model/layer1*")
    assert [row.pattern for row in opened.screen.branches] == ["model/layer0*"]
    opened.set_target("8xcuda")
    assert opened.screen.branches == ()


def test_a_fix_by_a_copy_maps_and_begins_the_export(opened) -> None:
    opened.apply_fix(Fix(rule="cuda:0=cuda:5"))
    assert opened.screen.export is None
    opened.apply_fix(Fix(rule="cuda:0=cuda:6"), exports=True)
    assert opened.screen.export is not None
    assert going(opened)["cuda:0"] == "cuda:6"


def test_a_style_is_shown_on_its_page(opened) -> None:
    opened.apply_fix(Fix(style="plain"))
    assert opened.screen.shown_page == "code"
    assert opened.screen.code is not None
    assert opened.screen.code.style == "plain"


def test_a_file_opens_on_the_page_that_suits_its_verdict(session, files) -> None:
    files["/c.pth"] = saved_on("cpu", path="/c.pth")
    assert session.screen.shown_page == ""
    session.open("/a.pth")
    assert (session.screen.banner.tone, session.screen.shown_page) == ("bad", "findings")
    session.open("/c.pth")
    assert (session.screen.banner.tone, session.screen.shown_page) == ("good", "overview")
    session.turn_to("code")
    session.set_target("cuda")
    session.reload()
    assert session.screen.shown_page == "code"
    session.set_target()
    session.open("/a.pth")
    assert session.screen.shown_page == "findings"
    session.turn_to("memory")
    session.close()
    assert session.screen.shown_page == ""


def test_a_search_finds_what_a_finding_speaks_of(opened) -> None:
    opened.search("finding:cuda-unavailable")
    nodes = opened.screen.tree.tensor_nodes
    assert opened.screen.matches == (nodes[0], nodes[1])
    opened.search("finding:cuda-unavailable -layer0")
    assert opened.screen.matches == (nodes[1],)
    opened.set_target("2xcuda")
    assert opened.screen.matches == ()
    assert opened.screen.search.why == "No finding cuda-unavailable speaks of a tensor."


def test_a_pasted_error_is_answered_for_this_file(opened) -> None:
    opened.explain_error(ERROR)
    card = opened.screen.explanation
    assert card is not None
    assert card.id == "cuda-unavailable"
    assert len(card.nodes) == 2
    assert card.fix is not None
    assert opened.screen.error_text == ERROR
    opened.explain_error("Nothing that is known of module 7")
    assert dict(opened.screen.explanation.facts)["Why"] == "No error stands in it."
    opened.explain_error("  ")
    assert opened.screen.explanation is None
    opened.explain_error(ERROR)
    opened.open("/b.pth")
    assert opened.screen.error_text == ""


@pytest.mark.wide
def test_a_book_is_not_read_to_its_end(opened) -> None:
    opened.explain_error("x" * 5_000_000)
    assert len(opened.screen.error_text) == 1 << 20


def test_the_way_of_loading_decides_the_forecast(opened) -> None:
    opened.set_loading(Loading(ranks=2, mmap=True))
    assert opened.screen.forecast is not None
    assert opened.screen.forecast.loading == Loading(ranks=2, mmap=True)


def test_a_node_is_told_by_its_path_and_its_expression(session) -> None:
    assert (session.node_path(1), session.node_expression(1)) == ("", "")
    session.open("/a.pth")
    weight = session.screen.tree.tensor_nodes[0]
    assert session.node_path(weight) == "model/layer0.weight"
    assert session.node_expression(weight) == "checkpoint['model']['layer0.weight']"


def test_the_map_of_modules_is_measured_when_it_is_looked_at(opened) -> None:
    tree = opened.screen.tree
    assert opened.screen.module_map is None
    opened.color_map("role")
    assert opened.screen.module_map is None
    opened.look_at_map()
    first = opened.screen.module_map
    assert first is not None
    assert (first.root, first.coloring.by) == (0, "role")
    opened.color_map("role")
    assert opened.screen.module_map is first
    opened.color_map("device")
    page = opened.screen.module_map
    assert page.areas is first.areas
    group = tree.nodes[tree.tensor_nodes[0]].parent
    opened.show_map(group)
    opened.show_map(10**6)  # a row of a file that was shown before
    assert opened.screen.module_map.root == group


def test_the_map_follows_the_selected_row(opened) -> None:
    opened.look_at_map()
    tree = opened.screen.tree
    first, last = tree.tensor_nodes[0], tree.tensor_nodes[-1]
    group = tree.nodes[first].parent
    opened.show_map(group)
    opened.select(first)
    assert opened.screen.module_map.root == group
    opened.select(None)
    assert opened.screen.module_map.root == group
    opened.select(last)
    assert opened.screen.module_map.root not in {group, first}
    opened.select(10**6)
    assert opened.screen.selected == 10**6
    opened.open("/b.pth")
    assert opened.screen.module_map.root == 0  # for every file that is opened in this window


def test_an_error_is_explained_without_a_file_and_the_file_that_it_names_is_offered(
    session, runner, tmp_path
) -> None:
    path = tmp_path / "a.pth"
    path.touch()
    session.explain_error(f'torch.load("a.pth")\n{ERROR}', str(tmp_path))
    card = session.screen.explanation
    assert (session.screen.phase, card.id, card.tone) == ("empty", "cuda-unavailable", "warning")
    assert (card.opens, card.opening) == (str(path), "Open a.pth")
    assert "Open the file" in dict(card.facts)["To know more"]
    session.explain_error("")
    assert (session.screen.explanation, session.screen.error_text) == (None, "")
    session.explain_error("import torch\ntorch.load('b.pth')\n")
    assert (session.screen.explanation.title, session.screen.explanation.opens) == (
        "Which file does this script load?",
        "",
    )
    runner.waits = True
    session.explain_error(ERROR)
    assert session.screen.explanation is None  # the answer to another text is none to this
    runner.go_on()
    assert session.screen.explanation.id == "cuda-unavailable"


def test_what_was_asked_without_a_file_is_answered_with_the_one_that_is_opened(session) -> None:
    session.explain_error(ERROR)
    session.open("/a.pth")
    assert (session.screen.shown_page, session.screen.error_text) == ("findings", ERROR)
    assert "In this file" in dict(session.screen.explanation.facts)
    session.close()
    assert session.screen.explanation is None
    session.open("/b.pth")
    assert (session.screen.explanation, session.screen.error_text) == (None, "")
