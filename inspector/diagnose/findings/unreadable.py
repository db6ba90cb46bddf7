"""Findings about a file that cannot be opened at all: what it is instead, or what became of it."""

from __future__ import annotations

from inspector.errors import CheckpointError, UnsupportedFormatError
from inspector.model.findings import Finding, Severity
from inspector.safety.unread import advice, judge_unread
from inspector.safety.words import titled, words_of

_TITLES = {
    "html-page": "This is a web page, not the file itself",
    "lfs-pointer": "This is a pointer to the file, not the file itself",
    "not-a-checkpoint": "This is not a checkpoint",
    "truncated": "The file is damaged or incomplete",
}


def diagnose_failure(error: CheckpointError) -> tuple[Finding, ...]:
    """Return what loading the file would run all the same, and the finding that says the same as the error.

    Errors of other kinds have no finding of their own.
    """
    findings = []
    seen = judge_unread(error)
    if seen is not None and seen.sentence:
        id_ = "dangerous-global" if seen.verdict == "dangerous" else "runs-code"
        severity: Severity = "warning" if seen.verdict == "runs-code" else "error"
        title = titled(words_of(seen.verdict))
        findings.append(Finding(id=id_, severity=severity, title=title, detail=seen.sentence))
    if error.finding is not None:
        remedy = advice(error, seen)
        detail = " ".join(_sentence(text) for text in (error.what, remedy) if text)
        findings.append(
            Finding(id=error.finding, severity="error", title=_TITLES[error.finding], detail=detail)
        )
    if isinstance(error, UnsupportedFormatError) and error.devices:
        findings.append(_traced(error.devices))
    return tuple(findings)


def _traced(devices: tuple[str, ...]) -> Finding:
    return Finding(
        id="traced-device",
        severity="note",
        title="A device is written in the traced code",
        detail=f"The code makes tensors on {' and '.join(devices)}: tracing wrote the device of each tensor "
        "that forward() made as a constant. torch.jit.load(map_location=...) and .to() move the parameters "
        "and leave these where they are; on another device it can end with 'Expected all tensors to be on "
        "the same device'. Trace it again on the device where it is to run, or keep what is made with "
        "device=x.device by torch.jit.script.",
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
