from __future__ import annotations

import pytest

import inspector
from inspector.diagnose.run import diagnose
from inspector.library.notebook import SCOPE, page_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import finding
from inspector.records import replace
from inspector.safety.verdict import judge
from tests.corpus import cases
from tests.hostile.cases import CASES
from tests.sweep import IS_SWEEP
from tests.unit.library.notebook_parsing import Page
from tests.unit.report.rows import BLANK, checkpoint, is_harmless, storage, tensor, value


def page(found: Checkpoint, findings=()) -> Page:
    return Page(page_of(found, judge(found), findings))


def test_the_demo(demo) -> None:
    facts = demo._opened.facts
    found = page(facts, diagnose(facts, judge(facts)))
    assert found.wrong == []
    verdict = "safe: weights only"
    assert found.texts[:3] == [demo.path, "zip, 283 tensors, 788 KB", verdict]
    names = ["cuda:0 ", "cuda:1 ", "cpu "]
    assert [text for text in found.texts if text in names] == names
    widths = [value for name, value in found.attributes if name == "style"]
    assert 99.9 < sum(float(width.removeprefix("width:").removesuffix("%")) for width in widths) < 100.1
    assert ("class", SCOPE) in found.attributes


def test_a_page_takes_little_room_in_a_notebook(demo) -> None:
    """Notebooks keep it in their file, and each time that the cell is run in their history."""
    assert len(demo._repr_html_().encode()) < 30_000


def test_nothing_at_all() -> None:
    found = page(BLANK)
    assert found.wrong == []
    assert "zip, 0 tensors, 1.0 KB" in found.texts
    assert ("class", "bar") not in found.attributes


def test_what_is_not_safe_and_what_is_wrong_stand_out() -> None:
    rows = [
        finding("a", "error", "It is <b>broken</b>", "", []),
        finding("b", "note", "It is old", "", []),
        *(finding("c", "warning", f"Look at {number}", "", []) for number in range(5)),
    ]
    found = page(BLANK, rows)
    assert "error: It is <b>broken</b>" in found.texts
    assert "warning: Look at 2" in found.texts
    assert "2 findings more" in found.texts
    assert not any("It is old" in text for text in found.texts)
    assert ("class", "line bad") in found.attributes
    assert ("class", "line bad") not in page(BLANK).attributes
    danger = replace(judge(BLANK), verdict="dangerous")
    assert ("class", "line bad") in Page(page_of(BLANK, danger, ())).attributes


def test_more_devices_than_a_machine_has_are_counted() -> None:
    given = [tensor(f"w{n}", device=f"cuda:{n}", storage=str(n)) for n in range(20)]
    found = page(checkpoint(*given, *(storage(str(n), f"cuda:{n}") for n in range(20))))
    assert found.wrong == []
    assert "4 more devices" in found.texts
    assert [value for name, value in found.attributes if name == "style"] == ["width:5.00%"] * 16


@pytest.mark.wide
def test_hostile_files_and_genuine_ones_make_pages(tmp_path) -> None:
    wrong = {}
    hostile = CASES if IS_SWEEP else CASES[::8]
    genuine = cases() if IS_SWEEP else cases()[::8]
    for name, data in (
        *((str(case), case.build()) for case in hostile),
        *((case.name, case.path.read_bytes()) for case in genuine if case.path.is_file()),
    ):
        path = tmp_path / "x.pth"
        path.write_bytes(data)
        try:
            opened = inspector.open(path)
        except inspector.CheckpointError:
            continue
        text = opened._repr_html_()
        found = Page(text)
        texts = [
            *found.texts,
            *(value for _, value in found.attributes),
            repr(opened),
            *map(repr, opened.tensors[:9]),
        ]
        if found.wrong or len(text) > 1_000_000 or not all(map(is_harmless, texts)):
            wrong[name] = found.wrong
    assert wrong == {}


def test_a_hostile_file_stays_text_and_the_page_stays_small() -> None:
    hostile = "<script>\u202e\x00\x1b]0;\"'&</style></details>" * 20
    given = [tensor(f"{n}{hostile}", "w", device=f"{hostile}{n}", storage=f"{n}") for n in range(700)]
    facts = replace(
        checkpoint(*given, *(storage(f"{n}", f"{hostile}{n}", 1 << 62) for n in range(700)), value(hostile)),
        path=hostile,
    )
    text = page_of(facts, judge(facts), [finding("x", "error", hostile, "", [])])
    found = Page(text)
    assert found.wrong == []
    assert is_harmless("".join(found.texts))
    assert all(is_harmless(value) for _, value in found.attributes)
    assert len(text) < 2_000_000
