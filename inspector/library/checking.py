"""`inspector.check`: whether `torch.load` works on a machine, and is safe."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.diagnose.run import diagnose
from inspector.doctor.examine import examine
from inspector.library import answers
from inspector.library.sources import CheckpointLike, Path, machine_of, opened_of, shown
from inspector.library.telling import Told, told
from inspector.model.findings import Finding, about_paths
from inspector.overriding import override
from inspector.report.checking import Check as Found
from inspector.report.checking import Sought, check_document, format_check
from inspector.report.words.verdicts import understood
from inspector.target.simulate import judge_load
from inspector.target.wish import THIS, parse_wish

if TYPE_CHECKING:
    from inspector.diagnose.script.answer import ScriptAnswer
    from inspector.model.checkpoint import Checkpoint
    from inspector.target.profile import Profile


class Check:
    """What `inspector.check` found. It is true where the file loads and holds nothing but weights."""

    def __init__(self, found: Found) -> None:
        self._found = found

    @property
    def loads(self) -> bool:
        """Whether `torch.load(path)` works on the target, and what is loaded fits into its memory."""
        return self._found.loads

    @property
    def safe(self) -> bool:
        """Whether `torch.load(weights_only=True)` takes the file: loading it runs no code in it."""
        return self._found.load.is_safe

    @property
    def error(self) -> str | None:
        """What `torch.load(path)` raises there, in torch's words; None where it raises nothing."""
        failure = self._found.load.failure
        return None if failure is None else failure.message

    @property
    def target(self) -> str:
        """The machine, as it was understood."""
        return understood(self._found.target)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to know about the file on this machine, worst first."""
        return self._found.findings

    @property
    def script(self) -> ScriptAnswer | None:
        """What the script that was given does with the file; None where none was given."""
        return self._found.script

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `check --json`."""
        return check_document(self._found)

    def __bool__(self) -> bool:
        """Return whether it loads and is safe; where a script was given, whether nothing of that fails."""
        return self._found.is_good

    @override
    def __str__(self) -> str:
        return format_check(self._found)

    _repr_pretty_ = answers.show_in_notebook

    @override
    def __repr__(self) -> str:
        path, target = shown(self._found.checkpoint.path), shown(self.target)
        return f"<Check of {path} on {target}: loads={self.loads}, safe={self.safe}>"


def check(  # noqa: PLR0913 - what is asked, as on the command line
    source: CheckpointLike,
    *,
    target: str = THIS,
    python: Path | None = None,
    error_text: str | None = None,
    script: Path | None = None,
    script_args: str | None = None,
    progress: Told = None,
) -> Check:
    """Find out whether `torch.load(path)` works on a machine, without loading anything.

    Args:
        source: A path, or an open checkpoint.
        target: The machine, as `--target` takes it: `this`, `cpu`, `cuda`, `2xcuda`, `cuda@24gb`, ...
        python: The Python whose torch `this` means; the one that runs this, if it is None.
        error_text: An error message or traceback to be explained.
        script: A Python script or notebook: which line of it fails with the file. It is not executed.
        script_args: The words that the script is run with, such as `"--resume best.pth"`.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        PlanError: There is no such machine.
        CheckpointError: The file or the script cannot be read.
    """
    wish = parse_wish(target)
    path = None if script is None else os.fsdecode(script)
    asked = None if path is None else read_script(path, script_args)
    with told(progress) as steps:
        facts = opened_of(source, steps).facts
        machine = machine_of(wish, python, steps)
    return Check(look(facts, machine, error_text, asked))


class Script(NamedTuple):
    """A script to be judged; without a folder it came from a stream."""

    name: str
    text: str
    folder: str | None
    arguments: str | None


def read_script(path: str, arguments: str | None, text: str | None = None) -> Script:
    """Return a script, or its text from a stream; what is none is refused before the file is opened."""
    from inspector.diagnose.script import read  # noqa: PLC0415 - seldom used

    name, found = read.read_script(path) if text is None else ("stdin", text)
    read.parse_script(found, name)
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - a text, as it was given
    return Script(name, found, folder if text is None else None, arguments)


def look(
    facts: Checkpoint, machine: Profile, error_text: str | None, script: Script | None, query: str = ""
) -> Found:
    """Judge a file on a machine, and what is asked with it.

    Args:
        query: What findings are to be about, as the search of the window takes it; empty for all.
    """
    load = judge_load(facts, machine)
    explanation = judged = None
    if error_text is not None:
        from inspector.diagnose.errors.explain import explain_error  # noqa: PLC0415 - a large table, seldom used

        explanation = explain_error(error_text, facts, machine)
    if script is not None:
        from inspector.diagnose.script.answer import answer_script  # noqa: PLC0415 - as above

        name, text, folder, arguments = script
        judged = answer_script(text, name, facts, machine, folder=folder, arguments=arguments)
    sought = Sought(query, *_matching(facts, query)) if query else None
    with nullcontext() if sought is None else about_paths(sought.paths):
        findings = diagnose(facts, load.safety, machine)
    return Found(
        checkpoint=facts,
        target=machine,
        load=load,
        findings=findings,
        sought=sought,
        explanation=explanation,
        diagnoses=() if machine.evidence is None else examine(machine),
        script=judged,
    )


def _matching(facts: Checkpoint, text: str) -> tuple[frozenset[str], str]:
    """Return the paths of what a search finds, and why it finds nothing."""
    from inspector.report.query import parse_query, refuse_mistakes, searchable, why_nothing  # noqa: PLC0415 - as above

    rows = searchable(facts)
    refuse_mistakes(text, rows)
    tensors, values = parse_query(text).find(rows)
    paths = {facts.tensors[index].path for index in tensors}
    paths |= {facts.values[index].path for index in values}
    return frozenset(paths), "" if paths else why_nothing(text, rows).words
