"""`torch.load` of a script: its arguments as data, and what it comes to on the machine."""

from __future__ import annotations

import ast

from inspector.containers.formats import format_of
from inspector.diagnose.script.edits import argument, line_before, replaced
from inspector.diagnose.script.objects.containers import file_value
from inspector.diagnose.script.objects.devices import send
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Class,
    Const,
    Device,
    DictObject,
    External,
    FileObject,
    Function,
    ModuleObject,
    Tensor,
    Unknown,
    Value,
)
from inspector.diagnose.script.places import Branch, module_tensors
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context, Known, Load, device_text
from inspector.model.checkpoint import Tensor as Row
from inspector.model.roles.devices import split_device
from inspector.records import replace
from inspector.safety.offers import offers_for
from inspector.target.default_load import judge_for
from inspector.target.loading import load_call
from inspector.target.map_location import BAD_MAP, MapLocation, Place, TagMap, TorchDevice, WrongType
from inspector.target.map_location import Function as MapFunction
from inspector.target.opening import BAD_OPTION
from inspector.target.simulate import LoadFailure, LoadOutcome, simulate
from inspector.units import cut_text, escape_text

_UNKNOWN_MAP = object()


def names_file(known: Known, path: str | None) -> bool | None:
    """Return whether a path of the script names this file; None where that is not known."""
    if path is None:
        return None
    own = known.checkpoint.path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return path.replace("\\", "/").rpartition("/")[2] == own


def path_of(context: Context, value: Value | None) -> str | None:
    """Return the path that a value names; None where it is not known."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    found = context.memory.get(value) if value is not None else None
    return found.path if isinstance(found, FileObject) else None


def torch_load(context: Context, arguments: Arguments) -> Value:
    """Call `torch.load`."""
    node = arguments.node
    line = node.lineno if node is not None else context.line
    fits = names_file(context.known, path_of(context, arguments.get(0, "f")))
    context.sites[line] = fits
    if context.known.loads == "survey":
        return Unknown(is_load=True)
    if not (context.known.loads == "only" or fits is (True if context.known.loads == "named" else None)):
        return UNKNOWN
    return _load(context, arguments, line)


def _load(context: Context, arguments: Arguments, line: int) -> Value:
    outcome: LoadOutcome | None = None
    place = read_map(context, arguments.get(1, "map_location"))
    trusts = _weights_only(context, arguments)
    if place is not _UNKNOWN_MAP and arguments.whole and trusts is not ...:
        mmap = arguments.named.get("mmap") == Const(value=True)
        outcome = _simulated(context, place, trusts, mmap=mmap)  # type: ignore[arg-type]
        if outcome.failure is not None:
            _fail(context, arguments, outcome.failure)
    if arguments.whole and not format_of(context.known.checkpoint.format).torch_loads:
        context.lose("this file is none that torch.load is for")
        return Unknown(is_load=True)
    context.loads.append(Load(line=line, outcome=outcome, call=arguments.node))
    _check_classes(context)
    return _root(context, len(context.loads) - 1)


def _simulated(context: Context, place: MapLocation, trusts: bool | None, *, mmap: bool) -> LoadOutcome:  # noqa: FBT001
    known = context.known
    safety = judge_for(known.checkpoint, known.target)
    call = load_call(known.checkpoint, safety, place, weights_only=trusts, mmap=mmap)
    refused = set(safety.answer.names)
    if call.refusal is not None and (context.allows_any or (refused and refused <= context.allowed)):
        call = replace(call, refusal=None)
    return simulate(known.checkpoint, known.target, call)


def _weights_only(context: Context, arguments: Arguments) -> object:
    """Return the argument of that name; Ellipsis where it is not known."""
    given = arguments.named.get("weights_only")
    if given is None:
        return False if context.trusts_all or "pickle_module" in arguments.named else None
    return bool(given.value) if isinstance(given, Const) else ...


def read_map(context: Context, value: Value | None) -> object:  # noqa: PLR0911 - a line for each kind
    """Return a `map_location` as data; a mark of its own where it is not known."""
    if value is None or value == NONE:
        return None
    if isinstance(value, Device):
        return TorchDevice(text=value.text)
    if isinstance(value, Const):
        is_text = isinstance(value.value, str)
        return value.value if is_text else WrongType(name=type(value.value).__name__)
    if isinstance(value, Function):
        return _read_function(context, value)
    if isinstance(value, External):
        return WrongType(name="type") if value.name == "torch.device" else _UNKNOWN_MAP
    found = context.memory.get(value)
    if isinstance(found, DictObject) and found.whole:
        pairs = [(_place(Const(value=key)), _place(item)) for key, item in found.pairs.items()]
        if all(one is not None and two is not None for one, two in pairs):
            return TagMap(
                pairs=tuple((one, two) for one, two in pairs if one is not None and two is not None)
            )
    return _UNKNOWN_MAP


def _place(value: Value) -> Place | None:
    if isinstance(value, Device):
        return TorchDevice(text=value.text)
    return device_text(value)


def _read_function(context: Context, value: Function) -> object:
    """Return what a function of a storage and its tag does, for the forms that are in use."""
    node = value.node
    names = [one.arg for one in node.args.args]
    body: ast.expr | None = node.body if isinstance(node, ast.Lambda) else None
    if not isinstance(node, ast.Lambda) and len(node.body) == 1 and isinstance(node.body[0], ast.Return):
        body = node.body[0].value
    if len(names) != 2 or body is None:
        return _UNKNOWN_MAP
    if isinstance(body, ast.Name) and body.id == names[0]:
        return MapFunction(gives="storage")
    if isinstance(body, ast.Constant) and body.value is None:
        return MapFunction(gives="nothing")
    is_moved = isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute)
    if not is_moved or not isinstance(body.func.value, ast.Name) or body.func.value.id != names[0]:  # type: ignore[attr-defined]
        return _UNKNOWN_MAP
    return _read_move(context, body)  # type: ignore[arg-type]


def _read_move(context: Context, call: ast.Call) -> object:
    """Return where `storage.cuda(1)` or `storage.cpu()` sends everything."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "cpu":
        return MapFunction(gives="storage")
    if method != "cuda" or call.keywords or len(call.args) > 1:
        return _UNKNOWN_MAP
    number = call.args[0] if call.args else ast.Constant(value=None)
    if not isinstance(number, ast.Constant):
        return _UNKNOWN_MAP
    if number.value and type(number.value) is not int:
        kind = type(number.value).__name__
        context.fail(
            "load-fails",
            f"TypeError: device(): argument 'index' (position 2) must be int, not {kind}",
            "map_location is a function that asks for a GPU, and a GPU is asked for by its number.",
        )
    device = f"cuda:{number.value}" if number.value else "cuda"
    if split_device(device) is None:
        return _UNKNOWN_MAP  # torch counts such a number round, to another
    send(context, device, None)
    return device


# --- what goes wrong ----------------------------------------------------------------------------------------


def _fail(context: Context, arguments: Arguments, failure: LoadFailure) -> None:
    """Raise what `torch.load` raises."""
    if failure.device:
        context.fail(
            "load-fails",
            failure.message,
            _device_why(arguments, failure),
            edits=_map_edits(context, arguments),
        )
    is_refusal = failure.finding in {"needs-allow-list", "runs-code", "dangerous-global"}
    if is_refusal:
        context.fail(
            "refused",
            failure.message,
            "The file holds more than tensors, which torch.load refuses unless it is told otherwise.",
            advice=_refusal_advice(failure.finding),
            edits=_allow_edits(context),
        )
    if failure.finding == BAD_OPTION:
        why = "mmap=True does not go with a file of this format, or with this release of torch."
        context.fail("load-fails", failure.message, why, edits=_mmap_edits(context, arguments))
    context.fail("load-fails", failure.message, "The file itself stops torch.load, whatever the script does.")


def _device_why(arguments: Arguments, failure: LoadFailure) -> str:
    device = escape_text(cut_text(failure.device, 40))
    if failure.finding == BAD_MAP:
        return "map_location is something that torch.load cannot work with."
    if arguments.get(1, "map_location") in {None, NONE}:
        return f"The tensors were saved on {device}, which the target does not have, and nothing maps them."
    return f"map_location sends what was saved on {device} to a device that the target does not have."


def _mmap_edits(context: Context, arguments: Arguments) -> list[Edit]:
    named = [] if arguments.node is None else arguments.node.keywords
    return [replaced(context.script, one.value, "False") for one in named if one.arg == "mmap"]


def _map_edits(context: Context, arguments: Arguments) -> list[Edit]:
    if arguments.node is None or not arguments.node.args:
        return []
    return [argument(context.script, arguments.node, "map_location", 1, context.device_word() or '"cpu"')]


def _refusal_advice(finding: str) -> str:
    if finding == "dangerous-global":
        return "It is refused for good reason: loading this file can run commands on your computer."
    if finding == "needs-allow-list":
        return "Allow the names above if you know the file; weights_only=False runs whatever the file says."
    return "Only for a file whose maker you trust: torch.load(..., weights_only=False) runs what is in it."


def _allow_edits(context: Context) -> list[Edit]:
    """Allow the classes that may be allowed, by their own names."""
    known = context.known
    names = judge_for(known.checkpoint, known.target).answer.names
    offers = offers_for(known.checkpoint, names)
    if offers.withheld or not offers.offered or context.statement is None:
        return []
    modules = sorted({name.rpartition(".")[0] for name in offers.offered})
    listed = ", ".join(offers.offered)
    above = [f"import {module}" for module in modules if module != "__main__"]
    allowed = f"torch.serialization.add_safe_globals([{listed.replace('__main__.', '')}])"
    return [line_before(context.script, context.statement, "; ".join([*above, allowed]))]


def _check_classes(context: Context) -> None:
    """Raise where the file asks for a class of the script that the script does not have."""
    scope = context.memory.scopes[0]
    for use in context.known.checkpoint.globals:
        module, _, name = use.name.rpartition(".")
        if module == "__main__" and name not in scope:
            shown = escape_text(cut_text(name, 60))
            context.fail(
                "class-missing",
                f"AttributeError: Can't get attribute '{shown}' on <module '__main__'",
                f"The file was saved by a script that defines {shown}, and this one does not.",
                advice=f"Define or import {shown} above the load, or ask for the state dict instead.",
            )


# --- what it returns ----------------------------------------------------------------------------------------


def _root(context: Context, load: int) -> Value:
    checkpoint = context.known.checkpoint
    if checkpoint.root == "module":
        return _whole_module(context, load)
    if checkpoint.root == "mapping":
        return file_value(context, load, (), context.known.places.root)
    if checkpoint.root == "tensor" and checkpoint.tensors:
        outcome = context.loads[load].outcome
        row = checkpoint.tensors[0]
        device = outcome.tensors[0] if outcome is not None and outcome.tensors else None
        return Tensor(device=device, dtype=row.dtype, shape=row.shape, is_number=row.shape == ())
    return Unknown(is_load=True)


def _whole_module(context: Context, load: int) -> Value:
    places, outcome = context.known.places, context.loads[load].outcome
    rows = dict(module_tensors(places.root))
    devices = {_landed(context, outcome, row) for row in rows.values()}
    buffers = _buffer_names(places.root)
    name = (context.known.checkpoint.module_class or "Module").rpartition(".")[2]
    script = context.memory.scopes[0].get(name)
    return context.memory.put(
        ModuleObject(
            cls=name,
            script=script if isinstance(script, Class) else None,
            own={key: row.shape for key, row in rows.items()},
            buffers=buffers,
            whole=bool(rows),
            device=devices.pop() if len(devices) == 1 else None,
            dtype=None,
            frozen=None,
            line=context.line,
            is_model=True,
        )
    )


def _landed(context: Context, outcome: LoadOutcome | None, row: Row) -> str | None:
    if outcome is None or not outcome.tensors:
        return None
    return outcome.tensors[context.known.places.index(row)]


def _buffer_names(root: Branch) -> frozenset[str]:
    buffers = root.children.get("._buffers")
    return frozenset(map(str, buffers.children)) if isinstance(buffers, Branch) else frozenset()
