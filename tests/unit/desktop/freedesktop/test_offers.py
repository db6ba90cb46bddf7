"""What is offered for formats of others, and what stands before it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.desktop.freedesktop import offers
from inspector.desktop.freedesktop.registration import FreedesktopRegistration
from tests.sweep import table

US = "checkpoint-inspector.desktop"
OFFERED = {
    "application/x-npy": (US,),
    "application/x-python-pickle": (US,),
    "application/x-npz": ("archives.desktop", US),
    "application/zip": ("archives.desktop", US),
}
ALONE = {name: row for name, row in OFFERED.items() if len(row) == 1}


@pytest.fixture
def gio(tmp_path, monkeypatch) -> Path:
    """A tool that says what a test writes for it; nothing for JSON."""
    tool = tmp_path / "gio"
    tool.write_text('#!/bin/sh\ncase $2 in */zip) cat "${0%/*}/said";; esac\n', encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tool


@table(
    ("said", "planned"),
    [
        ("Default application for \u201capplication/zip\u201d: archives.desktop\nRegistered:\n", OFFERED),
        ("No default applications for \u201capplication/zip\u201d\n", ALONE),
        (f"Default application for ?application/zip?: {US}\n", ALONE),
        ("Default application for x: a.desktop;b.desktop\n", ALONE),
        ("", ALONE),
    ],
)
def test_nothing_is_offered_where_nobody_is_known_to_open_it(gio, said, planned):
    gio.with_name("said").write_text(said, encoding="utf-8")
    assert offers.plan_offers(US) == planned


def test_a_tool_that_is_not_there_or_does_not_end_is_no_answer(gio, monkeypatch):
    monkeypatch.setattr(offers, "_TIMEOUT_S", 0.01)
    gio.write_text("#!/bin/sh\nexec sleep 5\n", encoding="utf-8")
    assert offers.plan_offers(US) == ALONE
    gio.write_text("#!/nowhere\n", encoding="utf-8")
    assert offers.plan_offers(US) == ALONE
    monkeypatch.setattr(offers, "find_program", lambda _: None)
    assert offers.plan_offers(US) == ALONE


def test_what_is_kept_is_read_again():
    kept = {"application/zip": "archives.desktop", "a/b": "c.desktop"}
    assert offers.parse_kept(offers.format_kept(kept)) == kept
    assert offers.parse_kept(";x;a/b:;") == {}


@pytest.mark.skipif(shutil.which("gio") is None, reason="needs gio of libglib2.0-bin")
def test_who_opens_archives_today_does_so_tomorrow(tmp_path, monkeypatch):
    """GLib finds us for archives and arrays, but first who was the default before, chosen by nobody."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    shared = tmp_path / "XDG_DATA_DIRS" / "applications"
    shared.mkdir(parents=True)
    text = "[Desktop Entry]\nType=Application\nName=A\nExec=true %f\nMimeType=application/zip;\n"
    (shared / "archives.desktop").write_text(text, encoding="utf-8")
    (shared / "mimeinfo.cache").write_text(
        "[MIME Cache]\napplication/zip=archives.desktop;\n", encoding="utf-8"
    )
    ours = FreedesktopRegistration(
        data_home=tmp_path / "XDG_DATA_HOME", config_home=tmp_path / "XDG_CONFIG_HOME"
    )
    for _ in range(2):  # the second time must not forget what the first one wrote
        ours.install(["/opt/ci"])
        for kind in ("application/zip", "application/x-npz"):
            said = subprocess.run(["gio", "mime", kind], capture_output=True, text=True, check=True).stdout
            assert said.splitlines()[0].endswith(": archives.desktop"), said
            assert US in said
    ours.remove()
    assert [name for _, _, names in os.walk(tmp_path / "XDG_CONFIG_HOME") for name in names] == []
