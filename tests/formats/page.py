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
_FOLDERS = (
    ("a pipeline of diffusers", "`model_index.json`", "each part that it names"),
    ("a checkpoint of SpeechBrain", "`CKPT.yaml`", "each `.ckpt` file"),
    (
        "several adapters of PEFT",
        "`adapter_config.json`, in a subfolder, too",
        "each adapter, the first as `default`",
    ),
    ("a memory-mapped TensorDict", "`meta.json` that names its class", "its keys"),
    ("DCP", "`.metadata`", "its keys"),
    ("DeepSpeed, Megatron-LM", "files of ranks, `latest...`", "weights, optimizer, files"),
    (
        "a trainer's or accelerate's",
        "a model beside `optimizer...`, `random_states_...` or its configuration",
        "each file",
    ),
    ("a model in several files", "an index, `....index.json`", "its tensors"),
)
_WHAT_A_FOLDER_IS = """\
Files in a folder tell what it is, in this order. A folder with none of them is one of checkpoints (epochs,
runs), each of which `check`, `show` and the window open by itself.
"""
_WHAT_IS_TAKEN = """
Of several files of the same weights the one is shown that the loader takes, and the others are named:
safetensors before `.bin`, and no variant (`model.fp16.safetensors`) beside a file without one. A variant
alone loads with `variant="fp16"` only. Every pickle in the folder counts for its safety, taken or not, as
does Python beside a pipeline. What an index names outside of the folder, by `..`, an absolute path or a
link, is not read, and such a folder is never safe. `show --filter unet` shows one branch, and `export
--only unet -o OUT` writes it alone.
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
            "## What a folder is",
            "",
            _WHAT_A_FOLDER_IS,
            "| one checkpoint | what tells it | its branches |",
            "| --- | --- | --- |",
            *(f"| {' | '.join(row)} |" for row in _FOLDERS),
            *_WHAT_IS_TAKEN.splitlines(),
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
