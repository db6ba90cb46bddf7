"""What the functions of Python and its standard library do, as far as scripts need it to load a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inspector.diagnose.script.objects.attributes import has_attribute
from inspector.diagnose.script.objects.containers import iterate, pairs_of
from inspector.diagnose.script.objects.loading import names_file, path_of
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Batch,
    Const,
    DictObject,
    External,
    FileObject,
    InstanceObject,
    Items,
    ListObject,
    LoaderObject,
    ModuleObject,
    Parameters,
    ParserObject,
    Ref,
    Tensor,
    Value,
)
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.diagnose.script.simulate.truth import is_instance, truth
from inspector.diagnose.script.vocabulary import words
from inspector.records import replace

_Call = Callable[[Context, Arguments], Value]
_MOST = 2000
_MOST_COUNT = 256
_THROUGH = frozenset({"tqdm", "trange", "iter", "sorted", "reversed", "auto"})


def call_python(context: Context, name: str, arguments: Arguments) -> Value:
    """Call a function of Python."""
    last = name.rpartition(".")[2]
    handler = _EXACT.get(name)
    if handler is not None:
        return handler(context, arguments)
    if last in _THROUGH:
        return arguments.values[0] if arguments.values else UNKNOWN
    return UNKNOWN


# --- loops --------------------------------------------------------------------------------------------------


def _list(context: Context, items: Sequence[Value] | None) -> Value:
    made = ListObject(whole=False) if items is None else ListObject(items=tuple(items))
    return context.memory.put(made)


def _as_list(context: Context, arguments: Arguments) -> Value:
    if not arguments.values:
        return _list(context, ())
    first = arguments.values[0]
    if isinstance(first, Parameters):
        return context.memory.put(ListObject(items=(first,), whole=True))
    return _list(context, iterate(context, first))


def _as_tuple(context: Context, arguments: Arguments) -> Value:
    items = iterate(context, arguments.values[0]) if arguments.values else ()
    return UNKNOWN if items is None else Items(values=tuple(items))


def _as_dict(context: Context, arguments: Arguments) -> Value:
    pairs: dict[object, Value] = {}
    whole = arguments.whole
    if arguments.values:
        found = pairs_of(context, arguments.values[0])
        if found is None:
            items = iterate(context, arguments.values[0])
            whole = whole and items is not None
            for item in items or ():
                parts = iterate(context, item) or ()
                is_pair = len(parts) == 2 and isinstance(parts[0], Const)
                whole = whole and is_pair
                if is_pair and isinstance(parts[0], Const):
                    pairs[parts[0].value] = parts[1]
        else:
            pairs, whole = dict(found[0]), whole and found[1]
    pairs.update(dict(arguments.named))
    return context.memory.put(DictObject(pairs=pairs, whole=whole))


def _range(context: Context, arguments: Arguments) -> Value:
    numbers = [value.value for value in arguments.values if isinstance(value, Const)]
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) != len(arguments.values) or not 1 <= len(whole) <= 3 or 0 in whole[2:]:
        return _list(context, None)
    found = range(*whole)
    if len(found) > _MOST_COUNT:
        return context.memory.put(ListObject(items=(UNKNOWN,), whole=False))
    return _list(context, [Const(value=number) for number in found])


def _enumerate(context: Context, arguments: Arguments) -> Value:
    first = arguments.get(0, "iterable") or UNKNOWN
    held = context.memory.get(first)
    if isinstance(held, LoaderObject):
        return context.memory.put(LoaderObject(element=Items(values=(UNKNOWN, held.element))))
    items = iterate(context, first)
    if items is None:
        return _list(context, None)
    return _list(context, [Items(values=(Const(value=place), item)) for place, item in enumerate(items)])


def _zip(context: Context, arguments: Arguments) -> Value:
    lists = [iterate(context, value) for value in arguments.values]
    if not arguments.whole or any(items is None for items in lists):
        return _list(context, None)
    rows = zip(*(items or () for items in lists), strict=False)
    return _list(context, [Items(values=tuple(row)) for row in rows])


def _next(context: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else UNKNOWN
    held = context.memory.get(first)
    if isinstance(held, LoaderObject):
        return held.element
    if isinstance(first, Parameters):
        module = context.memory.module(first.modules[0])
        return Tensor(device=None if module is None else module.device, is_number=False)
    items = iterate(context, first)
    return items[0] if items else UNKNOWN


def _filter(context: Context, arguments: Arguments) -> Value:
    second = arguments.values[1] if len(arguments.values) > 1 else UNKNOWN
    return (
        context.memory.put(ListObject(items=(second,), whole=False))
        if isinstance(second, Parameters)
        else UNKNOWN
    )


def _chain(context: Context, arguments: Arguments) -> Value:
    is_parameters = arguments.values and all(isinstance(value, Parameters) for value in arguments.values)
    return context.memory.put(ListObject(items=arguments.values, whole=False)) if is_parameters else UNKNOWN


# --- questions ----------------------------------------------------------------------------------------------


def _len(context: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else UNKNOWN
    if isinstance(first, Const):
        return Const(value=len(first.value)) if isinstance(first.value, str) else UNKNOWN
    if isinstance(first, Tensor | Batch | Parameters):
        return UNKNOWN
    items = iterate(context, first)
    return UNKNOWN if items is None else Const(value=len(items))


def _isinstance(context: Context, arguments: Arguments) -> Value:
    if len(arguments.values) != 2:
        return UNKNOWN
    known = is_instance(context, *arguments.values)
    return UNKNOWN if known is None else Const(value=known)


def _hasattr(context: Context, arguments: Arguments) -> Value:
    name = arguments.get(1, "name")
    held = context.memory.get(arguments.values[0]) if arguments.values else None
    if not isinstance(name, Const):
        return UNKNOWN
    if isinstance(held, ModuleObject):
        known = has_attribute(held, str(name.value))
        return UNKNOWN if known is None else Const(value=known)
    if isinstance(held, InstanceObject) and str(name.value) in held.attributes:
        return Const(value=True)
    return UNKNOWN


def _getattr(context: Context, arguments: Arguments) -> Value:
    name, owner = arguments.get(1, "name"), arguments.values[0] if arguments.values else UNKNOWN
    held = context.memory.get(owner)
    if isinstance(held, InstanceObject | ModuleObject) and isinstance(name, Const):
        found = held.attributes.get(str(name.value))
        return UNKNOWN if found is None else found
    return UNKNOWN


def _bool(context: Context, arguments: Arguments) -> Value:
    known = truth(context, arguments.values[0]) if arguments.values else False
    return UNKNOWN if known is None else Const(value=known)


def _str(context: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else Const(value="")
    path = path_of(context, first)
    if path is not None:
        return Const(value=path)
    if isinstance(first, Const):
        return Const(value=str(first.value)[:_MOST])
    text = getattr(first, "text", None)
    return UNKNOWN if text is None else Const(value=text)


def _int(_: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else None
    is_number = isinstance(first, Const) and isinstance(first.value, int | float) and abs(first.value) < 1e15
    return Const(value=int(first.value)) if is_number else UNKNOWN  # type: ignore[union-attr, arg-type]


def _exit(context: Context, _: Arguments) -> Value:
    context.fail("exit", "SystemExit", "The script ends here.")


# --- files --------------------------------------------------------------------------------------------------


def _open(context: Context, arguments: Arguments) -> Value:
    return context.memory.put(FileObject(path=path_of(context, arguments.get(0, "file")), is_open=True))


def _path(context: Context, arguments: Arguments) -> Value:
    parts = [path_of(context, value) for value in arguments.values]
    known = [part for part in parts if part is not None]
    last = known[-1] if parts and parts[-1] is not None else None
    joined = "/".join(known) if len(known) == len(parts) else last
    return context.memory.put(FileObject(path=joined))


def _join(context: Context, arguments: Arguments) -> Value:
    last = path_of(context, arguments.values[-1]) if arguments.values else None
    return UNKNOWN if last is None else Const(value=last)


def _exists(context: Context, arguments: Arguments) -> Value:
    path = path_of(context, arguments.values[0]) if arguments.values else None
    return Const(value=True) if names_file(context.known, path) else UNKNOWN


def call_path(context: Context, owner: FileObject, name: str, arguments: Arguments) -> Value:
    """Call a method of a path or an open file."""
    if name in {"exists", "is_file"}:
        return Const(value=True) if names_file(context.known, owner.path) else UNKNOWN
    if name in {"__truediv__", "joinpath"} and arguments.values:
        return context.memory.put(FileObject(path=path_of(context, arguments.values[-1])))
    if name in {"expanduser", "resolve", "absolute", "open", "as_posix"}:
        return context.memory.put(owner)
    return UNKNOWN


# --- texts --------------------------------------------------------------------------------------------------


def call_text(context: Context, owner: Const, name: str, arguments: Arguments) -> Value:
    """Call a method of a text, where everything is known."""
    text = owner.value
    if not isinstance(text, str) or len(text) > _MOST or name not in _TEXT:
        return _formatted(owner, arguments) if name == "format" else UNKNOWN
    given = [value.value for value in arguments.values if isinstance(value, Const)]
    if len(given) != len(arguments.values) or arguments.named:
        return UNKNOWN
    context.spend()
    try:
        found = getattr(text, name)(*given)
    except (TypeError, ValueError, OverflowError, MemoryError):
        return UNKNOWN
    if isinstance(found, list):
        return _list(context, [Const(value=part) for part in found])
    return Const(value=found) if not isinstance(found, str) or len(found) <= _MOST else UNKNOWN


_TEXT = words(
    "replace removeprefix removesuffix startswith endswith strip lstrip rstrip lower upper split "
    "rsplit find count partition"
)


def _formatted(owner: Const, arguments: Arguments) -> Value:
    text = owner.value
    given = [value.value for value in arguments.values if isinstance(value, Const)]
    if not isinstance(text, str) or len(given) != len(arguments.values) or text.count("{}") != len(given):
        return UNKNOWN
    for value in given:
        text = text.replace("{}", str(value)[:_MOST].replace("{}", ""), 1)
    return Const(value=text) if len(text) <= _MOST else UNKNOWN


# --- options of a command line ------------------------------------------------------------------------------


def _parser(context: Context, _: Arguments) -> Value:
    return context.memory.put(ParserObject())


def call_parser(context: Context, owner: Ref, held: ParserObject, name: str, arguments: Arguments) -> Value:
    """Call a method of an `ArgumentParser`: options have their defaults."""
    if name == "add_argument":
        options = {**held.options, **_option(arguments)}
        context.memory.objects[owner.id] = ParserObject(options=options)
        return UNKNOWN
    if name in {"parse_args", "parse_known_args"}:
        made = context.memory.put(InstanceObject(attributes=held.options))
        return made if name == "parse_args" else Items(values=(made, UNKNOWN))
    if name == "set_defaults":
        context.memory.objects[owner.id] = ParserObject(options={**held.options, **arguments.named})
    return owner if name.startswith("add_") else UNKNOWN


def _option(arguments: Arguments) -> dict[str, Value]:
    """Return one option by its name. One that is empty unless it is given is taken to be given."""
    names = [str(value.value) for value in arguments.values if isinstance(value, Const)]
    if not names:
        return {}
    long = next((name for name in names if name.startswith("--")), names[0])
    dest = arguments.named.get("dest")
    key = str(dest.value) if isinstance(dest, Const) else long.lstrip("-").replace("-", "_")
    action = arguments.named.get("action")
    if isinstance(action, Const) and action.value in {"store_true", "store_false"}:
        return {key: arguments.named.get("default", Const(value=action.value == "store_false"))}
    default = arguments.named.get("default", UNKNOWN)
    is_text = arguments.named.get("type") in {
        None,
        External(name="builtins.str"),
        External(name="pathlib.Path"),
    }
    is_empty = isinstance(default, Const) and default.value in {"", None} and is_text
    return {key: UNKNOWN if is_empty or not long.startswith("-") else default}


# --- copies -------------------------------------------------------------------------------------------------


def _deepcopy(context: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else UNKNOWN
    module = context.memory.module(first)
    if module is None:
        found = pairs_of(context, first)
        return (
            first if found is None else context.memory.put(DictObject(pairs=dict(found[0]), whole=found[1]))
        )
    twins: dict[int, int] = {}
    below = list(context.memory.below(getattr(first, "id", 0)))
    for _, number, held in below:
        context.spend()
        twins[number] = context.memory.put(held).id
    for _, number, held in below:
        children = {name: twins.get(child, child) for name, child in held.children.items()}
        context.memory.objects[twins[number]] = replace(held, children=children, line=context.line)
    return Ref(id=twins[getattr(first, "id", 0)])


def _shallow_copy(context: Context, arguments: Arguments) -> Value:
    first = arguments.values[0] if arguments.values else UNKNOWN
    is_module = context.memory.module(first) is not None
    return first if is_module else _deepcopy(context, arguments)  # the parameters are the same ones


_EXACT: Mapping[str, _Call] = {
    "builtins.list": _as_list,
    "builtins.tuple": _as_tuple,
    "builtins.dict": _as_dict,
    "collections.OrderedDict": _as_dict,
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.filter": _filter,
    "itertools.chain": _chain,
    "builtins.len": _len,
    "builtins.isinstance": _isinstance,
    "builtins.hasattr": _hasattr,
    "builtins.getattr": _getattr,
    "builtins.bool": _bool,
    "builtins.str": _str,
    "builtins.int": _int,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "sys.exit": _exit,
    "builtins.open": _open,
    "pathlib.Path": _path,
    "os.path.join": _join,
    "os.path.isfile": _exists,
    "os.path.exists": _exists,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _shallow_copy,
    "argparse.ArgumentParser": _parser,
}
