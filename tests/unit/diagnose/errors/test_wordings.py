"""What each row says of each of its texts, on one page; and that everything that a row can say is said."""

from __future__ import annotations

import re
import tomllib

import pytest

from inspector.diagnose.errors import explain
from inspector.diagnose.errors.explain import ERROR_KINDS, explain_error
from tests.errors_measure import PARTS, texts
from tests.unit.diagnose.messages import FOLDER, messages


def wordings() -> list[str]:
    rows = tomllib.loads((FOLDER / "wordings.toml").read_text(encoding="utf-8"))["wording"]
    return [row["text"] for row in rows]


def test_what_is_said_of_each_wording(golden) -> None:
    page = []
    for text in wordings():
        found = explain_error(text, None)
        last = text.strip().splitlines()[-1][:120]
        page += [f"> {last}", f"{found.id}, {found.finding or 'no finding'}: {found.title}"]
        page += [found.cause, found.advice, ""]
    golden("errors.txt", "\n".join(page))


def test_every_saying_has_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is put into one is there: a fact that nobody finds would leave a hole in the sentence."""
    said, holes = set(), set()
    fill = explain._filled

    def filled(text: str, facts: dict[str, str], shown: dict[str, str]) -> str:
        for name in re.findall(r"<<([\w:|]+)>>", text):
            if not any(one.rpartition(":")[2] in facts for one in name.split("|")):
                holes.add((text, name))
        said.add(text)
        return fill(text, facts, shown)

    monkeypatch.setattr(explain, "_filled", filled)
    every = [*wordings(), *(message.text for message in messages())]
    every += [text.text for part in PARTS if part != "held" for text in texts(part)]
    for text in every:
        explain_error(text, None)
    sayings = {(kind.id, text) for kind in ERROR_KINDS for one in kind.say for text in (one.title, one.cause)}
    assert holes == set()
    assert {(id_, text[:60]) for id_, text in sayings if text and text not in said} == set()
