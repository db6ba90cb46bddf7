"""A finding: something about a checkpoint that its owner should know, with the tensors and the remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from inspector.records import dataclass
from inspector.units import cut_text, escape_text

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_MOST_LABEL_CHARS = 80
MOST_PATHS = 20
"""How many paths a finding names; `count` says how many there are."""


FixKind = Literal["rule", "option", "style", "recover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What mends a finding: one thing that the window can do at a click. Exactly one of the four is set.

    Attributes:
        rule: A map rule, as the device map and `remap --map` take it; else empty.
        option: An argument of `torch.load` as (name, Python text of its value), such as
            `("map_location", "'cpu'")`; else None. `weights_only=False` is never among them: whether to run
            what is in a file is for its owner to decide, not for a button.
        style: The id of the loading code to show, such as `resume`; else empty. A file may not offer it.
        recovers: Whether it is to save what is intact in a damaged file.
    """

    rule: str = ""
    option: tuple[str, str] | None = None
    style: str = ""
    recovers: bool = False

    @property
    def kind(self) -> FixKind:
        """Which of the four it is."""
        if self.option is not None:
            return "option"
        if self.recovers:
            return "recover"
        return "style" if self.style else "rule"

    @property
    def label(self) -> str:
        """What a button says; a device's text comes from the file and is escaped."""
        if self.option is not None:
            return f"Load with {self.option[0]}={self.option[1]}"
        if self.style:
            return "Show the loading code"
        if self.recovers:
            return "Save what is intact\u2026"
        what, _, to = self.rule.rpartition("@" if self.rule.startswith("path:") else "=")
        named = {"*": "everything"}.get(what, what.removeprefix("path:").removeprefix("**/"))
        return escape_text(cut_text(f"Map {named} to {to}", _MOST_LABEL_CHARS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Attributes:
        id: Its stable name, see `docs/architecture.md`.
        severity: `error` when loading fails, `warning` when something later may, else `note`.
        detail: Why it matters and what to do, in plain words.
        paths: The tensors it speaks of, `MOST_PATHS` at most.
        everywhere: All of them, for a search.
        fix: What mends it, or None.
    """

    id: str
    severity: Severity
    title: str
    detail: str
    paths: tuple[str, ...] = ()
    count: int = 0
    fix: Fix | None = None
    everywhere: tuple[str, ...] = ()


_asked_for: ContextVar[Collection[str] | None] = ContextVar("asked for", default=None)


@contextmanager
def about_paths(paths: Collection[str]) -> Iterator[None]:
    """Let findings name and count of their tensors only these; what is not about any of them names none."""
    before = _asked_for.set(paths)
    try:
        yield
    finally:
        _asked_for.reset(before)


def finding(
    id: str,  # noqa: A002 - the contract's word
    severity: Severity,
    title: str,
    detail: str,
    paths: list[str],
    *,
    fix: Fix | None = None,
) -> Finding:
    """Make a finding about these tensors, naming the first few and counting all."""
    asked_for = _asked_for.get()
    if asked_for is not None:
        paths = [path for path in paths if path in asked_for]
    return Finding(
        id=id,
        severity=severity,
        title=title,
        detail=detail,
        paths=tuple(paths[:MOST_PATHS]),
        count=len(paths),
        fix=fix,
        everywhere=tuple(paths),
    )
