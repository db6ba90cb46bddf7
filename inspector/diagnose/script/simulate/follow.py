"""Follows a whole script once, and returns what was found."""

from __future__ import annotations

import ast

from inspector.diagnose.script.objects.values import Function
from inspector.diagnose.script.problems import Lost, Problem, Raised
from inspector.diagnose.script.simulate.calling import Calls
from inspector.diagnose.script.simulate.context import Arguments, Context, ExhaustedError, Known
from inspector.records import dataclass

_TOO_MUCH = "the script takes more steps than are followed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What following a script came to.

    Attributes:
        problems: What goes wrong, in the order in which it happens; at most the last one stops the script.
        lost: From where on it could not be followed, or None.
        assumed: Conditions that were taken for true.
        sites: The calls of `torch.load` by line: whether their path names the file, None where not known.
        loads: How often the file was loaded.
        steps: The work it took.
        is_whole: Whether the work was enough for all of it.
    """

    problems: tuple[Problem, ...]
    lost: Lost | None
    assumed: tuple[str, ...]
    sites: dict[int, bool | None]
    loads: int
    steps: int = 0
    is_whole: bool = True


def follow(known: Known) -> Course:
    """Follow a script from its first line to its end, or to what stops it."""
    context = Context(known)
    calls = Calls(context)
    stopped: Problem | None = None
    is_whole = True
    try:
        calls.run(known.script.tree.body)
        _call_the_rest(context, calls)
    except Raised as raised:
        stopped = raised.problem
    except (ExhaustedError, RecursionError):
        is_whole = False
        context.lost = context.lost or Lost(line=context.line, why=_TOO_MUCH)
    if stopped is not None and stopped.kind == "exit":
        stopped = None
    return Course(
        problems=(*context.silent, *(() if stopped is None else (stopped,))),
        lost=context.lost,
        assumed=tuple(context.assumed),
        sites=context.sites,
        loads=len(context.loads),
        steps=context.steps,
        is_whole=is_whole,
    )


def _call_the_rest(context: Context, calls: Calls) -> None:
    """Call functions that load something and that nothing in the script calls: it is part of a program."""
    for node in context.script.tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name in calls.called or context.sites:
            continue
        if any(isinstance(inner, ast.Attribute) and inner.attr == "load" for inner in ast.walk(node)):
            calls.call(Function(node=node, scope=0), Arguments())
