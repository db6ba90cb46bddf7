from __future__ import annotations

from inspector.session.export.page import ExportDraft, ExportWish


def test_without_a_destination_the_file_itself_is_changed() -> None:
    for destination, in_place in (("", True), ("/a.pth", False)):
        draft = ExportDraft(wish=ExportWish(), kinds=(), destination=destination, summary=())
        assert draft.in_place is in_place


def test_a_wish_asks_for_a_checked_copy_of_all() -> None:
    assert ExportWish() == ExportWish(kind="copy", cast="", ema=False, exclude="", verify="quick")
