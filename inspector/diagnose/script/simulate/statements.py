"""Follows the statements of a script."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NoReturn

from inspector.diagnose.script.objects.attributes import set_attribute
from inspector.diagnose.script.objects.containers import delete_item, element_of, set_item
from inspector.diagnose.script.objects.memory import Memory
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Class,
    Const,
    External,
    Function,
    ListObject,
    LoaderObject,
    Tensor,
    Value,
)
from inspector.diagnose.script.problems import Raised, catches
from inspector.diagnose.script.simulate.context import Context
from inspector.diagnose.script.simulate.evaluator import Evaluator
from inspector.diagnose.script.simulate.truth import truth
from inspector.diagnose.script.simulate.withs import entered, switch_grad
from inspector.units import cut_text, escape_text

Flow = Literal["next", "return", "break", "continue", "stop"]
_LOADS = frozenset({"load", "load_state_dict", "torch_load"})
_MOVES = frozenset({"to", "cuda", "cpu"})
_TRAINS = frozenset({"backward", "step"})


class Statements:
    """Runs blocks of statements over the memory."""

    def __init__(self, context: Context, evaluator: Evaluator) -> None:
        self._context = context
        self._evaluator = evaluator
        self._globals: dict[int, set[str]] = {}
        self._loading = _names_that_load(context.script.tree)
        self.returned: Value = NONE
        self.partial: list[tuple[Memory, Value]] = []

    def block(self, statements: Iterable[ast.stmt]) -> Flow:
        """Follow statements; return how they end."""
        for statement in statements:
            self._context.spend()
            self._context.line, self._context.statement = statement.lineno, statement
            handler: Callable[[ast.stmt], Flow | None] | None
            handler = getattr(self, f"_{type(statement).__name__.lower()}", None)
            flow = handler(statement) if handler is not None else None
            if flow not in {None, "next"}:
                return flow or "next"
        return "next"

    # --- simple statements ----------------------------------------------------------------------------------

    def _expr(self, node: ast.Expr) -> None:
        found = self._evaluator.value(node.value)
        function = node.value.func if isinstance(node.value, ast.Call) else None
        switch_grad(self._context, found)
        if not isinstance(found, Tensor) or not isinstance(function, ast.Attribute):
            return
        if function.attr in _MOVES and isinstance(function.value, ast.Name):
            self._context.dropped[function.value.id] = node.lineno

    def _assign(self, node: ast.Assign) -> None:
        found = self._evaluator.value(node.value)
        for target in node.targets:
            self._put(target, found)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._put(node.target, self._evaluator.value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        binary = ast.BinOp(left=_as_read(node.target), op=node.op, right=node.value)
        ast.copy_location(binary, node)
        self._put(node.target, self._evaluator.value(binary))

    def _put(self, target: ast.expr, value: Value) -> None:
        context = self._context
        if isinstance(target, ast.Name):
            is_global = target.id in self._globals.get(context.scope, ())
            context.memory.scopes[0 if is_global else context.scope][target.id] = value
            context.dropped.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            set_attribute(context, self._evaluator.value(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner, key = self._evaluator.value(target.value), self._evaluator.value(target.slice)
            set_item(context, owner, key, value)
        elif isinstance(target, ast.Starred):
            self._put(target.value, UNKNOWN)
        else:
            for inner, item in self._evaluator.parts(target, value):
                self._put(inner, item)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                owner, key = self._evaluator.value(target.value), self._evaluator.value(target.slice)
                delete_item(self._context, owner, key)
            elif isinstance(target, ast.Name):
                self._context.memory.scopes[self._context.scope].pop(target.id, None)

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._globals.setdefault(self._context.scope, set()).update(node.names)

    _nonlocal = _global

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            whole = alias.name if alias.asname else name
            self._put(ast.Name(id=name), External(name=whole))

    def _importfrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._context.lose(f"from {module} import * brings names that are not in this script")
            else:
                self._put(ast.Name(id=alias.asname or alias.name), External(name=f"{module}.{alias.name}"))

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        marks = [self._evaluator.value(mark) for mark in node.decorator_list]
        no_grad = any(
            "no_grad" in ast.dump(mark) or "inference_mode" in ast.dump(mark) for mark in node.decorator_list
        )
        is_plain = no_grad or not marks
        made: Value = Function(node=node, scope=self._context.scope, no_grad=no_grad)
        self._context.captured.add(self._context.scope)
        self._put(ast.Name(id=node.name), made if is_plain else UNKNOWN)

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        bases = tuple(self._evaluator.value(base) for base in node.bases)
        made: Value = Class(node=node, scope=self._context.scope, bases=bases)
        self._context.captured.add(self._context.scope)
        self._put(ast.Name(id=node.name), made)

    def _return(self, node: ast.Return) -> Flow:
        self.returned = NONE if node.value is None else self._evaluator.value(node.value)
        return "return"

    def _break(self, _: ast.Break) -> Flow:
        return "break"

    def _continue(self, _: ast.Continue) -> Flow:
        return "continue"

    def _raise(self, node: ast.Raise) -> Flow:
        if node.exc is not None:
            self._fail_raised(node, node.exc)
        return "stop"

    def _fail_raised(self, node: ast.Raise, raised: ast.expr) -> NoReturn:
        said = raised.args[0] if isinstance(raised, ast.Call) and raised.args else None
        text = self._evaluator.value(said) if said is not None else NONE
        name = ast.unparse(raised.func if isinstance(raised, ast.Call) else raised)
        words = (
            escape_text(cut_text(str(text.value), 300)) if isinstance(text, Const) and text.value else "..."
        )
        self._context.line = node.lineno
        self._context.fail("raise", f"{cut_text(name, 60)}: {words}", "The script raises this itself.")

    def _assert(self, node: ast.Assert) -> None:
        if truth(self._context, self._evaluator.value(node.test)) is False:
            self._context.line = node.lineno
            self._context.fail("raise", "AssertionError", "The script asserts what does not hold here.")

    # --- branches -------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> Flow:
        known = truth(self._context, self._evaluator.value(node.test))
        loads, others = self._has_load(node.body), self._has_load(node.orelse)
        if loads and not others and (known is None or (known is False and self._context.known.takes_loads)):
            if not self._context.maybe:
                test = cut_text(escape_text(self._context.script.source(node.test)), 80)
                self._context.assume(f"line {node.lineno}: {test}")
            known = True
        elif others and not loads and known is None and self._is_absence(node.test):
            known = False
        if known is None:
            return self._either(node.body, node.orelse)
        return self.block(node.body if known else node.orelse)

    def _is_absence(self, test: ast.expr) -> bool:
        """Return whether a condition says that something is missing, as `not path` and `path is None` do."""
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        is_none = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is)
        return is_not or is_none

    def _either(self, one: Sequence[ast.stmt], two: Sequence[ast.stmt]) -> Flow:
        """Follow both sides of a condition that is not known, and keep what they agree on."""
        context = self._context
        context.spend(context.memory.size // 8)
        before, line = context.memory.fork(), context.line
        first = self._attempt(one)
        after, said = context.memory, self.returned
        context.memory = before
        context.line = line
        second = self._attempt(two)
        if "stop" in {first, second}:  # the other side goes on
            if first != "stop":
                context.memory, self.returned = after, said
            return first if second == "stop" else second
        if first != second and "return" in {first, second}:  # one side ends the function, the other may not
            self.partial.append((after, said) if first == "return" else (context.memory, self.returned))
            if second == "return":
                context.memory, self.returned = after, said
            return first if second == "return" else second
        context.memory.join(after)
        self.returned = said if said == self.returned else UNKNOWN
        return first if first == second else "next"

    def _attempt(self, statements: Sequence[ast.stmt]) -> Flow:
        """Follow statements that may not be reached: nothing is claimed about them."""
        self._context.maybe += 1
        try:
            return self.block(statements)
        except Raised:
            return "stop"
        finally:
            self._context.maybe -= 1

    def _has_load(self, statements: Sequence[ast.stmt]) -> bool:
        return any(_calls(statement) & (_LOADS | self._loading) for statement in statements)

    def _match(self, node: ast.Match) -> None:
        self._evaluator.value(node.subject)
        for case in node.cases:
            self._either(case.body, ())

    def _try(self, node: ast.Try) -> Flow:
        try:
            flow = self.block(node.body)
        except Raised as raised:
            handler = _handler_of(node, raised.problem.message)
            if handler is None:
                self.block(node.finalbody)
                raise
            if handler.name:
                self._put(ast.Name(id=handler.name), UNKNOWN)
            flow = self.block(handler.body)
            if flow == "stop":
                raise
        else:
            if flow == "next":
                flow = self.block(node.orelse)
        last = self.block(node.finalbody)
        return flow if last == "next" else last

    _trystar = _try

    def _with(self, node: ast.With | ast.AsyncWith) -> Flow:
        leaving: list[Callable[[], None]] = []
        for item in node.items:
            found = self._evaluator.value(item.context_expr)
            value, leave = entered(self._context, found)
            leaving.append(leave)
            if item.optional_vars is not None:
                self._put(item.optional_vars, value)
        try:
            return self.block(node.body)
        finally:
            for leave in leaving:
                leave()

    _asyncwith = _with

    # --- loops ----------------------------------------------------------------------------------------------

    def _for(self, node: ast.For | ast.AsyncFor) -> Flow:
        over = self._evaluator.value(node.iter)
        items = self._context.iterate(over)
        is_loader = isinstance(self._context.memory.get(over), LoaderObject) or isinstance(over, Batch)
        if items is None or is_loader:
            items = [element_of(self._context, over)]
        elif len(items) > 1 and any(_calls(statement) & _TRAINS for statement in node.body):
            held = self._context.memory.get(over)
            is_counted = isinstance(held, ListObject) and all(isinstance(item, Const) for item in items)
            items = [UNKNOWN] if is_counted else items[:1]
        for item in items:
            self._context.line = node.lineno
            self._put(node.target, item)
            flow = self.block(node.body)
            if flow in {"return", "stop"}:
                return flow
            if flow == "break":
                return "next"
        return self.block(node.orelse)

    _asyncfor = _for

    def _while(self, node: ast.While) -> Flow:
        if truth(self._context, self._evaluator.value(node.test)) is False:
            return "next"
        flow = self.block(node.body)
        return flow if flow in {"return", "stop"} else "next"


def _handler_of(node: ast.Try, message: str) -> ast.ExceptHandler | None:
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = [ast.unparse(kind).rpartition(".")[2] if kind is not None else "" for kind in kinds]
        if any(catches(name, message) for name in names):
            return handler
    return None


def _as_read(target: ast.expr) -> ast.expr:
    """Return the target of `x += 1` as what is read; its context is not looked at."""
    return target


def _calls(node: ast.AST) -> frozenset[str]:
    """Return the last names of what a statement calls; remembered on the node, which is asked often."""
    found: frozenset[str] | None = getattr(node, "calls_made", None)
    if found is None:
        functions = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        names = [getattr(function, "attr", getattr(function, "id", "")) for function in functions]
        found = frozenset(names)
        node.calls_made = found  # type: ignore[attr-defined]
    return found


def _names_that_load(tree: ast.Module) -> frozenset[str]:
    """Return the functions and classes of a script that load something, directly or through each other."""
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    calls = {node.name: frozenset[str]().union(*map(_calls, node.body)) for node in made}
    found: set[str] = {name for name, called in calls.items() if called & _LOADS}
    for _ in range(8):
        found |= {name for name, called in calls.items() if called & found}
    return frozenset(found - {"__init__", "forward", "main", "train", "to"})
