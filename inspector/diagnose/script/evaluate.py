"""What the expressions of a script come to, and what its calls enter. Nothing is run; work is counted."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from inspector.diagnose.script.edits import Problem, When
from inspector.diagnose.script.options import Words, add_argument, parsed
from inspector.diagnose.script.read import Project, Script
from inspector.diagnose.script.values import (
    HOLE,
    UNKNOWN,
    Class,
    Device,
    External,
    File,
    Function,
    Method,
    Pairs,
    Parameters,
    Ref,
    Seq,
    Unknown,
    Value,
    joined_path,
    of_text,
    operated,
    pure_of,
    seq,
    sliced,
    text,
    truth,
)
from inspector.records import dataclass, field
from inspector.target.profile import Profile

MOST_WORK = 150_000
MOST_ITEMS = 400
MOST_DEPTH = 90  # of expressions and statements in each other, calls included
_MOST_CALLS = 10
_MOST_ENTERED = 12  # times that one function is entered
_SAME = frozenset(
    {"eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "cuda", "cpu", "xpu", "to"}
)
EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_PARSERS = frozenset({"ArgumentParser", "ArgParser", "OptionParser"})
_NO_OBJECTS = frozenset({"torch", "os", "sys", "np", "numpy", "re", "json", "time", "math"})

TRUSTS = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""The variable of the environment that turns `weights_only` off where a call does not say it."""

NO_CALL = ast.Call(func=ast.Name(id=""), args=[], keywords=[])
Vars = dict[tuple[object, object], Value]


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of a call.

    Attributes:
        node: The call; `NO_CALL` for one that no script makes.
        facts: The places and names of those that the machine, the file or the given words decide.
    """

    node: ast.Call
    values: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = True
    facts: frozenset[object] = frozenset()

    def get(self, place: int, name: str, default: Value = None) -> Value:
        """Return an argument by its place or name."""
        return self.named[name] if name in self.named else self.at(place, default)

    def at(self, place: int, default: Value = UNKNOWN) -> Value:
        """Return an argument by its place."""
        return self.values[place] if place < len(self.values) else default


class SpentError(Exception):
    """The work that is allowed is done."""


class Evaluator:
    """Expressions and calls on a machine; `calls.Walk` has the statements, `uses.Judge` the loads."""

    def __init__(self, project: Project, target: Profile, words: Words) -> None:
        self.project, self.target, self.words = project, target, words
        self.script = project.script
        self.vars: Vars = {}
        self.problems: list[Problem] = []
        self.retried: set[int] = set()
        """The loads that fail in a `try`, behind which another is tried."""
        self.when: tuple[When, ...] = ()
        self.work = 0
        self.touched = False
        """Whether the machine, the file or the words decided what was evaluated last."""
        self.is_reached = True
        """Whether the script leads here, rather than that nothing calls the function."""
        self.is_followed = True
        """Whether the script or one of its own functions leads here, called or not."""
        self.statement: ast.stmt = ast.Pass()
        self.scope, self._next, self._depth = 0, 1, 0
        self.parents: dict[int, int] = {}
        self.outer: dict[tuple[object, object], int] = {}
        """By scope and name, the module whose name a `global` statement means."""
        self.is_cut = False
        """Whether the work had an end before the script had."""
        self._facts: set[tuple[object, object]] = set()
        self._frames: list[list[Value]] = [[]]
        self._active: list[object] = []
        self._entered: dict[int, int] = {}
        self._modules: dict[str, Ref] = {}

    # What those who inherit know.

    def on_external(self, name: str, args: Args) -> Value:  # noqa: ARG002
        """Return what a function of a package gives; None where nothing is to be said of it."""
        return None

    def on_method(self, owner: Value, name: str, args: Args) -> Value:  # noqa: ARG002
        """Return what a method gives."""
        return UNKNOWN

    def on_assert(self, node: ast.Assert) -> None:
        """See an assertion that fails on the target."""

    def on_attribute(self, owner: Value, name: str, node: ast.Attribute) -> None:
        """See an attribute that is read."""

    def on_key(self, owner: File, key: Value, node: ast.expr | None) -> Value:  # noqa: ARG002
        """Return what stands at a key of what was loaded; without a node, nothing is raised."""
        return UNKNOWN

    def items_of(self, owner: File) -> dict[Value, Value] | None:  # noqa: ARG002
        """Return the first `MOST_ITEMS` items of a mapping in the file."""
        return None

    def body(self, statements: Sequence[ast.stmt]) -> bool:  # noqa: ARG002
        """Walk a block; return whether it was left before its end."""
        return False

    # --- what is known --------------------------------------------------------------------------------------

    def _spend(self, work: int = 1) -> None:
        self.work += work
        if self.work > MOST_WORK:
            raise SpentError

    def new(self, kind: str) -> Ref:
        """Make an object."""
        self._next += 1
        return Ref(self._next, kind)

    @property
    def function(self) -> object:
        """The function that is walked; None outside of any."""
        return self._active[-1] if self._active else None

    def make_dict(self, items: dict[Value, Value], *, whole: bool = True) -> Ref:
        """Make a dictionary."""
        made = self.new("dict")
        self.vars[made.id, "~pairs"] = Pairs(items, whole)
        return made

    def pairs(self, value: Value) -> Pairs | None:
        """Return the items of a dictionary, or of a mapping in the file; None for anything else."""
        if isinstance(value, File):
            if ("file", value) in self.vars:
                return self.pairs(self.vars["file", value])
            found = self.items_of(value)
            return None if found is None else Pairs(found, len(found) < MOST_ITEMS)
        known = self.vars.get((value.id, "~pairs")) if isinstance(value, Ref) else None
        return known if isinstance(known, Pairs) else None

    def store(self, owner: Value, items: dict[Value, Value], *, whole: bool) -> None:
        """Give a dictionary other items, or what was loaded."""
        self._spend(1 + len(items) // 32)
        if isinstance(owner, Ref):
            self.vars[owner.id, "~pairs"] = Pairs(items, whole)
        else:
            self.vars["file", owner] = self.make_dict(items, whole=whole)

    def _other(self, node: ast.AST) -> bool:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return isinstance(node, ast.Raise | ast.Break | ast.Continue)

    def _bind(self, target: ast.expr, value: Value, *, is_fact: bool = False) -> None:
        if isinstance(target, ast.Name):
            scope = self.outer.get((self.scope, target.id), self.scope)
            self._put((scope, target.id), value, is_fact=is_fact)
        elif isinstance(target, ast.Attribute):
            owner = self.eval(target.value)
            if isinstance(owner, Ref | Class):
                self._put((owner.id, target.attr), value, is_fact=is_fact)
            elif isinstance(owner, External):
                self.vars["ext", f"{owner.name}.{target.attr}"] = value
        elif isinstance(target, ast.Subscript):
            owner, key = self.eval(target.value), self.eval(target.slice)
            pairs = self.pairs(owner)
            if owner == External("os.environ"):
                self.vars["env", key] = value
            elif pairs is not None:
                is_known = isinstance(key, str | int) and HOLE not in text(key)
                items = {**pairs.items, key: value} if is_known else pairs.items
                self.store(owner, items, whole=pairs.whole and is_known)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.items if isinstance(value, Seq) and len(value.items) == len(target.elts) else ()
            for place, one in enumerate(target.elts):
                self._bind(one, parts[place] if parts else UNKNOWN, is_fact=is_fact)

    def _put(self, place: tuple[object, object], value: Value, *, is_fact: bool) -> None:
        self.vars[place] = value
        (self._facts.add if is_fact else self._facts.discard)(place)

    def _judged(self, node: ast.expr) -> tuple[Value, bool]:
        """Evaluate an expression; return whether the machine, the file or the words decided it, too."""
        before, self.touched = self.touched, False
        value = self.eval(node)
        is_fact, self.touched = self.touched, self.touched or before
        return value, is_fact

    def _condition(self, node: ast.If | ast.IfExp, *, is_true: bool) -> tuple[When, ...]:
        words, is_run = _condition_words(self.script, node.test, is_true=is_true)
        return (When(node.lineno, words, is_run),) if words else ()

    def _rule_out(self, nodes: Sequence[ast.AST]) -> None:
        """Note the calls in a branch that the machine or the file does not take."""
        for node in nodes:
            for inner in ast.walk(node):
                self._spend()
                if isinstance(inner, ast.Call):
                    self._entered.setdefault(id(inner), 1)

    # --- expressions ----------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Value:
        """Return what an expression comes to."""
        self._spend()
        self._depth += 1
        value: Value = UNKNOWN
        if self._depth <= MOST_DEPTH:
            handle = getattr(self, f"_{type(node).__name__.lower()}", None)
            if handle is not None:
                value = handle(node)
            else:
                self._other(node)
        self._depth -= 1
        return value

    def _constant(self, node: ast.Constant) -> Value:
        return pure_of(lambda value: value, node.value)

    def _name(self, node: ast.Name) -> Value:
        scope: int | None = self.scope
        while scope is not None:
            if (scope, node.id) in self.vars:
                return self._get((scope, node.id))
            scope = self.parents.get(scope)
        return External(node.id)

    def _get(self, place: tuple[object, object]) -> Value:
        self.touched |= place in self._facts
        return self.vars[place]

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.eval(node.value)
        self.on_attribute(owner, node.attr, node)
        return self.attribute(owner, node.attr)

    def attribute(self, owner: Value, name: str) -> Value:
        """Return an attribute of a value."""
        if isinstance(owner, Device):
            kind, _, number = owner.text.partition(":")
            known: dict[str, Value] = {"type": kind, "index": int(number) if number.isdigit() else None}
            return known.get(name, UNKNOWN)
        if isinstance(owner, External):
            whole = f"{owner.name}.{name}"
            return self.vars.get(("ext", whole), External(whole))
        if isinstance(owner, Ref | Class) and (owner.id, name) in self.vars:
            found = self._get((owner.id, name))
            return Function(found.node, found.scope, found.script) if isinstance(found, Function) else found
        if isinstance(owner, Ref) and owner.kind == "options":
            return self.options(owner) if name == "__dict__" else Unknown(f"--{name}")
        if isinstance(owner, Ref) and owner.kind in {"model", "object"} and name == "device":
            self.touched = True  # what something lies on is there
            return Device(self.target.devices[0])
        cls = self.vars.get((owner.id, "~class")) if isinstance(owner, Ref) else owner
        found = self._of_class(cls, name, owner) if isinstance(cls, Class) else None
        return Method(owner, name) if found is None else found

    def options(self, owner: Ref) -> Value:
        """Return parsed options as a dictionary."""
        rows = {name: value for (one, name), value in self.vars.items() if one == owner.id}
        return self.make_dict({str(name): value for name, value in rows.items()}, whole=False)

    def _of_class(self, cls: Class, name: str, owner: Value) -> Value:
        """Return what a class or one of its bases has; its functions as methods of the owner."""
        waiting = [cls]
        for one in waiting:  # which grows
            found = self.vars.get((one.id, name))
            if isinstance(found, Function):
                marks = [found.script.source(each) for each in getattr(found.node, "decorator_list", ())]
                bound = Function(
                    found.node, found.scope, found.script, None if "staticmethod" in marks else owner
                )
                return self._enter(bound, Args(NO_CALL)) if "property" in marks else bound
            if found is not None:
                return found
            self._spend()
            waiting += [base for base in one.bases if isinstance(base, Class)]
        return None

    def _subscript(self, node: ast.Subscript) -> Value:  # noqa: PLR0911 - a kind of owner each
        owner = self.eval(node.value)
        if isinstance(node.slice, ast.Slice):
            rows = (node.slice.lower, node.slice.upper, node.slice.step)
            return sliced(owner, [None if one is None else self.eval(one) for one in rows])
        key = self.eval(node.slice)
        if isinstance(owner, File):
            return self.on_key(owner, key, node)
        if owner == External("os.environ"):
            return self.vars.get(("env", key), Unknown(f"the environment variable {text(key)}"))
        if owner == External("sys.argv"):
            self.touched |= self.words.given
            return self.words.at(key)
        pairs = self.pairs(owner)
        if pairs is not None and isinstance(key, str | int):
            return pairs.items.get(key, UNKNOWN)
        if isinstance(owner, Seq) and isinstance(key, int) and -len(owner.items) <= key < len(owner.items):
            return owner.items[key]
        return UNKNOWN

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        rows = [one.value if isinstance(one, ast.Starred) else one for one in node.elts]
        values = [self.eval(one) for one in rows]
        return seq(values) if rows == node.elts else UNKNOWN

    _list = _set = _tuple

    def _dict(self, node: ast.Dict) -> Value:
        items: dict[Value, Value] = {}
        whole = True
        for key, item in zip(node.keys, node.values, strict=True):
            found, value = None if key is None else self.eval(key), self.eval(item)
            more = self.pairs(value) if key is None else None
            if more is not None:
                items |= more.items
                whole = whole and more.whole
            elif isinstance(found, str | int | Device):
                items[found] = value
            else:
                whole = False
        return self.make_dict(items, whole=whole)

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.scope, self.script)

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.eval(node.value)
        self._bind(node.target, value)
        return value

    def _await(self, node: ast.Await | ast.Starred) -> Value:
        return self.eval(node.value)

    _starred = _await

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        parts = [self.eval(part) for part in node.values]
        return pure_of("".join, Seq(tuple(map(text, parts)), len(parts)))

    def _formattedvalue(self, node: ast.FormattedValue) -> Value:
        value = self.eval(node.value)
        return value if node.format_spec is None else UNKNOWN

    def _ifexp(self, node: ast.IfExp) -> Value:
        value, is_fact = self._judged(node.test)
        found = truth(value)
        if found is not None:
            if is_fact:
                self._rule_out([node.orelse if found else node.body])
            return self.eval(node.body if found else node.orelse)
        outside = self.when
        self.when = (*outside, *self._condition(node, is_true=True))
        first = self.eval(node.body)
        self.when = (*outside, *self._condition(node, is_true=False))
        second = self.eval(node.orelse)
        self.when = outside
        one, two = self.pairs(first), self.pairs(second)
        both = None if one is None or two is None else joined(one, two, is_known=False)
        if isinstance(both, Pairs):
            return self.make_dict(both.items, whole=both.whole)
        return first if first == second else Unknown(self.script.source(node))

    def _boolop(self, node: ast.BoolOp) -> Value:
        values: list[Value] = []
        for one in node.values:
            values.append(self.eval(one))
            if truth(values[-1]) is isinstance(node.op, ast.Or):
                return values[-1]
        return UNKNOWN if None in map(truth, values) else values[-1]

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            found = truth(value)
            return UNKNOWN if found is None else not found
        return -value if isinstance(node.op, ast.USub) and isinstance(value, int | float) else UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        left, *rows = [self.eval(one) for one in (node.left, *node.comparators)]
        op = node.ops[0]
        if len(rows) > 1:
            return UNKNOWN
        if isinstance(op, ast.In | ast.NotIn) and (
            isinstance(rows[0], File) or self.pairs(rows[0]) is not None
        ):
            found = self._holds(rows[0], left)
            return UNKNOWN if found is None else found is isinstance(op, ast.In)
        return operated(op, left, rows[0])

    def _holds(self, owner: Value, key: Value) -> bool | None:
        """Return whether a dictionary has a key; None where that is not known."""
        pairs = self.pairs(owner)
        self.touched |= isinstance(owner, File)
        if pairs is None or not isinstance(key, str | int) or HOLE in text(key):
            return None
        return True if key in pairs.items else False if pairs.whole else None

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.eval(node.left), self.eval(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, Seq) and isinstance(right, Seq):
            return seq([*left.items, *right.items])
        return operated(node.op, left, right)

    def _dictcomp(self, node: ast.DictComp) -> Value:
        items: dict[Value, Value] = {}
        whole = True
        for is_sure in self._rounds(node.generators):
            key, value = self.eval(node.key), self.eval(node.value)
            is_known = isinstance(key, str | int) and HOLE not in text(key)
            items |= {key: value} if is_known else {}
            whole = whole and is_sure and is_known
        return self.make_dict(items, whole=whole)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        rows = [(self.eval(node.elt), is_sure) for is_sure in self._rounds(node.generators)]
        return seq([value for value, _ in rows]) if all(is_sure for _, is_sure in rows) else UNKNOWN

    _generatorexp = _setcomp = _listcomp

    def _rounds(self, generators: Sequence[ast.comprehension]) -> Iterator[bool]:
        """Bind the names of a comprehension, one round after the other; yield whether the round is sure."""
        first, *rest = generators
        items = self.items(self.eval(first.iter))
        for item in [UNKNOWN] if items is None else items:
            self._spend()
            self._bind(first.target, item)
            tests = [truth(self.eval(test)) for test in first.ifs]
            if False not in tests:
                is_sure = items is not None and None not in tests
                yield from (is_sure and inner for inner in (self._rounds(rest) if rest else [True]))

    def items(self, value: Value) -> list[Value] | None:
        """Return what a loop over a value goes through; None where that is not known."""
        if isinstance(value, Seq):
            return list(value.items)
        pairs = self.pairs(value)
        self.touched |= isinstance(value, File)
        return list(pairs.items) if pairs is not None and (pairs.whole or pairs.items) else None

    # --- calls ----------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        statement = self.statement
        function = self.eval(node.func)
        args = self._args(node)
        self._entered[id(node)] = 1
        self.statement = statement
        value = self._called(function, args)
        self.statement = statement
        return value

    def _args(self, node: ast.Call) -> Args:
        values: list[Value] = []
        named: dict[str, Value] = {}
        facts: set[object] = set()
        whole = True
        for one in node.args:
            found, is_fact = self._judged(one)
            facts |= {len(values)} if is_fact else set()
            items = self.items(found) if isinstance(one, ast.Starred) else [found]
            whole = whole and items is not None
            values += items or []
        for keyword in node.keywords:
            found, is_fact = self._judged(keyword.value)
            facts |= {keyword.arg} if is_fact else set()
            pairs = self.pairs(found) if keyword.arg is None else Pairs({keyword.arg: found})
            whole = whole and pairs is not None and pairs.whole
            named |= {} if pairs is None else {str(key): item for key, item in pairs.items.items()}
        return Args(node, tuple(values), named, whole, frozenset(facts))

    def _called(self, function: Value, args: Args) -> Value:
        if isinstance(function, Function):
            return self._enter(function, args)
        if isinstance(function, Class):
            return self._instantiate(function, args)
        if isinstance(function, External):
            return self._external(function.name, args)
        if isinstance(function, Method):
            return self._method(function.owner, function.name, args)
        return self.on_method(function, "__call__", args) if isinstance(function, File) else UNKNOWN

    def _enter(self, function: Function, args: Args) -> Value:
        """Walk a function with its arguments; return what it gives."""
        node = function.node
        count = self._entered.get(id(node), 0)
        if node in self._active or len(self._active) >= _MOST_CALLS or count >= _MOST_ENTERED:
            return UNKNOWN
        self._entered[id(node)] = count + 1
        scope = self.new("scope").id
        self.parents[scope] = function.scope
        kept = self.scope, self.script, self.statement, self.when
        self._bind_parameters(function, args, scope)
        self.scope, self.script = scope, function.script
        self._active.append(node)
        self._frames.append([])
        if isinstance(node, ast.Lambda):
            self._frames[-1].append(self.eval(node.body))
        else:
            self.body(node.body)
        self._active.pop()
        given = self._frames.pop()
        self.scope, self.script, self.statement, self.when = kept
        result = given[0] if given else None
        for value in given[1:]:
            result = result if result is value or result == value else joined(result, value, is_known=False)
        return result

    def _bind_parameters(self, function: Function, args: Args, scope: int) -> None:
        spec = function.node.args
        names = [one.arg for one in (*spec.posonlyargs, *spec.args)]
        alone = [one.arg for one in spec.kwonlyargs]
        skip = int(function.owner is not None and bool(names))
        values = [function.owner, *args.values] if skip else list(args.values)
        defaults: dict[str, ast.expr | None] = dict(
            zip(reversed(names), reversed(spec.defaults), strict=False)
        )
        defaults |= dict(zip(alone, spec.kw_defaults, strict=True))
        for place, name in enumerate([*names, *alone]):
            default = defaults.get(name)
            value: Value = Unknown(f"the argument {name}")
            if place < min(len(values), len(names)):
                value = values[place]
            elif name in args.named:
                value = args.named[name]
            elif default is not None:
                value = self.eval(default)
            self._put((scope, name), value, is_fact=name in args.facts or place - skip in args.facts)
        if spec.vararg is not None:
            self.vars[scope, spec.vararg.arg] = seq(values[len(names) :]) if args.whole else UNKNOWN
        if spec.kwarg is not None:
            more: dict[Value, Value] = {
                key: item for key, item in args.named.items() if (scope, key) not in self.vars
            }
            self.vars[scope, spec.kwarg.arg] = self.make_dict(more, whole=args.whole)

    def _instantiate(self, cls: Class, args: Args) -> Ref:
        made = self.new("model" if _is_module(cls) else "instance")
        self.vars[made.id, "~class"] = cls
        first = self._of_class(cls, "__init__", made)
        if isinstance(first, Function):
            self._enter(first, args)
        return made

    def _method(self, owner: Value, name: str, args: Args) -> Value:
        if isinstance(owner, Ref) and owner.kind == "parser":
            return self._of_parser(owner, name, args)
        if isinstance(owner, str):
            return of_text(owner, name, self._flat(args))
        pairs = self.pairs(owner)
        if pairs is not None:
            found = self._of_dict(owner, pairs, name, args)
            if found is not UNKNOWN:
                return found
        if (
            isinstance(owner, Ref)
            and owner.kind in {"model", "object"}
            and name in {"parameters", "named_parameters"}
        ):
            return Parameters(self.bare(owner).id)
        found = self.on_method(owner, name, args)
        return owner if name in _SAME and found is UNKNOWN else found

    def _flat(self, args: Args) -> list[Value]:
        return [*args.values, *args.named.values()]

    def _of_dict(self, owner: Value, pairs: Pairs, name: str, args: Args) -> Value:
        key, items = args.get(0, "key"), pairs.items
        if name in {"keys", "values", "items"} and (items or pairs.whole):
            self.touched |= isinstance(owner, File)
            rows = {"keys": items, "values": items.values(), "items": [Seq(row, 3) for row in items.items()]}[
                name
            ]
            return Seq(tuple(rows), len(items) + 1)
        if name in {"get", "pop", "setdefault"}:
            holds = self._holds(owner, key)
            if name == "pop":
                self.store(owner, {one: item for one, item in items.items() if one != key}, whole=pairs.whole)
            if isinstance(owner, File) and holds and name == "get":
                return self.on_key(owner, key, None)
            return items[key] if holds else args.at(1, None) if holds is False else UNKNOWN
        if name == "update":
            more = self.pairs(args.at(0, self.make_dict({})))
            whole = args.whole and pairs.whole and more is not None and more.whole
            self.store(
                owner,
                {**items, **({} if more is None else more.items), **dict(args.named.items())},
                whole=whole,
            )
        return UNKNOWN

    def bare(self, owner: Ref) -> Ref:
        """Return the model that wrappers are around."""
        inner = self.vars.get((owner.id, "~inside"))
        return self.bare(inner) if isinstance(inner, Ref) and inner.id < owner.id else owner

    def _of_parser(self, owner: Ref, name: str, args: Args) -> Value:
        held = self.pairs(owner)
        options = {} if held is None else held.items
        if name in {"add_argument", "add_option"}:
            key, option = add_argument(args.values, args.named)
            self.store(owner, {**options, key: option}, whole=True)
        elif name == "set_defaults":
            self.store(owner, {**options, **dict(args.named.items())}, whole=True)
        elif name in {"parse_args", "parse_known_args"}:
            found = self.new("options")
            self.touched |= self.words.given
            for key, one in parsed(self.words, options).items():
                self._put((found.id, key), one, is_fact=self.words.given)
            return found if name == "parse_args" else seq([found, UNKNOWN])
        return owner  # groups and the parsers of commands have the options of their parser here

    def _external(self, name: str, args: Args) -> Value:  # noqa: PLR0911 - a kind of function each
        short = name.rpartition(".")[2]
        handle = _KNOWN.get(name) or _KNOWN.get(name[name.rfind(".", 0, name.rfind(".")) + 1 :])
        if handle is not None:
            return handle(self, args)
        if name in EXITS:
            return External(name)
        if short in _PARSERS:
            return self.new("parser")
        if short in {"is_available", "device_count"}:
            return self._machine(name)
        found = self.on_external(name, args)
        if found is not None:
            return found
        self._hand_over(short, args)
        if name.partition(".")[0] in _NO_OBJECTS:
            return UNKNOWN
        made = self.new("object")
        self.vars[made.id, "~class"] = External(name)
        return made

    def _machine(self, name: str) -> Value:
        kind = next((one for one in ("cuda", "mps", "xpu") if f".{one}." in name), "")
        self.touched |= bool(kind)
        count = self.target.count(kind)
        return UNKNOWN if not kind else count if name.endswith("count") else count > 0

    def _hand_over(self, short: str, args: Args) -> None:
        """Enter functions that are handed to something which will call them: `spawn(worker, args=...)`."""
        given = args.named.get("args")
        rank: list[Value] = [Unknown("the rank")] if short in {"spawn", "launch"} else []
        for value in self._flat(args):
            if isinstance(value, Function) and not isinstance(value.node, ast.Lambda):
                self._enter(value, Args(NO_CALL, (*rank, *(given.items if isinstance(given, Seq) else ()))))


# --- functions that are known -------------------------------------------------------------------------------


def _device(walk: Evaluator, args: Args) -> Value:
    del walk
    value, number = args.get(0, "device", args.named.get("type", UNKNOWN)), args.get(1, "index")
    if type(value) is int:
        return Device(f"cuda:{value}")
    if not isinstance(value, str) or value == HOLE:
        return value
    return Device(value if number is None else f"{value}:{text(number)}")


def _getenv(walk: Evaluator, args: Args) -> Value:
    del walk
    default = args.get(1, "default")
    return Unknown(f"the environment variable {text(args.at(0))}") if default is None else default


def _getattr(walk: Evaluator, args: Args) -> Value:
    name = args.at(1)
    found = walk.attribute(args.at(0), name) if isinstance(name, str) else UNKNOWN
    return args.at(2) if isinstance(found, Method | Unknown) else found


def _is_wrapped(walk: Evaluator, owner: Value) -> Value:
    if not isinstance(owner, Ref) or owner.kind not in {"model", "object"}:
        return UNKNOWN
    walk.touched = True
    return walk.vars.get((owner.id, "~prefix")) == "module."


def _isinstance(walk: Evaluator, args: Args) -> Value:
    owner, kind = args.at(0), args.at(1)
    kinds = kind.items if isinstance(kind, Seq) else (kind,)
    names = {one.name.rpartition(".")[2] for one in kinds if isinstance(one, External)}
    if names & {"DataParallel", "DistributedDataParallel"}:
        return _is_wrapped(walk, owner)
    if isinstance(owner, File) and names & {"dict", "OrderedDict", "Mapping"}:
        walk.touched = True
        return walk.pairs(owner) is not None
    return UNKNOWN


def _len(walk: Evaluator, args: Args) -> Value:
    value = args.at(0)
    if value == External("sys.argv"):
        walk.touched |= walk.words.given
        return walk.words.count()
    items = walk.items(value)
    return pure_of(len, value) if items is None else len(items)


def _list(walk: Evaluator, args: Args) -> Value:
    items = walk.items(args.at(0, seq([])))
    return UNKNOWN if items is None else Seq(tuple(items), len(items) + 1)


def _dict(walk: Evaluator, args: Args) -> Value:
    given = args.at(0, walk.make_dict({}))
    held = walk.pairs(given)
    rows = [one.items for one in given.items if isinstance(one, Seq)] if isinstance(given, Seq) else []
    items = held.items if held is not None else {row[0]: row[1] for row in rows if len(row) == 2}
    whole = args.whole and (bool(rows) if held is None else held.whole)
    return walk.make_dict({**items, **dict(args.named.items())}, whole=whole)


def _vars(walk: Evaluator, args: Args) -> Value:
    given = args.at(0)
    return walk.options(given) if isinstance(given, Ref) and given.kind == "options" else UNKNOWN


def _zip(walk: Evaluator, args: Args) -> Value:
    columns = [items for items in map(walk.items, args.values) if items is not None]
    is_known = columns and len(columns) == len(args.values)
    return seq([seq(list(row)) for row in zip(*columns, strict=False)]) if is_known else UNKNOWN


def _path(walk: Evaluator, args: Args) -> Value:
    del walk
    return joined_path(list(args.values)) if args.whole else UNKNOWN


def _first(walk: Evaluator, args: Args) -> Value:
    del walk
    return args.at(0)


def _pure(function: Callable[..., object]) -> Callable[[Evaluator, Args], Value]:
    return lambda _, args: args.at(0) if isinstance(args.at(0), Unknown) else pure_of(function, *args.values)


_KNOWN: Mapping[str, Callable[[Evaluator, Args], Value]] = {
    "torch.device": _device,
    "os.getenv": _getenv,
    "environ.get": _getenv,
    "path.join": _path,
    "pathlib.Path": _path,
    **dict.fromkeys(("path.isfile", "path.exists", "path.isdir"), lambda *_: UNKNOWN),
    **dict.fromkeys(("path.expanduser", "path.abspath", "path.realpath", "path.normpath"), _first),
    **dict.fromkeys(("copy.deepcopy", "copy.copy", "io.open", "open", "tqdm.tqdm"), _first),
    **dict.fromkeys(("collections.OrderedDict", "dict"), _dict),
    **dict.fromkeys(("list", "tuple", "sorted"), _list),
    "getattr": _getattr,
    "hasattr": lambda walk, args: _is_wrapped(walk, args.at(0)) if args.at(1) == "module" else UNKNOWN,
    "isinstance": _isinstance,
    "len": _len,
    "zip": _zip,
    "vars": _vars,
    "distributed.is_initialized": lambda *_: False,
    "str": lambda _, args: text(args.at(0)),
    "int": _pure(int),
    "bool": _pure(bool),
}


def joined(one: Value, two: Value, *, is_known: bool) -> Value:
    """Return what is known of a value that is one thing or another: the first, where that is the default."""
    for value, other in ((one, two), (two, one)):
        if (isinstance(value, File) and not isinstance(other, File)) or (
            isinstance(value, Ref) and other is None
        ):
            return value
    if isinstance(one, Pairs) and isinstance(two, Pairs):
        both = {**two.items, **one.items}
        agreed = {
            key: item if one.items.get(key) == two.items.get(key) else UNKNOWN for key, item in both.items()
        }
        return Pairs(one.items if is_known else agreed, one.whole and two.whole)
    return one if is_known else UNKNOWN


def _is_module(cls: Class, depth: int = 8) -> bool:
    """Return whether a class is a model, by the names of its bases."""
    names = [base.name for base in cls.bases if isinstance(base, External)]
    above = [base for base in cls.bases if isinstance(base, Class)]
    is_own = any(name.endswith(("Module", "Model", "Sequential")) for name in names)
    return is_own or (depth > 0 and any(_is_module(base, depth - 1) for base in above))


def _condition_words(script: Script, test: ast.expr, *, is_true: bool) -> tuple[str, bool]:
    """Return a condition as an answer names the branch it needs, and whether that is what it is run with.

    Empty for a file that has to be there.
    """
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, is_true = test.operand, not is_true
    source = " ".join(script.source(test).split())
    if is_true and any(word in source for word in ("isfile", "exists", "is_file", "isdir")):
        return "", False
    if isinstance(test, ast.Attribute) and is_true and "arg" in script.source(test.value):
        return f"run with `--{test.attr}`", True
    if isinstance(test, ast.Compare) and isinstance(test.comparators[0], ast.Constant):
        value, left = test.comparators[0].value, test.left
        is_same = isinstance(test.ops[0], ast.Eq) == is_true and isinstance(test.ops[0], ast.Eq | ast.NotEq)
        if is_same and isinstance(value, str) and "argv" in source:
            return f"run with `{value}`", True
        if is_same and isinstance(value, str) and isinstance(left, ast.Attribute) and "arg" in source:
            return f"run with `--{left.attr} {value}`", True
    return f"`{source}` is {'true' if is_true else 'false'}", False
