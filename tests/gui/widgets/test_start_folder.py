from __future__ import annotations

import os
from pathlib import Path

from inspector.child import SAFE_FOLDER
from inspector.gui.widgets.path_text import leave_start_folder, start_folder


def test_the_window_leaves_the_folder_and_its_dialogs_begin_there(qapp, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = qapp.property("startFolder")
    leave_start_folder(qapp)
    assert Path.cwd() == Path(SAFE_FOLDER)
    assert start_folder() == str(tmp_path)
    qapp.setProperty("startFolder", before)
    assert start_folder() == (before or "")


def test_a_folder_that_is_gone_is_no_drama(qapp, monkeypatch) -> None:
    def fail() -> str:
        raise FileNotFoundError

    before = Path.cwd()
    monkeypatch.setattr(os, "getcwd", fail)
    leave_start_folder(qapp)
    monkeypatch.undo()
    assert Path.cwd() == before
