"""The answer to a script: the first line that fails or silently does nothing, why, and the patch."""

from __future__ import annotations

import difflib
from typing import Literal

from inspector.diagnose.script.edits import apply_edits
from inspector.diagnose.script.places import Places
from inspector.diagnose.script.problems import Lost, Problem
from inspector.diagnose.script.reading import Script, parse_script
from inspector.diagnose.script.simulate.context import Known, Which
from inspector.diagnose.script.simulate.follow import Course, follow
from inspector.errors import ModelError
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.target.default_load import judge_for
from inspector.target.machine.profile import Profile
from inspector.units import cut_text, escape_text

Outcome = Literal["fails", "silent", "works", "lost", "not-loaded"]
_MOST_PATCHES = 6
_MOST_STEPS = 200_000
"""After which no further patch is tried."""
_MOST_LINE = 200
_LINE_ENDS = str.maketrans("", "", "\n\t")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptAnswer:
    """What a script does with a file on a machine. All texts but the patch are escaped.

    Attributes:
        name: The script.
        outcome: `fails` and `silent`: at `line`. `works`: followed to its end. `lost`: nothing goes
            wrong up to where it cannot be followed. `not-loaded`: nothing in it loads this file.
        kind: The id of the problem; empty without one.
        line: Its line, counted from 1; 0 without one.
        source: That line.
        message: What torch says there; empty where it says nothing.
        why: Why.
        advice: What to do, beyond the patch.
        diff: The patch as a unified diff; the patched script was followed again, without a problem. Or empty.
        further: What goes wrong once that is mended, each with its line in the script patched so far.
        lost: From where on the script cannot be followed, or None.
        assumed: Conditions that were taken for true.
        is_dangerous: Whether loading the file can run commands; then there is no patch.
        is_notebook: Whether lines are counted over the code cells of a notebook.
    """

    name: str
    outcome: Outcome
    kind: str = ""
    line: int = 0
    source: str = ""
    message: str = ""
    why: str = ""
    advice: str = ""
    diff: str = ""
    further: tuple[Problem, ...] = ()
    lost: Lost | None = None
    assumed: tuple[str, ...] = ()
    is_dangerous: bool = False
    is_notebook: bool = False

    @property
    def is_good(self) -> bool:
        """Whether nothing goes wrong as far as the script can be followed."""
        return not self.is_dangerous and self.outcome in {"works", "lost", "not-loaded"}


def answer_script(text: str, name: str, checkpoint: Checkpoint, target: Profile) -> ScriptAnswer:
    """Follow a script with a file on a machine.

    Raises:
        ModelError: It is no Python script, or too large or deep to be one.
    """
    script = parse_script(text, name)
    known = Known(script=script, checkpoint=checkpoint, target=target, places=Places(checkpoint))
    course = _course(known)
    is_dangerous = judge_for(checkpoint, target).may_harm
    if not course.problems:
        return _fine(script, course, is_dangerous=is_dangerous and bool(course.loads))
    first = course.problems[0]
    patched, further = _patched(known, course)
    return ScriptAnswer(
        name=script.name,
        outcome="silent" if first.is_silent else "fails",
        kind=first.kind,
        line=first.line,
        source=escape_text(cut_text(script.line(first.line), _MOST_LINE)),
        message=first.message,
        why=first.why,
        advice=first.advice,
        diff="" if is_dangerous else _diff(script, patched),
        further=further,
        lost=course.lost,
        assumed=course.assumed,
        is_dangerous=is_dangerous,
        is_notebook=script.is_notebook,
    )


def _fine(script: Script, course: Course, *, is_dangerous: bool) -> ScriptAnswer:
    outcome: Outcome = "lost" if course.lost is not None else "works" if course.loads else "not-loaded"
    return ScriptAnswer(
        name=script.name,
        outcome=outcome,
        lost=course.lost,
        assumed=course.assumed,
        is_dangerous=is_dangerous,
        is_notebook=script.is_notebook,
    )


def _course(known: Known) -> Course:
    """Find the calls that load the file, then follow the script with it."""
    survey = follow(replace(known, loads="survey"))
    takes_loads = not survey.sites
    if takes_loads:
        survey = follow(replace(known, loads="survey", takes_loads=True))
    which = _which(survey.sites)
    course = follow(replace(known, loads=which, takes_loads=takes_loads))
    if which == "only" and False in survey.sites.values():
        taken = f"the file that line {min(survey.sites)} loads is this one"
        course = replace(course, assumed=(taken, *course.assumed))
    if which != "none" or not survey.sites or course.problems:
        return course
    several = ", ".join(str(line) for line in sorted(survey.sites)[:8])
    why = f"none of the files loaded at lines {several} has the name of this one"
    return replace(course, lost=course.lost or Lost(line=min(survey.sites), why=why))


def _which(sites: dict[int, bool | None]) -> Which:
    """Return which calls load this file: those that name it, else those that may, else the only one."""
    found = set(sites.values())
    if True in found:
        return "named"
    return "unnamed" if None in found else "only" if len(sites) == 1 else "none"


def _patched(known: Known, course: Course) -> tuple[str, tuple[Problem, ...]]:
    """Mend one problem after the other; return the text (empty where something is left) and what came up."""
    text = known.script.text
    further: list[Problem] = []
    steps = course.steps
    for _ in range(_MOST_PATCHES):
        problem = course.problems[0]
        mended = apply_edits(text, problem.edits) if problem.edits else None
        if mended is None or mended == text or steps > _MOST_STEPS:
            return "", tuple(further)
        try:
            script = parse_script(mended, known.script.name)
        except ModelError:
            return "", tuple(further)
        text = mended
        course = _course(replace(known, script=script))
        steps += course.steps
        if not course.is_whole:
            return "", tuple(further)
        if not course.problems:
            return text, tuple(further)
        further.append(course.problems[0])
    return "", tuple(further)


def _diff(script: Script, patched: str) -> str:
    if not patched:
        return ""
    before, after = script.text.splitlines(keepends=True), patched.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, f"a/{script.name}", f"b/{script.name}")
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    patch = "".join(ended)
    # A terminal would obey what is not printable in there, and escaped it would not apply.
    return patch if patch.translate(_LINE_ENDS).isprintable() else ""
