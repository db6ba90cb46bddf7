"""The links and pictures of the pages: where each leads, and whether that is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import ROOT

_FENCES = re.compile(r"^( *)(`{3,}).*?^\1\2`*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`+[^`\n]+`+")
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
_ELSEWHERE = ("http://", "https://", "mailto:")


def dead_links(page: Path) -> list[str]:
    """Return what is wrong with the links of a page."""
    text = _FENCES.sub("", page.read_text(encoding="utf-8"))
    wrong = []
    for link in _LINK.finditer(_CODE.sub("", text)):
        target = link["target"]
        if target.startswith(_ELSEWHERE):
            continue
        if complaint := _complaint(page, target, is_picture=bool(link["picture"]), text=link["text"]):
            wrong.append(f"{page.relative_to(ROOT)}: {target}: {complaint}")
    return wrong


def _complaint(page: Path, target: str, *, is_picture: bool, text: str) -> str:
    place, _, anchor = target.partition("#")
    path = (page.parent / place).resolve() if place else page
    if not path.is_relative_to(ROOT):
        return "leads out of the repository"
    if not path.exists():
        return "there is no such file"
    if is_picture and not text.strip():
        return "the picture has no description"
    if anchor and anchor not in anchors(path):
        return "there is no such heading"
    return ""


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges and the site make them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCES.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        name, count = slug, 0
        while name in found:
            count += 1
            name = f"{slug}-{count}"
        found.add(name)
    return found
