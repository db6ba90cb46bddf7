"""The tables of parts: how they are wired, and that a click works out only what it changes."""

from __future__ import annotations

import gc
import weakref

import pytest

from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.rules import Rule
from inspector.session.document import Document
from inspector.session.frame import FRAME, SAME
from inspector.session.operations import Job
from inspector.session.present.compose import AT_ONCE, PARTS, REMEMBERED, compose, is_remembered
from inspector.session.present.parts import Answers, Parts
from inspector.session.screen import Loading, Screen
from inspector.session.state import State
from inspector.values.statistics import Scan
from tests.unit.session.documents import saved_on

STATE = State(phase="ready", path="/a.pth", document=saved_on("cuda:0", "cpu"))


FOLLOWS = (
    "routes planned_load forecast overview_here fitted foretold banner findings colors map_rows device_map "
    "is_mappable map_choices landing can_export charts code"
)
"""What follows the device map."""


def annotated(name: str, of: str) -> str | None:
    return getattr(PARTS.make[name], "__annotations__", {}).get(of)


def test_whatever_a_part_needs_is_there_and_of_the_type_that_it_takes() -> None:
    known = {*PARTS.make, *PARTS.inputs, *State.__annotations__}
    for name in PARTS.make:
        for need in PARTS.needs_of(name):
            assert need in known, (name, need)
            taken, made = annotated(name, need), need in PARTS.make and annotated(need, "return")
            assert not taken or not made or taken == made, (name, need)
    assert not PARTS.make.keys() & PARTS.inputs.keys()


def test_every_field_of_a_screen_is_made_once() -> None:
    made = [*SAME, *FRAME, *(name for name in PARTS.make if name in Screen.__annotations__), "is_checking"]
    assert sorted(made) == sorted(Screen.__annotations__)
    for name in PARTS.make.keys() & Screen.__annotations__.keys():
        made, shown = annotated(name, "return"), Screen.__annotations__[name]
        assert made is None or made in {shown, shown.removesuffix(" | None")}, name


def test_what_is_remembered_comes_from_no_whole_state() -> None:
    """It would hold the document that holds it."""
    assert [name for name in REMEMBERED if "state" in PARTS.sources_of(name)] == []


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"selected": 2}, ""),
        ({"picked": (1, 2)}, ""),
        ({"query": "layer0"}, "matches search flat"),
        ({"error_text": "CUDA out of memory"}, "explanation"),
        ({"style": "plain"}, "code"),
        ({"map_root": 1}, ""),
        ({"looks_at_map": True}, "areas coloring module_map"),
        ({"beside": (5, 1)}, "findings explanation"),
        ({"loading": Loading(ranks=2)}, "forecast overview_here fitted foretold banner findings"),
        (
            {"branches": (Rule(path="model/layer0.**", to="cpu"),)},
            f"{FOLLOWS} branches",
        ),
        ({"jobs": (Job(kind="check", about="", progress=Progress()),)}, ""),
        (
            {"jobs": (Job(kind="scan", about="", progress=Progress(), result=Scan(tensors=(), nbytes=0)),)},
            "read banner findings finished_scan sparks row_marks",
        ),
    ],
)
def test_a_click_works_out_only_what_it_changes(change, parts) -> None:
    document = saved_on("cuda:0", "cpu")
    before, after = replace(STATE, document=document), replace(STATE, document=document, **change)
    assert not is_remembered(before)
    compose(before)
    assert is_remembered(before)
    assert set(document.remembered) == set(REMEMBERED)
    assert is_remembered(after) == (not parts)
    compose(after)
    assert {name for name, answers in document.remembered.items() if len(answers) > 1} == set(parts.split())
    assert is_remembered(before)


def test_another_color_of_the_map_measures_nothing_anew() -> None:
    document = saved_on("cuda:0", "cpu")
    one, other = (
        compose(replace(STATE, document=document, looks_at_map=True, map_by=by)) for by in ("device", "dtype")
    )
    assert compose(replace(STATE, document=document)).module_map is None
    assert one.module_map.areas is other.module_map.areas


def test_what_is_at_hand_is_told_from_what_is_not() -> None:
    made = []
    parts = Parts(
        {"document": lambda state: state.ready},
        {"cheap": lambda costly: costly + 1, "free": lambda query: query},
        {"costly": lambda document, selected: made.append(selected) or selected},
    )
    document = saved_on("cpu")
    state = replace(STATE, document=document, selected=3, query="x")
    answers = Answers(parts, state)
    assert (answers.knows("cheap"), answers.knows("free"), answers["free"]) == (False, True, "x")
    assert (answers["cheap"], answers["costly"], answers.knows("cheap")) == (4, 3, True)
    assert Answers(parts, replace(state, query="y"))["cheap"] == 4
    assert Answers(parts, replace(state, selected=4))["cheap"] == 5
    assert made == [3, 4]


def test_only_the_last_answers_are_kept_and_no_failure() -> None:
    document, made = saved_on("cpu"), []
    for by in (*range(9), 8, 0):
        document.recall("x", (by,), lambda: made.append(by))  # noqa: B023 - called at once
    assert made == [*range(9), 0]
    with pytest.raises(ZeroDivisionError):
        document.recall("y", (), lambda: 1 / 0)
    assert document.recall("y", (), lambda: 1) == 1


@pytest.mark.wide
def test_answers_are_forgotten_with_their_document() -> None:
    document: Document = saved_on("cpu")
    compose(replace(STATE, document=document))
    gc.collect()
    gc.disable()
    known = weakref.ref(document)
    try:
        del document
        assert known() is None  # nothing that is remembered refers to it
    finally:
        gc.enable()


def test_no_part_costs_little_that_is_remembered() -> None:
    assert not AT_ONCE.keys() & REMEMBERED.keys()
