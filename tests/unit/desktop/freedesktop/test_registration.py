"""Registering for one user, and taking it back without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.desktop.freedesktop import caches, registration
from inspector.desktop.freedesktop import default_apps as offers
from inspector.desktop.freedesktop.registration import FreedesktopRegistration, for_this_user
from inspector.errors import ExportError

OURS = "checkpoint-inspector.desktop"


def install(*command: str) -> list[Path]:
    return for_this_user().install(command or ["/opt/ci"])


def remove() -> list[Path]:
    return for_this_user().remove()


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(offers, "plan_offers", lambda entry: {"application/zip": ("archives.desktop", entry)})
    return tmp_path


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written(home):
    written = install("/opt/ci", "--x")
    assert [str(path.relative_to(home)) for path in written] == [
        "data/mime/packages/checkpoint-inspector.xml",
        "data/icons/hicolor/scalable/apps/checkpoint-inspector.svg",
        "data/checkpoint-inspector/launch.sh",
        "data/thumbnailers/checkpoint-inspector.thumbnailer",
        "data/applications/checkpoint-inspector.desktop",
        "config/mimeapps.list",
    ]
    assert written[1].read_bytes().lstrip().startswith(b"<")
    assert "run() { /opt/ci --x " in written[2].read_text()
    assert "Exec=/opt/ci --x screenshot " in written[3].read_text()
    assert f"Exec=/bin/sh {written[2]} %F\n" in written[4].read_text()
    assert written[5].read_text().splitlines() == [
        "[Default Applications]",
        f"application/x-pytorch-checkpoint={OURS};",
        f"application/x-pytorch-legacy-checkpoint={OURS};",
        f"application/x-pytorch-tar-checkpoint={OURS};",
        f"application/x-pytorch-distributed-checkpoint={OURS};",
        f"application/x-safetensors={OURS};",
        f"application/x-gguf={OURS};",
        "[Added Associations]",
        f"application/zip=archives.desktop;{OURS};",
    ]


def test_twice_is_the_same_as_once(home):
    install("/opt/ci")
    once = files_in(home / "config") | files_in(home / "data" / "applications")
    install("/opt/ci")
    assert files_in(home / "config") | files_in(home / "data" / "applications") == once


def test_nothing_is_left_behind(home):
    written = install()
    (written[2].parent / "moved.txt").write_text("left by the script")
    removed = remove()
    assert sorted(removed) == sorted(written)
    assert files_in(home) == {}
    assert not any((home / "data").rglob("*"))
    assert remove() == []


def test_the_user_gets_back_what_was_there(home):
    mine = home / "config" / "mimeapps.list"
    mine.parent.mkdir()
    mine.write_bytes(b"[Default Applications]\ntext/plain=vim.desktop\n# caf\xe9\n")
    other = home / "data" / "applications" / "other.desktop"
    other.parent.mkdir(parents=True)
    other.write_text("[Desktop Entry]\nType=Application\nName=Other\nExec=true\n")
    before = files_in(home)
    install()
    assert len(files_in(home)) > len(before)
    remove()
    assert remove() == []
    after = files_in(home)
    after.pop("data/applications/mimeinfo.cache", None)  # describes the other program now
    assert after == before


def test_a_registration_half_gone_is_removed_as_well(home):
    written = install()
    written[0].unlink()
    written[5].write_text("[Default Applications]\ntext/plain=vim.desktop\n")
    assert remove() == written[1:5]
    assert written[5].read_text() == "[Default Applications]\ntext/plain=vim.desktop\n"


def test_an_older_registration_is_replaced_and_goes_with_the_new_one(home):
    """The first version had four files, a launcher that named the program, and fewer types."""
    launcher = home / "data" / "applications" / OURS
    launcher.parent.mkdir(parents=True)
    launcher.write_text("[Desktop Entry]\nType=Application\nName=CI\nExec=/old/ci %F\nTryExec=/old/ci\n")
    types = home / "data" / "mime" / "packages" / "checkpoint-inspector.xml"
    types.parent.mkdir(parents=True)
    types.write_text('<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info"/>')
    defaults = home / "config" / "mimeapps.list"
    defaults.parent.mkdir()
    defaults.write_text(
        f"[Default Applications]\napplication/x-safetensors={OURS};\ntext/plain=vim.desktop\n"
    )
    install("/new/ci")
    assert "/old/ci" not in "".join(map(str, files_in(home).values()))
    remove()
    assert files_in(home) == {"config/mimeapps.list": b"[Default Applications]\ntext/plain=vim.desktop\n"}


def test_the_default_folders_are_in_the_home(home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    written = install()
    assert written[0] == home / ".local/share/mime/packages/checkpoint-inspector.xml"
    assert written[5] == home / ".config/mimeapps.list"


def test_a_failure_puts_everything_back(home, monkeypatch):
    install("/opt/first")
    before = files_in(home / "config") | files_in(home / "data" / "applications")

    def refuse(data_home):
        raise ExportError("update-mime-database failed")

    monkeypatch.setattr(caches, "refresh", refuse)
    with pytest.raises(ExportError, match="update-mime-database failed"):
        install("/opt/second")
    assert files_in(home / "config") | files_in(home / "data" / "applications") == before


def test_what_cannot_be_written_is_said_and_nothing_stays(home):
    (home / "data").mkdir()
    (home / "data" / "icons").write_text("a file where a folder should be")
    with pytest.raises(ExportError, match=r"could not be written \(Not a directory\).*icons|File exists"):
        install()
    assert files_in(home) == {"data/icons": b"a file where a folder should be"}


def test_a_list_that_cannot_be_read_is_said(home):
    (home / "config" / "mimeapps.list").mkdir(parents=True)
    with pytest.raises(ExportError, match="could not be read"):
        install()
    with pytest.raises(ExportError, match="could not be removed"):
        remove()


# ------------------------------------------------------------------ what a file manager makes of it

CHECKPOINT = "application/x-pytorch-checkpoint"
LEGACY = "application/x-pytorch-legacy-checkpoint"
TAR = "application/x-pytorch-tar-checkpoint"

needs_desktop_tools = pytest.mark.skipif(
    shutil.which("gio") is None or shutil.which("update-mime-database") is None,
    reason="needs gio (libglib2.0-bin) and update-mime-database (shared-mime-info)",
)


@pytest.fixture(scope="module")
def desktop(tmp_path_factory):
    """Register in a home of its own, with one sample a case in it."""
    folder = tmp_path_factory.mktemp("desktop")
    program = folder / "checkpoint-inspector"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    FreedesktopRegistration(data_home=folder / "data", config_home=folder / "config").install([str(program)])
    environment = os.environ | {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "LC_ALL": "C.UTF-8",
    }

    def gio(*arguments: object) -> str:
        command = ["gio", *map(str, arguments)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    return folder, gio


@needs_desktop_tools
def test_the_program_is_the_default_for_its_own_types_and_no_others(desktop):
    _, gio = desktop
    for name in (CHECKPOINT, LEGACY, TAR, "application/x-safetensors"):
        assert gio("mime", name).splitlines()[0].endswith(f": {OURS}"), name
    for name in ("text/x-python-path", "application/octet-stream"):
        assert OURS not in gio("mime", name), name
    for name in ("application/zip", "application/json"):
        assert OURS not in gio("mime", name).splitlines()[0], name


def test_a_restored_list_reads_as_before(tmp_path):
    """A default that the user had chosen for one of our types is the default again."""
    config = tmp_path / "mimeapps.list"
    config.write_text(f"[Default Applications]\n{CHECKPOINT}=netron.desktop;\n")
    before = config.read_bytes()
    ours = FreedesktopRegistration(data_home=tmp_path / "data", config_home=tmp_path)
    ours.install(["/opt/ci"])
    assert f"{CHECKPOINT}={OURS};netron.desktop;" in config.read_text()
    assert ours.remove()[-1] == config
    assert config.read_bytes() == before


def test_the_sources_name_the_same_types():
    """Every type of the launcher is described in the file types, and is no companion."""
    described = registration.resource_path("desktop/checkpoint-inspector.xml").read_text()
    for type_name in (CHECKPOINT, LEGACY, TAR, "application/x-safetensors"):
        assert f'<mime-type type="{type_name}">' in described
