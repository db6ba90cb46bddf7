"""The document of `show --json` as those see it who read it."""

from __future__ import annotations

import json
from typing import Any

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.report.jsonable import write_show
from inspector.safety.verdict import SafetyVerdict
from tests.schemas import check_lines


def show_document(
    checkpoint: Checkpoint, safety: SafetyVerdict, findings: tuple[Finding, ...], *, open_seconds: float
) -> Any:
    """Return the document of one file, which is as its schema has it, and as Python would write it."""
    text = "".join(write_show(checkpoint, safety, findings, open_seconds=open_seconds))
    document = json.loads(text)
    assert text == json.dumps(document)
    check_lines("show", text)
    return document
