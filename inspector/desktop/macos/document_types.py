"""What the `Info.plist` of the application says of its files.

The packager reads it from here. Types are imported, not exported, since the formats belong to others.
https://developer.apple.com/documentation/bundleresources/information-property-list/cfbundledocumenttypes
"""

from __future__ import annotations

from typing import Any

from inspector.desktop.suffixes import KINDS, Kind

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
