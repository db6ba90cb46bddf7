"""Findings about a file that cannot be opened at all: what it is instead, or what became of it."""

from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.model.findings import Finding, Severity
from inspector.safety.unread import advice, judge_unread

_TITLES = {
    "html-page": "This is a web page, not the file itself",
    "lfs-pointer": "This is a pointer to the file, not the file itself",
    "not-a-checkpoint": "This is not a checkpoint",
    "truncated": "The file is damaged or incomplete",
}
_RUNS: dict[str, tuple[str, Severity, str]] = {
    "dangerous": ("dangerous-global", "error", "Loading this file can run commands"),
    "runs-code": ("runs-code", "warning", "Loading this file runs code"),
}


def diagnose_failure(error: CheckpointError) -> tuple[Finding, ...]:
    """Return what loading the file would run all the same, and the finding that says the same as the error.

    Errors of other kinds have no finding of their own.
    """
    findings = []
    seen = judge_unread(error)
    if seen is not None and seen.sentence:
        id_, severity, title = _RUNS[seen.verdict]
        findings.append(Finding(id=id_, severity=severity, title=title, detail=seen.sentence))
    if error.finding is not None:
        remedy = advice(error, seen)
        detail = " ".join(_sentence(text) for text in (error.what, remedy) if text)
        findings.append(
            Finding(id=error.finding, severity="error", title=_TITLES[error.finding], detail=detail)
        )
    return tuple(findings)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
