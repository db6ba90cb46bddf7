"""Messages about values and arguments that a line or a function does not take."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE
from inspector.diagnose.listing import plain

_SEQUENCES = {"list", "tuple", "generator", "map", "zip", "batchencoding"}
_OF_TENSOR = (
    r"to|cuda|cpu|size|shape|dim|ndim|unsqueeze|squeeze|view|reshape|numpy|device|dtype|detach|backward|float|"
    r"half|long|permute|transpose|clone|item|contiguous|requires_grad\w{0,1}|is_cuda|numel|mean|sum|data|grad|"
    r"new\w{0,8}|eval|train|parameters|named_parameters|state_dict|load_state_dict|zero_grad|step|modules"
)
_PICTURE = re.compile(r"imread|cv2|image|img", re.IGNORECASE)
_NETWORK = re.compile(r"\.group\(|re\.(?:match|search)|find\(|\.text|soup")


def _none(told: Told) -> Said:
    """Explain which functions return None without a word, where the line calls one."""
    if _PICTURE.search(told.scene.code):
        return Said(
            cause="cv2.imread and the like return None where the picture cannot be read: the path is wrong, "
            "or the file is no picture.",
            advice="Print the path, and check that the file exists: os.path.exists(path).",
        )
    if told.scene.package:
        return Said(
            title=f"{plain(told.scene.package)} found None where it expects an object",
            cause=f"The code that failed belongs to {plain(told.scene.package)}: what it read (a checkpoint, "
            "a configuration) lacks a part that this version expects, or was written by another version.",
            advice=f"Install the version of {plain(told.scene.package)} that the file or the project asks "
            "for, or update it. Check that the path and the settings that are passed are set.",
        )
    if _NETWORK.search(told.scene.code):
        return Said(cause="A search found nothing and returned None, and its result is used.")
    return Said()


def _sequence(told: Told) -> Said:
    """Explain how each kind of value comes to stand where a tensor is expected."""
    kind = (told.groups["type"] or told.groups["type2"]).lower()
    if kind in _SEQUENCES:
        return Said(
            cause=f"The value is a {plain(kind)} of several things: a batch as the DataLoader "
            "returns it, the several outputs of a model, or what was saved as a list.",
            advice="Take it apart: inputs, labels = batch; outputs[0]. To move all of it: batch = "
            "[item.to(device) for item in batch].",
        )
    if kind == "str":
        return Said(
            cause="The value is text: a path or a name where the loaded object belongs, or an entry of a "
            "batch that is no tensor. Iterating over a dictionary gives its keys, not its values.",
            advice="Load it first (model = torch.load(path, ...)), or take the values: batch['image'], "
            "for name, value in state_dict.items().",
        )
    return Said()


_FAMILIES = (
    (re.compile(r"^(?:Lightning|PL)"), "pytorch-lightning"),
    (re.compile(r"^(?:Accelerat|DistributedType)"), "accelerate"),
    (re.compile(r"^DeepSpeed"), "deepspeed"),
    (re.compile(r"^(?:Peft|Lora)"), "peft"),
    (re.compile(r"(?:UNet2D|UNet3D|AutoencoderKL|Pipeline$|Scheduler$|ControlNet)"), "diffusers"),
    (re.compile(r"^(?:YOLO|DetectionModel|SegmentationModel)"), "ultralytics"),
    (re.compile(r"^(?:Learner|DataLoaders|TfmdDL)"), "fastai"),
    (re.compile(r"^(?:Data|Batch|GlobalStorage|HeteroData)$"), "torch_geometric"),
    (
        re.compile(
            r"^(?:CLIP|Llama|Bert|GPT|T5|Whisper|Qwen|Mistral|Mixtral|Gemma|Phi|Falcon|ChatGLM|Roberta|OPT|Bloom|"
            r"Wav2Vec2|ViT|Dynamic|Generation|Internlm|Seq2Seq)\w{0,60}$|(?:ForCausalLM|Tokenizer\w{0,6}|Config)$"
        ),
        "transformers",
    ),
)


def _whose(told: Told) -> Said:
    """Name the package that the class belongs to, where its name tells."""
    kind, attribute = told.groups["type"], told.groups["name"]
    package = told.scene.package or next((name for family, name in _FAMILIES if family.search(kind)), "")
    if not package:
        return Said()
    return Said(
        title=f"The installed {plain(package)} is of another version than the code",
        cause=f"{plain(kind)} is a class of {plain(package)}, and in the installed version it has no "
        f"{plain(attribute)}: it came later, was renamed or removed. An object that was pickled by another "
        "version has the attributes of that time.",
        advice=f"Update it: python -m pip install -U {plain(package)}; or install the version that the "
        "project (or the model's own code) was written for.",
    )


def _root(context: Context) -> Tied:
    """Return whether torch.load gives a list for this file."""
    kind = context.checkpoint.root
    if kind == "sequence":
        return Tied(fits="yes", here="torch.load returns a list or tuple for this file.")
    return Tied(fits="no", here=f"torch.load returns no list for this file (but a {plain(kind)}).")


_OWNERS = {
    **dict.fromkeys(("load_model", "load_file", "save_file", "safe_open"), "safetensors"),
    **dict.fromkeys(("hf_hub_download", "cached_download", "snapshot_download"), "huggingface_hub"),
    **dict.fromkeys(
        ("dispatch_model", "load_checkpoint_and_dispatch", "infer_auto_device_map"), "accelerate"
    ),
    **dict.fromkeys(("get_peft_model", "set_peft_model_state_dict", "load_adapter"), "peft"),
}
_INIT = re.compile(r"__init__\(\) missing \d")
_OF_HPARAMS = re.compile(r"load_from_checkpoint|hparams|\*\*\w{0,20}(?:conf|args|params|opt|kwargs|hp)")


def _call(told: Told) -> Said:
    """Explain that saved settings are passed on, where the line does so."""
    owner = _OWNERS.get(told.groups["function"].rpartition(".")[2].lower(), "")
    if owner:
        return Said(
            cause=f"The function belongs to {owner}, and the installed {owner} is older or newer than the "
            "package that calls it.",
            advice=f"Update {owner}: python -m pip install -U {owner}, or install the versions that the "
            "project asks for.",
        )
    if _INIT.search(told.text) and not told.scene.has_frames:
        return Said(
            title="A class was created without arguments that it needs, or with others",
            cause="Either the code and the package are of different versions, or the arguments come from a "
            "file: load_from_checkpoint of Lightning creates the model from the hyper-parameters that the "
            "checkpoint holds, and these lack some.",
            advice="For Lightning pass what is missing: Model.load_from_checkpoint(path, NAME=...), and call "
            "self.save_hyperparameters() in __init__ before the next run. Otherwise install the versions "
            "that "
            "the project asks for.",
        )
    if _OF_HPARAMS.search(told.scene.code):
        return Said(
            cause="Settings that were saved (hyper-parameters, a configuration) are passed on as arguments, "
            "and the class here does not take them as they are: it is of another version than the one that "
            "saved them.",
            advice="Use the version of the code that saved them, or leave out and add what differs before "
            "the call.",
        )
    return Said()


def _import(told: Told) -> Said:
    """Explain an import that goes in a circle, and files that have a package's name."""
    if "partially initialized" in told.text or "circular import" in told.text:
        return Said(
            title="Modules import each other in a circle, or a file of yours has the name of a package",
            cause="Python was still importing the module when the name was asked for: a file in the folder "
            "of the script is called like the package (torch.py, numpy.py, random.py), or two modules "
            "import each other.",
            advice="Rename the file (and delete its __pycache__), or move one import into the function "
            "that needs it.",
        )
    package = plain((told.groups["module"] or told.groups["owner"]).partition(".")[0])
    return Said(
        cause=f"The name is not in the {package} that is installed: it came in a newer version, or was moved "
        "or removed since. Another package, or the project, was written for that version.",
        advice=f"Install versions that belong together: the requirements of the project, or update both "
        f"(python -m pip install -U {package}). python -m pip show {package} shows what is there.",
    )


VALUE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="value-none",
        title="Something that the line uses is None",
        pattern=r"'NoneType' object (?:has no attribute '\w{1,60}'|does not support|cannot be interpreted|"
        r"is not (?:subscriptable|iterable|callable))|argument of type 'NoneType' is not iterable|"
        r"cannot unpack non-iterable NoneType|Expected a proper Tensor but got None|"
        r"must be Tensor, not NoneType",
        cause="None stands where an object is expected: a function returned nothing, an option was not set, "
        "a part of the model or of the configuration is missing, or a file was not found.",
        advice="Print the name in that line, and look where it is assigned. load_state_dict(), list.sort() "
        "and optimizer.step() return nothing that can be used.",
        tie=ABOUT_CODE,
        say=_none,
    ),
    ErrorKind(
        id="value-type",
        title="A value of another type stands where a tensor or a model is expected",
        pattern=r"'(?P<type>list|tuple|str|int|float|bool|generator|map|zip|set|method|function|type|"
        r"builtin_function_or_method|numpy\.ndarray|ndarray|PosixPath|WindowsPath|Image|BatchEncoding)' "
        rf"object has no attribute '(?:{_OF_TENSOR})'|"
        r"'(?P<type2>int|float|bool|method|function|type|builtin_function_or_method|generator|DataLoader|"
        r"Tensor)' object is not (?:subscriptable|iterable|an iterator)",
        cause="The object that the line uses is neither a tensor nor a model: a number, a NumPy array "
        "(torch.from_numpy converts it), a class that was not called (Net instead of Net()), or a method "
        "without its parentheses.",
        advice="Print type(...) of it in that line, and convert or load it first.",
        tie=ABOUT_CODE,
        say=_sequence,
    ),
    ErrorKind(
        id="text-expected",
        title="A loaded object stands where a path (or another text) is expected",
        pattern=r"'(?P<type>(?:collections\.)?OrderedDict|dict|Tensor|Parameter|list|tuple|NoneType|int|"
        r"float|bool|BytesIO|PosixPath|WindowsPath|[A-Z]\w{0,40})' object has no attribute "
        r"'(?:startswith|endswith|replace|split|rsplit|strip|rstrip|lower|upper|decode|encode|rfind|format)'|"
        r"expected str, bytes or os\.PathLike object, not (?P<got>\w{1,40})|stat: path should be string",
        cause="The function wants the path of a file (or a name) as text, and got an object: the dictionary "
        "that torch.load already returned, a tensor, or nothing.",
        advice="Pass the path itself, as str: the function loads the file. If it is loaded already, call "
        "model.load_state_dict with it.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="list-for-dict",
        title="A list stands where the code expects a dictionary",
        pattern=r"(?:list|tuple|string) ind(?:ices|exes) must be integers",
        cause="The code looks up a name in a list, a tuple or a text: the checkpoint (or the configuration, "
        "or the batch) was saved in another form than the code expects.",
        advice="Print type(...) and the first entries. Of a list take the entry by number, or load with the "
        "version of the code that saved it.",
        tie=_root,
    ),
    ErrorKind(
        id="options-attribute",
        title="The options lack an entry that the code asks for",
        pattern=r"'(?P<type>Namespace|AttributeDict|HParams)' object has no attribute '(?P<name>\w{1,80})'|"
        r"Key '(?P<key>\w{1,80})' (?:is not in struct|not in '\w{1,60}')",
        cause="The code reads an option that does not exist here: the options come from a checkpoint, a "
        "configuration file or a library of another version, or the script was called without it.",
        advice="Use the version of the code that the checkpoint or configuration was made with, or add the "
        "option by hand before it is read: args.name = default.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="object-attribute",
        title="An object does not have the attribute that the code asks for",
        pattern=r"'(?P<type>(?!NoneType|Config)[A-Z]\w{1,60})' object has no attribute '(?P<name>\w{1,80})'",
        cause="The class is of another version than the code: a package was updated or is too old, the name "
        "is misspelled, or the object was pickled by another version of the class and has the attributes of "
        "that time. A wrapper (DataParallel, torch.compile, peft) has those of the model under .module, "
        "._orig_mod or .base_model.",
        advice="print(type(x)) and dir(x) show what there is. Install the versions that the project asks "
        "for. Of a pickled model, build it again and load its state_dict.",
        tie=ABOUT_CODE,
        say=_whose,
    ),
    ErrorKind(
        id="unpacking",
        title="A line takes apart more or fewer values than there are",
        pattern=r"(?:too many|not enough) values to unpack",
        cause="The code expects a certain number of things from a file, a function or a batch, and got "
        "another: a checkpoint that holds only a state dict where (model, optimizer) was saved before, or "
        "a function of another version.",
        advice="Print what is on the right side: type(...) and len(...). For a checkpoint take what is "
        "there, such as state_dict = torch.load(path).",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="map-location-elsewhere",
        title="map_location was passed to a function that does not take it",
        pattern=r"'map_location' is an invalid keyword argument|"
        r"got an unexpected keyword argument '?map_location|\(\) got multiple values for argument "
        r"'?map_location",
        cause="Only torch.load, torch.jit.load, torch.hub.load_state_dict_from_url and what passes it on "
        "take map_location. pickle.load, joblib.load, np.load, load_file of safetensors and the classes of "
        "models do not.",
        advice="torch.load(path, map_location='cpu') for a file of torch.save; load_file(path, "
        "device='cpu') for safetensors. For a pickle with GPU tensors inside, run the script with "
        "checkpoint-inspector run -- python script.py, which maps them.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="load-without-path",
        title="load was called without its arguments",
        pattern=r"\bload\(\) missing \d required positional arguments?: 'f'",
        cause="torch.load wants the path (or an open file) as its first argument, under the name f.",
        advice="torch.load(path, map_location='cpu').",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="call-arguments",
        title="A function or class was called with arguments that it does not take",
        pattern=r"(?P<function>[\w.<>]{1,80})\(\) (?:got (?:an unexpected keyword|some positional-only|"
        r"multiple values)|missing \d{1,3} required|takes (?:from )?\d{1,3}|takes no (?:keyword )?arguments)",
        cause="The caller and the function do not belong to the same version: the project was written for "
        "another version of the package, or a configuration was saved by another version of the class.",
        advice="Install the versions that the project asks for (requirements.txt), or change the call to "
        "what help(...) of the function shows.",
        tie=ABOUT_CODE,
        say=_call,
    ),
    ErrorKind(
        id="name-not-in-package",
        title="An installed package does not have a name that the code imports",
        pattern=r"cannot import name '?(?P<name>[\w.]{1,80})'? from (?:partially initialized module )?"
        r"'?(?P<module>[\w.]{1,120})|(?:partially initialized )?module '(?P<owner>[\w.]{1,120})' has no "
        r"attribute '(?P<attribute>\w{1,80})'",
        cause="The installed version of the package is not the one that the code was written for.",
        advice="Install versions that belong together.",
        tie=ABOUT_CODE,
        say=_import,
    ),
)
