"""Check the built site: it asks no other host for anything, and finds all that it asks for.

python -m tests.docs.site FOLDER
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote

_HTML = re.compile(
    r"<(?P<tag>\w+)\b[^>]*?\s(?P<name>src|href|srcset|data|poster|action)=\"(?P<target>[^\"]*)\"",
    re.IGNORECASE,
)
_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?(?P<target>[^'\")\s;]+)")
_ELSEWHERE = re.compile(r"(?:https?:)?//|wss?:", re.IGNORECASE)
_MET_BY_A_CLICK = {"a"}


def complaints(folder: Path) -> list[str]:
    """Return what is wrong with the pages and style sheets in a folder."""
    wrong = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".html", ".css"}:
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(folder)
            wrong += [f"{name}: {each}" for each in _targets(path, text)]
    return wrong


def _targets(path: Path, text: str) -> list[str]:
    wrong = []
    found = (
        [(each["tag"].lower(), each["target"]) for each in _HTML.finditer(text)]
        if path.suffix == ".html"
        else []
    )
    found += [("css", each["target"]) for each in _CSS.finditer(text) if path.suffix == ".css"]
    for tag, target in found:
        if target.startswith(("data:", "#", "mailto:")) or not target:
            continue
        if _ELSEWHERE.match(target):
            if tag not in _MET_BY_A_CLICK:
                wrong.append(f"asks another host for {target}")
        elif not _exists(path, target):
            wrong.append(f"{target} is not there")
    return wrong


def _exists(path: Path, target: str) -> bool:
    place = unquote(re.split(r"[?#]", target)[0])
    return not place or (path.parent / place).exists()


if __name__ == "__main__":
    sys.exit("\n".join(complaints(Path(sys.argv[1]))) or 0)
