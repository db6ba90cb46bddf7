"""Makes the description in the metadata of packages: the README, without what only a checkout has.

A wheel has no pictures and no pages beside it, and there is no address to which links could lead. So pictures
are left out, links to files keep their text, and the last sentence says where the pages are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n\n?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")
_WHERE = "\n\nThe pages and pictures that this text names are in the source archive, below `docs`.\n"


def describe(readme: str) -> str:
    """Return a README for readers who have nothing beside it."""
    text = _LINK.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", readme)))
    return text.rstrip() + _WHERE


class LongDescription(MetadataHookInterface):
    """The part of hatchling that asks for it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the description where the README is declared otherwise."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": describe(readme)}
