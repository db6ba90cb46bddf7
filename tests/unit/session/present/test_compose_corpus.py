"""Every genuine file on every machine: the screen can be worked out, and everything on it is harmless."""

from __future__ import annotations

import pytest

from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.charts.areas import PROPERTIES
from inspector.report.charts.modules import facts_of, labels_of, parts_of, tensors_of
from inspector.report.charts.treemap import lay_out
from inspector.session.document import open_document
from inspector.session.present.banner import short_verdict
from inspector.session.present.compose import compose
from inspector.session.state import State
from inspector.target.profile import presets
from inspector.target.simulate import Judged, judge_load
from tests.corpus import Case, varied
from tests.sweep import put_through, table
from tests.unit.report.rows import is_harmless


@pytest.mark.wide
@table("case", varied(), ids=lambda case: ascii(case.name))
def test_every_file_has_its_screen(case: Case) -> None:
    try:
        document = open_document(str(case.path), Progress())
    except CheckpointError:
        return  # the corpus test says which may be refused
    state = State(phase="ready", path=str(case.path), document=document)
    for target in presets():
        screen = compose(State(phase="ready", path=str(case.path), document=document, target=target.id))
        assert screen.banner is not None
        assert is_harmless(screen.banner.headline + screen.banner.advice)
        assert len(screen.banner.headline) < 600
        assert all(row.to in row.choices for row in screen.device_map)
        assert screen.code is not None
    here = compose(state).banner
    load = judge_load(document.checkpoint, state.machine)
    judged = Judged(checkpoint=document.checkpoint, target=state.machine, load=load)
    tone, words = short_verdict(judged, diagnose(document.checkpoint, load.safety, state.machine))
    assert here is not None
    assert tone == here.tone, (words, here.headline)  # a row of a folder is green where its banner is
    for node in range(0, len(document.tree.nodes), 7):
        for group in compose(_selecting(state, node)).tensor:
            assert all(is_harmless(name + text) for name, text in group.facts)


@pytest.mark.wide
def test_every_stored_byte_is_in_one_cell_of_the_map() -> None:
    put_through(check_map, varied(), name=lambda case: ascii(case.name), every=4)


def check_map(case: Case) -> None:
    try:
        document = open_document(str(case.path), Progress())
    except CheckpointError:
        return
    stored = sum(row.nbytes for row in document.checkpoint.storages if not row.missing)
    state = State(phase="ready", path=str(case.path), document=document)
    for by in PROPERTIES:
        page = compose(replace(state, looks_at_map=True, map_by=by)).module_map
        assert page is not None
        cells = lay_out(page.areas, 0, 500, 400).cells
        assert sum(cell.nbytes for cell in cells) == stored
        assert sum(tensors_of(page, cell) for cell in cells) == page.areas.tensors(0)
        for cell in cells:
            loose = page.areas.loose_nbytes if cell.node == 0 and cell.what in {"row", "loose"} else 0
            assert sum(parts_of(page, cell)) == cell.nbytes - loose
            assert all(map(is_harmless, (*facts_of(page, cell), *labels_of(page, cell))))


def _selecting(state: State, node: int) -> State:
    return State(phase="ready", path=state.path, document=state.document, selected=node)
