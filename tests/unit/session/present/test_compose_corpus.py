"""Every genuine file on every machine: the screen can be worked out, and everything on it is harmless."""

from __future__ import annotations

import pytest

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.session.document import open_document
from inspector.session.present.compose import compose
from inspector.session.state import State
from inspector.target.machine.profile import presets
from tests.corpus import Case, varied
from tests.unit.report.rows import is_harmless


@pytest.mark.wide
@pytest.mark.parametrize("case", varied(), ids=lambda case: ascii(case.name))
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
    for node in range(0, len(document.tree.nodes), 7):
        for group in compose(_selecting(state, node)).tensor:
            assert all(is_harmless(name + text) for name, text in group.facts)


def _selecting(state: State, node: int) -> State:
    return State(phase="ready", path=state.path, document=state.document, selected=node)
