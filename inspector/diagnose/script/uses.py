"""What the loads of a script come to on a machine, and what is done with what they return."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from inspector.containers.formats import format_of
from inspector.diagnose.errors.state_names import wrapper_of
from inspector.diagnose.script.calls import Walk
from inspector.diagnose.script.edits import (
    Edit,
    Problem,
    appended,
    argument,
    imported,
    key_edits,
    line_before,
    removed_line,
    replaced,
    share_names,
)
from inspector.diagnose.script.evaluate import MOST_ITEMS, TRUSTS, Args, Evaluator
from inspector.diagnose.script.options import Words
from inspector.diagnose.script.places import Branch, Places, is_empty_container, plain_value, state_dicts
from inspector.diagnose.script.read import Project
from inspector.diagnose.script.values import (
    HOLE,
    UNKNOWN,
    Class,
    Device,
    External,
    File,
    Function,
    Loaded,
    Method,
    Parameters,
    Ref,
    Seq,
    Unknown,
    Value,
    text,
)
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.roles.devices import DEVICE_TYPES, split_device
from inspector.overriding import override
from inspector.records import replace
from inspector.safety.offers import offers_for
from inspector.target.after_load import Complaint
from inspector.target.call import BAD_MAP, MapLocation, Place, TagMap, TorchDevice, WrongType, load_call
from inspector.target.call import Function as MapFunction
from inspector.target.opening import BAD_OPTION
from inspector.target.profile import Profile
from inspector.target.restore import send_failure
from inspector.target.simulate import LoadFailure, first_failure, judge_for
from inspector.units import cut_text, escape_text

_LOADS = frozenset({"torch.load", "torch.serialization.load", "torch.jit.load"})
_FILES = frozenset({"safetensors.torch.load_file", "safetensors.torch.load_model"})
_FROM_CHECKPOINT = "load_from_checkpoint"
_WRAPPERS = {"DataParallel": "module.", "DistributedDataParallel": "module.", "DDP": "module."}
_OF_MODELS = frozenset({"eval", "train", "cuda", "to", "cpu", "half", "parameters", "state_dict", "__call__"})
_ENDINGS = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".pkl", ".safetensors")
_OF_CUDA = frozenset({"torch.cuda.current_device", "torch.cuda.set_device", "torch.cuda.get_device_name"})
_REFUSALS = {
    "dangerous-global": "It is refused for good reason: loading this file can run commands on your computer.",
    "needs-allow-list": "Allow these names if you know the file; weights_only=False runs whatever it says.",
    "runs-code": "Only for a file that you trust: torch.load(..., weights_only=False) runs what is in it.",
}
_NO_PERSISTENT = (
    "_pickle.UnpicklingError: A load persistent id instruction was encountered, "
    "but no persistent_load function was specified."
)
_NO_SAFETENSORS = "SafetensorError: Error while deserializing header"
_NO_SCRIPT = "RuntimeError: PytorchStreamReader failed locating file constants.pkl: file not found"
_SHAPES = "whether all names and shapes fit the model"
_MOST_NAMED = 4
_MIXED = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {} and cpu!"
)
_REST = " and the same dtype except `step` tensors that can be CPU and float32/64 notwithstanding"


class Load:
    """One call that loads a file: where it stands, what it is given, and what becomes of it here."""

    def __init__(self, walk: Evaluator, args: Args) -> None:
        self.node, self.script = args.node, walk.script
        self.when, self.is_reached, self.function = walk.when, walk.is_reached, walk.function
        self.is_followed = walk.is_followed
        self.is_main = walk.script is walk.project.script
        path = args.get(0, "f", args.named.get("path", args.named.get("checkpoint_path", UNKNOWN)))
        self.path: Value = path or UNKNOWN
        self.source = _source(walk, self.node.args[0]) if self.node.args else ""
        if not isinstance(self.path, str) and self.node.args:
            self.path = _written_name(self.node.args[0]) or self.path
        self.is_other_format = False
        """Whether it is a function that does not read files of this format."""
        self.is_lost = False
        """Whether nothing that was followed leads to it."""
        self.is_ruled_out = False
        """Whether the words that the script is run with do not lead to it."""
        self.unknown = ""
        """What decides whether it works, and is not known."""
        self.found, self.missing = 0, 0
        self.assumed: list[str] = []
        self.line = self.node.lineno
        self.site = (self.script.name, self.line, self.node.col_offset)


class Judge(Walk):
    """A walk that judges the loads of one file, and what follows them."""

    def __init__(  # noqa: PLR0917 - what is judged, where, and what is known of it
        self,
        project: Project,
        checkpoint: Checkpoint,
        places: Places,
        target: Profile,
        words: Words,
        only: frozenset[tuple[str, int, int]] | None = None,
    ) -> None:
        """Judge the loads at some sites, or all where none are given."""
        super().__init__(project, target, words)
        self.checkpoint, self.places = checkpoint, places
        self.loads: list[Load] = []
        self.unjudged: dict[str, None] = {}
        self._only = only
        self._safety = judge_for(checkpoint, target)
        self._form = format_of(checkpoint.format)
        self._state_dicts = state_dicts(places)
        self._allowed: set[str] = set()
        self._optimizers: list[Ref] = []

    # --- loads ----------------------------------------------------------------------------------------------

    @override
    def on_external(self, name: str, args: Args) -> Value:
        short = name.rpartition(".")[2]
        if name in _LOADS | _FILES or short == _FROM_CHECKPOINT:
            return self._load(name, args)
        if name in _ONCE_SEEN:
            _ONCE_SEEN[name](self, args)
        elif short in _WRAPPERS or name == "torch.compile":
            return self._wrapped(args, _WRAPPERS.get(short, "_orig_mod."))
        elif name.startswith("torch.optim.") and short[:1].isupper() and "lr_scheduler" not in name:
            return self._optimizer(args.get(0, "params"))
        elif short in {"add_safe_globals", "safe_globals"}:
            given = args.at(0)
            for one in given.items if isinstance(given, Seq) else [UNKNOWN]:
                is_own = isinstance(one, Class)
                self._allowed.add(f"__main__.{one.node.name}" if is_own else getattr(one, "name", "*"))  # type: ignore[attr-defined]
        elif name == "io.BytesIO":
            return self.new("buffer")
        elif short == "consume_prefix_in_state_dict_if_present":
            pairs = self.pairs(args.at(0))
            if pairs is not None:
                items = {str(key).removeprefix(text(args.at(1))): item for key, item in pairs.items.items()}
                self.store(args.at(0), items, whole=pairs.whole)  # type: ignore[arg-type]
        elif name.startswith(("torch.nn.", "torchvision.models.")):
            return self.new("model")
        return None

    def _ask_cuda(self, args: Args) -> None:
        failure = send_failure("cuda", self.target)
        if failure is not None and self.is_reached:
            self._problem("no-device", args.node, failure[1], "There is no CUDA device on the target.")

    def _load(self, name: str, args: Args) -> Value:
        load = Load(self, args)
        is_buffer = "BytesIO(" in load.source or (isinstance(load.path, Ref) and load.path.kind == "buffer")
        if is_buffer or (self._only is not None and load.site not in self._only):
            return UNKNOWN
        number = len(self.loads)
        self.loads.append(load)
        place = self._place(load, name, args)
        given, trusts = args.named.get("weights_only"), self._trusts(name, args)
        if name == "torch.jit.load" and self._safety.archive is None:
            load.is_other_format = True
            why = "The file is no TorchScript archive: torch.load reads it."
            self._problem("load-fails", args.node, _NO_SCRIPT, why, load=number)
        elif name in _FILES and (self._form.has_records or self._form.is_stream):
            load.is_other_format = True
            why = "The file is none of safetensors: torch.load reads it."
            self._problem("load-fails", args.node, _NO_SAFETENSORS, why, load=number)
        elif place is not UNKNOWN and args.whole:
            failure = self._failure(name, args, place, trusts=trusts)
            is_refused = failure is not None and failure.finding in _REFUSALS
            if is_refused and (isinstance(given, Unknown) or ("ext", "torch.load") in self.vars):
                load.unknown = "weights_only"
            elif failure is not None:
                self._fail_load(args, failure, number)
            else:
                self._check_classes(load, number)
        elif not load.unknown:
            load.unknown = "the arguments of the call"
        if name.endswith(_FROM_CHECKPOINT):
            return self.new("model")
        return File(number) if self.checkpoint.root in {"mapping", "sequence", "module"} else UNKNOWN

    def _trusts(self, name: str, args: Args) -> bool | None:
        """Return `weights_only` as the call or the environment says it."""
        given = args.named.get("weights_only")
        if name == "torch.jit.load" or name.endswith(_FROM_CHECKPOINT) or "pickle_module" in args.named:
            return given is True
        if given is None and text(self.vars.get(("env", TRUSTS), "")).lower() in {"1", "y", "yes", "true"}:
            return False
        return given if isinstance(given, bool) else None

    def _failure(self, name: str, args: Args, place: Value, *, trusts: bool | None) -> LoadFailure | None:
        mmap = args.named.get("mmap") is True
        where: MapLocation = place  # type: ignore[assignment]
        call = load_call(self.checkpoint, self._safety, where, weights_only=trusts, mmap=mmap)
        names = set(self._safety.answer.names)
        if name in _FILES:
            call = replace(call, by_loader=True, map_location=where or "cpu", refusal=None)
        elif "*" in self._allowed or (names and names <= self._allowed):
            call = replace(call, refusal=None)
        return first_failure(self.checkpoint, self.target, call)

    def _fail_load(self, args: Args, failure: LoadFailure, number: int) -> None:
        edits: Sequence[Edit] = ()
        advice = _REFUSALS.get(failure.finding, "")
        why = "The file itself stops this call, whatever the script does."
        if failure.device:
            why, edits = self._device_why(failure, args), self._map_edits(args)
        elif advice:
            names = escape_text(cut_text(", ".join(self._safety.answer.names[:3]) or "code", 160))
            why = (
                f"The file holds more than tensors, {names}, which torch.load refuses unless told otherwise."
            )
            edits = self._allow_edits()
        elif failure.finding == BAD_OPTION:
            why = "mmap=True does not go with a file of this format, or with this release of torch."
            edits = [
                replaced(self.script, one.value, "False") for one in args.node.keywords if one.arg == "mmap"
            ]
        kind = "refused" if advice else "load-fails"
        self._problem(kind, args.node, failure.message, why, advice=advice, edits=edits, load=number)

    def _device_why(self, failure: LoadFailure, args: Args) -> str:
        device = escape_text(cut_text(failure.device, 40))
        given, node = args.get(1, "map_location"), _given(args, "map_location")
        if failure.finding == BAD_MAP:
            return "map_location is something that torch.load cannot work with."
        if given is None:
            return (
                f"The tensors were saved on {device}, which the target does not have, and nothing maps them."
            )
        if not isinstance(given, str | Device) or isinstance(node, ast.Constant) or node is None:
            return f"map_location sends what was saved on {device} to a device that the target does not have."
        shown = f"map_location is {_source(self, node)}, here {escape_text(text(given).replace(HOLE, 'N'))}"
        if HOLE in text(given):
            return f"{shown}: whatever N is, the target has no such device."
        return f"{shown}, which the target does not have."

    def _map_edits(self, args: Args) -> Sequence[Edit]:
        node = args.node
        if not node.args or any(one.arg is None for one in node.keywords):
            return []
        given = _given(args, "map_location")
        edits = []
        if isinstance(given, ast.Name | ast.Attribute):
            edits = self._literal_edits(text(args.get(1, "map_location")))
        name = next((one.arg for one in node.keywords if one.arg == "device"), "map_location")
        return edits or [argument(self.script, node, str(name), 1, self._device_word() or '"cpu"')]

    def _device_word(self) -> str:
        """Return a name that stands for a device which the target has; empty without one."""
        scope: int | None = self.scope
        while scope is not None:
            for (owner, name), value in self.vars.items():
                if (
                    owner == scope
                    and isinstance(name, str)
                    and "device" in name
                    and isinstance(value, str | Device)
                ):
                    parts = split_device(text(value))
                    if parts is not None and self.target.offers(*parts):
                        return name
            scope = self.parents.get(scope)
        return ""

    def _literal_edits(self, wanted: str) -> list[Edit]:
        """Ask for the device that is there, where the script writes the one that is not."""
        kind = wanted.partition(":")[0]
        nodes = list(ast.walk(self.script.tree))
        guarded = {inner for one in nodes if isinstance(one, ast.IfExp) for inner in ast.walk(one)}
        available = DEVICE_TYPES[kind].available if kind in DEVICE_TYPES else ""
        is_number = bool(self.target.count(kind))  # else no device of the kind is there
        for node in nodes:
            if isinstance(node, ast.Constant) and node.value == wanted and (is_number or node not in guarded):
                choice = f'{self.script.source(node)} if {available} else "cpu"'
                best = f'"{self.target.devices[0]}"'
                return [replaced(self.script, node, choice if available and not is_number else best)]
        return []

    def _allow_edits(self) -> list[Edit]:
        """Allow the classes that may be allowed, by their own names."""
        offers = offers_for(self.checkpoint, self._safety.answer.names)
        if offers.withheld or not offers.offered:
            return []
        has = {
            one.name
            for node in ast.walk(self.script.tree)
            if isinstance(node, ast.Import)
            for one in node.names
        }
        modules = sorted({name.rpartition(".")[0] for name in offers.offered} - {"__main__"} - has)
        modules = [name for name in modules if name.partition(".")[0] != "torch"]
        names = [name.removeprefix("__main__.") for name in offers.offered]
        step = self.script.indent(self.statement)
        listed = (
            names[0] if len(names) == 1 else "".join(f"\n{step}    {name}," for name in names) + f"\n{step}"
        )
        allow = line_before(self.script, self.statement, f"torch.serialization.add_safe_globals([{listed}])")
        return [*([imported(self.script, [f"import {one}" for one in modules])] if modules else []), allow]

    def _check_classes(self, load: Load, number: int) -> None:
        """Tell of a class that the file asks of the script and the script does not have."""
        names = {node.name for node in ast.walk(self.project.script.tree) if isinstance(node, ast.ClassDef)}
        names |= {str(name) for owner, name in self.vars if owner == 0}
        for use in self.checkpoint.globals:
            module, _, name = use.name.rpartition(".")
            if module == "__main__" and name not in names:
                shown = escape_text(cut_text(name, 60))
                message = f"AttributeError: Can't get attribute '{shown}' on <module '__main__'"
                why = f"The file was saved by a script that defines {shown}, and this one does not."
                advice = f"Define or import {shown} above the load, or ask for the state dict instead."
                self._problem("class-missing", load.node, message, why, advice=advice, load=number)
                return

    def _pickle(self, args: Args) -> None:
        is_own = (
            names_file(self.checkpoint, args.at(0)) is True and format_of(self.checkpoint.format).has_records
        )
        if not is_own:
            return
        message = _NO_PERSISTENT
        why = "This is a file of torch.save, which only torch.load reads; pickle does not know its storages."
        word = self._device_word() or '"cpu"'
        call = f"torch.load({self.script.source(args.node.args[0])}, map_location={word})"
        self._problem("pickle", args.node, message, why, edits=[replaced(self.script, args.node, call)])

    @override
    def on_assert(self, node: ast.Assert) -> None:
        source = _source(self, node.test)
        if "is_available(" in source or "device_count(" in source:
            why = f"It asserts {source}, which is false on the target."
            self._problem("no-device", node.test, "AssertionError", why)

    # --- map_location ---------------------------------------------------------------------------------------

    def _place(self, load: Load, name: str, args: Args) -> Value:
        """Return `map_location` as data; unknown where it is not known, which the load then says."""
        argument_name = "device" if name in _FILES else "map_location"
        value = args.get(1, argument_name)
        if name.endswith(_FROM_CHECKPOINT) and value is None:
            return "cpu"  # Lightning keeps what has no device here on the CPU
        place = self._map(value, load)
        if place is UNKNOWN:
            node = _given(args, argument_name)
            source = argument_name if node is None else f"{argument_name}, which is {_source(self, node)}"
            why = value.why if isinstance(value, Unknown) else ""
            load.unknown = (
                source if not why or why in source else f"{source} ({escape_text(cut_text(why, 60))})"
            )
        return place

    def _map(self, value: Value, load: Load) -> Value:  # noqa: PLR0911 - a kind of value each
        if value is None:
            return None
        if isinstance(value, str | Device):
            kind, _, number = text(value).partition(":")
            if HOLE in kind or HOLE in number.replace(HOLE, "", 1) or (HOLE in number and number != HOLE):
                return UNKNOWN
            if number == HOLE and self.target.count(kind):
                load.assumed.append("the number of the device is 0")
            written = text(value).replace(HOLE, "0")
            return TorchDevice(text=written) if isinstance(value, Device) else written
        if isinstance(value, Function):
            return self._function(value, load)
        if isinstance(value, int | float):
            return WrongType(name=type(value).__name__)
        pairs = self.pairs(value)
        if pairs is not None and pairs.whole:
            made = [(self._map(key, load), self._map(item, load)) for key, item in pairs.items.items()]
            if all(isinstance(one, Place) for pair in made for one in pair):
                return TagMap(pairs=tuple(made))  # type: ignore[arg-type]
        return WrongType(name="type") if value == External("torch.device") else UNKNOWN

    def _function(self, value: Function, load: Load) -> Value:  # noqa: PLR0911 - a form each
        """Return what a function of a storage and its tag does, for the forms that are in use."""
        node = value.node
        body = node.body if isinstance(node, ast.Lambda) else getattr(node.body[-1], "value", None)
        names = [one.arg for one in node.args.args]
        if len(names) != 2 or (not isinstance(node, ast.Lambda) and len(node.body) > 1):
            return UNKNOWN
        if isinstance(body, ast.Name) and body.id == names[0]:
            return MapFunction(gives="storage")
        if isinstance(body, ast.Constant) and body.value is None:
            return MapFunction(gives="nothing")
        if not isinstance(body, ast.Call) or not isinstance(body.func, ast.Attribute):
            return UNKNOWN
        if body.func.attr == "default_restore_location" and len(body.args) == 2:
            return self._map(self.eval(body.args[1]), load)
        if value.script.source(body.func.value) != names[0] or body.func.attr not in {"cpu", "cuda"}:
            return UNKNOWN
        number = self.eval(body.args[0]) if body.args else None
        if body.func.attr == "cpu":
            return MapFunction(gives="storage")
        return self._map("cuda" if number is None else f"cuda:{text(number)}", load)

    # --- keys -----------------------------------------------------------------------------------------------

    @override
    def on_key(self, owner: File, key: Value, node: ast.expr | None) -> Value:
        branch, load = self.places.at(owner.keys), self.loads[owner.load]
        self.touched = True
        if ("file", owner) in self.vars or not isinstance(branch, Branch) or not isinstance(key, str | int):
            pairs = self.pairs(self.vars.get(("file", owner)))
            return (
                UNKNOWN if pairs is None or not isinstance(key, str | int) else pairs.items.get(key, UNKNOWN)
            )
        row = branch.children.get(key)
        is_mapping = owner.keys or self.checkpoint.root == "mapping"
        if row is None:
            if node is not None and is_mapping and HOLE not in text(key):
                load.missing += 1
                self._missing(owner, key, node, branch)
            return UNKNOWN
        load.found += node is not None
        if isinstance(row, ValueRow):
            value = plain_value(row)
            return self.make_dict({}) if is_empty_container(row) else UNKNOWN if value is ... else value
        return File(owner.load, (*owner.keys, key))

    def _missing(self, owner: File, key: str | int, node: ast.expr, branch: Branch) -> None:
        has = ", ".join(str(one) for one in list(branch.children)[:6])
        shown = escape_text(cut_text(str(key), 60))
        why = f"The file has no {shown} there. It has: {escape_text(cut_text(has, 120))}."
        if () in self._state_dicts and not owner.keys:
            why = "The file is the state dict itself: the names of its parameters stand at its root."
        places = self._state_dicts if not owner.keys else []
        edits = (
            key_edits(self.script, node, key, self.statement, places)
            if isinstance(node, ast.Subscript)
            else ()
        )
        self._problem("key-missing", node, f"KeyError: {key!r}", why, edits=edits, load=owner.load)

    @override
    def items_of(self, owner: File) -> dict[Value, Value] | None:
        branch = self.places.at(owner.keys)
        if not isinstance(branch, Branch) or (not owner.keys and self.checkpoint.root != "mapping"):
            return None
        return {key: self.on_key(owner, key, None) for key in list(branch.children)[:MOST_ITEMS]}

    # --- models ---------------------------------------------------------------------------------------------

    @override
    def on_attribute(self, owner: Value, name: str, node: ast.Attribute) -> None:
        if isinstance(owner, Loaded) and name in _OF_MODELS:
            message = f"AttributeError: '_IncompatibleKeys' object has no attribute '{name}'"
            why = "load_state_dict changes the model and returns a report of names, not the model."
            source = self.script.source(node.value)
            rows = [one for one in ast.walk(self.script.tree) if isinstance(one, ast.Assign)]
            calls = [one for one in rows if ".load_state_dict(" in self.script.source(one.value)]
            edits = [
                replaced(self.script, one, self.script.source(one.value))
                for one in calls
                if self.script.source(one.targets[0]) == source
            ]
            self._problem("result-of-load", node, message, why, edits=edits)
        if isinstance(owner, Ref) and owner.kind == "optimizer" and name == "state":
            self.vars[owner.id, "~loaded"] = None  # what follows moves it
        cls = self.vars.get((owner.id, "~class")) if isinstance(owner, Ref) else None
        is_missing = name == "module" and self.attribute(owner, name) == Method(owner, name)
        if isinstance(cls, Class) and is_missing and isinstance(owner, Ref) and owner.kind == "model":
            message = f"AttributeError: '{cls.node.name}' object has no attribute 'module'"
            why = "Only a wrapped model, such as one in DataParallel, has a .module; here it is not wrapped."
            edit = replaced(self.script, node, self.script.source(node.value))
            self._problem("no-module", node, message, why, edits=[edit])

    @override
    def on_method(self, owner: Value, name: str, args: Args) -> Value:
        if name == _FROM_CHECKPOINT:
            return self._load(name, args)
        if isinstance(owner, File) and name in _OF_MODELS:
            self._no_model(owner, name, args)
        elif name == "load_state_dict":
            self._load_state(owner, args)
            return Loaded()
        elif name in {"cuda", "to", "xpu"}:
            self._move(owner, name, args)
        elif isinstance(owner, Ref) and (owner.kind, name) == ("optimizer", "step"):
            self._step(owner, args)
        elif isinstance(owner, Ref) and (owner.kind, name) == ("model", "state_dict"):
            return self.make_dict({}, whole=False)
        return UNKNOWN

    def _no_model(self, owner: File, name: str, args: Args) -> None:
        if self.pairs(owner) is None or ("file", owner) in self.vars:
            return
        self.loads[owner.load].missing += 1
        kind = "collections.OrderedDict" if owner.keys in self._state_dicts else "dict"
        message = f"AttributeError: '{kind}' object has no attribute '{name}'"
        if name == "__call__":
            message = f"TypeError: '{kind}' object is not callable"
        why = (
            "The file holds the parameters by name, not a model: build the model, then load_state_dict them."
        )
        self._problem("not-a-model", args.node, message, why, load=owner.load)

    def _load_state(self, owner: Value, args: Args) -> None:
        given = args.get(0, "state_dict")
        node = args.node.args[0] if args.node.args else None
        if isinstance(owner, Ref) and owner.kind == "optimizer":
            self._load_optimizer(owner, given)
        elif isinstance(given, str):
            if names_file(self.checkpoint, given) and node is not None:
                edit = replaced(
                    self.script, node, f'torch.load({self.script.source(node)}, map_location="cpu")'
                )
                self._no_state("str", "It is given the path, not what is in the file.", args, edit, -1)
        elif (
            isinstance(given, File)
            and not given.keys
            and self.checkpoint.root == "module"
            and node is not None
        ):
            edit = appended(self.script, node, ".state_dict()")
            kind = self.checkpoint.module_class or "Module"
            self._no_state(kind, "The file holds a whole model, not a state dict.", args, edit, given.load)
        else:
            pairs = self.pairs(given)
            rows = [given] if isinstance(given, File) else [] if pairs is None else list(pairs.items.values())
            load = next((one.load for one in rows if isinstance(one, File)), None)
            if load is not None and pairs is not None and (isinstance(given, File) or pairs.whole):
                self._fit_names(
                    owner, {str(key): value for key, value in pairs.items.items()}, args, node, load
                )
            elif self.loads:
                self.unjudged[_SHAPES] = None

    def _no_state(self, name: str, why: str, args: Args, edit: Edit, load: int) -> None:
        message = f"TypeError: Expected state_dict to be dict-like, got <class '{name}'>."
        self._problem("not-a-state-dict", args.node, message, why, edits=[edit], load=load)

    def _wrapped(self, args: Args, prefix: str) -> Value:
        made = self.new("model")
        inner = args.get(0, "module", args.named.get("model", UNKNOWN))
        self.vars |= {(made.id, "~prefix"): prefix, (made.id, "~inside"): inner}
        if prefix == "module.":
            self.vars[made.id, "module"] = inner
        return made

    def _prefix_of(self, owner: Value) -> str | None:
        """Return what the names of a model begin with because it is wrapped; None where that is not known."""
        if not isinstance(owner, Ref) or owner.kind not in {"model", "object"}:
            return None
        inner = self.vars.get((owner.id, "~inside"))
        return text(self.vars.get((owner.id, "~prefix"), "")) + (self._prefix_of(inner) or "")

    def _fit_names(
        self, owner: Value, names: Mapping[str, Value], args: Args, node: ast.expr | None, load: int
    ) -> None:
        tensors = [
            name
            for name, value in names.items()
            if isinstance(value, File) and isinstance(self.places.at(value.keys), Tensor)
        ]
        inner = [keys[0] for keys in self._state_dicts if len(keys) == 1 and keys[0] in names]
        if len(tensors) * 2 < len(names) and len(inner) == 1:
            edits = [] if node is None else [appended(self.script, node, f"[{inner[0]!r}]")]
            why = "This is the whole checkpoint. The state dict of the model is one of its entries."
            self._differ(owner, [], list(names), why, edits, args, load)
            return
        has, prefix = wrapper_of(tensors), self._prefix_of(owner)
        self.unjudged[_SHAPES] = None
        if prefix is None or not tensors:
            return
        strange = self._strangers(owner, has, tensors)
        if has == prefix and strange:
            listed = ", ".join(escape_text(cut_text(one, 40)) for one in strange[:2])
            why = f"The model that the script builds has no part for {listed}."
            if args.get(1, "strict", default=True) is not False:
                self._differ(owner, [], strange, why, [], args, load)
        elif has != prefix:
            why = f"The names in the file begin with {escape_text(has)}, those of the model do not."
            if not has:
                why = f"The model is wrapped, so its names begin with {prefix}; those in the file do not."
            wanted = [prefix + name.removeprefix(has) for name in tensors]
            self._differ(owner, wanted, tensors, why, self._renamed(node, args, has, prefix), args, load)

    def _renamed(self, node: ast.expr | None, args: Args, has: str, prefix: str) -> list[Edit]:
        if node is None:
            return []
        if prefix == "module." and not has and isinstance(args.node.func, ast.Attribute):
            return [appended(self.script, args.node.func.value, ".module")]
        key = (f'"{prefix}" + ' if prefix else "") + (f'k.removeprefix("{has}")' if has else "k")
        return [replaced(self.script, node, f"{{{key}: v for k, v in {self.script.source(node)}.items()}}")]

    def _strangers(self, owner: Value, has: str, names: Sequence[str]) -> list[str]:
        """Return names whose first step is no attribute of the model's class, where these are all plain."""
        cls = self.vars.get((self.bare(owner).id, "~class")) if isinstance(owner, Ref) else None
        if not isinstance(cls, Class) or not all(
            getattr(one, "name", "").endswith("nn.Module") for one in cls.bases
        ):
            return []
        source = cls.script.source(cls.node)
        if any(word in source for word in ("setattr", "add_module", "register_", "__dict__", "exec(")):
            return []
        stored = (one for one in ast.walk(cls.node) if isinstance(one, ast.Attribute))
        attributes = {one.attr for one in stored if isinstance(one.ctx, ast.Store)}
        return [name for name in names if name.removeprefix(has).partition(".")[0] not in attributes]

    def _differ(  # noqa: PLR0913, PLR0917 - both sides, and the call
        self,
        owner: Value,
        missing: Sequence[str],
        unexpected: Sequence[str],
        why: str,
        edits: Sequence[Edit],
        args: Args,
        load: int,
    ) -> None:
        if args.get(1, "strict", default=True) is False:
            nothing = f"strict=False lets this pass, but none of {len(unexpected)} names is the model's"
            nothing = f"{nothing}: nothing is loaded."
            self._problem("nothing-matches", args.node, "", f"{nothing} {why}", edits=edits, load=load)
            return
        cls = self.vars.get((owner.id, "~class")) if isinstance(owner, Ref) else None
        name = cls.node.name if isinstance(cls, Class) else getattr(cls, "name", "").rpartition(".")[2]
        wrapped = isinstance(owner, Ref) and self.bare(owner) is not owner
        model = "DataParallel" if wrapped else name if name[:1].isupper() else "the model"
        message = f"RuntimeError: Error(s) in loading state_dict for {model}:"
        for word, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{escape_text(cut_text(one, 80))}"' for one in names[:_MOST_NAMED])
                more = ", ..." if len(names) > _MOST_NAMED else ""
                message += f"\n\t{word} key(s) in state_dict: {listed}{more}. "
        self._problem("names-differ", args.node, message, why, edits=edits, load=load)

    # --- devices of models and optimizers -------------------------------------------------------------------

    def _move(self, owner: Value, name: str, args: Args) -> None:
        given = args.get(0, "device")
        wanted = f"cuda:{given}" if type(given) is int else text(given)
        if given is None and name != "to":
            wanted = name
        parts = split_device(wanted.replace(HOLE, "0"))
        if parts is None or parts[0] not in DEVICE_TYPES:
            return
        failure = send_failure(wanted.replace(HOLE, "0"), self.target)
        if failure is not None:
            if self.is_reached:
                why = f"There is no {wanted.replace(HOLE, 'N')} on the target."
                edits = self._move_edits(args.node, name, wanted)
                self._problem("no-device", args.node, failure[1], why, edits=edits)
        elif isinstance(owner, Ref) and wanted != "cpu":
            self._moved(self.bare(owner), wanted)

    def _move_edits(self, node: ast.Call, name: str, wanted: str) -> Sequence[Edit]:
        if name == "to" and not (node.args and isinstance(node.args[0], ast.Constant)):
            return self._literal_edits(wanted)
        if not isinstance(node.func, ast.Attribute):
            return []
        kind, word = wanted.partition(":")[0], self._device_word()
        made: list[Edit] = []
        if not word:
            word = f'"{kind}" if {DEVICE_TYPES[kind].available or False} else "cpu"'
            if "device" not in {
                getattr(one, "id", getattr(one, "arg", "")) for one in ast.walk(self.script.tree)
            }:
                made = [imported(self.script, ["", f"device = torch.device({word})"])]
                word = "device"
        return [*made, replaced(self.script, node, f"{self.script.source(node.func.value)}.to({word})")]

    def _optimizer(self, given: Value) -> Value:
        made = self.new("optimizer")
        for row in given.items if isinstance(given, Seq) else (given,):
            pairs = self.pairs(row)
            held = row if pairs is None else pairs.items.get("params")
            if isinstance(held, Parameters):
                self.vars[made.id, "~model"] = held.model
        self._optimizers.append(made)
        return made

    def _load_optimizer(self, owner: Ref, given: Value) -> None:
        branch = self.places.at((*given.keys, "state")) if isinstance(given, File) else None
        model = self.vars.get((owner.id, "~model"))
        is_still = model is not None and (model, "~device") not in self.vars
        slots = branch.children.values() if isinstance(branch, Branch) else ()
        rows = [row for slot in slots if isinstance(slot, Branch) for row in slot.children.values()]
        if is_still and any(isinstance(row, Tensor) and row.shape for row in rows):
            load = given.load if isinstance(given, File) else -1
            self.vars[owner.id, "~loaded"] = (self.statement, load)

    def _moved(self, model: Ref, device: str) -> None:
        self.vars[model.id, "~device"] = device
        for one in self._optimizers:
            if self.vars.get((one.id, "~model")) == model.id and self.vars.get((one.id, "~loaded")):
                self.vars[one.id, "~moved"] = (self.statement, device)

    def _step(self, owner: Ref, args: Args) -> None:
        loaded, moved = (self.vars.get((owner.id, name)) for name in ("~loaded", "~moved"))
        if not isinstance(loaded, tuple) or not isinstance(moved, tuple):
            return
        (loading, load), (moving, device) = loaded, moved
        self.vars[owner.id, "~loaded"] = None
        message = (
            f"RuntimeError: {Complaint.FOREACH}{_REST}"
            if device.startswith("cuda")
            else _MIXED.format(device)
        )
        why = (
            f"Line {loading.lineno} loads the state of the optimizer where the parameters are, on the CPU. "
            f"Line {moving.lineno} moves the model to {device} afterwards, and the state does not move along."
        )
        edits = []
        if share_names(self.script, loading, moving):  # its line up, or one more where it cannot be moved
            gone = removed_line(self.script, moving)
            added = line_before(self.script, loading, self.script.source(moving))
            edits = [added] if gone is None else [added, gone]
        self._problem("optimizer-left-behind", args.node, message, why, edits=edits, load=load)

    def _problem(  # noqa: PLR0913 - its parts
        self,
        kind: str,
        node: ast.expr,
        message: str,
        why: str,
        *,
        advice: str = "",
        edits: Sequence[Edit] = (),
        load: int = -1,
    ) -> None:
        self.problems.append(
            Problem(
                kind=kind,
                line=node.lineno,
                message=message,
                why=why,
                advice=advice,
                edits=tuple(edits),
                file="" if self.script is self.project.script else self.script.name,
                load=load,
                when=self.when,
            )
        )


_ONCE_SEEN: Mapping[str, Callable[[Judge, Args], None]] = {
    "pickle.load": Judge._pickle,  # noqa: SLF001 - of this module
    **dict.fromkeys(_OF_CUDA, Judge._ask_cuda),  # noqa: SLF001 - as above
}


def names_file(checkpoint: Checkpoint, path: Value) -> bool | None:
    """Return whether a path of the script names this file; None where that is not known."""
    if not isinstance(path, str):
        return None
    own = checkpoint.path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    last = path.replace("\\", "/").rpartition("/")[2]
    return None if HOLE in last else last == own


def _written_name(node: ast.expr) -> Value:
    """Return the name of a file that an expression spells, where it is the only one in it."""
    written = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
    names = [one for one in written if isinstance(one, str) and one.endswith(_ENDINGS)]
    return names[0] if len(names) == 1 else None


def _given(args: Args, name: str) -> ast.expr | None:
    """Return the expression that is given for the second argument of a load."""
    named = [one.value for one in args.node.keywords if one.arg == name]
    return (named + args.node.args[1:2] + [None])[0]


def _source(walk: Evaluator, node: ast.expr) -> str:
    return escape_text(cut_text(" ".join(walk.script.source(node).split()), 60))
