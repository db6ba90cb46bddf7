from __future__ import annotations

import os

import pytest
from PySide6.QtCore import QByteArray, QSettings

from inspector.gui.settings import MOST_RECENT, Settings


@pytest.fixture(autouse=True)
def _empty_store():
    QSettings("checkpoint-inspector", "checkpoint-inspector").clear()


def test_recent_files_are_remembered_and_nobody_looks_for_them(monkeypatch):
    """One on a network that is gone would stop the start, and each look at the menu."""

    def looked(*_given: object, **_named: object) -> None:
        raise AssertionError("looked at the file")

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, looked)
    paths = tuple(f"/net/gone/{number}.pth" for number in range(12))
    Settings().keep_recent(paths)
    assert Settings().recent == paths[:MOST_RECENT]
    Settings().keep_recent(paths[1:2])
    assert Settings().recent == (paths[1], paths[0], *paths[2:MOST_RECENT])
    Settings().drop_recent(paths[0])
    assert Settings().recent == (paths[1], *paths[2:MOST_RECENT])


def test_a_list_that_somebody_else_wrote_is_no_longer_than_ours():
    QSettings("checkpoint-inspector", "checkpoint-inspector").setValue("recent", ["/a"] * 500)
    assert Settings().recent == ("/a",) * MOST_RECENT


def test_names_that_are_no_text_come_back_whole():
    paths = ("/runs/b\udcff\udce9st.pth", "/runs/best 100%41.pth", "/runs/b\u00e4st.pth")
    settings = Settings()
    settings.keep_recent(paths)
    settings._store.sync()
    assert Settings().recent == paths
    Settings().keep_recent(paths[:1])
    assert Settings().recent == paths


@pytest.mark.parametrize("count", [0, 1, 2])
def test_lists_of_any_length_come_back(tmp_path, count):
    paths = tuple(str(tmp_path / f"{number}.pth") for number in range(count))
    for path in paths:
        (tmp_path / path).touch()
    settings = Settings()
    settings.keep_recent(paths)
    settings._store.sync()
    assert Settings().recent == paths


def test_the_size_of_text_is_remembered_and_nonsense_is_not_believed():
    assert Settings().zoom == 100
    Settings().keep_zoom(150)
    assert Settings().zoom == 150
    for nonsense in ("-5", "1e9", ["150"], ""):
        QSettings("checkpoint-inspector", "checkpoint-inspector").setValue("zoom", nonsense)
        assert Settings().zoom == 100


def test_the_theme_is_remembered_and_nonsense_is_not_believed():
    assert Settings().theme == "system"
    Settings().keep_theme("dark")
    assert Settings().theme == "dark"
    Settings().keep_theme("pink")
    assert Settings().theme == "system"


def test_the_python_is_remembered():
    assert Settings().python == ""
    Settings().keep_python("/usr/bin/python3")
    assert Settings().python == "/usr/bin/python3"


def test_the_layout_is_remembered():
    assert Settings().layout("window") is None
    Settings().keep_layout("window", QByteArray(b"abc"))
    assert Settings().layout("window") == QByteArray(b"abc")


def test_a_fresh_start_neither_reads_nor_keeps(tmp_path):
    Settings().keep_theme("dark")
    fresh = Settings(fresh=True)
    fresh.keep_recent((str(tmp_path),))
    fresh.keep_theme("light")
    assert (fresh.theme, fresh.recent, fresh.layout("window")) == ("system", (), None)
    assert (Settings().theme, Settings().recent) == ("dark", ())


def test_what_may_move_is_remembered():
    assert not Settings().is_still
    Settings().keep_still(still=True)
    assert Settings().is_still
    Settings().keep_still(still=False)
    assert not Settings().is_still
    Settings(fresh=True).keep_still(still=True)
    assert not Settings().is_still
