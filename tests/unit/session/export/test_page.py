from __future__ import annotations

from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN, Boxes, ExportDraft, ExportWish
from tests.unit.session.documents import saved_on


def test_a_box_for_several_rows_shows_what_they_have_in_common() -> None:
    states = bytes([PARTLY, WRITTEN, OUT, NO_CHOICE, WRITTEN])
    boxes = Boxes(tree=saved_on("cpu").tree, states=states)
    asked = [(1, 4), (1, 3), (1, 2), (2,), (0,), (3,), ()]
    found = [boxes.state_of(nodes) for nodes in asked]
    assert found == [WRITTEN, WRITTEN, PARTLY, OUT, PARTLY, NO_CHOICE, NO_CHOICE]


def test_a_draft_without_a_destination_changes_the_file_itself() -> None:
    assert ExportDraft(wish=ExportWish(), kinds=(), destination="", summary=()).in_place
