"""The answer of `check` as text and JSON: does `torch.load` work there, is it safe, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inspector.diagnose.errors.explanation import Explanation
from inspector.doctor.diagnosis import Diagnosis
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.model.roles.devices import DEVICE_FINDINGS
from inspector.records import as_document, dataclass
from inspector.report.jsonable import SCHEMA, Document, finding_document, fix_document
from inspector.report.machine import format_diagnosis, target_document
from inspector.report.page import Block, Line, Page, Role, page_of, plain_text, prose
from inspector.report.remedies import Remedy, first_remedies, load_text, loaded_path, remedies_for
from inspector.report.text import finding_lines, path_lines
from inspector.report.words.formats import before, is_about_machine
from inspector.report.words.verdicts import (
    Verdict,
    assumed,
    is_unforeseen,
    load_verdict,
    overflow_among,
    place,
    safety_sentence,
    shown_message,
    understood,
)
from inspector.target.call import CUT, behind_message, short_message
from inspector.target.opening import OTHER_LOADER
from inspector.target.profile import Profile
from inspector.target.simulate import DefaultLoad, Judged, LoadFailure
from inspector.units import escape_text, format_count, unescaped_path

if TYPE_CHECKING:
    from inspector.diagnose.script.answer import ScriptAnswer

_INDENT = "  "
_OF_CODE = frozenset({"whole-module", "needs-allow-list", "runs-code", "dangerous-global"})
"""Findings that the two lines of the verdict say, with the names that matter."""
_WELL = frozenset({"gpu-works", "no-gpu", "toolkit-does-not-matter"})
"""Diagnoses of a machine on which nothing is wrong."""
_BOLD = ("\x1b[1m", "\x1b[0m")


class Sought(NamedTuple):
    """What findings are to be about.

    Attributes:
        paths: The rows that the query finds.
        nothing: Why there are none; empty where there are.
    """

    query: str
    paths: frozenset[str]
    nothing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What `check` found.

    Attributes:
        load: What `torch.load(path)` does there, and how safe that is.
        explanation: What a given error text means, or None if none was given.
        diagnoses: Why torch can or cannot use the GPUs of the machine; none for one that was not probed.
        script: What a given script does with the file, or None if none was given.
        sought: What findings are to be about; the verdict is about the whole file all the same.
    """

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad
    findings: tuple[Finding, ...]
    explanation: Explanation | None
    diagnoses: tuple[Diagnosis, ...] = ()
    script: ScriptAnswer | None = None
    sought: Sought | None = None

    @property
    def listed(self) -> tuple[Finding, ...]:
        """The findings that are asked for."""
        return tuple(one for one in self.findings if self.sought is None or one.paths)

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
        return overflow_among(self.findings, self.target)

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
            for finding in check.listed
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


def format_check(check: Check, *, is_full: bool = False) -> str:
    """Return the answer as plain text, see `check_page`."""
    return plain_text(check_page(check, is_full=is_full))


def check_page(check: Check, *, is_full: bool = False) -> Page:
    """Return the answer: danger, the verdict, the line that works, and what the findings say beyond that.

    With a script or an error, its answer comes first, then a line about the file, then the findings that are
    about the same tensors.

    Args:
        is_full: Whether to say all that is known: every finding, the machine, torch's whole errors.
    """
    if check.script is None and check.explanation is None:
        head: list[Iterable[Block]] = [_verdict(check, is_full=is_full)]
    else:
        head = [_danger(check), *_asked(check), _in_a_line(check)]
    return page_of(
        *head,
        machine_lines(check.diagnoses if is_full else _ailing(check)),
        _findings(check, check.listed if is_full or check.sought else tuple(_further(check))),
    )


def concise_line(check: Check) -> str:
    """Return the answer in a line: whether the file loads and is safe, and what makes it load or why not.

    The first colon with a blank behind it ends the path.
    """
    target, load = check.target, check.load
    where = "this machine" if target.id == "this" else target.wanted or target.id
    does = "YES" if check.is_good else "NO"
    if check.is_good:
        why = ""
    elif check.loads or load.safety.may_harm or load.way in {"names", "full"}:
        why = safety_sentence(load).removesuffix(".")
    else:
        call = next((one.text for one in _first(check) if one.kind == "load"), "")
        argument = (
            call.removeprefix(load_text(check.checkpoint.path)[:-1]).removeprefix(", ").removesuffix(")")
        )
        why = argument or _loading(check).why
    path = check.checkpoint.path.replace(": ", r"\u003a ")
    return escape_text(f"{path}: {does} on {where}{f': {why}' if why else ''}")


def _asked(check: Check) -> Iterator[Iterable[Block]]:
    """Yield the answers to a script and to an error."""
    if check.script is not None:
        from inspector.report.scripts import script_lines  # noqa: PLC0415 - most runs judge no script

        yield script_lines(check.script)
    if check.explanation is not None:
        yield explanation_lines(check.explanation, check.judged)


def _in_a_line(check: Check) -> Iterator[Block]:
    """Yield the verdict on the file by itself."""
    safety = "" if check.load.safety.may_harm else f" {safety_sentence(check.load)}"
    yield from prose(f"{check.checkpoint.path} by itself: {_loading(check).sentence()}{safety}", "")


def _danger(check: Check) -> Iterator[Block]:
    """Yield what keeps a file from being loaded at all."""
    if check.load.safety.may_harm:
        yield Line(escape_text(safety_sentence(check.load)), "bad", _INDENT, wraps=True)


def _further(check: Check) -> Iterator[Finding]:
    """Yield the findings that say something else than the verdict and the answers before them."""
    failures = [one for one in (check.load.failure, check.load.last_error) if one is not None]
    said = {OTHER_LOADER, *_OF_CODE, *(one.finding for one in failures)}
    said |= DEVICE_FINDINGS if any(one.device for one in failures) else frozenset()
    found = [one for one in check.findings if one.id not in said and one is not check.overflow]
    explained = check.explanation
    if explained is not None:
        paths = set(explained.paths)
        yield from (one for one in found if one.id != explained.finding and paths.intersection(one.paths))
    elif check.script is None:
        yield from found


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


def machine_lines(diagnoses: Iterable[Diagnosis]) -> Iterator[Block]:
    """Yield what the GPU doctor says of the machine."""
    for number, diagnosis in enumerate(diagnoses):
        if not number:
            yield Line("The machine", "heading")
        yield from format_diagnosis(diagnosis)


def _ailing(check: Check) -> Iterator[Diagnosis]:
    """Yield what the verdict does not say: why a device is not there that the load needs, what is broken."""
    stop = check.load.last_error
    needs_device = stop is not None and stop.finding in DEVICE_FINDINGS
    needs_device |= is_about_machine(check.explanation)
    for one in check.diagnoses:
        if one.severity == "error" or (needs_device and one.id not in _WELL):
            yield one


def _verdict(check: Check, *, is_full: bool) -> Iterator[Block]:
    yield Line(escape_text(check.checkpoint.path), "file")
    yield from _danger(check)
    target, load, verdict = check.target, check.load, _loading(check)
    if target.wanted is not None:
        yield Line(f"Target: {escape_text(understood(target))}.", indent=_INDENT)
    yield from prose(assumed(target), _INDENT)
    wraps = verdict.does != "loads"  # the call is pasted
    yield Line(escape_text(verdict.sentence()), verdict.role, _INDENT, wraps=wraps)
    if not load.safety.may_harm:
        role: Role = "good" if load.is_safe else "caution"
        yield Line(escape_text(safety_sentence(load)), role, _INDENT, wraps=True)
    first = _first(check)
    yield from _remedies(first, is_full=is_full)
    if load.failure is None and check.overflow is not None:
        says = check.overflow.detail
        yield from prose(says.partition(": ")[2] if check.overflow.id == "does-not-fit" else says, _INDENT)
    failures = [one for one in (load.failure, load.last_error) if one is not None]
    if not first:
        yield from prose(_way_out(check), _INDENT)
    speaker = _call(check) if check.checkpoint.parts else load.loader
    if is_unforeseen(check.judged):
        return
    if is_full:
        for failure in dict.fromkeys(failures):
            yield Line(f"{speaker} says:", indent=_INDENT)
            yield from _stopped(load, failure)
    else:
        for failure in failures[:1]:
            said = short_message(failure.message)
            more = " (--full shows the rest)" if said.endswith(CUT) else ""
            yield from prose(f"{speaker} says: {said}{more}", _INDENT, hang="      ")


def _way_out(check: Check) -> str:
    """Return what to do where no line does it: what a finding says behind torch's own error."""
    stop = check.load.last_error
    if stop is None or check.load.safety.may_harm:
        return ""
    detail = next((one.detail for one in check.findings if one.id == stop.finding), "")
    return behind_message(detail, stop.message)


def _loading(check: Check) -> Verdict:
    target = check.target
    where = target.label if target.id == "this" else place(target)
    return load_verdict(check.judged, check.findings, where, _call(check))


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
    return () if answer is None else first_remedies(answer.fix, check.judged)


def _answer(check: Check) -> Finding | None:
    """Return the finding about what stops the load, or what stops it once its names are allowed."""
    wanted = [one.finding for one in (check.load.last_error, check.load.failure) if one is not None]
    found = {finding.id: finding for finding in reversed(check.findings) if finding.fix is not None}
    return next((found[id_] for id_ in wanted if id_ in found), None)


def _stopped(load: DefaultLoad, failure: LoadFailure) -> Iterator[Block]:
    yield from _message(shown_message(load, failure))
    if failure.tensor:
        yield Line(
            escape_text(f"at the tensor {unescaped_path(failure.tensor)}."), "more", _INDENT, wraps=True
        )


def _message(message: str) -> Iterator[Block]:
    """Yield torch's message with its own line breaks, and without its escape codes for bold type."""
    for code in _BOLD:
        message = message.replace(code, "")
    for line in message.split("\n"):
        yield from prose(line.strip(), "      ")


def _findings(check: Check, findings: Sequence[Finding]) -> Iterator[Block]:
    """Yield findings with what mends them; a line that stands above already is not repeated."""
    if check.sought is not None:
        rows = format_count(len(check.sought.paths), "row")
        about = f'about the {rows} with "{escape_text(check.sought.query)}"'
        nothing = f"Nothing matches the filter: {check.sought.nothing}"
        none = f"No finding is {about}." if check.sought.paths else nothing
        yield Line(f"Findings {about}" if findings else none, "heading")
    elif findings:
        yield Line("Findings", "heading")
    given = {one.text for one in _first(check)}
    for finding in findings:
        yield from finding_lines(finding)
        remedies = [one for one in remedies_for(finding.fix, check.judged) if one.text not in given]
        given.update(one.text for one in remedies)
        yield from _remedies(remedies)


def _remedies(remedies: Iterable[Remedy], *, is_full: bool = False) -> Iterator[Block]:
    """Yield lines to be pasted, each on a line of its own, whatever its length; the file is changed last."""
    shown = [one for one in remedies if is_full or one.kind != "in-place"]
    for number, remedy in enumerate(shown):
        yield Line(before(remedy.kind, is_first=not number), indent="     ")
        lines = remedy.text.split("\n")
        indent = "" if lines[1:] else "       "  # Python takes no second line that is indented
        yield from (Line(line, "code", indent) for line in lines)
