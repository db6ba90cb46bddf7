"""The table of errors that people meet, with what `check --error-text` answers to each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation
from tests.docs.pages import DOCS, plain

PAGE = DOCS / "troubleshooting.md"
_TABLE = Path(__file__).with_suffix(".toml")


class Trouble(NamedTuple):
    """One row.

    Attributes:
        text: What Python prints, with `...` where it differs from case to case.
        id: The answer that it must get.
        example: The whole of it, where the text alone has no numbers or names.
    """

    text: str
    id: str
    example: str = ""


def read_troubles() -> dict[str, list[Trouble]]:
    """Return the rows by their group."""
    groups: dict[str, list[Trouble]] = {}
    for row in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["trouble"]:
        groups.setdefault(row.pop("group"), []).append(Trouble(**row))
    return groups


_INTRODUCTION = """\
# Troubleshooting

The errors that people meet most, what causes them, and what to do. Each row is what the program answers to
that text without a file; with the file at hand it says more, for instance which tensors are to blame:

<!-- exit: 1 -->
```console
$ checkpoint-inspector check best.pth --target cpu --error-file traceback.txt
...
```

See [Explain a traceback](guide/traceback.md). It knows many more texts than this page. `...` stands for
what differs from case to case. This page is written by `python -m tests.docs`.
"""
_MORE = {
    "Devices": "More: [Will it load here?](guide/loading.md), [Map devices and export](guide/export.md).",
    "weights_only": "More: [Files from strangers](guide/unknown-files.md).",
    "Optimizers and training": "More: [Names of optimizer state](guide/optimizer.md).",
    "Files": "More: [Rescue a damaged file](guide/damaged.md).",
}


def answer_to(trouble: Trouble) -> Explanation:
    """Return what the program answers, without a file."""
    return explain_error(trouble.example or trouble.text, None)


def page() -> str:
    """Return the page."""
    lines = [_INTRODUCTION]
    for group, rows in read_troubles().items():
        lines += [f"## {group}\n", "| error | cause | what to do |", "| --- | --- | --- |"]
        for row in rows:
            answer = answer_to(row)
            cells = (
                f"`{row.text}`",
                f"**{plain(answer.title)}.** {plain(answer.cause)}",
                plain(answer.advice),
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
        if group in _MORE:
            lines.append(f"{_MORE[group]}\n")
    return "\n".join(lines[:-1]) + "\n"
