"""The property list of the application, as the packager writes it."""

from __future__ import annotations

import plistlib

from inspector.desktop.macos.document_types import IDENTIFIER, info_plist
from inspector.desktop.suffixes import KINDS


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
