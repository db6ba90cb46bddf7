"""What `weights_only=False` would call, in plain words, with the place of each call in the tree."""

from __future__ import annotations

from collections.abc import Callable

from inspector.model.checkpoint import CallUse, Checkpoint
from inspector.pickles.values import present_name
from inspector.records import dataclass
from inspector.safety.names import GlobalVerdict, judge_global
from inspector.units import cut_text, escape_text

_MOST_ROWS = 500
_MOST_CHARS = 100
_WORST_FIRST: tuple[GlobalVerdict, ...] = ("dangerous", "unknown", "allowed", "tensor")
_HARMLESS: frozenset[GlobalVerdict] = frozenset({"tensor", "allowed"})
_PROGRAMS = "starts programs, or changes files and settings of this computer"
_CODE = "runs Python code that the file contains or names"
_LOADS = "loads another pickle, which can do anything"
_NETWORK = "uses the network"
_FILES = "reads, changes or deletes files"
_MACHINE = "accesses the memory of the process"
_WORDS: dict[str, str] = {
    "builtins.eval": _CODE,
    "builtins.exec": _CODE,
    "builtins.compile": _CODE,
    "builtins.__import__": _CODE,
    "builtins.getattr": "gets any attribute of an imported object by name",
    "builtins.open": _FILES,
    **dict.fromkeys(("os", "posix", "nt", "subprocess", "pty", "commands", "popen2"), _PROGRAMS),
    **dict.fromkeys(("importlib", "runpy", "imp", "pkgutil", "code", "codeop", "timeit", "pdb"), _CODE),
    **dict.fromkeys(("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"), _LOADS),
    **dict.fromkeys(("socket", "http", "httplib", "urllib", "urllib2", "requests", "smtplib"), _NETWORK),
    **dict.fromkeys(("shutil", "tempfile", "glob", "fileinput", "pathlib", "linecache"), _FILES),
    **dict.fromkeys(("ctypes", "_ctypes", "sys", "gc"), _MACHINE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One call that loading with `weights_only=False` would make.

    Attributes:
        path: The row of the tree that it makes; None where its result is dropped or hidden elsewhere.
        name: What is called, dotted and escaped; empty for what has no name.
    """

    path: str | None
    name: str
    text: str
    verdict: GlobalVerdict
    words: str


def call_rows(
    checkpoint: Checkpoint, judge: Callable[[str], GlobalVerdict] = judge_global
) -> tuple[CallRow, ...]:
    """List the calls that make something else than tensors and plain data, the worst first."""
    calls = checkpoint.needs.calls
    rows = [row for row in (_row(use, judge) for use in calls) if row.verdict not in _HARMLESS]
    rows.sort(key=lambda row: _WORST_FIRST.index(row.verdict))
    return tuple(rows[:_MOST_ROWS])


def _row(use: CallUse, judge: Callable[[str], GlobalVerdict]) -> CallRow:
    verdict: GlobalVerdict = judge(use.name) if use.name else "dangerous"
    words = words_for(use.name, verdict)
    handed = next((name for name in use.handed if judge_global(name) == "dangerous"), None)
    if handed is not None and verdict != "dangerous":
        verdict = "dangerous"
        words = f"is handed {escape_text(cut_text(handed, _MOST_CHARS))}, which {words_for(handed, verdict)}"
    name = escape_text(cut_text(use.name, _MOST_CHARS))
    return CallRow(path=use.path, name=name, text=use.text, verdict=verdict, words=words)


def words_for(name: str, verdict: GlobalVerdict) -> str:
    """Return in plain words what importing and calling a name does."""
    if not name:
        return "calls the result of another call, which can be anything"
    if verdict in _HARMLESS:
        return "makes plain data"
    present = present_name(name)
    package = present.partition(".")[0]
    found = _WORDS.get(present) or _WORDS.get(package)
    if verdict == "dangerous":
        return found or "can run anything"
    shown = escape_text(cut_text(package, _MOST_CHARS))
    return f"runs code of the package {shown}, which must be installed, and whatever that does"
