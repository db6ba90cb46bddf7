"""What all that follows a script shares: the file, the machine, the memory, the work done, what was found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NoReturn

from inspector.diagnose.script.objects.memory import Memory
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Const,
    Device,
    InstanceObject,
    ModuleObject,
    OptimizerObject,
    Value,
)
from inspector.diagnose.script.places import Places
from inspector.diagnose.script.problems import Edit, Lost, Problem, Raised
from inspector.diagnose.script.reading import Script
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, field, replace
from inspector.target.machine.profile import Profile
from inspector.target.simulate import LoadOutcome
from inspector.target.versions import Release, release_of

Which = Literal["survey", "named", "unnamed", "only", "none"]
_MOST_STEPS = 200_000
_MOST_ITEMS = 20_000
_MOST_DEPTH = 60
"""Of expressions and calls within each other: each takes some of Python's own frames."""


class ExhaustedError(Exception):
    """The script takes more work than is spent on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        values: Those by position.
        named: Those by name.
        whole: Whether that is all: `*rest` and `**options` may hide others.
        node: The call.
    """

    values: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = True
    node: ast.Call | None = None

    def get(self, place: int, name: str, default: Value | None = None) -> Value | None:
        """Return an argument by its place or name."""
        if name in self.named:
            return self.named[name]
        return self.values[place] if 0 <= place < len(self.values) else default

    @property
    def all(self) -> tuple[Value, ...]:
        """All arguments."""
        return (*self.values, *self.named.values())

    @property
    def written(self) -> list[tuple[ast.expr, Value]]:
        """The arguments that stand in the call itself, with their values: none of `*rest` and `**options`."""
        if self.node is None:
            return []
        plain = takewhile(lambda one: not isinstance(one, ast.Starred), self.node.args)
        keywords = [one for one in self.node.keywords if one.arg in self.named]
        named = [(one.value, self.named[one.arg or ""]) for one in keywords]
        return [*zip(plain, self.values, strict=False), *named]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load of the file that the script makes.

    Attributes:
        line: Where.
        outcome: Where its tensors land; None where that is not known.
        call: The call.
    """

    line: int
    outcome: LoadOutcome | None
    call: ast.Call | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known before a script is followed.

    Attributes:
        script: The script.
        checkpoint: The file.
        target: The machine.
        places: The file's values.
        loads: The calls that load this file: those that `named` it, those of an unknown path (`unnamed`),
            or the `only` one. `survey` looks at the calls and loads nothing.
        takes_loads: Whether a condition that guards a load counts as true.
    """

    script: Script
    checkpoint: Checkpoint
    target: Profile
    places: Places
    loads: Which = "survey"
    takes_loads: bool = False


class Context:
    """The state of a script that is followed."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.memory = Memory()
        self.loads: list[Load] = []
        self.sites: dict[int, bool | None] = {}
        self.silent: list[Problem] = []
        self.lost: Lost | None = None
        self.assumed: list[str] = []
        self.allowed: set[str] = set()
        self.allows_any = False
        self.trusts_all = False
        self.used: dict[int, int] = {}
        self.dropped: dict[str, int] = {}
        self.maybe = 0
        self.casting = 0
        self.calls: list[ast.Call] = []
        self.sites_called: list[tuple[Arguments, ast.stmt | None, str]] = []
        self.parents: dict[int, int] = {}
        self.captured: set[int] = set()
        self.scope = 0
        self.running: list[ast.AST] = []
        self.line = 1
        self.statement: ast.stmt | None = None
        self.call_value: Callable[[Value, Arguments], Value] = lambda _, __: UNKNOWN
        self.iterate: Callable[[Value], Sequence[Value] | None] = lambda _: None
        self._steps = 0
        self._depth = 0

    @property
    def steps(self) -> int:
        """The work done so far."""
        return self._steps

    @property
    def script(self) -> Script:
        """The script."""
        return self.known.script

    @property
    def target(self) -> Profile:
        """The machine."""
        return self.known.target

    @property
    def release(self) -> Release:
        """The machine's torch."""
        return release_of(self.known.target.torch_version)

    @property
    def best(self) -> str:
        """The device that code on this machine should use."""
        return self.known.target.destination

    # --- work -----------------------------------------------------------------------------------------------

    def spend(self, steps: int = 1) -> None:
        """Count work.

        Raises:
            ExhaustedError: There is too much.
        """
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise ExhaustedError

    def is_long(self, count: int) -> bool:
        """Charge for a list of so many items; return whether it is too long to be followed."""
        self.spend(1 + count // 32)
        return count > _MOST_ITEMS

    def enter(self) -> None:
        """Go one level deeper into expressions or calls."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ExhaustedError

    def leave(self) -> None:
        """Come back from it."""
        self._depth -= 1

    # --- what is found --------------------------------------------------------------------------------------

    def fail(
        self, kind: str, message: str, why: str, *, advice: str = "", edits: Sequence[Edit] = ()
    ) -> NoReturn:
        """Raise what the script raises at the present line."""
        problem = Problem(
            kind=kind, line=self.line, message=message, why=why, advice=advice, edits=tuple(edits)
        )
        raise Raised(problem)

    def note_silent(self, kind: str, why: str, *, advice: str = "", edits: Sequence[Edit] = ()) -> None:
        """Note what silently does nothing at the present line."""
        problem = Problem(kind=kind, line=self.line, message="", why=why, advice=advice, edits=tuple(edits))
        if not self.maybe:
            self.silent.append(problem)

    def lose(self, why: str) -> None:
        """Note that the script cannot be followed from the present line on."""
        if self.lost is None:
            self.lost = Lost(line=self.line, why=why)

    def assume(self, what: str) -> None:
        """Note what is taken for granted."""
        if what not in self.assumed:
            self.assumed.append(what)

    # --- names ----------------------------------------------------------------------------------------------

    def look_up(self, name: str) -> Value | None:
        """Return what a name stands for: in the function, or in the script."""
        scope = self.scope
        while scope:
            found = self.memory.scopes.get(scope, {}).get(name)
            if found is not None:
                return found
            scope = self.parents.get(scope, 0)
        return self.memory.scopes[0].get(name)

    def device_word(self) -> str:
        """Return how the script calls the device to use, as code at the present line; or nothing."""
        self_value = self.look_up("self")
        found = self.memory.get(self_value) if self_value is not None else None
        attributes = found.attributes if isinstance(found, InstanceObject | ModuleObject) else {}
        visible = {**self.memory.scopes[0], **self.memory.scopes.get(self.scope, {})}
        named = [*visible.items(), *((f"self.{name}", value) for name, value in attributes.items())]
        words = [name for name, value in named if self._is_best(value)]
        return min(words, key=lambda word: ("device" not in word.lower(), len(word)), default="")

    def _is_best(self, value: Value) -> bool:
        text = device_text(value)
        return text is not None and (text == self.best or text == self.best.partition(":")[0])

    # --- what leaves the script -----------------------------------------------------------------------------

    def give_away(self, values: Sequence[Value]) -> None:
        """Forget what other code may have changed."""
        for value in values:
            self.spend()
            found = self.memory.get(value)
            if isinstance(found, ModuleObject):
                self.forget_module(value)
            elif isinstance(found, OptimizerObject):
                self.memory.objects[value.id] = replace(found, state=None)  # type: ignore[union-attr]

    def forget_module(self, value: Value) -> None:
        """Forget where a module is, and which parameters it has."""
        number = getattr(value, "id", 0)
        for _, at, module in list(self.memory.below(number)):
            self.memory.objects[at] = replace(module, device=None, dtype=None, whole=False, frozen=None)


def device_text(value: Value | None) -> str | None:
    """Return the text of a device that is written as one or as a text; None for anything else."""
    if isinstance(value, Device):
        return value.text
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None
