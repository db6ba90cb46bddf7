"""`inspector.run`: a Python program with its loads mapped, and which lines needed that."""

from __future__ import annotations

import os
from collections.abc import Sequence

from inspector.errors import PlanError
from inspector.library import answers
from inspector.library.sources import Map, Path, rules_of
from inspector.overriding import override
from inspector.records import dataclass
from inspector.report.words.results import format_journal
from inspector.rescue.journal import Call, Why
from inspector.rescue.mending import find_needs
from inspector.rescue.running import run_rescued
from inspector.target.wish import THIS, parse_wish
from inspector.units import cut_text

_MOST_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one line of a program loaded from one device that had to be mapped.

    Attributes:
        script: The file with the line that calls what loads; None where nothing but Python's own code does.
        line: Its number; 0 likewise.
        checkpoint: The file that was loaded, where it is known.
        saved: The device that it names.
        to: Where it was put; None where it was left to torch.
        why: The reason: `missing`, `target`, `rule`, `no-rule`, `no-destination` or `function`.
        storages: How many storages, in all processes together.
        nbytes: Their size; 0 for TorchScript, whose sizes are not seen.
    """

    script: str | None
    line: int
    checkpoint: str | None
    saved: str
    to: str | None
    why: Why
    storages: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program did while its loads were mapped.

    Attributes:
        returncode: Its exit code, or the negative number of the signal that ended it.
        loads: What had to be mapped, in the order in which it was met.
    """

    returncode: int
    loads: tuple[Load, ...]
    _text: str

    __str__ = answers.text_of

    @override
    def __repr__(self) -> str:
        first = cut_text(self._text.partition("\n")[0], _MOST_CHARS)
        return f"<Ran: exit code {self.returncode}; {first}>"

    _repr_pretty_ = answers.show_in_notebook


def run(command: Sequence[Path], *, map: Map = (), target: str | None = None) -> Ran:  # noqa: A002 - the command line's word
    """Run a Python program with its loads mapped: `["python", "train.py"]`. The program is not changed.

    Storages whose device is not here are put on the best device that is, wherever the program or a library of
    it loads. Its streams are those of this process, and it ends before this returns.

    Args:
        command: The program and its arguments.
        map: Where saved devices go, as in `remap`; then only what a rule covers is mapped.
        target: The machine whose devices count as being there; what is not on it is mapped as well.

    Raises:
        PlanError: There is no such program, or a rule is about more than devices.
        ExportError: The Python of the program has no torch.
    """
    if isinstance(command, str | os.PathLike):
        raise PlanError("a command is a list of words", remedy="['python', 'train.py']")
    words = [os.fsdecode(word) for word in command]
    if not words:
        raise PlanError("run was given no command", remedy="['python', 'train.py']")
    rules, wish = rules_of(map), parse_wish(target or THIS)
    code, journal = run_rescued(words, rules, wish, maps_missing=not rules or target is not None)
    return Ran(
        returncode=code,
        loads=tuple(_load(call) for call in journal.calls),
        _text=format_journal(journal, find_needs(journal), code).rstrip("\n"),
    )


def _load(call: Call) -> Load:
    place = call.own or call.site
    return Load(
        script=None if place is None else place.file,
        line=0 if place is None else place.line,
        checkpoint=call.file,
        saved=call.saved,
        to=call.to,
        why=call.why,
        storages=call.storages,
        nbytes=call.nbytes,
    )
