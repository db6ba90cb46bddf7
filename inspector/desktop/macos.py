"""The registration with macOS: what `Info.plist` says of the files of the application, and Launch Services.

Untested on real hardware: the tests read the property list, and play the tool that registers a bundle. The
packager reads it from here. Types are imported, not exported, since the formats belong to others.
https://developer.apple.com/documentation/bundleresources/information-property-list/cfbundledocumenttypes
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspector.child import SAFE_FOLDER
from inspector.desktop.suffixes import KINDS, Kind
from inspector.errors import ExportError
from inspector.records import dataclass

IDENTIFIER = "io.github.checkpoint-inspector"
ICON = "checkpoint-inspector.icns"


def info_plist(version: str) -> dict[str, Any]:
    """Return the entries of `Info.plist` that the packager does not know by itself."""
    return {
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleName": "Checkpoint Inspector",
        "CFBundleDisplayName": "Checkpoint Inspector",
        "CFBundleIconFile": ICON,
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        "LSMinimumSystemVersion": "12.0",
        "NSHighResolutionCapable": True,
        "NSRequiresAquaSystemAppearance": False,
        "CFBundleDocumentTypes": [_document_type(kind) for kind in KINDS],
        "UTImportedTypeDeclarations": [_declaration(kind) for kind in KINDS],
    }


def _document_type(kind: Kind) -> dict[str, Any]:
    """Return how files of a kind are opened: `Alternate` stands under Open With, and opens none by itself."""
    return {
        "CFBundleTypeName": kind.name,
        "CFBundleTypeRole": "Viewer",
        "CFBundleTypeIconFile": ICON,
        "LSHandlerRank": "Default" if kind.is_own else "Alternate",
        "LSItemContentTypes": [_type_id(kind)],
    }


def _declaration(kind: Kind) -> dict[str, Any]:
    return {
        "UTTypeIdentifier": _type_id(kind),
        "UTTypeDescription": kind.name,
        "UTTypeConformsTo": ["public.data"],
        "UTTypeTagSpecification": {
            "public.filename-extension": [suffix.removeprefix(".") for suffix in kind.suffixes]
        },
    }


def _type_id(kind: Kind) -> str:
    return f"{IDENTIFIER}.{kind.id}"


LSREGISTER = Path(
    "/System/Library/Frameworks/CoreServices.framework/Frameworks/LaunchServices.framework/Support/lsregister"
)
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MacRegistration:
    """The registration of one user: see `inspector.desktop.registration.Registration`."""

    program: Path
    tool: Path = LSREGISTER

    def install(self, command: Sequence[str]) -> list[Path]:
        """Register the bundle that the program is in; its types stand in its `Info.plist`."""
        del command  # the bundle says by itself what starts it
        return self._run("-f")

    def remove(self) -> list[Path]:
        """Let Launch Services forget the bundle."""
        return self._run("-u")

    def _run(self, option: str) -> list[Path]:
        bundle = self._find_bundle()
        try:
            done = subprocess.run(  # noqa: S603 - a fixed tool of the system
                [self.tool, option, bundle],
                check=False,
                capture_output=True,
                cwd=SAFE_FOLDER,
                errors="replace",
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ExportError("lsregister could not be run", where=str(error)) from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise ExportError("lsregister failed", where=said[-1] if said else str(bundle))
        return [bundle]

    def _find_bundle(self) -> Path:
        for folder in self.program.parents:
            if folder.suffix == ".app" and (folder / "Contents" / "Info.plist").is_file():
                return folder
        raise ExportError(
            "on macOS only an application bundle can be registered, and this program is in none",
            where=str(self.program),
            remedy="open files from the window, or name them to checkpoint-inspector",
        )
