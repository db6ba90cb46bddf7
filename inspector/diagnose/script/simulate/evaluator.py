"""What an expression of a script stands for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from inspector.diagnose.script.objects.attributes import attribute
from inspector.diagnose.script.objects.containers import element_of, subscript
from inspector.diagnose.script.objects.tensors import combine
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Batch,
    Bound,
    Const,
    DictObject,
    External,
    Function,
    Items,
    ListObject,
    Tensor,
    Value,
)
from inspector.diagnose.script.simulate.computing import MOST_TEXT, computed, text_value
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.diagnose.script.simulate.truth import equal, is_in, same, truth
from inspector.diagnose.script.vocabulary import words
from inspector.records import replace

_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BUILTINS = words(
    "print len range enumerate zip list dict tuple set sorted reversed map filter isinstance hasattr "
    "getattr setattr int float str bool open next iter sum min max abs any all type super exit quit "
    "vars id round object Exception RuntimeError KeyError ValueError TypeError AttributeError "
    "AssertionError NotImplementedError FileNotFoundError ImportError OSError"
)


class Evaluator:
    """Evaluates expressions; what is not known here is unknown, and its parts are evaluated all the same."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def value(self, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        context = self._context
        context.spend()
        context.enter()
        try:
            handler = getattr(self, f"_{type(node).__name__.lower()}", None)
            if handler is None:
                return self._other(node)
            found: Value = handler(node)
            return found
        finally:
            context.leave()

    def _other(self, node: ast.expr) -> Value:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):  # and not what is to be done with it
                self.value(child)
        return UNKNOWN

    # --- literals -------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        is_plain = isinstance(node.value, str | bool | int | float | type(None))
        return Const(value=node.value) if is_plain else UNKNOWN

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        parts: list[str] | None = []
        for piece in node.values:
            inner = piece.value if isinstance(piece, ast.FormattedValue) else piece
            found = self.value(inner)
            is_plain = isinstance(piece, ast.Constant) or getattr(piece, "format_spec", None) is None
            if parts is None or not is_plain or not isinstance(found, Const):
                parts = None
            else:
                parts.append(str(found.value)[:MOST_TEXT])
        return UNKNOWN if parts is None else text_value("".join(parts))

    def _tuple(self, node: ast.Tuple) -> Value:
        items = self._many(node.elts)
        return UNKNOWN if items is None else Items(values=items)

    def _list(self, node: ast.List | ast.Set) -> Value:
        items = self._many(node.elts)
        made = ListObject(whole=False) if items is None else ListObject(items=items)
        return self._context.memory.put(made)

    _set = _list

    def _many(self, nodes: list[ast.expr]) -> tuple[Value, ...] | None:
        """Return the items of a display; None where some are not known."""
        items: list[Value] | None = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                more = self._context.iterate(self.value(node.value))
                is_long = self._context.is_long(len(more or ()) + len(items or ()))
                items = None if items is None or more is None or is_long else [*items, *more]
            else:
                found = self.value(node)
                items = None if items is None else [*items, found]
        return None if items is None else tuple(items)

    def _dict(self, node: ast.Dict) -> Value:
        pairs: dict[object, Value] = {}
        whole = True
        for key, item in zip(node.keys, node.values, strict=True):
            found = self.value(item)
            if key is None:
                held = self._context.memory.get(found)
                if isinstance(held, DictObject):
                    pairs.update(held.pairs)
                whole = whole and isinstance(held, DictObject) and held.whole
                continue
            name = self.value(key)
            if isinstance(name, Const):
                pairs[name.value] = found
            else:
                whole = False
        return self._context.memory.put(DictObject(pairs=pairs, whole=whole))

    # --- names ----------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Value:
        found = self._context.look_up(node.id)
        if found is not None:
            return found
        if node.id == "__name__":
            return Const(value="__main__")
        return External(name=f"builtins.{node.id}") if node.id in _BUILTINS else UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        self._context.line = node.lineno
        return attribute(self._context, owner, node.attr)

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._cut(owner, node.slice)
        key = self.value(node.slice)
        self._context.line = node.lineno
        return subscript(self._context, owner, key, node)

    def _cut(self, owner: Value, node: ast.Slice) -> Value:
        """Return a part of a text, a list or a tensor."""
        parts = [
            Const(value=None) if part is None else self.value(part)
            for part in (node.lower, node.upper, node.step)
        ]
        ends = [
            part.value for part in parts if isinstance(part, Const) and isinstance(part.value, int | None)
        ]
        if isinstance(owner, Tensor):
            return replace(owner, shape=None)
        if len(ends) != 3 or ends[2] == 0:
            return UNKNOWN
        if isinstance(owner, Const) and isinstance(owner.value, str):
            return Const(value=owner.value[slice(*ends)])
        items = self._context.iterate(owner)
        return (
            UNKNOWN
            if items is None
            else self._context.memory.put(ListObject(items=tuple(items)[slice(*ends)]))
        )

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        found = self.value(node.value)
        self._context.memory.scopes[self._context.scope][node.target.id] = found
        return found

    def _lambda(self, node: ast.Lambda) -> Value:
        self._context.captured.add(self._context.scope)
        return Function(node=node, scope=self._context.scope)

    def _await(self, node: ast.Await) -> Value:
        return self.value(node.value)

    # --- operators ------------------------------------------------------------------------------------------

    def _binop(self, node: ast.BinOp) -> Value:
        one, two = self.value(node.left), self.value(node.right)
        self._context.line = node.lineno
        if isinstance(one, Tensor | Batch) or isinstance(two, Tensor | Batch):
            return combine(self._context, one, two, node)
        if isinstance(one, Const) and isinstance(two, Const):
            return computed(type(node.op), one.value, two.value)
        return self._joined_lists(node, one, two)

    def _joined_lists(self, node: ast.BinOp, one: Value, two: Value) -> Value:
        memory = self._context.memory
        left, right = memory.get(one), memory.get(two)
        if isinstance(node.op, ast.Add) and isinstance(left, ListObject) and isinstance(right, ListObject):
            if self._context.is_long(len(left.items) + len(right.items)):
                return memory.put(ListObject(whole=False))
            joined = ListObject(items=(*left.items, *right.items), whole=left.whole and right.whole)
            return memory.put(joined)
        if isinstance(node.op, ast.Div):
            return self._context.call_value(Bound(owner=one, name="__truediv__"), Arguments(values=(two,)))
        return UNKNOWN

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        found = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = truth(self._context, found)
            return UNKNOWN if known is None else Const(value=not known)
        if (
            isinstance(node.op, ast.USub)
            and isinstance(found, Const)
            and isinstance(found.value, int | float)
        ):
            return Const(value=-found.value)
        return found if isinstance(found, Tensor) else UNKNOWN

    def _boolop(self, node: ast.BoolOp) -> Value:
        """Follow `and` and `or` as far as what stands before decides."""
        stops_at = isinstance(node.op, ast.Or)
        found: Value = UNKNOWN
        is_certain = True
        for operand in node.values:
            found = self.value(operand)
            known = truth(self._context, found)
            if known is stops_at and is_certain:
                return found
            is_certain = is_certain and known is not None
        return found if is_certain else UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(part) for part in (node.left, *node.comparators)]
        if any(isinstance(value, Tensor) for value in values) and not isinstance(
            node.ops[0], ast.Is | ast.IsNot
        ):
            self._context.line = node.lineno
            return combine(self._context, values[0], values[1], node)
        if len(node.ops) != 1:
            return UNKNOWN
        known = self._compared(node.ops[0], values[0], values[1])
        return UNKNOWN if known is None else Const(value=known)

    def _compared(self, kind: ast.cmpop, one: Value, two: Value) -> bool | None:
        context = self._context
        if isinstance(kind, ast.Eq | ast.NotEq):
            known = equal(context, one, two)
            return known if known is None or isinstance(kind, ast.Eq) else not known
        if isinstance(kind, ast.Is | ast.IsNot):
            known = same(one, two)
            return known if known is None or isinstance(kind, ast.Is) else not known
        if isinstance(kind, ast.In | ast.NotIn):
            known = is_in(context, one, two)
            return known if known is None or isinstance(kind, ast.In) else not known
        if isinstance(one, Const) and isinstance(two, Const):
            try:
                return bool(_ORDER[type(kind)](one.value, two.value))
            except TypeError:
                return None
        return None

    def _ifexp(self, node: ast.IfExp) -> Value:
        known = truth(self._context, self.value(node.test))
        if known is not None:
            return self.value(node.body if known else node.orelse)
        self._context.maybe += 1
        try:
            one, two = self.value(node.body), self.value(node.orelse)
        finally:
            self._context.maybe -= 1
        return one if one == two else UNKNOWN

    # --- calls and comprehensions ---------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        function = self.value(node.func)
        arguments = self._arguments(node)
        self._context.line = node.lineno
        return self._context.call_value(function, arguments)

    def _arguments(self, node: ast.Call) -> Arguments:
        values: list[Value] = []
        named: dict[str, Value] = {}
        whole = True
        for part in node.args:
            if isinstance(part, ast.Starred):
                more = self._context.iterate(self.value(part.value))
                is_long = self._context.is_long(len(more or ()) + len(values))
                values += () if is_long else more or ()
                whole = whole and more is not None and not is_long
            else:
                values.append(self.value(part))
        for keyword in node.keywords:
            found = self.value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = found
                continue
            held = self._context.memory.get(found)
            if isinstance(held, DictObject):
                named |= {str(key): value for key, value in held.pairs.items()}
            whole = whole and isinstance(held, DictObject) and held.whole
            if isinstance(found, Batch):
                values.append(found)  # `model(**batch)`
        return Arguments(values=tuple(values), named=named, whole=whole, node=node)

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        found: list[Value] = []
        whole = self._each(node.generators, lambda: found.append(self.value(node.elt)))
        return self._context.memory.put(ListObject(items=tuple(found), whole=whole))

    _setcomp = _listcomp
    _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp) -> Value:
        pairs: dict[object, Value] = {}
        is_certain = [True]

        def add() -> None:
            key, found = self.value(node.key), self.value(node.value)
            if isinstance(key, Const):
                pairs[key.value] = found
            else:
                is_certain[0] = False

        whole = self._each(node.generators, add)
        return self._context.memory.put(DictObject(pairs=pairs, whole=whole and is_certain[0]))

    def _each(self, generators: list[ast.comprehension], add: Callable[[], None]) -> bool:
        """Run the loops of a comprehension; return whether all its rounds are known."""
        if not generators:
            add()
            return True
        context, first = self._context, generators[0]
        over = self.value(first.iter)
        items = context.iterate(over)
        scope = context.memory.scopes[context.scope]
        before = dict(scope)
        whole = items is not None
        for item in [element_of(context, over)] if items is None else items:
            self.bind(first.target, item)
            known = [truth(context, self.value(test)) for test in first.ifs]
            whole = whole and None not in known
            if False not in known:
                whole = self._each(generators[1:], add) and whole
        context.memory.scopes[context.scope] = before
        return whole

    # --- names that are bound -------------------------------------------------------------------------------

    def bind(self, target: ast.expr, value: Value) -> None:
        """Bind a name, or the names of a tuple; other targets belong to statements."""
        self._context.spend()
        if isinstance(target, ast.Name):
            self._context.memory.scopes[self._context.scope][target.id] = value
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN)
        else:
            for inner, item in self.parts(target, value):
                self.bind(inner, item)

    def parts(self, target: ast.expr, value: Value) -> list[tuple[ast.expr, Value]]:
        """Return the targets within one, each with what it is set to; none where it is a single one."""
        inner = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        has_rest = any(isinstance(one, ast.Starred) for one in inner)
        items = [UNKNOWN] * len(inner) if has_rest else self._unpacked(value, len(inner))
        return list(zip(inner, items, strict=True))

    def _unpacked(self, value: Value, count: int) -> list[Value]:
        """Return so many items of a value that is unpacked."""
        if isinstance(value, Batch):
            return [Tensor(device=value.device, from_loader=True)] * count
        if isinstance(value, Tensor):
            return [Tensor(device=value.device, dtype=value.dtype, grad=value.grad)] * count
        items = self._context.iterate(value)
        if items is None or len(items) != count:
            return [UNKNOWN] * count
        return list(items)
