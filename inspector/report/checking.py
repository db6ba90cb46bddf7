"""The answer of `check` as text and JSON: does `torch.load` work there, is it safe, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from inspector.diagnose.errors.explanation import Explanation
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.doctor.diagnosis import Diagnosis
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.model.roles.device_types import DEVICE_FINDINGS
from inspector.records import as_document, dataclass
from inspector.report.jsonable import SCHEMA, Document, finding_document, fix_document
from inspector.report.machine import format_diagnosis, target_document
from inspector.report.page.blocks import Block, Line, Page, Role, page_of, plain_text, prose
from inspector.report.remedies import Remedy, load_text, loaded_path, remedies_for
from inspector.report.text import finding_lines, path_lines
from inspector.report.words.fixes import before
from inspector.report.words.machines import is_about_machine
from inspector.report.words.verdicts import (
    assumed,
    later_refusal,
    load_sentence,
    place,
    refusal_sentence,
    safety_sentence,
    shown_message,
    understood,
)
from inspector.target.default_load import DefaultLoad, Judged
from inspector.target.machine.profile import Profile
from inspector.target.simulate import LoadFailure
from inspector.target.versions import WEIGHTS_ONLY_DEFAULT, release_of
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.diagnose.script.answer import ScriptAnswer

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
        diagnoses: Why torch can or cannot use the GPUs of the machine; none for one that was not probed.
        script: What a given script does with the file, or None if none was given.
    """

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad
    findings: tuple[Finding, ...]
    explanation: Explanation | None
    diagnoses: tuple[Diagnosis, ...] = ()
    script: ScriptAnswer | None = None

    @property
    def is_good(self) -> bool:
        """Whether the file loads on the target and holds only weights; with a script, whether that works."""
        return self.loads and self.load.is_safe if self.script is None else self.script.is_good

    @property
    def loads(self) -> bool:
        """Whether nothing stops `torch.load(path)` there, nor does the memory run out."""
        return self.load.loads and self.overflow is None

    @property
    def overflow(self) -> Finding | None:
        """What does not fit: the load itself, or the map onto the device that is wanted."""
        ids = {"does-not-fit"} if self.target.wanted is None else {"does-not-fit", MAP_DOES_NOT_FIT}
        return next((finding for finding in self.findings if finding.id in ids), None)

    @property
    def judged(self) -> Judged:
        """What the lines to be pasted are for."""
        return Judged(checkpoint=self.checkpoint, target=self.target, load=self.load)


def check_document(check: Check) -> Document:
    """Return the document of `check --json`, as the command line's contract fixes it."""
    failure = check.load.failure
    document = {
        "schema": SCHEMA,
        "path": check.checkpoint.path,
        "target": target_document(check.target),
        "loads": check.loads,
        "error": None if failure is None else failure.message,
        "safe": check.load.is_safe,
        "findings": [
            {**finding_document(finding), "fix": _fix_document(finding.fix, check.judged)}
            for finding in check.findings
        ],
        "diagnoses": as_document(check.diagnoses),
    }
    if check.explanation is not None:
        document["explanation"] = explanation_document(check.explanation, check.judged)
    if check.script is not None:
        from inspector.report.scripts import script_document  # noqa: PLC0415 - most runs follow no script

        document["script"] = script_document(check.script)
    return document


def explanation_document(explanation: Explanation, judged: Judged | None = None) -> Document:
    """Return the explanation of an error text; `finding` is null where no finding is about the same."""
    return {
        **as_document(explanation),
        "finding": explanation.finding or None,
        "fix": _fix_document(explanation.fix, judged),
    }


def _fix_document(fix: Fix | None, judged: Judged | None) -> Document | None:
    """Return a fix and, where the file is known, the lines that carry it out, the shortest first."""
    if fix is None:
        return None
    remedies = () if judged is None else remedies_for(fix, judged)
    lines = [{"kind": one.kind, "language": one.language, "text": one.text} for one in remedies]
    return {**fix_document(fix), "lines": lines}


def _script(answer: ScriptAnswer, check: Check) -> Iterator[Block]:
    """Yield what a script does with the file, and the file's own verdict in a line."""
    from inspector.report.scripts import script_lines  # noqa: PLC0415 - most runs judge no script

    yield from script_lines(answer)
    yield Line("")
    does = "loads" if check.loads else "does not load"
    yield from prose(
        f"{check.checkpoint.path} by itself {does} there by default. {safety_sentence(check.load)}", ""
    )


def format_check(check: Check) -> str:
    """Return the answer as plain text, see `check_page`."""
    return plain_text(check_page(check))


def check_page(check: Check) -> Page:
    """Return the answer: the verdict and its error, the explanation, the machine, the findings."""
    failure = check.load.last_error
    needs_device = failure is not None and failure.finding in DEVICE_FINDINGS
    if check.script is not None:
        explained = () if check.explanation is None else explanation_lines(check.explanation, check.judged)
        return page_of(_script(check.script, check), explained)
    return page_of(
        _verdict(check),
        () if check.explanation is None else explanation_lines(check.explanation, check.judged),
        machine_lines(check.diagnoses, is_asked=needs_device or is_about_machine(check.explanation)),
        _findings(check),
    )


def explanation_lines(explanation: Explanation, judged: Judged | None = None) -> Iterator[Block]:
    """Yield the explanation of an error text; without a file there are no lines to paste."""
    yield Line("The error", "heading")
    yield from prose(f"{explanation.title}.", _INDENT)
    if explanation.quoted:
        yield from prose(f'"{explanation.quoted}"', _INDENT)
    for heading, text in (
        ("Your line", explanation.where),
        ("Why", explanation.cause),
        ("In this file", explanation.here),
        ("What to do", explanation.advice),
    ):
        if text:
            yield from prose(f"{heading}: {text}", _INDENT)
    yield from path_lines(explanation.paths, explanation.count)
    if judged is not None:
        yield from _remedies(remedies_for(explanation.fix, judged))
    if explanation.also:
        yield from prose(f"Also in the text: {'; '.join(explanation.also)}.", _INDENT)


def machine_lines(diagnoses: tuple[Diagnosis, ...], *, is_asked: bool) -> Iterator[Block]:
    """Yield why torch does not find a device on the machine; what works is left out where nobody asked."""
    shown = [diagnosis for diagnosis in diagnoses if is_asked or diagnosis.severity == "error"]
    if shown:
        yield Line("The machine", "heading")
    for diagnosis in shown:
        yield from format_diagnosis(diagnosis)


def _verdict(check: Check) -> Iterator[Block]:
    yield Line(escape_text(check.checkpoint.path), "file")
    target = check.target
    if target.wanted is not None:
        yield Line(f"Target: {escape_text(understood(target))}.", indent=_INDENT)
    yield from prose(assumed(target), _INDENT)
    where = escape_text(target.label if target.id == "this" else place(target))
    load = check.load
    call = _call(check)
    if load.way == "unsure":
        yield Line(f"LOADS on {where}, as far as it could be read.", "caution", _INDENT)
    elif load.failure is None and check.overflow is not None:
        what = f"{call} runs out of memory" if check.overflow.id == "does-not-fit" else check.overflow.title
        said = escape_text(f"DOES NOT FIT on {where}: {what}.")
        yield Line(said, "bad", _INDENT, wraps=True)
    elif load.failure is None:
        yield Line(f"LOADS on {where}: {call} works there.", "good", _INDENT)
    else:
        yield Line(f"DOES NOT LOAD on {where}: {call} stops with", "bad", _INDENT)
        yield from _stopped(load, load.failure)
    yield from _further(load, where, is_restricted=_is_restricted(target))
    yield from _remedies(_first(check))
    yield Line(safety_sentence(load), _safety_role(load), _INDENT)


def _safety_role(load: DefaultLoad) -> Role:
    if load.is_safe:
        return "good"
    return "bad" if load.safety.may_harm else "caution"


def _call(check: Check) -> str:
    """Return the call that the verdict is about; of several files that of the file that it stops at."""
    checkpoint, load = check.checkpoint, check.load
    failing = "" if load.failure is None else load.failure.storage
    part = next((row.part for row in checkpoint.storages if failing and row.key == failing), "")
    if load.failure is not None and not failing:
        part = next(
            (_path_of(check, use.part) for use in checkpoint.globals if use.name in load.safety.answer.names),
            "",
        )
    if not part and checkpoint.parts and load.failure is None and load.loader == "torch.load":
        return f"loading each of its {len(checkpoint.parts)} files"
    return load_text(part or loaded_path(checkpoint.path), loader=load.loader)


def _path_of(check: Check, name: str) -> str:
    """Return the path of one of several files by its name."""
    return next((part.path for part in check.checkpoint.parts if name and part.path.endswith(name)), "")


def _first(check: Check) -> tuple[Remedy, ...]:
    """Return the lines that make the file load; they are what most readers came for."""
    answer = _answer(check)
    return () if answer is None else remedies_for(answer.fix, check.judged)


def _answer(check: Check) -> Finding | None:
    """Return the finding about what stops the load, or what stops it once its names are allowed."""
    wanted = [one.finding for one in (check.load.last_error, check.load.failure) if one is not None]
    found = {finding.id: finding for finding in reversed(check.findings) if finding.fix is not None}
    return next((found[id_] for id_ in wanted if id_ in found), None)


def _is_restricted(target: Profile) -> bool:
    """Return whether the machine's torch takes `weights_only` for True where nothing is said."""
    return release_of(target.torch_version) >= WEIGHTS_ONLY_DEFAULT


def _further(load: DefaultLoad, where: str, *, is_restricted: bool) -> Iterator[Block]:
    """Yield what happens beyond the default call: with names allowed, or with weights_only=False."""
    stop = load.last_error
    if load.way in {"unchecked", "names", "full"} and stop is None:
        yield from prose(load_sentence(load, where), _INDENT)
    elif stop is not None and load.is_refused_first:
        yield from prose(f"{refusal_sentence(load)} Then it stops with", _INDENT)
        yield from _stopped(load, stop)
    elif is_restricted:
        yield from prose(later_refusal(load), _INDENT)


def _stopped(load: DefaultLoad, failure: LoadFailure) -> Iterator[Block]:
    yield from _message(shown_message(load, failure))
    if failure.tensor:
        yield Line(escape_text(f"at the tensor {failure.tensor}."), "more", _INDENT, wraps=True)


def _message(message: str) -> Iterator[Block]:
    """Yield torch's message with its own line breaks, and without its escape codes for bold type."""
    for code in _BOLD:
        message = message.replace(code, "")
    for line in message.split("\n"):
        yield from prose(line.strip(), "      ")


def _findings(check: Check) -> Iterator[Block]:
    if not check.findings:
        yield Line("Nothing else to report.")
        return
    answer = _answer(check)
    yield Line("Findings", "heading")
    for finding in check.findings:
        yield from finding_lines(finding)
        if finding is not answer:
            yield from _remedies(remedies_for(finding.fix, check.judged))


def _remedies(remedies: Iterable[Remedy]) -> Iterator[Block]:
    """Yield lines to be pasted, each on a line of its own, whatever its length."""
    for number, remedy in enumerate(remedies):
        yield Line(before(remedy.kind, is_first=not number), indent="     ")
        yield Line(remedy.text, "code", "       ")
