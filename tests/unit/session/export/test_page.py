from __future__ import annotations

import pytest

from inspector.session.export.page import ExportDraft, ExportWish


@pytest.mark.parametrize(("destination", "in_place"), [("", True), ("/a.pth", False)])
def test_without_a_destination_the_file_itself_is_changed(destination: str, in_place: bool) -> None:
    draft = ExportDraft(wish=ExportWish(), kinds=(), destination=destination, summary=())
    assert draft.in_place is in_place


def test_a_wish_asks_for_a_checked_copy_of_all() -> None:
    assert ExportWish() == ExportWish(kind="copy", cast="", ema=False, exclude="", verify="quick")
