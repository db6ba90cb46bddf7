"""The answer of `check` as text and JSON: does `torch.load` work there, is it safe, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from inspector.diagnose.errors.explanation import Explanation
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.records import as_document, dataclass
from inspector.report.jsonable import SCHEMA, Document, finding_document, fix_document
from inspector.report.machine import target_document
from inspector.report.text import finding_lines, path_lines, wrapped_lines
from inspector.report.words.verdicts import (
    load_sentence,
    place,
    refusal_sentence,
    safety_sentence,
    shown_message,
)
from inspector.target.default_load import DefaultLoad
from inspector.target.machine.profile import Profile
from inspector.target.simulate import LoadFailure
from inspector.units import escape_text

_INDENT = "  "
_BOLD = ("\x1b[1m", "\x1b[0m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What `check` found.

    Attributes:
        checkpoint: The file.
        target: The machine.
        load: What `torch.load(path)` does there, and how safe that is.
        findings: The findings, worst first.
        explanation: What a given error text means, or None if none was given.
    """

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad
    findings: tuple[Finding, ...]
    explanation: Explanation | None

    @property
    def is_good(self) -> bool:
        """Whether the file loads on the target and holds nothing but weights."""
        return self.load.loads and self.load.is_safe


def check_document(check: Check) -> Document:
    """Return the document of `check --json`, as the command line's contract fixes it."""
    failure = check.load.failure
    document = {
        "schema": SCHEMA,
        "path": check.checkpoint.path,
        "target": target_document(check.target),
        "loads": check.load.loads,
        "error": None if failure is None else failure.message,
        "safe": check.load.is_safe,
        "findings": [finding_document(finding) for finding in check.findings],
    }
    if check.explanation is not None:
        document["explanation"] = explanation_document(check.explanation)
    return document


def explanation_document(explanation: Explanation) -> Document:
    """Return the explanation of an error text; `finding` is null where no finding is about the same."""
    return {
        **as_document(explanation),
        "finding": explanation.finding or None,
        "fix": None if explanation.fix is None else fix_document(explanation.fix),
    }


def format_check(check: Check) -> str:
    """Return the answer as text: the verdict and its error, then the explanation and the findings."""
    sections = (
        _verdict(check),
        () if check.explanation is None else explanation_lines(check.explanation),
        _findings(check.findings),
    )
    texts = ("\n".join(section) for section in sections)
    return "\n\n".join(text for text in texts if text) + "\n"


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the explanation of an error text."""
    yield "The error"
    yield from wrapped_lines(f"{explanation.title}.", _INDENT)
    if explanation.quoted:
        yield from wrapped_lines(f'"{explanation.quoted}"', _INDENT)
    for heading, text in (
        ("Why", explanation.cause),
        ("In this file", explanation.here),
        ("What to do", explanation.advice),
    ):
        yield from wrapped_lines(f"{heading}: {text}", _INDENT)
    yield from path_lines(explanation.paths, explanation.count)
    yield from _fix(explanation.fix)
    if explanation.also:
        yield from wrapped_lines(f"Also in the text: {'; '.join(explanation.also)}.", _INDENT)
    if explanation.checked:
        yield f"{_INDENT}Looked for:"
        yield from (f"     - {what}" for what in explanation.checked)


def _verdict(check: Check) -> Iterator[str]:
    yield escape_text(check.checkpoint.path)
    target = check.target
    where = escape_text(target.label if target.id == "this" else place(target))
    load = check.load
    if load.way == "unsure":
        yield f"{_INDENT}LOADS on {where}, as far as it could be read."
    elif load.failure is None:
        yield f"{_INDENT}LOADS on {where}: torch.load(path) works there."
    else:
        yield f"{_INDENT}DOES NOT LOAD on {where}: torch.load(path) stops with"
        yield from _stopped(load, load.failure)
    yield from _further(load, where)
    yield f"{_INDENT}{safety_sentence(load)}"


def _further(load: DefaultLoad, where: str) -> Iterator[str]:
    """Yield what happens beyond the default call: with names allowed, or with weights_only=False."""
    stop = load.last_error
    if load.way in {"unchecked", "names", "full"} and stop is None:
        yield from wrapped_lines(load_sentence(load, where), _INDENT)
    elif stop is not None and load.is_refused_first:
        yield from wrapped_lines(f"{refusal_sentence(load)} Then it stops with", _INDENT)
        yield from _stopped(load, stop)


def _stopped(load: DefaultLoad, failure: LoadFailure) -> Iterator[str]:
    yield from _message(shown_message(load, failure))
    if failure.tensor:
        yield from wrapped_lines(f"at the tensor {failure.tensor}.", _INDENT)


def _message(message: str) -> Iterator[str]:
    """Yield torch's message with its own line breaks, and without its escape codes for bold type."""
    for code in _BOLD:
        message = message.replace(code, "")
    for line in message.split("\n"):
        yield from wrapped_lines(line.strip(), "      ")


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    if not findings:
        yield "Nothing else to report."
        return
    yield "Findings"
    for finding in findings:
        yield from finding_lines(finding)
        yield from _fix(finding.fix)


def _fix(fix: Fix | None) -> Iterator[str]:
    """Yield the command or the argument that fixes it."""
    if fix is None:
        return
    if fix.kind == "rule":
        # A rule names devices and paths out of the file, and this line will be pasted into a shell.
        done = f"checkpoint-inspector remap FILE -o OUT --map {quote(escape_text(fix.rule))}"
    elif fix.option is not None:
        done = f"torch.load(path, {fix.option[0]}={fix.option[1]})"
    else:
        done = f"checkpoint-inspector snippet FILE --style {fix.style}"
    yield f"     => {done}"
