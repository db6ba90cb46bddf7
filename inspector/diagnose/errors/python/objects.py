"""Messages about a value that is not what the code takes it for: a dictionary, a path, a result."""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE, global_names
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix

_PLAIN = Fix(style="plain")
_BUILTIN = re.compile(
    r"nonetype|int|float|bool|str|list|tuple|set|dict|type|method|function|generator|module|"
    r"tensor|parameter|map|zip|filter|builtin_function_or_method|modulelist|dict_keys|dict_values|"
    r"property|ellipsis|namespace"
)
_OF_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state|torch\.load|weights|pretrain|loaded|model\[|snapshot", re.IGNORECASE
)
_INTERNAL = (
    r"_(?:non_persistent_buffers_set|is_full_backward_hook|backward_pre_hooks|forward_hooks_with_kwargs|"
    r"forward_pre_hooks_with_kwargs|forward_hooks_always_called|load_state_dict_pre_hooks|"
    r"load_state_dict_post_hooks|"
    r"state_dict_pre_hooks|state_dict_hooks|backward_hooks|modules|parameters|buffers|forward_pre_hooks)\b"
)


def _is_module(context: Context) -> Tied:
    """Return whether torch.load gives a whole model for this file, where the code wants a dictionary."""
    name = context.checkpoint.module_class
    if name is not None:
        here = f"This file is a whole pickled module, {plain(name)}: torch.load returns the model itself."
        return Tied(fits="yes", here=here, fix=Fix(style="module"), finding="whole-module")
    return Tied(
        fits="no", here="torch.load returns no module for this file: the error comes from another object."
    )


def _asks_for_paths(context: Context) -> Tied:
    """Find the paths of another system that are pickled in this file."""
    wanted = [name for name in global_names(context) if name.startswith("pathlib.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds paths: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no pathlib paths: the error comes from another file.")


def _holds_modules(context: Context) -> Tied:
    """Return whether modules are pickled in this file."""
    name = context.checkpoint.module_class
    if name is not None or any(use.startswith("torch.nn.modules.") for use in global_names(context)):
        return Tied(
            fits="yes",
            here="This file holds pickled modules.",
            fix=Fix(style="module"),
            finding="whole-module",
        )
    return Tied(
        fits="no",
        here="This file holds no pickled modules: the error comes from another file, or from the code.",
    )


_STREAM = re.compile(r"response|stream|reader|file|pipe|body|socket|buffer|wrapper|io$", re.IGNORECASE)


def _in_load(told: Told) -> bool:
    """Return whether torch.load was given an object that is no stream either."""
    if _STREAM.search(told.groups["type"]):
        return False
    return told.scene.step == "load" or not told.scene.has_frames


def _of_load_state_dict(told: Told) -> bool:
    """Return whether None came from load_state_dict: the text shows the call, or only the message."""
    if not told.groups["name"]:
        return True
    return "load_state_dict" in told.pasted.flat or (
        told.groups["name"] == "eval" and not told.scene.has_frames
    )


def _of_loaded(told: Told) -> bool:
    """Return whether the value that is indexed came from a checkpoint, as far as the line tells."""
    kind = told.groups.get("type") or told.groups.get("type2", "")
    code = told.scene.code or told.pasted.flat
    return _BUILTIN.fullmatch(kind.lower()) is None and _OF_CHECKPOINT.search(code) is not None


def _not_script(context: Context) -> Tied:
    """Return whether this file is a torch.save file, or an archive for another loader."""
    form, archive = format_of(context.checkpoint.format), context.safety.archive
    if form.torch_loads:
        return Tied(fits="yes", here="This file was written by torch.save and holds no code.", fix=_PLAIN)
    if archive is not None and archive.is_imported:
        return Tied(fits="yes", here=f"This file is {form.what}, which has no such record.", fix=_PLAIN)
    return Tied(fits="no", here=f"This file is in the {plain(form.name)} format.")


def _operator(told: Told) -> Said:
    """Explain whose operators they are: those of torch itself come with another version of it."""
    package = plain(told.groups["package"])
    if package in {"aten", "prim", "prims", "quantized"}:
        return Said(
            title="The TorchScript model uses an operator that this torch does not have",
            cause=f"The operator belongs to torch itself ({package}), in another version or build than the "
            "installed one.",
            advice="Install the version of torch that wrote the file, or a newer one.",
        )
    return Said(
        advice=f"Install the package that defines the operators {package}:: for the installed torch, and "
        "import it before torch.jit.load."
    )


OBJECT_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="script-mistaken",
        title="A Python module was passed where the model or the optimizer belongs",
        pattern=r"(?:module '(?P<module>(?!torch\b)[\w.]{1,80})'(?: from '[^']{1,300}')?|'module' object) "
        r"has no attribute '(?P<name>load_state_dict|state_dict|zero_grad|param_groups|named_parameters)'",
        cause="The name that the line uses is an imported script (import optimizer, from . import model), "
        "not the optimizer or model object: a variable has the script's name, or the object was never "
        "assigned to it. The file is fine.",
        advice="Print the name before the call. Create the optimizer (or the model) first and pass that: "
        "optimizer = torch.optim.Adam(model.parameters()). Give scripts other names than variables.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="load-argument",
        title="torch.load was given something that is neither a path nor a file",
        pattern=r"'(?P<type>[\w.]{1,80})' object has no attribute '(?:seek|read|readinto|tell|readline)'|"
        r"AttributeError: seek\. You can only torch\.load",
        cause="The first argument of torch.load is a path, or a file opened in binary mode. Here it is "
        "another object: None (a path that was never set), a part of the configuration, a model, or what "
        "torch.load already returned.",
        advice="Print the argument before the call. Pass the path once: torch.load(path, "
        "map_location='cpu').",
        tie=ABOUT_CODE,
        when=_in_load,
        fix=_PLAIN,
    ),
    ErrorKind(
        id="map-location-type",
        title="map_location has a type that torch.load does not take",
        pattern=r"'(?P<type>int|list|tuple|str|torch\.device|torch\.Device|NoneType|set)' object is not "
        r"callable",
        cause="torch.load takes a device as text ('cpu', 'cuda:0') or as torch.device, a dictionary, or a "
        "function. It was given something else, such as the number 0 (args.gpu, local_rank, "
        "torch.cuda.current_device()), and tried to call it. (torch before 0.4 takes no text, either.)",
        advice="Write the device out: map_location=f'cuda:{index}', map_location=torch.device('cuda', "
        "index), or map_location='cpu'.",
        tie=ABOUT_CODE,
        needs="map_location|restore_location",
    ),
    ErrorKind(
        id="load-result",
        title="The result of load_state_dict was taken for the model",
        pattern=r"_IncompatibleKeys['\"]? object|got <class '[\w.]{0,60}_IncompatibleKeys|"
        r"'NoneType' object has no attribute '(?P<name>eval|to|cuda|cpu|parameters|train|forward|"
        r"state_dict)'|"
        r"'IncompatibleKeys'",
        cause="load_state_dict changes the model in place and returns the lists of missing and unexpected "
        "keys (None in old versions), not the model. So model = model.load_state_dict(...) loses the "
        "model. (None can also come from a function of your own that forgets to return the model.)",
        advice="Write model.load_state_dict(state_dict) on a line of its own, then model.eval().",
        tie=ABOUT_CODE,
        when=_of_load_state_dict,
    ),
    ErrorKind(
        id="path-for-weights",
        title="load_state_dict was called with a path",
        pattern=r"'(?:str|PosixPath|WindowsPath)' object has no attribute '(?:copy|_metadata|keys|items|"
        r"state_dict|get)'|"
        r"Expected state_dict to be dict-like, got <class '(?:str|pathlib\.\w{1,20})'",
        cause="load_state_dict takes the loaded dictionary, not the name of the file.",
        advice="Load the file first: model.load_state_dict(torch.load(path, map_location='cpu')).",
        tie=ABOUT_CODE,
        fix=_PLAIN,
    ),
    ErrorKind(
        id="load-on-class",
        title="load_state_dict was called on a class, or without the dictionary",
        pattern=r"load_state_dict\(\) missing \d required positional argument",
        cause="load_state_dict belongs to a model that was created, and takes the loaded dictionary. Here "
        "it was called on the class (Net.load_state_dict instead of Net().load_state_dict), or with "
        "nothing.",
        advice="model = Net(); model.load_state_dict(torch.load(path, map_location='cpu')).",
        tie=ABOUT_CODE,
        fix=_PLAIN,
    ),
    ErrorKind(
        id="wrapped-attribute",
        title="The model is inside a wrapper, which does not have its attributes",
        pattern=r"'(?:DataParallel|DistributedDataParallel|DistributedDataParallelCPU|"
        r"FullyShardedDataParallel|OptimizedModule|DeepSpeedEngine)' object "
        r"has no attribute '(?P<name>(?!copy|_metadata)\w{1,60})'|"
        r"'(?:DataParallel|DistributedDataParallel)' object is not "
        r"subscriptable",
        cause="nn.DataParallel and DistributedDataParallel pass on the call, not attributes and methods: "
        "those are on the model inside, which is .module.",
        advice="Write model.module.NAME instead of model.NAME. Save model.module.state_dict(), whose names "
        "have no 'module.' prefix.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="not-wrapped",
        title="The model is not inside a wrapper, and the code takes it out of one",
        pattern=r"'(?P<type>(?!(?:ordered)?dict')\w{1,60})' object has no attribute 'module'",
        cause="model.module is the model inside nn.DataParallel or DistributedDataParallel, and this one "
        "is not wrapped: the code was written for several GPUs, or torch.nn.DataParallel(model) was left "
        "out.",
        advice="Use the model itself: model.state_dict() and model.load_state_dict(...). For both cases: "
        "getattr(model, 'module', model).",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="posix-path",
        title="The file holds a path of another operating system",
        pattern=r"cannot instantiate '(?P<name>PosixPath|WindowsPath)' on your system|"
        r"UnsupportedOperation: cannot instantiate '(?P<name2>PosixPath|WindowsPath)'",
        cause="A pathlib path was pickled with the checkpoint on Linux or macOS (PosixPath), and Windows "
        "cannot make one; or the other way round. YOLOv5 and fastai save such paths.",
        advice="Before loading on Windows: import pathlib; pathlib.PosixPath = pathlib.WindowsPath (on "
        "Linux the other way round). Better: save paths as str(path) where the file is made, or save only "
        "the state_dict.",
        tie=_asks_for_paths,
    ),
    ErrorKind(
        id="module-for-dict",
        title="The file holds a whole model, and the code takes it for a dictionary",
        pattern=r"'(?P<type>\w{1,60})' object is not (?:subscriptable|iterable)|argument of type "
        r"'(?P<type2>\w{1,60})' is not iterable",
        finding="whole-module",
        cause="torch.load returned a model (saved with torch.save(model)), and the code looks up a key in "
        "it as in a dictionary.",
        advice="Use it as the model: model = torch.load(path, weights_only=False) if you trust the file; "
        "its weights are model.state_dict().",
        tie=_is_module,
        when=_of_loaded,
    ),
    ErrorKind(
        id="module-internals",
        title="The file holds modules from another version of torch",
        pattern=rf"'\w{{1,60}}' object has no attribute '{_INTERNAL}",
        finding="whole-module",
        cause="A whole pickled model brings its attributes as they were when it was saved. The torch "
        "installed here expects attributes that the saved version did not have (or the class does not call "
        "super().__init__()).",
        advice="Load it with the version of torch that saved it, save model.state_dict() there, and load "
        "that into a new model here.",
        tie=_holds_modules,
    ),
    ErrorKind(
        id="python-version",
        title="The file was pickled by another version of Python",
        pattern=r"code\(\) (?:takes at (?:most|least)|argument \d{1,2}|expected at (?:most|least))|code "
        r"expected at (?:most|least)|"
        r"an integer is required \(got type bytes\)|bad marshal data|unknown opcode|__init__\(\) got an "
        r"unexpected keyword "
        r"argument 'co_|too many positional arguments.{0,20}code",
        cause="The file holds compiled functions (cloudpickle and dill store lambdas and local functions "
        "as bytecode; Stable-Baselines3 its schedules), and each version of Python has its own bytecode.",
        advice="Load it with the Python version that saved it, and save only state_dicts there. "
        "Stable-Baselines3: pass custom_objects={'lr_schedule': lambda _: 0.0, 'clip_range': lambda _: 0.2}.",
    ),
    ErrorKind(
        id="recursion",
        title="The object is nested too deeply",
        pattern=r"maximum recursion depth exceeded",
        cause="A function called itself too often: pickling or copying walks deeply nested objects, and "
        "__getattr__ of a class that wraps a model calls itself while the object is not complete.",
        advice="Save the state_dict instead of the object. In a class with __getattr__, look attributes up "
        "in self.__dict__.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="script-pickled",
        title="A TorchScript model is saved with torch.jit.save",
        pattern=r"(?:ScriptModules? (?:using|objects)|ScriptModule\w{0,10}|ScriptFunction\w{0,12})[\w "
        r"]{0,30}(?:cannot|can'?t|not) be? ?"
        r"(?:deepcopied|pickled|serialized|supported)|Pickl(?:e|ing) is not supported when loading "
        r"TorchScript|"
        r"Tried to serialize object",
        cause="TorchScript models carry compiled code, which pickle does not write.",
        advice="torch.jit.save(model, path) or model.save(path); read it with torch.jit.load(path, "
        "map_location='cpu').",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="jit-given",
        title="torch.jit.load was given a file that is not TorchScript",
        pattern=r"failed locating file (?:constants\.pkl|version|bytecode\.pkl): file not found|file not "
        r"found: ?[\w/.-]{0,80}constants\.pkl|"
        r"file not found: ?[\w/.-]{0,80}(?:version|bytecode\.pkl)$",
        cause="torch.jit.load reads models with their code (written by torch.jit.save). A file of "
        "torch.save, with weights or a pickled model, has no code in it.",
        advice="Read it with torch.load(path, map_location='cpu') into a model that you create: "
        "model.load_state_dict(...).",
        tie=_not_script,
    ),
    ErrorKind(
        id="jit-operator",
        title="The TorchScript model uses operators of a package that is not imported",
        pattern=r"Unknown builtin op: ?(?P<package>\w{1,60})::\w",
        cause="A TorchScript file names operators and does not contain them: they are registered when the "
        "package that defines them is imported, and torch.jit.load found none of that name.",
        advice="Install that package for the installed torch, and import it before torch.jit.load.",
        tie=ABOUT_CODE,
        say=_operator,
    ),
    ErrorKind(
        id="learner-weights",
        title="load_learner got a dictionary of weights, not a Learner",
        pattern=r"'dict' object has no attribute 'dls'",
        cause="fastai's load_learner reads what learn.export wrote: the whole Learner. learn.save writes "
        "only a dictionary of weights and optimizer state.",
        advice="Create the Learner as in training and call learn.load(name), which does "
        "model.load_state_dict. Or call learn.export() where it was trained, and load that.",
    ),
)

ATTRIBUTE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="hparams-dict",
        title="The hyper-parameters are a dictionary, and the code wants attributes",
        pattern=r"'dict' object has no attribute '(?P<name>\w{1,60})'",
        cause="The checkpoint stores the hyper-parameters as a dictionary (Lightning does since 0.8), and "
        "the model reads them as attributes (hparams.width).",
        advice="In the model write hparams['NAME'], or convert them first: hparams = "
        "argparse.Namespace(**hparams).",
        tie=ABOUT_CODE,
        needs="hparam|hyper_param",
    ),
    ErrorKind(
        id="module-attribute",
        title="The model does not have that attribute",
        pattern=r"'(?P<type>[A-Z]\w{0,60})' object has no attribute '(?P<name>\w{1,60})'",
        finding="whole-module",
        cause="A module was asked for a layer or value that it does not have. Where the whole model was "
        "unpickled from a file, it was saved by another version of its code, which did not have it yet. "
        "Otherwise the name is wrong, or __init__ does not set it.",
        advice="Create the model with the code that is here and load the state_dict into it; or use the "
        "version of the code (or of the package) that saved the file.",
        tie=_holds_modules,
        when=lambda told: told.scene.layer == "__getattr__",  # that of a module
    ),
)
