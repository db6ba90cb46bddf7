"""Calls: what the script defines is followed, torch and Python are known, other code is not."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from inspector.diagnose.script.objects.attributes import MODULE_METHODS
from inspector.diagnose.script.objects.containers import call_dict, call_list, iterate
from inspector.diagnose.script.objects.making import new_module
from inspector.diagnose.script.objects.modules import call_method, call_module
from inspector.diagnose.script.objects.optimizers import call_optimizer
from inspector.diagnose.script.objects.tensors import call_batch, call_tensor
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Bound,
    Class,
    Const,
    DictObject,
    External,
    FileObject,
    FilePlace,
    Function,
    InstanceObject,
    ListObject,
    ModuleObject,
    Object,
    OptimizerObject,
    ParserObject,
    Ref,
    Super,
    Tensor,
    Value,
)
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.diagnose.script.simulate.evaluator import Evaluator
from inspector.diagnose.script.simulate.python_calls import call_parser, call_path, call_python, call_text
from inspector.diagnose.script.simulate.statements import Statements
from inspector.diagnose.script.simulate.torch_calls import call_torch
from inspector.records import replace

_PYTHON = ("builtins.", "os.", "pathlib.", "copy.", "collections.", "argparse.", "sys.", "tqdm", "itertools.")
_HARMLESS = (
    "logging.",
    "json.",
    "time.",
    "random.",
    "warnings.",
    "math.",
    "re.",
    "gc.",
    "matplotlib.",
    "wandb.",
)
_TORCH = ("torch.", "safetensors.", "numpy.", "pickle.", "joblib.", "torchvision.", "timm.")


class Calls:
    """Follows calls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._evaluator = Evaluator(context)
        self._statements = Statements(context, self._evaluator)
        self.called: set[str] = set()
        context.call_value = self.call
        context.iterate = lambda value: iterate(context, value)

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Follow the statements of a script."""
        self._statements.block(statements)

    def call(self, function: Value, arguments: Arguments) -> Value:
        """Return what a call returns."""
        self._context.spend()
        if isinstance(function, Function):
            return self._call_function(function, arguments)
        if isinstance(function, Class):
            return self._make(function, arguments)
        if isinstance(function, External):
            return self._call_external(function.name, arguments)
        if isinstance(function, Bound):
            return self._call_method(function, arguments)
        if isinstance(function, Ref):
            return self._call_object(function, arguments)
        self._give_away(arguments, "")
        return UNKNOWN

    def _give_away(self, arguments: Arguments, name: str) -> None:
        """Hand values to code that is not followed."""
        context = self._context
        objects = [context.memory.get(value) for value in arguments.all]
        holds_model = any(isinstance(held, ModuleObject | OptimizerObject) for held in objects)
        holds_file = any(isinstance(value, FilePlace) for value in arguments.all)
        context.give_away(arguments.all)
        if holds_model or holds_file:
            what = f"{name} is not in this script" if name else "what is called here cannot be followed"
            context.lose(f"{what}, and is handed {'the model' if holds_model else 'what was loaded'}")

    # --- the script's own -----------------------------------------------------------------------------------

    def _call_function(self, function: Function, arguments: Arguments) -> Value:
        context, node = self._context, function.node
        if node in context.running:
            context.lose("a function that calls itself is followed once")
            context.give_away(arguments.all)
            return UNKNOWN
        self.called.add(getattr(node, "name", ""))
        scope = context.memory.new_scope()
        context.parents[scope] = function.scope
        context.memory.scopes[scope] = self._bound(node.args, arguments, function.scope)
        before = context.scope, context.line, context.statement, context.memory.is_grad
        context.scope = scope
        context.running.append(node)
        if arguments.node is not None:
            context.calls.append(arguments.node)
        if function.no_grad:
            context.memory.is_grad = False
        context.enter()
        try:
            return self._body(node)
        finally:
            context.leave()
            context.running.pop()
            if arguments.node is not None:
                context.calls.pop()
            context.scope, context.line, context.statement, context.memory.is_grad = before
            if scope not in context.captured:
                context.memory.scopes.pop(scope, None)

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        if isinstance(node, ast.Lambda):
            return self._evaluator.value(node.body)
        statements = self._statements
        before, statements.returned = statements.returned, NONE
        ends, statements.partial = statements.partial, []
        try:
            statements.block(node.body)
        finally:
            last, statements.returned = statements.returned, before
            partial, statements.partial = statements.partial, ends
        found: Value = last
        for memory, value in partial:  # where the function may have ended before
            self._context.memory.join(memory)
            found = found if found == value else UNKNOWN
        has_yield = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))
        return UNKNOWN if has_yield else found

    def _bound(self, wanted: ast.arguments, given: Arguments, scope: int) -> dict[str, Value]:
        """Return the arguments of a function by name."""
        names = [one.arg for one in (*wanted.posonlyargs, *wanted.args)]
        bound: dict[str, Value] = {}
        defaults = dict(zip(names[::-1], wanted.defaults[::-1], strict=False))
        defaults |= {
            one.arg: default
            for one, default in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True)
            if default is not None
        }
        for name in [*names, *(one.arg for one in wanted.kwonlyargs)]:
            place = names.index(name) if name in names else -1
            found = given.get(place, name)
            if found is None and name in defaults and given.whole:
                before, self._context.scope = self._context.scope, scope
                found = self._evaluator.value(defaults[name])
                self._context.scope = before
            bound[name] = UNKNOWN if found is None else found
        if wanted.vararg is not None:
            bound[wanted.vararg.arg] = self._context.memory.put(
                ListObject(items=given.values[len(names) :], whole=given.whole)
            )
        if wanted.kwarg is not None:
            rest: dict[object, Value] = {
                name: value for name, value in given.named.items() if name not in bound
            }
            bound[wanted.kwarg.arg] = self._context.memory.put(
                DictObject(pairs=rest, whole=given.whole and given.node is not None)
            )
        return bound

    def _make(self, cls: Class, arguments: Arguments) -> Value:
        """Make an object of a class of the script."""
        context = self._context
        self.called.add(cls.node.name)
        if self._is_module(cls):
            made = context.memory.put(
                ModuleObject(
                    cls=cls.node.name,
                    script=cls,
                    device=context.memory.default_device,
                    line=context.line,
                    is_model=True,
                    whole=self._is_plain_module(cls),
                )
            )
        else:
            made = context.memory.put(InstanceObject(script=cls, attributes=self._class_attributes(cls)))
        method = self._method(cls, "__init__")
        if method is not None:
            self._call_function(method, replace(arguments, values=(made, *arguments.values)))
        elif any(not isinstance(base, Class) for base in cls.bases) and not self._is_module(cls):
            self._give_away(arguments, "")
        return made

    def _class_attributes(self, cls: Class) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for node in cls.node.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and getattr(node, "value", None) is not None:
                found[target.id] = self._evaluator.value(node.value)  # type: ignore[attr-defined]
        return found

    def _is_module(self, cls: Class, depth: int = 0) -> bool:
        """Return whether a class is one of modules, as far as its bases tell."""
        for base in cls.bases:
            if isinstance(base, External) and base.name.rpartition(".")[2] in {"Module", "LightningModule"}:
                return True
            if isinstance(base, Class) and depth < 8 and self._is_module(base, depth + 1):
                return True
            if isinstance(base, External) and base.name.startswith("torch.nn."):
                return True
        return False

    def _is_plain_module(self, cls: Class, depth: int = 0) -> bool:
        """Return whether all of a module is in the script."""
        return all(
            (isinstance(base, External) and base.name in {"torch.nn.Module", "torch.nn.modules.Module"})
            or (isinstance(base, Class) and depth < 8 and self._is_plain_module(base, depth + 1))
            for base in cls.bases
        )

    def _method(self, cls: Class, name: str, depth: int = 0) -> Function | None:
        for node in cls.node.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                marks = [ast.dump(mark) for mark in node.decorator_list]
                no_grad = any("no_grad" in mark or "inference_mode" in mark for mark in marks)
                return Function(node=node, scope=cls.scope, no_grad=no_grad)
        for base in cls.bases:
            if isinstance(base, Class) and depth < 8:
                found = self._method(base, name, depth + 1)
                if found is not None:
                    return found
        return None

    # --- methods --------------------------------------------------------------------------------------------

    def _call_method(self, method: Bound, arguments: Arguments) -> Value:  # noqa: PLR0911 - a line for each kind of owner
        context, owner, name = self._context, method.owner, method.name
        if isinstance(owner, Tensor):
            return call_tensor(context, owner, name, arguments)
        if isinstance(owner, Batch):
            return call_batch(context, owner, name, arguments)
        if isinstance(owner, FilePlace):
            return call_dict(context, owner, name, arguments)
        if isinstance(owner, Const):
            return call_text(context, owner, name, arguments)
        if isinstance(owner, Super):
            return self._call_super(owner, name, arguments)
        if isinstance(owner, Ref):
            return self._call_of_object(owner, name, arguments)
        if isinstance(owner, Class) and name == "load_state_dict" and not arguments.named:
            context.fail(
                "not-a-module",
                "TypeError: Module.load_state_dict() missing 1 required positional argument: 'state_dict'",
                f"{owner.node.name} is the class; make a model of it first: {owner.node.name}().",
            )
        return UNKNOWN

    def _call_super(self, owner: Super, name: str, arguments: Arguments) -> Value:
        for base in owner.cls.bases:
            found = self._method(base, name) if isinstance(base, Class) else None
            if found is not None:
                return self._call_function(found, replace(arguments, values=(owner.owner, *arguments.values)))
        if name == "__init__":
            return NONE
        if isinstance(owner.owner, Ref) and name in MODULE_METHODS:
            found_value = call_method(self._context, owner.owner, name, arguments)
            return UNKNOWN if found_value is None else found_value
        return UNKNOWN

    def _call_of_object(self, owner: Ref, name: str, arguments: Arguments) -> Value:
        context = self._context
        found = context.memory.get(owner)
        script = found.script if isinstance(found, ModuleObject | InstanceObject) else None
        method = self._method(script, name) if script is not None else None
        if method is not None:
            return self._call_own(owner, method, arguments)
        if isinstance(found, ModuleObject):
            value = call_method(context, owner, name, arguments)
            if value is None and script is None:
                self._give_away(replace(arguments, values=(owner, *arguments.values)), "")
            return UNKNOWN if value is None else value
        return self._call_plain(owner, found, name, arguments)

    def _call_plain(self, owner: Ref, found: Object | None, name: str, arguments: Arguments) -> Value:
        """Call a method of an object that is no module."""
        context = self._context
        if isinstance(found, FileObject):
            return call_path(context, found, name, arguments)
        if isinstance(found, OptimizerObject):
            return call_optimizer(context, owner, found, name, arguments)
        if isinstance(found, DictObject):
            return call_dict(context, owner, name, arguments)
        if isinstance(found, ListObject):
            return call_list(context, owner, found, name, arguments)
        if isinstance(found, ParserObject):
            return call_parser(context, owner, found, name, arguments)
        self._give_away(arguments, "")
        return UNKNOWN

    def _call_own(self, owner: Ref, method: Function, arguments: Arguments) -> Value:
        node = method.node
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", [])]
        if "staticmethod" in marks:
            return self._call_function(method, arguments)
        if "property" in marks or "classmethod" in marks:
            return UNKNOWN
        return self._call_function(method, replace(arguments, values=(owner, *arguments.values)))

    def _call_object(self, owner: Ref, arguments: Arguments) -> Value:
        """Call an object: a module runs its `forward`."""
        context = self._context
        found = context.memory.get(owner)
        if not isinstance(found, ModuleObject):
            self._give_away(arguments, "")
            return UNKNOWN
        context.used[owner.id] = context.line
        context.sites_called.append((arguments, context.statement, found.cls))
        try:
            return self._forward(owner, found, arguments)
        finally:
            context.sites_called.pop()

    def _forward(self, owner: Ref, module: ModuleObject, arguments: Arguments) -> Value:
        if module.wrapper and module.children:
            inner = Ref(id=next(iter(module.children.values())))
            held = self._context.memory.module(inner)
            if module.moves_input and held is not None and held.device is not None:
                values = tuple(_on(value, held.device) for value in arguments.values)
                named = {name: _on(value, held.device) for name, value in arguments.named.items()}
                arguments = replace(arguments, values=values, named=named)
            return self._call_object(inner, arguments)
        method = self._method(module.script, "forward") if module.script is not None else None
        if method is None:
            return call_module(self._context, owner, module, arguments)
        return self._call_function(method, replace(arguments, values=(owner, *arguments.values)))

    # --- other packages -------------------------------------------------------------------------------------

    def _call_external(self, name: str, arguments: Arguments) -> Value:
        context = self._context
        if name == "builtins.super":
            return self._super()
        if name.startswith(_PYTHON):
            return call_python(context, name, arguments)
        if name.startswith(_HARMLESS):
            return UNKNOWN
        if name.startswith(_TORCH):
            return call_torch(context, name, arguments)
        last = name.rpartition(".")[2]
        if last[:1].isupper() and (len(last) == 1 or not last.isupper()):
            return new_module(context, last, arguments)
        self._give_away(arguments, last)
        return UNKNOWN

    def _super(self) -> Value:
        context = self._context
        function = context.running[-1] if context.running else None
        owner = context.look_up("self")
        found = context.memory.get(owner) if owner is not None else None
        script = found.script if isinstance(found, ModuleObject | InstanceObject) else None
        classes = [script] if script is not None else []
        seen: set[ast.ClassDef] = set()
        for cls in classes:  # which grows
            if cls.node in seen:
                continue
            seen.add(cls.node)
            context.spend()
            if function in cls.node.body and owner is not None:
                return Super(owner=owner, cls=cls)
            classes += [base for base in cls.bases if isinstance(base, Class)]
        return UNKNOWN


def _on(value: Value, device: str) -> Value:
    """Return a value as a wrapper hands it on: moved."""
    return replace(value, device=device) if isinstance(value, Tensor | Batch) else value
