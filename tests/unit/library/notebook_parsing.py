"""A page taken apart by Python's own parser: what it is made of, and its text."""

from __future__ import annotations

from html.parser import HTMLParser

TAGS = {"div", "span", "style", "details", "summary", "i"}
ATTRIBUTES = {"class", "style", "title", "open", "aria-hidden"}


class Page(HTMLParser):
    """Tags in their order, attributes, and the text outside of the style sheet; what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.wrong: list[str] = []
        self._open: list[str] = []
        self.deepest = 0
        self.feed(text)
        self.close()
        self.wrong += [f"not closed: {tag}" for tag in self._open]

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        self.deepest = max(self.deepest, self._open.count("details"))
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in TAGS or any(name not in ATTRIBUTES for name, _ in attrs):
            self.wrong.append(f"{tag} {attrs}")

    def handle_endtag(self, tag) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"closed: {tag}")

    def handle_data(self, data) -> None:
        if self._open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data) -> None:
        self.wrong.append(f"comment: {data}")
