"""What packs the program for Windows and macOS, with stand-ins for the tools of these systems."""

from __future__ import annotations

import plistlib
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from inspector import __version__
from inspector.cli.commands.completion import script

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "packaging" / "bundle" / "checkpoint-inspector.spec"


class Packager:
    """Plays PyInstaller: remembers what the spec wants of it."""

    def __init__(self, workpath: Path) -> None:
        self.workpath = workpath
        self.programs: list[dict[str, Any]] = []
        self.collected: tuple[Any, ...] = ()
        self.bundle: dict[str, Any] = {}
        self.dependencies: list[tuple[str, str, str]] = []

    def run(self) -> None:
        names = {
            "SPECPATH": str(SPEC.parent),
            "workpath": str(self.workpath),
            "Analysis": lambda scripts, datas, **_: SimpleNamespace(
                binaries=[], datas=datas, pure=[], scripts=[(path, "", "") for path in scripts]
            ),
            "PYZ": lambda pure: SimpleNamespace(dependencies=self.dependencies),
            "EXE": lambda *_, **options: self.programs.append(options) or options["name"],
            "COLLECT": lambda *parts, **_: setattr(self, "collected", parts),
            "BUNDLE": lambda _, **options: self.bundle.update(options),
        }
        exec(compile(SPEC.read_text(encoding="utf-8"), str(SPEC), "exec"), names)


@pytest.fixture
def packager(monkeypatch, tmp_path) -> Packager:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "work").mkdir()
    return Packager(tmp_path / "work")


def test_the_bundle_of_linux_is_one_program(packager, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    packager.run()
    assert [(row["name"], row["console"], row["icon"]) for row in packager.programs] == [
        ("checkpoint-inspector", True, None)
    ]
    assert packager.bundle == {}


def test_the_active_environment_stays_known_in_the_bundle(packager, tmp_path, monkeypatch):
    """PyInstaller's start removes VIRTUAL_ENV; the copy that is packed does not."""
    monkeypatch.setattr(sys, "platform", "linux")
    start = tmp_path / "pyiboot01_bootstrap.py"
    start.write_text("VIRTENV = 'VIRTUAL_ENV'\nif VIRTENV in os.environ:\n    del os.environ[VIRTENV]\n")
    packager.dependencies = [("struct", "struct.py", "PYMODULE"), (start.stem, str(start), "PYSOURCE")]
    packager.run()
    other, (name, path, kind) = packager.dependencies
    assert (other[0], name, kind) == ("struct", start.stem, "PYSOURCE")
    kept = SimpleNamespace(environ={"VIRTUAL_ENV": "/env"})
    exec(Path(path).read_text(), {"os": kept})
    assert kept.environ == {"VIRTUAL_ENV": "/env"}
    start.write_text("os.environ.pop('VIRTUAL_ENV', None)\n")
    packager.dependencies = [(start.stem, str(start), "PYSOURCE")]
    with pytest.raises(SystemExit, match="in another way"):
        packager.run()


def test_what_compares_the_bundle_knows_every_option():
    names = runpy.run_path(str(SPEC.with_name("compare.py")))
    tried = names["lines"]()
    assert names["unused_options"](tried) == []
    without = [line for line in tried if "--rank" not in line and "--undo" not in line]
    assert names["unused_options"](without) == ["remap --undo", "stats --rank"]


def test_windows_gets_a_program_without_a_console(packager, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    packager.run()
    assert [(row["name"], row["console"]) for row in packager.programs] == [
        ("checkpoint-inspector", True),
        ("checkpoint-inspector-window", False),
    ]
    assert all(Path(row["icon"]).is_file() for row in packager.programs)
    assert packager.collected[:2] == ("checkpoint-inspector", "checkpoint-inspector-window")


def test_macos_gets_an_application_with_its_types(packager, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    packager.run()
    assert packager.bundle["name"] == "Checkpoint Inspector.app"
    said = plistlib.loads(plistlib.dumps(packager.bundle["info_plist"]))
    assert said["CFBundleIdentifier"] == packager.bundle["bundle_identifier"]
    assert said["CFBundleVersion"] == packager.bundle["version"] == __version__
    assert len(said["CFBundleDocumentTypes"]) > 3


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive has no list of what is tracked")
def test_nothing_lies_at_the_root_that_the_source_archive_leaves_out():
    """What a command of a page or of a test left there would be packed and downloaded by everybody."""
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = {name.strip("/") for name in settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    tops = {line.partition("/")[0] for line in done.stdout.split("\0") if line}
    assert tops - packed == {".gitignore", "pyproject.toml"}, "hatchling adds these two by itself"


@pytest.mark.skipif(
    shutil.which("makensis") is None, reason="needs nsis, which only makes installers for Windows"
)
def test_the_installer_of_windows_is_built(tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "checkpoint-inspector.exe").touch()
    out = tmp_path / "checkpoint-inspector-windows.exe"
    given = [f"-DVERSION={__version__}", f"-DBUNDLE={tmp_path}/bundle", f"-DOUT={out}"]
    script = ROOT / "packaging" / "windows" / "installer.nsi"
    done = subprocess.run(
        ["makensis", "-V2", "-WX", *given, script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.read_bytes()[:2] == b"MZ"


def test_the_disk_image_of_macos_holds_the_application(tmp_path):
    """The script is copied, since it works in the checkout that it lies in."""
    script = tmp_path / "packaging" / "macos" / "make_dmg.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "macos" / "make_dmg.sh", script)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (
        ("plutil", 'test "$(cat "$2")" = right'),
        ("codesign", 'touch "$7/signed-as$6"'),
        ("hdiutil", 'eval "image=\\${$#}"; cp -RP build/dmg "$image"'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tools / name).chmod(0o755)

    def make(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", script, *arguments],
            env={"PATH": f"{tools}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    assert make("dist/x.dmg")[0] == 1
    plist = tmp_path / "build" / "bundle" / "Checkpoint Inspector.app" / "Contents" / "Info.plist"
    plist.parent.mkdir(parents=True)
    plist.write_text("wrong", encoding="utf-8")
    assert "is wrong" in make("dist/x.dmg")[1]
    plist.write_text("right", encoding="utf-8")
    assert make("dist/x.dmg") == (0, "make_dmg: dist/x.dmg\n")
    assert make()[0] == 1
    image = tmp_path / "dist" / "x.dmg"
    assert sorted(path.name for path in image.iterdir()) == ["Applications", "Checkpoint Inspector.app"]
    assert (image / "Applications").readlink() == Path("/Applications")
    assert (image / "Checkpoint Inspector.app" / "signed-as-").exists()
    assert not (tmp_path / "build" / "dmg").exists()


def test_packages_hold_the_completions_that_the_program_prints(tmp_path: Path, monkeypatch) -> None:
    made = ModuleType("argparse_manpage.manpage")
    made.Manpage = lambda parser, format: SimpleNamespace(parser=parser, format=format)  # noqa: A006 - its word
    monkeypatch.setitem(sys.modules, "argparse_manpage", ModuleType("argparse_manpage"))
    monkeypatch.setitem(sys.modules, "argparse_manpage.manpage", made)
    papers = runpy.run_path(str(ROOT / "packaging/linux/papers.py"))
    for _ in range(2):  # over what is there
        papers["main"](tmp_path)
    share = tmp_path / "share"
    places = {
        "bash": (share / "bash-completion/completions", ("checkpoint-inspector", "ckpti")),
        "zsh": (share / "zsh/vendor-completions", ("_checkpoint-inspector",)),
        "fish": (share / "fish/vendor_completions.d", ("checkpoint-inspector.fish", "ckpti.fish")),
    }
    for shell, (folder, names) in places.items():
        assert sorted(path.name for path in folder.iterdir()) == sorted(names)
        assert {(folder / name).read_text("utf-8") for name in names} == {script(shell)}
    assert len(list((share / "man/man1").iterdir())) == 2
