"""What a script calls with what: its statements in order, each branch, functions that nothing calls as well.

Nothing is run. What is not known stays unknown, and the walk goes on behind it. A condition that the machine,
the file or the given words decide has one branch. Of any other both are walked, and what stands in the branch
that is not taken by default is noted with what it takes to come there. Work is counted, and ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from inspector.diagnose.script.edits import When
from inspector.diagnose.script.evaluate import (
    EXITS,
    MOST_DEPTH,
    MOST_WORK,
    NO_CALL,
    TRUSTS,
    Args,
    Evaluator,
    SpentError,
    Vars,
    joined,
)
from inspector.diagnose.script.read import Script
from inspector.diagnose.script.values import (
    UNKNOWN,
    Class,
    External,
    Function,
    Ref,
    operated,
    truth,
)
from inspector.overriding import override

_RETRIES = frozenset({"load", "load_state_dict", "removeprefix", "startswith", "replace", "items"})
_ABOVE = {"KeyError": "LookupError", "AcceleratorError": "RuntimeError", "UnpicklingError": "PickleError"}
_Def = ast.FunctionDef | ast.AsyncFunctionDef


class Walk(Evaluator):
    """A walk through a script and the modules that it imports."""

    # --- the walk -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Walk the script, then the functions that nothing called, then loads that were not come to."""
        try:
            self._read_imports()
            self.body(self.script.tree.body)
            self.is_reached = False
            for script in self._scripts():
                self.is_followed = script is self.project.script
                self._walk_rest(script)
        except SpentError:
            self.is_cut, self.is_reached = True, False
        self.is_followed = False
        for script in self._scripts():
            self._walk_loads(script)

    def _read_imports(self) -> None:
        """Read what the script imports itself before what that imports: reading has an end."""
        for node in ast.walk(self.script.tree):
            if isinstance(node, ast.ImportFrom):
                for name in (node.module or "", *(f"{node.module or ''}.{one.name}" for one in node.names)):
                    self.project.find(name.strip("."), node.level, self.script)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    self.project.find(one.name, 0, self.script)

    def _scripts(self) -> list[Script]:
        return [
            self.project.script,
            *(one for one in self.project.read if "load" in one.text and "torch" in one.text),
        ]

    def _walk_rest(self, script: Script) -> None:
        """Enter the functions that nothing entered, those first that nothing names."""
        self.script = script
        nodes = list(ast.walk(script.tree))
        self._spend(len(nodes))
        named = {getattr(one, "id", getattr(one, "attr", "")) for one in nodes}
        scope = self._modules[script.name].id if script.name in self._modules else 0
        for wants_named in (False, True):
            for owner, node in _functions(nodes):
                if (node.name in named) is not wants_named or id(node) in self._entered:
                    continue
                cls = None if owner is None else self.vars.get((scope, owner.name))
                made = None if owner is None else self.new("instance")
                if isinstance(cls, Class):
                    made = self._instance(cls)
                if id(node) not in self._entered:  # by its own `__init__`
                    self._enter(Function(node, scope, script, made), Args(NO_CALL))

    def _instance(self, cls: Class) -> Ref:
        """Return an object of a class, with the attributes that its `__init__` gives it, made once."""
        made = self.vars.get((cls.id, "~instance"))
        if not isinstance(made, Ref):
            made = self._instantiate(cls, Args(NO_CALL, whole=False))
            self.vars[cls.id, "~instance"] = made
        return made

    def _walk_loads(self, script: Script) -> None:
        """Judge loads that were not come to as they stand: the work had an end, or they lie too deep."""
        self._active.clear()
        nodes = list(ast.walk(script.tree))  # from the outermost statement to the innermost
        within = {id(one): node for node in nodes if isinstance(node, ast.stmt) for one in _expressions(node)}
        for node in nodes:
            if not isinstance(node, ast.Call) or id(node) in self._entered or id(node) not in within:
                continue
            if getattr(node.func, "attr", getattr(node.func, "id", "")).startswith("load"):
                self.script, self.when, self.scope, self._depth = script, (), 0, 0
                self.statement, self.work = within[id(node)], MOST_WORK - 500
                try:
                    self.eval(node)
                except SpentError:
                    self._active.clear()

    # --- statements -----------------------------------------------------------------------------------------

    @override
    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Walk a block; return whether it was left before its end."""
        self._depth += 1
        ended = False
        for node in statements if self._depth <= MOST_DEPTH else ():
            self._spend()
            self.statement = node
            handle = getattr(self, f"_{type(node).__name__.lower()}", self._other)
            if handle(node) is True:
                ended = True
                break
        self._depth -= 1
        return ended

    def _expr(self, node: ast.Expr) -> bool:
        value = self.eval(node.value)
        return isinstance(value, External) and value.name in EXITS

    def _return(self, node: ast.Return) -> bool:
        value = None if node.value is None else self.eval(node.value)
        self._frames[-1].append(value)
        return True

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        if node.value is not None:
            value, is_fact = self._judged(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind(target, value, is_fact=is_fact)

    _annassign = _assign

    def _global(self, node: ast.Global) -> None:
        made = self._modules.get(self.script.name)
        self.outer |= {(self.scope, name): 0 if made is None else made.id for name in node.names}

    def _assert(self, node: ast.Assert) -> None:
        value, is_fact = self._judged(node.test)
        if truth(value) is False and is_fact and self.is_reached:
            self.on_assert(node)

    def _augassign(self, node: ast.AugAssign) -> None:
        self._bind(node.target, operated(node.op, self.eval(node.target), self.eval(node.value)))

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            owner = self.eval(target.value) if isinstance(target, ast.Subscript) else None
            pairs = self.pairs(owner)
            if isinstance(target, ast.Subscript) and pairs is not None:
                key = self.eval(target.slice)
                kept = {one: item for one, item in pairs.items.items() if one != key}
                self.store(owner, kept, whole=pairs.whole)

    def _if(self, node: ast.If) -> bool:
        value, is_fact = self._judged(node.test)
        found = truth(value)
        if getattr(getattr(node.test, "left", None), "id", "") == "__name__":
            found, is_fact = self.script is self.project.script, True
        if found is not None and is_fact:
            self._rule_out(node.orelse if found else node.body)
            before, self.touched = self.touched, True
            ended = self.body(node.body if found else node.orelse)
            self.touched = before
            return ended
        rows = [(node.body, True), (node.orelse, False)]
        default, other = rows if found is not False else reversed(rows)
        forked, outside = self._fork(), self.when
        if found is None:
            self.when = (*outside, *self._condition(node, is_true=default[1]))
        ended = self.body(default[0])
        taken, self.vars = self.vars, forked
        self.when = (*outside, *self._condition(node, is_true=other[1]))
        other_ended = self.body(other[0])
        self.when = outside
        if other_ended:
            self.vars = taken
        elif not ended:
            self._join(taken, is_known=found is not None)
        return ended and other_ended

    def _fork(self) -> Vars:
        self._spend(1 + len(self.vars) // 32)
        return dict(self.vars)

    def _join(self, one: Vars, *, is_known: bool) -> None:
        """Become what two branches leave: what comes from the file, what only one has, else nothing known."""
        two, self.vars = self.vars, one
        self._spend(1 + len(two) // 16)
        for place, value in two.items():
            if place not in one:
                one[place] = value
            elif one[place] is not value and one[place] != value:
                one[place] = joined(one[place], value, is_known=is_known)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        items = self.items(self.eval(node.iter))
        for item in [UNKNOWN] if items is None else items:
            self._spend()
            self._bind(node.target, item)
            self.body(node.body)
        self.body(node.orelse)

    _asyncfor = _for

    def _while(self, node: ast.While) -> None:
        self.eval(node.test)
        self.body(node.body)
        self.body(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.eval(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, value)
        return self.body(node.body)

    _asyncwith = _with

    def _try(self, node: ast.Try) -> bool:
        start, before, outside = len(self.problems), self._fork(), self.when
        ended = self.body(node.body)
        for handler in node.handlers:
            raised = self.problems[start].message if len(self.problems) > start else ""
            retries = bool(raised) and _catches(self.script, handler, raised) and _retries(handler)
            kept, self.vars = self.vars, dict(before)
            if retries:
                self.retried |= {one.load for one in self.problems[start:]}
                del self.problems[start:]
            else:
                self.when = (*outside, When(handler.lineno, "the lines of the try block fail"))
            handler_ended = self.body(handler.body)
            self.when = outside
            ended = ended and handler_ended
            self.vars = {**kept, **self.vars} if retries else kept
        self.body(node.orelse)
        return self.body(node.finalbody) or ended

    _trystar = _try

    def _functiondef(self, node: _Def) -> None:
        self.vars[self.scope, node.name] = Function(node, self.scope, self.script)

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        bases = tuple(self.eval(base) for base in node.bases)
        made = Class(node, self.new("class").id, self.script, bases)
        self.parents[made.id] = self.scope
        self.vars[self.scope, node.name] = made
        outside, self.scope = self.scope, made.id
        self.body(node.body)
        self.scope = outside

    def _import(self, node: ast.Import) -> None:
        for name in node.names:
            first, _, rest = name.name.partition(".")
            found, whole = self._module(first, 0), self._module(name.name, 0)
            if found is not None and whole is not None and rest:
                self.vars[found.id, rest] = whole
            bound = (whole, name.name) if name.asname else (found, first)
            self.vars[self.scope, name.asname or first] = bound[0] or External(bound[1])

    def _importfrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        found = self._module(module, node.level)
        for name in node.names:
            whole = f"{module}.{name.name}".strip(".")
            if name.name != "*":
                inner = None if found is None else self.vars.get((found.id, name.name))
                inner = self._module(whole, node.level) if inner is None else inner
                self.vars[self.scope, name.asname or name.name] = External(whole) if inner is None else inner
            elif found is not None:
                found_in = [(key, value) for (owner, key), value in self.vars.items() if owner == found.id]
                self.vars.update({(self.scope, key): value for key, value in found_in})
            elif module == "torch":
                self.vars[self.scope, "load"] = External("torch.load")

    def _module(self, name: str, level: int) -> Ref | None:
        parents = name.split(".")[:-1] if not level else []
        for end in range(1, len(parents) + 1):
            above = self.project.find(".".join(parents[:end]), 0, self.script)
            if above is not None and TRUSTS in above.text:
                self._module(".".join(parents[:end]), 0)
        script = self.project.find(name, level, self.script)
        if script is None or script is self.project.script:
            return None
        if script.name not in self._modules:
            made = self._modules[script.name] = self.new("module")
            kept = self.script, self.scope, self.when, self.statement
            self.script, self.scope = script, made.id
            self.body(script.tree.body)
            self.script, self.scope, self.when, self.statement = kept
        return self._modules[script.name]


# --- looking at the tree ------------------------------------------------------------------------------------


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement, but for those of statements in it."""
    waiting: list[ast.AST] = [node]
    for one in waiting:  # which grows
        below = [child for child in ast.iter_child_nodes(one) if not isinstance(child, ast.stmt)]
        waiting += below
        yield from (child for child in below if isinstance(child, ast.expr))


def _functions(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.ClassDef | None, _Def]]:
    """Yield functions and methods with their class, but for those in other functions."""
    for node in nodes:
        for inner in node.body if isinstance(node, ast.Module | ast.ClassDef | ast.If | ast.Try) else ():
            if isinstance(inner, _Def):
                yield node if isinstance(node, ast.ClassDef) else None, inner


def _retries(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler tries again, rather than tell or leave."""
    return any(isinstance(node, ast.Attribute) and node.attr in _RETRIES for node in ast.walk(handler))


def _catches(script: Script, handler: ast.ExceptHandler, message: str) -> bool:
    """Return whether a handler catches what a message names, which begins with its class."""
    raised = message.partition(":")[0].rpartition(".")[2]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"" if one is None else script.source(one).rpartition(".")[2] for one in kinds}
    return bool(names & {"", "Exception", "BaseException", raised, _ABOVE.get(raised, raised)})
