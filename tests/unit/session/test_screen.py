from __future__ import annotations

import pytest

from inspector.session import screen
from inspector.session.export.page import ExportDraft, ExportWish


def test_without_a_destination_the_file_itself_is_changed() -> None:
    for destination, in_place in (("", True), ("/a.pth", False)):
        draft = ExportDraft(wish=ExportWish(), kinds=(), destination=destination, summary=())
        assert draft.in_place is in_place


def test_a_wish_asks_for_a_checked_copy_of_all() -> None:
    assert ExportWish() == ExportWish(kind="copy", cast="", ema=False, exclude="", verify="quick")


def test_parts_that_are_made_elsewhere_are_here_as_well() -> None:
    for name in screen.__all__:
        assert getattr(screen, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_part"):
        _ = screen.no_such_part
