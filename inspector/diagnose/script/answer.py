"""The answer to a script: the load of this file, what becomes of it, and the patch."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from inspector.diagnose.script.edits import Problem, apply_edits
from inspector.diagnose.script.options import Words
from inspector.diagnose.script.places import Places
from inspector.diagnose.script.read import Project, Script, parse_script
from inspector.diagnose.script.uses import Judge, Load, names_file
from inspector.errors import ModelError
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass
from inspector.target.profile import Profile
from inspector.target.simulate import judge_for
from inspector.units import cut_text, escape_text

Outcome = Literal["fails", "silent", "works", "lost", "not-loaded"]
_MOST_PATCHES = 6
_MOST_LINE = 200
_MOST_PATCH = 18  # lines; of a longer one, what mends the load
_LINE_ENDS = str.maketrans("", "", "\n\t\r")
_BOLD = ("\x1b[1m", "\x1b[0m")
_OTHERS = frozenset(
    {
        "cache",
        "vector",
        "vectors",
        "vocab",
        "vocabulary",
        "data",
        "dataset",
        "embedding",
        "embeddings",
        "glove",
    }
    | {"stats", "feature", "features", "anchors", "labels", "vgg", "lpips", "inception", "fid", "pretrained"}
    | {"backbone", "teacher", "discriminator", "disc", "netd"}
)
_OWN = frozenset({"resume", "checkpoint", "ckpt", "model", "weights", "state", "best", "last", "snapshot"})
_LAZY = re.compile(r"import_module\(|__import__\(|\bload_entry_point\(")
_NOT_FOLLOWED = "whether the script comes there could not be followed"
_TOO_MUCH = "it imports more than can be followed to the end, or modules whose names it makes"
_RUN = re.compile(r"[^\s`]+(?=[^`]*`[^`]*$)")
_MOST_ALSO = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What decides, and is not known: the line, and what it is."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptAnswer:
    """What a script does with a file on a machine. All texts but the patch are escaped.

    Attributes:
        outcome: `fails` and `silent`: at `line`. `works`: the load at `line` works, and so does what follows
            as far as it was judged. `lost`: something that is not known decides. `not-loaded`: nothing in it
            loads this file.
        kind: The id of the problem; empty without one.
        line: Its line, counted from 1; 0 without one.
        load_line: The line of the load that is judged; 0 where there is none.
        file: The module of the project that these lines stand in; empty for the script.
        message: What torch says there; empty where it says nothing.
        diff: The patch as a unified diff; the patched script was judged again. Or empty.
        leaves: Whether the load works with the patch, and other lines still fail.
        lost: What decides and is not known, or None.
        assumed: What the branch needs, and what else was taken for true.
        runs: Those of these that say what the script is run with.
        unjudged: What could not be judged.
        is_dangerous: Whether loading the file can run commands; then there is no patch.
        is_notebook: Whether lines are counted over the code cells of a notebook.
    """

    name: str
    outcome: Outcome
    kind: str = ""
    line: int = 0
    load_line: int = 0
    file: str = ""
    source: str = ""
    message: str = ""
    why: str = ""
    advice: str = ""
    diff: str = ""
    leaves: bool = False
    further: tuple[Problem, ...] = ()
    lost: Lost | None = None
    assumed: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    also: tuple[int, ...] = ()
    unjudged: tuple[str, ...] = ()
    is_dangerous: bool = False
    is_notebook: bool = False

    @property
    def is_good(self) -> bool:
        """Whether nothing is known to go wrong."""
        return not self.is_dangerous and self.outcome in {"works", "lost", "not-loaded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is judged."""

    project: Project
    checkpoint: Checkpoint
    places: Places
    target: Profile
    words: Words


def answer_script(
    text: str,
    name: str,
    checkpoint: Checkpoint,
    target: Profile,
    *,
    folder: str | None = None,
    arguments: str | None = None,
) -> ScriptAnswer:
    """Judge a script with a file on a machine.

    Args:
        folder: Where the modules lie that it imports; without it only the script is read.
        arguments: The words it is run with; without them the defaults of its options hold.
    """
    project = Project(parse_script(text, name), folder)
    case = _Case(
        project=project,
        checkpoint=checkpoint,
        places=Places(checkpoint),
        target=target,
        words=Words(arguments),
    )
    judge, loads = _judged(case)
    is_dangerous = judge_for(checkpoint, target).may_harm
    return _answer(case, judge, loads, is_dangerous=is_dangerous)


def _judged(case: _Case) -> tuple[Judge, list[Load]]:
    """Find the calls that load this file, then judge what follows from them alone."""
    first = Judge(case.project, case.checkpoint, case.places, case.target, case.words)
    first.run()
    meant = [load for load in first.loads if not _is_ruled_out(load, case.words)]
    sites = frozenset(load.site for load in _best(case.checkpoint, meant or first.loads))
    judge = Judge(case.project, case.checkpoint, case.places, case.target, case.words, sites)
    judge.run()
    is_named = any(names_file(case.checkpoint, load.path) for load in judge.loads)
    for load in judge.loads:
        load.is_lost = not (load.is_main or load.is_followed or load.unknown)
        load.is_ruled_out = bool(meant) and _is_ruled_out(load, case.words)
    for load in judge.loads:
        if names_file(case.checkpoint, load.path) is False and not is_named:
            load.assumed.append(f"the file that line {load.line} loads is this one")
    return judge, judge.loads


def _is_ruled_out(load: Load, words: Words) -> bool:
    """Return whether a load takes an option that is not among the words which the script is run with."""
    given = {word.partition("=")[0].replace("-", "_") for word in words.all}
    wanted = (set(_RUN.findall(one.words.replace("-", "_"))) for one in load.when if one.is_run)
    return words.given and any(one.isdisjoint(given) for one in wanted)


def _best(checkpoint: Checkpoint, loads: Sequence[Load]) -> list[Load]:
    """Return the loads that are of this file: by its name, else by that of the option and the keys used."""
    loads = [load for load in loads if load.is_main or load.is_followed] or list(loads)
    loads = [load for load in loads if not load.is_other_format] or loads
    named = [load for load in loads if names_file(checkpoint, load.path)]
    if named:
        return [load for load in named if load.is_main or load.is_reached] or named
    others = [load for load in loads if load.found and not load.missing]
    unnamed = [load for load in loads if names_file(checkpoint, load.path) is None or load in others]
    if not unnamed:
        return list(loads) if len({load.site for load in loads}) == 1 else []
    most = max(_fit(load) for load in unnamed)
    best = [load for load in unnamed if _fit(load) == most]
    return [load for load in unnamed if any(_is_alike(load, one) for one in best)]


def _is_alike(load: Load, other: Load) -> bool:
    """Return whether what one loads is probably what the other does: their arguments read alike."""
    if load is other or _fit(load) == _fit(other):
        return True
    is_near = load.function == other.function or bool(_words(load) & _OWN)
    return load.source == other.source and is_near


def _words(load: Load) -> set[str]:
    return set(re.findall(r"[^\s._()]+", load.source.lower()))


def _fit(load: Load) -> tuple[int, ...]:
    """Return how well a load of an unknown path fits: by the words of its argument, and the keys used."""
    words = _words(load)
    is_other = bool(words & _OTHERS) and not words & {"resume", "checkpoint", "ckpt"}
    keys = min(load.found, 1) - min(load.missing, 1)
    return (-int(is_other), int(load.is_followed), keys, int(load.is_main), int(bool(words & _OWN)))


def _answer(case: _Case, judge: Judge, loads: list[Load], *, is_dangerous: bool) -> ScriptAnswer:
    script = case.project.script
    old = _of_python2(script)
    problems = _problems(judge, loads)
    base = {
        "name": script.name,
        "is_dangerous": is_dangerous and bool(loads),
        "is_notebook": script.is_notebook,
    }
    if not problems:
        if old is not None:
            problems = [old]
        else:
            return _without_problem(case, judge, loads, base)
    first = problems[0]
    load = loads[first.load] if first.load >= 0 else None
    diff, leaves = ("", False) if is_dangerous or old is not None else _patched(case, judge, problems)
    also = tuple(
        sorted(
            {
                one.line
                for one in problems[1:]
                if (one.kind, one.message, one.file) == (first.kind, first.message, first.file)
                and one.line != first.line
            }
        )
    )
    more = [one for one in problems[1:] if one.line not in also or one.file != first.file]
    rest = ([old] if old is not None and first is not old else []) + more
    return ScriptAnswer(
        **base,  # type: ignore[arg-type]
        outcome="silent" if first.is_silent else "fails",
        kind=first.kind,
        line=first.line,
        load_line=0 if load is None else load.line,
        file=first.file,
        source=_shown(judge, first.file, first.line),
        message=_plain(first.message),
        why=first.why,
        advice=first.advice,
        diff=diff,
        leaves=leaves,
        further=tuple(_once(rest, first)),
        **_assumed(load),  # type: ignore[arg-type]
        also=also[:_MOST_ALSO],
        unjudged=tuple(judge.unjudged),
    )


def _without_problem(
    case: _Case, judge: Judge, loads: list[Load], base: Mapping[str, object]
) -> ScriptAnswer:
    unknown = next((load for load in loads if load.unknown or load.is_lost), None)
    loads = [load for load in loads if not load.is_ruled_out]
    first = [load for place, load in enumerate(loads) if place not in judge.retried] or loads
    load = unknown or (first[0] if first else None)
    lost = None
    if load is None:
        if judge.is_cut or case.project.is_cut or _LAZY.search(case.project.script.text):
            lost = Lost(line=0, why=_TOO_MUCH)
            return ScriptAnswer(**base, outcome="lost", lost=lost)  # type: ignore[arg-type]
        return ScriptAnswer(**base, outcome="not-loaded", why=_not_loaded(case))  # type: ignore[arg-type]
    if unknown is not None:
        why = f"whether it loads hangs on {unknown.unknown}, which the script does not tell"
        lost = Lost(line=unknown.line, why=_NOT_FOLLOWED if unknown.is_lost else why)
    file = "" if load.script is case.project.script else load.script.name
    return ScriptAnswer(
        **base,  # type: ignore[arg-type]
        outcome="works" if lost is None else "lost",
        load_line=load.line,
        file=file,
        source=_shown(judge, file, load.line),
        lost=lost,
        **_assumed(load),  # type: ignore[arg-type]
        unjudged=tuple(judge.unjudged),
    )


def _not_loaded(case: _Case) -> str:
    survey = Judge(case.project, case.checkpoint, case.places, case.target, case.words)
    survey.run()
    lines = sorted({load.line for load in survey.loads})
    if not lines:
        return "No call in it is torch.load or another function that loads a checkpoint."
    return f"It loads other files, at line {', '.join(map(str, lines[:8]))}: none has the name of this one."


def _problems(judge: Judge, loads: list[Load]) -> list[Problem]:
    """Return what goes wrong: the load itself leads, then what no branch needs, then in order."""
    found = [one for one in judge.problems if _is_met(one, loads) and not _is_unsure(one, loads)]
    order = {id(one): place for place, one in enumerate(judge.problems)}

    def rank(one: Problem) -> tuple[int, int, int, int]:
        load = loads[one.load] if one.load >= 0 else None
        conditions = 0 if load is None else len(load.when)
        is_load = one.load >= 0 and one.kind in {"load-fails", "refused"}
        is_early = one.message == "AssertionError"
        return (
            0 if is_load or is_early else 1,
            0 if load is None or load.is_reached else 1,
            conditions,
            order[id(one)],
        )

    return sorted(found, key=rank)


def _is_unsure(problem: Problem, loads: Sequence[Load]) -> bool:
    """Return whether it is one of a load that the script may never come to, or not with these words."""
    load = loads[problem.load] if problem.load >= 0 else None
    return load is not None and (load.is_ruled_out or load.is_lost)


def _is_met(problem: Problem, loads: Sequence[Load]) -> bool:
    """Return whether a problem is met where the load is: what another branch does is another matter."""
    rows = loads if problem.load < 0 else [loads[problem.load]]
    return any(set(problem.when) <= set(load.when) for load in rows) or not (rows or problem.when)


def _of_python2(script: Script) -> Problem | None:
    line, why = script.old
    if not line:
        return None
    return Problem(kind="python-2", line=line, message="SyntaxError: invalid syntax", why=f"{why}.")


def _assumed(load: Load | None) -> dict[str, tuple[str, ...]]:
    if load is None:
        return {}
    rows = [(f"{one.words} (line {one.line})", one.is_run) for one in load.when]
    rows += [(one, False) for one in load.assumed]
    shown = {escape_text(cut_text(row, 100)): is_run for row, is_run in rows}
    return {"assumed": tuple(shown), "runs": tuple(row for row, is_run in shown.items() if is_run)}


def _once(problems: Sequence[Problem], first: Problem) -> list[Problem]:
    seen = {(first.line, first.file)}
    found = []
    for one in problems:
        if (one.line, one.file) not in seen:
            seen.add((one.line, one.file))
            found.append(one)
    return found[:8]


def _plain(message: str) -> str:
    for code in _BOLD:
        message = message.replace(code, "")
    return message


def _script(judge: Judge, file: str) -> Script:
    return next((one for one in judge.project.read if one.name == file), judge.project.script)


def _shown(judge: Judge, file: str, line: int) -> str:
    return escape_text(cut_text(" ".join(_script(judge, file).line(line).split()), _MOST_LINE))


# --- the patch ----------------------------------------------------------------------------------------------


def _patched(case: _Case, judge: Judge, problems: Sequence[Problem]) -> tuple[str, bool]:
    """Mend one problem after the other, judging again; return the patch, and whether other lines still fail.

    Without the load itself mended there is none.
    """
    before = {script.name: script for script in [case.project.script, *judge.project.read]}
    texts: dict[str, str] = {}
    project, mends = case.project, ""
    for _ in range(_MOST_PATCHES):
        edits = problems[0].edits
        name = problems[0].file or case.project.script.name
        script = next((one for one in [project.script, *project.read] if one.name == name), None)
        mended = apply_edits(script.text, edits) if edits and script is not None else None
        if mended is None or (script is not None and mended == script.text):
            return mends, bool(mends)
        texts[name] = mended
        try:
            main = parse_script(
                texts.get(case.project.script.name, case.project.script.text), case.project.script.name
            )
        except ModelError:
            return mends, bool(mends)
        project = Project(main, case.project.folder, texts)
        again, loads = _judged(
            _Case(
                project=project,
                checkpoint=case.checkpoint,
                places=case.places,
                target=case.target,
                words=case.words,
            )
        )
        problems = _problems(again, loads)
        if any(load.unknown or load.is_lost for load in loads) or not loads:
            break
        whole = _diff(before, texts)
        if not problems and (not mends or whole.count("\n") <= _MOST_PATCH):
            return whole, False
        if not problems:
            break
        if not mends and not any(one.kind in {"load-fails", "refused"} for one in problems):
            mends = whole
    return mends, bool(mends)


def _diff(before: Mapping[str, Script], texts: Mapping[str, str]) -> str:
    patch = ""
    for name, mended in texts.items():
        script = before[name]
        ending = "\r\n" if script.has_crlf else "\n"
        rows = [
            [line.replace("\n", ending) for line in one.splitlines(keepends=True)]
            for one in (script.text, mended)
        ]
        lines = difflib.unified_diff(rows[0], rows[1], f"a/{name}", f"b/{name}", n=1)
        patch += "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )
    # A terminal would obey what is not printable in there, and escaped it would not apply.
    return patch if patch.translate(_LINE_ENDS).isprintable() else ""
