"""The pages for readers, and their blocks of code with the mark that stands above each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
LANGUAGES = ("console", "python", "text", "json", "markdown")
"""Languages of blocks: the first two are run, the others show what is read somewhere."""
_FENCE = re.compile(r"( *)(`{3,})(.*)")
_MARK = re.compile(r"<!-- *(?P<kind>not run|exit|output varies|in|needs)(?:: *(?P<text>.*?))? *-->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    """The number of its first line within the fence, from 1."""
    language: str
    lines: tuple[str, ...]
    indent: int
    marks: dict[str, str]

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return every page: the README, and all Markdown below `docs`."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in their order."""
    marks: dict[str, str] = {}
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        fence = _FENCE.fullmatch(line)
        mark = _MARK.fullmatch(line.strip())
        if mark:
            marks[mark["kind"]] = mark["text"] or ""
        elif fence:
            inside, indent = [], len(fence[1])
            for _, each in lines:
                if each.strip() == fence[2]:
                    break
                inside.append(each[indent:])
            yield Block(
                page=page,
                line=number + 1,
                language=fence[3].strip(),
                lines=tuple(inside),
                indent=indent,
                marks=marks,
            )
            marks = {}
        elif line.strip():
            marks = {}


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\*_|<>\[\]~`])", r"\\\1", text)
