"""Findings about a file that cannot be opened at all: what it is instead, or what became of it."""

from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.model.findings import Finding

_TITLES = {
    "html-page": "This is a web page, not the file itself",
    "lfs-pointer": "This is a pointer to the file, not the file itself",
    "not-a-checkpoint": "This is no checkpoint",
    "truncated": "The file is damaged or incomplete",
}


def diagnose_failure(error: CheckpointError) -> tuple[Finding, ...]:
    """Give the finding that says the same as an error, if there is one: errors of other kinds have none."""
    if error.finding is None:
        return ()
    remedy = "" if error.remedy is None else f" {_sentence(error.remedy)}"
    return (
        Finding(
            id=error.finding,
            severity="error",
            title=_TITLES[error.finding],
            detail=_sentence(error.what) + remedy,
        ),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
