"""The desktop's caches are rebuilt, and removed once they describe nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from inspector.desktop.freedesktop import caches
from inspector.errors import ExportError


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Stand in for all tools with a program that writes down how it was called."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("update-mime-database", "update-desktop-database", "gtk-update-icon-cache"):
        make_tool(folder / name, f'echo "${{0##*/}} $*" >>{folder}/calls')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder


def make_tool(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def test_every_cache_is_rebuilt(tools, tmp_path):
    caches.refresh(tmp_path)
    assert not (tools / "calls").exists()  # there is none
    (tmp_path / "mime" / "packages").mkdir(parents=True)
    (tmp_path / "applications").mkdir()
    icons = tmp_path / "icons" / "hicolor"
    icons.mkdir(parents=True)
    os.utime(icons, (0, 0))
    caches.refresh(tmp_path)
    assert icons.stat().st_mtime > 0
    expected = [
        f"update-mime-database {tmp_path / 'mime'}",
        f"update-desktop-database --quiet {tmp_path / 'applications'}",
    ]
    assert (tools / "calls").read_text().splitlines() == expected
    (icons / "icon-theme.cache").touch()
    (tools / "calls").unlink()
    caches.refresh(tmp_path)
    expected.append(f"gtk-update-icon-cache --quiet --force --ignore-theme-index {icons}")
    assert (tools / "calls").read_text().splitlines() == expected


def test_a_missing_tool_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "applications").mkdir()
    monkeypatch.setattr(shutil, "which", lambda path: None)
    caches.refresh(tmp_path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo first >&2; echo no room >&2; exit 1", r"^update-desktop-database failed: no room$"),
        ("exit 1", r"^update-desktop-database failed: .*applications$"),
        ("sleep 5", r"did not end within 0 s: .*applications$"),
    ],
)
def test_a_failing_tool_is_reported(tools, tmp_path, monkeypatch, body, message):
    (tmp_path / "applications").mkdir()
    make_tool(tools / "update-desktop-database", f"exec 3>&-; {body}")
    monkeypatch.setattr(caches, "TIMEOUT_S", 0.2 if "sleep" in body else 10)
    with pytest.raises(ExportError, match=message):
        caches.refresh(tmp_path)


def test_a_tool_that_cannot_start_is_reported(tmp_path, monkeypatch):
    (tmp_path / "applications").mkdir()
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / name))
    with pytest.raises(ExportError, match="could not be started"):
        caches.refresh(tmp_path)


@pytest.mark.parametrize(
    ("frozen", "original", "expected"),
    [(False, "/theirs", "/bundle"), (True, "/theirs", "/theirs"), (True, None, None)],
)
def test_tools_of_the_system_do_not_meet_the_libraries_of_a_bundle(
    tmp_path, monkeypatch, frozen, original, expected
):
    seen = {}

    def run(command, *, env, **_):
        seen.update(env)
        return subprocess.CompletedProcess(command, 0, "", "")

    (tmp_path / "applications").mkdir()
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/bundle")
    monkeypatch.delenv("LD_LIBRARY_PATH_ORIG", raising=False)
    if original is not None:
        monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", original)
    caches.refresh(tmp_path)
    assert seen.get("LD_LIBRARY_PATH") == expected


def test_caches_of_others_stay(tmp_path):
    for name in (
        "mime/packages/other.xml",
        "mime/mime.cache",
        "applications/o.desktop",
        "applications/mimeinfo.cache",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    before = sorted(tmp_path.rglob("*"))
    caches.remove_unneeded(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_caches_of_nobody_go(tmp_path):
    for name in (
        "mime/packages/x",
        "mime/mime.cache",
        "mime/globs2",
        "applications/mimeinfo.cache",
        "icons/mine",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "icons" / "hicolor" / "scalable" / "apps").mkdir(parents=True)
    caches.remove_unneeded(tmp_path)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["icons", "icons/mine", "mime", "mime/packages", "mime/packages/x"]
