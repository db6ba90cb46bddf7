"""The tool of macOS is called for the bundle that the program is in."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from inspector.desktop.macos import IDENTIFIER, MacRegistration, info_plist
from inspector.desktop.suffixes import KINDS
from inspector.errors import ExportError


@pytest.fixture
def bundle(tmp_path) -> Path:
    bundle = tmp_path / "Checkpoint Inspector.app"
    (bundle / "Contents" / "MacOS").mkdir(parents=True)
    (bundle / "Contents" / "Info.plist").write_bytes(b"<plist/>")
    return bundle


def registration(bundle: Path, script: str) -> MacRegistration:
    tool = bundle.parent / "lsregister"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    return MacRegistration(program=bundle / "Contents" / "MacOS" / "checkpoint-inspector", tool=tool)


def test_the_bundle_is_registered_and_forgotten(bundle):
    ours = registration(bundle, f'printf "%s\\n" "$@" >>"{bundle.parent}/said"')
    assert ours.install(["ignored"]) == ours.remove() == [bundle]
    assert (bundle.parent / "said").read_text().splitlines() == ["-f", str(bundle), "-u", str(bundle)]


@pytest.mark.parametrize(
    ("script", "said"), [("echo no room >&2; exit 1", "no room"), ("exit 1", "Checkpoint Inspector.app")]
)
def test_a_failure_is_said(bundle, script, said):
    with pytest.raises(ExportError, match=f"lsregister failed.*{said}"):
        registration(bundle, script).install([])


def test_a_tool_that_is_not_there_is_said(bundle):
    ours = MacRegistration(program=bundle / "Contents" / "MacOS" / "x", tool=bundle / "none")
    with pytest.raises(ExportError, match="lsregister could not be run"):
        ours.install([])


def test_a_program_in_no_bundle_is_told_how_files_open(tmp_path):
    (tmp_path / "x.app").mkdir()  # a folder of that name is no bundle
    for program in (tmp_path / "bin" / "python", tmp_path / "x.app" / "python"):
        with pytest.raises(ExportError, match="no") as caught:
            MacRegistration(program=program).install([])
        assert "name them to checkpoint-inspector" in str(caught.value.remedy)


def test_every_kind_has_a_type_that_is_declared():
    said = plistlib.loads(plistlib.dumps(info_plist("1.2.3")))
    assert said["CFBundleShortVersionString"] == "1.2.3"
    declared = {row["UTTypeIdentifier"]: row for row in said["UTImportedTypeDeclarations"]}
    assert len(declared) == len(KINDS) == len(said["CFBundleDocumentTypes"])
    for kind, row in zip(KINDS, said["CFBundleDocumentTypes"], strict=True):
        (name,) = row["LSItemContentTypes"]
        assert name.startswith(f"{IDENTIFIER}.")
        suffixes = declared[name]["UTTypeTagSpecification"]["public.filename-extension"]
        assert tuple(f".{suffix}" for suffix in suffixes) == kind.suffixes
        assert (row["LSHandlerRank"] == "Default") == kind.is_own
        assert row["CFBundleTypeRole"] == "Viewer"
