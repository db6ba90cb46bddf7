"""The table of formats as a page."""

from __future__ import annotations

from pathlib import Path

from inspector.containers.lookalikes import FOLDER_LOOKALIKES, JSON_LOOKALIKES, LOOKALIKES
from tests.formats.rows import ROWS, YES
from tests.formats.steps import STEPS

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
_READING = ("opens", "lists", "devices", "roles", "slots")
_HEAD = """\
# Formats

What is opened, and what each step of the program does with it. Each cell was tried with a genuine file: the
columns are the tests of `tests/formats/test_formats.py`, the rows stand in `tests/formats/rows.py`, and
`python -m tests.formats` writes this page. Where a step makes no sense, the cell has words of the sentence
that stands in its place.
"""


def page() -> str:
    """Return the page."""
    others = [name for name in STEPS if name not in _READING]
    return "\n".join(
        [
            _HEAD,
            "## What is read",
            "",
            *_table(_READING),
            "",
            "## What is done",
            "",
            *_table(others),
            "",
            *(f"- **{step.title}**: {step.asks} (`test_each_step[{name}]`)" for name, step in STEPS.items()),
            "",
            "## What is named",
            "",
            "These are no checkpoints of torch. They are told by their contents, with the next step.",
            "",
            "| what | what to do |",
            "| --- | --- |",
            *(f"| {row.what} | {row.remedy} |" for row in LOOKALIKES),
            *(f"| {row.what} | {row.remedy} |" for row in JSON_LOOKALIKES),
            *(f"| {row.what} (folder) | {row.remedy} |" for row in FOLDER_LOOKALIKES),
            "",
        ]
    )


def _table(names: list[str] | tuple[str, ...]) -> list[str]:
    steps = [STEPS[name] for name in names]
    return [
        f"| format | {' | '.join(step.title for step in steps)} |",
        "| --- |" + " --- |" * len(steps),
        *(f"| {row.title} | {' | '.join(_cell(step.cell(row)) for step in steps)} |" for row in ROWS),
    ]


def _cell(text: str) -> str:
    return text if text == YES or text.startswith("`") else text.replace("|", "\\|")
