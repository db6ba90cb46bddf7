"""The error messages of tests/data/errors: each with where it was seen and what must recognize it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "errors"
FILES = ("messages.toml", "raised.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message.

    Attributes:
        source: The thread, or the source file, that it was seen in.
        text: The text.
        id: The row that must recognize it.
        finding: The id of the finding that it belongs to; empty where none does.
        torch: The torch that said it, where that is known.
    """

    source: str
    text: str
    id: str
    finding: str = ""
    torch: str = ""


def messages() -> list[Message]:
    """All of them, in the order of the files."""
    documents = [tomllib.loads((FOLDER / name).read_text(encoding="utf-8")) for name in FILES]
    return [Message(**message) for document in documents for message in document["message"]]
