"""Messages about code that a file needs, names and keys that are looked up, and files taken for code."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.state_names import state_dicts
from inspector.diagnose.errors.ties import global_names, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.pickles.values import package_of

_MODULE = Fix(style="module")
_PLAIN = Fix(style="plain")


def _of_attribute(context: Context) -> Tied:
    """Return whether this file asks for the name that the module does not have."""
    groups = context.groups
    name = groups["name"] or groups["rebuild"] or groups["main"]
    module = groups["module"] or ("__main__" if groups["main"] else "torch._utils")
    wanted = [full for full in global_names(context) if full.rpartition(".")[2] == name]
    exact = [full for full in wanted if full == f"{module}.{name}"]
    if not wanted:
        here = f"This file asks for nothing called {plain(name)}: the error comes from another file."
        return Tied(fits="no", here=here)
    here = f"This file asks for {listed(exact or wanted)}."
    if package_of(module) == "torch":
        written = dict(context.checkpoint.versions).get("torch", "")
        here += f" It was written by torch {plain(written)}." if written else ""
        return Tied(fits="yes", here=here)
    return Tied(fits="yes", here=here, fix=_MODULE, finding=_finding(context))


_INSTALLED = frozenset(
    [
        "ultralytics",
        "transformers",
        "pytorch_lightning",
        "lightning",
        "torchvision",
        "timm",
        "sklearn",
        "numpy",
        "pandas",
        "fairseq",
        "mmcv",
        "mmengine",
        "mmdet",
        "detectron2",
        "fastai",
        "diffusers",
        "peft",
        "accelerate",
        "omegaconf",
        "monai",
        "torch_geometric",
        "stable_baselines3",
        "gym",
        "gymnasium",
        "speechbrain",
        "espnet2",
        "spacy",
        "tokenizers",
        "torchtext",
        "torchaudio",
        "whisper",
        "pyannote",
        "skorch",
        "cloudpickle",
        "dill",
        "joblib",
        "tensordict",
        "scipy",
        "trl",
        "sentence_transformers",
        "flair",
        "PIL",
        "segmentation_models_pytorch",
    ]
)


_WITH_PYTHON = dict.fromkeys(
    ("cloudpickle", "dill"), " It stores functions as code of one Python: use the Python that saved it, too."
)


def _attribute_said(told: Told) -> Said:
    """Explain whether it is a package of another version, or code of one's own."""
    name = plain(told.groups["name"] or told.groups["rebuild"])
    if told.groups["main"]:
        return Said()
    program = _PROGRAM.search(told.text)
    if program is not None:
        return _other_main(name, plain(program["path"]))
    if (told.groups["module"] or "").startswith(("models.yolo", "models.common", "models.experimental")):
        return _yolo(name)
    return _other_version(name, package_of(told.groups["module"] or "torch"))


def _other_version(name: str, package: str) -> Said:
    """Explain that an installed package lacks the name, where the package is known."""
    if package == "torch" and name.startswith("_rebuild"):
        return Said(
            title="The file was written by a newer torch",
            cause=f"The file asks for {name}, which the installed torch does not have: a newer torch wrote "
            "the file.",
            advice="Update torch to the version that wrote the file, or a newer one.",
        )
    if package == "torch":
        return Said(
            title="The file was written by another version of torch",
            cause=f"The file asks for {name}, which the installed torch does not have: it came later, or "
            "was removed since.",
            advice="Update torch if it is older than the file. Otherwise load it with the version of torch "
            "that wrote the file, and save model.state_dict() there, which loads in all versions.",
        )
    if package not in _INSTALLED:
        return Said()
    return Said(
        title=f"The file was written by another version of {package}",
        cause=f"The file asks for {name}, which the installed {package} does not have: another version "
        "of it (or a fork of it) wrote the file.",
        advice=f"Update it: python -m pip install -U {_PIP.get(package, package.replace('_', '-'))}."
        f"{_WITH_PYTHON.get(package, '')} If that does not help, install the version or the fork that "
        "the file comes from, and save model.state_dict() there.",
    )


_PIP = {"PIL": "Pillow", "sklearn": "scikit-learn"}


def _yolo(name: str) -> Said:
    """Explain that several projects have modules of these names, each with other classes."""
    return Said(
        title="The file was written by another version of YOLO's code",
        cause=f"The file asks for {name} in models.yolo or models.common: YOLOv5, YOLOv7 and their forks all "
        "have modules of that name, with other classes in each version.",
        advice="Load it in the repository (and version) of YOLO that it was trained with, for YOLOv5 also "
        "with torch.hub.load('ultralytics/yolov5', 'custom', path). A folder called models in front of it "
        "on sys.path is found first.",
    )


_PROGRAM = re.compile(
    r"<module '__main__' from '(?P<path>[^']{0,300}[/\\](?:(?:bin|Scripts)[/\\][\w-]{1,60}(?:\.exe)?|"
    r"(?:site|dist)-packages[/\\][^']{1,300}))'"
)


def _other_main(name: str, path: str) -> Said:
    """Explain that the script which ran when the file was saved is not the program that runs now."""
    return Said(
        cause=f"{name} was defined in the script itself when the file was saved, so the pickle looks for it "
        f"in __main__. Here __main__ is {path}: a program (a server, a launcher, a test runner) that "
        "imports your code as a module, so defining the class there does not help.",
        advice=f"Put it there before the load: import __main__; __main__.{name} = {name} (after importing "
        f"{name}). Better: move {name} into a module that both programs import, and save "
        "model.state_dict().",
    )


def _finding(context: Context) -> str:
    return "whole-module" if context.checkpoint.module_class is not None else "runs-code"


def _is_mapping(context: Context) -> Tied:
    """Report what torch.load gives for this file: a dictionary, and what is in it."""
    if context.checkpoint.module_class is not None:
        here = f"This file is a whole module, {plain(context.checkpoint.module_class)}, not a dictionary."
        return Tied(fits="no", here=here)
    if context.checkpoint.root != "mapping":
        here = f"torch.load returns a {plain(context.checkpoint.root)} for this file."
        return Tied(fits="unknown", here=here)
    rows = [row for row in state_dicts(context.checkpoint) if row.tensors]
    if not rows:
        here = "torch.load returns a dictionary without tensors for this file."
        return Tied(fits="yes", here=here, fix=_PLAIN)
    where = f"under {plain(rows[0].path)}" if rows[0].path else "at its top"
    here = (
        f"torch.load returns a dictionary for this file; the weights ({len(rows[0].tensors):,}) are {where}."
    )
    return Tied(fits="yes", here=here, paths=[row.path for row in rows[0].tensors.values()], fix=_PLAIN)


def _old_module(context: Context) -> Tied:
    """Return whether this file brings modules of another version."""
    if context.checkpoint.module_class is None and not any(
        name.startswith(("torch.nn.modules.", "torchvision.")) for name in global_names(context)
    ):
        return Tied(fits="no", here="This file holds no pickled modules: the error comes from another file.")
    versions = dict(context.checkpoint.versions)
    written = f", written by torch {plain(versions['torch'])}" if "torch" in versions else ""
    return Tied(fits="yes", here=f"This file holds pickled modules{written}.", fix=_MODULE)


def _text_said(told: Told) -> Said:
    """Explain that a file was read as text, which is the likelier cause but for ASCII and in torch.load."""
    codec = told.groups["codec"].lower()
    if codec == "ascii" or told.scene.step == "load":
        return Said()
    if not codec.startswith("utf"):
        return Said(
            title="A file was read as text in the wrong encoding",
            cause=f"open(path) without an encoding uses that of the system (here {codec}). The file is text "
            "in UTF-8, such as a configuration or a README, or it is binary, such as a checkpoint.",
            advice="Open text with open(path, encoding='utf-8'), or set PYTHONUTF8=1 before Python starts. A "
            "checkpoint is binary: torch.load(path, map_location='cpu'), or open(path, 'rb').",
        )
    return Said(
        title="A binary file was read as text",
        cause="The file is binary, such as a checkpoint, and was opened as text (open(path) without 'rb'), "
        "or given where a text file is expected. Less often it was pickled by Python 2.",
        advice="Read a checkpoint with torch.load(path, map_location='cpu'), and open binary files with "
        "open(path, 'rb'). For a file of Python 2: torch.load(path, encoding='latin1').",
    )


_MODEL_METHODS = (
    "eval|train|to|cuda|cpu|half|float|parameters|named_parameters|modules|children|module|training|"
    "state_dict|forward|predict|fuse|features|fc|classifier|load_state_dict|requires_grad_|apply"
)


def _bare(key: str) -> Tied:
    """Report that the file is a state dict itself, which is what the key was to lead to."""
    here = f"There is no {plain(key)} in this file: it is itself a state dict, with the weights at its top."
    if _NOT_WEIGHTS.search(key):
        return Tied(
            fits="yes", here=here, advice=f"It holds only weights: skip what reads {plain(key)}.", fix=_PLAIN
        )
    advice = "Leave the key out: model.load_state_dict(torch.load(path, map_location='cpu'))."
    return Tied(fits="yes", here=here, advice=advice, fix=_PLAIN)


def _is_key_of_checkpoint(told: Told) -> bool:
    """Return whether a missing key was probably looked up in a checkpoint."""
    key = told.groups["key"]
    if _QUANTIZED.search(key):
        return True
    if not key.strip() or " " in key.strip() or told.scene.step == "data":
        return False
    if _OF_CHECKPOINT.search(key):
        return True
    frames = [frame for frame in told.pasted.frames if frame.code]
    if not frames:
        # A bare name may be a column of a table or a setting: only what checkpoints use, or stands near one.
        near = told.pasted.flat[:_MOST_NEAR]
        return _USUAL_KEY.search(key) is not None or _NEAR_CHECKPOINT.search(near) is not None
    return any(_OF_CHECKPOINT.search(frame.code) for frame in frames)


_NOT_WEIGHTS = re.compile(r"optim|sched|epoch|step|iter|scaler|arg|config|best|loss|hyper", re.IGNORECASE)


_MOST_NEAR = 16 * 1024


_NEAR_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state_?dict|torch\.load|pretrain|resum|\.pth?\b|\.safetensors|weights", re.IGNORECASE
)


_USUAL_KEY = re.compile(
    r"^(?:loops|callbacks|best_fitness|anchors|train_args|hyper_parameters|net|netg|netd|g|d|amp|scaler|global_step|params|ema|lr_schedulers?|generator|discriminator)$|"
    r"^net_\w{1,12}$|_ema$|_optim|_sched|params_|_params$|encoder|decoder|backbone|\.(?:weight|bias)$",
    re.IGNORECASE,
)


_OF_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state_?dict|torch\.load|pretrain|\bstate\b|resume|weights|\bnet\b|\bmodel\b|snapshot|"
    r"param_groups|\bema\b|\bepoch\b|optimizer|hyper_param|load_file",
    re.IGNORECASE,
)


def _key_said(told: Told) -> Said:
    """Explain keys of a training run, of an adapter, and names of single tensors."""
    key = told.groups["key"]
    if _QUANTIZED.search(key):
        return Said(
            title="The file holds quantized weights, and is read as if it did not",
            cause="Names that end in SCB, absmax, qweight, scales and the like belong to quantized layers "
            "(bitsandbytes, GPTQ, AWQ). The model was built with ordinary ones.",
            advice="Tell the program how the file is quantized (--quantization, load_in_8bit, a "
            "quantization_config), if it knows that kind; otherwise use the weights that are not quantized.",
        )
    if _OF_ADAPTER.search(key):
        return Said(
            cause="The name is that of a layer inside an adapter (peft, LoRA). The file has it under "
            "another name, or not at all: it was written by another tool or another version of peft, "
            "bitsandbytes or diffusers, or it is for another base model.",
            advice="Update what reads it (python -m pip install -U peft bitsandbytes diffusers), or install "
            "the versions that the file was made with; compare its names with those of the base model.",
        )
    if _TENSOR_NAME.search(key):
        return Said(
            title="The checkpoint has no tensor of that name",
            cause="The code looks for a single tensor: the file belongs to another model or version, its "
            "names have a prefix (module., model.), or the state dict is one level deeper.",
            advice="Compare it with the names in the file: list(checkpoint)[:10].",
        )
    if _NOT_WEIGHTS.search(key):
        return Said(
            title="The checkpoint has no training state of that name",
            cause=f"The code wants to resume and asks for {plain(key)}. Published weights have no optimizer, "
            "scheduler or epoch: they were taken out. Or the run saved them under another key.",
            advice="To start from these weights, load only the model and leave out what resumes (no "
            "--resume; a pretrained= or weights= option). Otherwise use the last checkpoint of the run, and "
            "the keys that it has: checkpoint.keys().",
        )
    return Said()


_QUANTIZED = re.compile(r"\.(?:SCB|absmax|quant_map|quant_state[\w.]{0,30}|qweight|qzeros|scales|g_idx)$")


_OF_ADAPTER = re.compile(r"base_model\.model\.|lora[_.]|_lora\b|to_[kqv]_lora|adapter", re.IGNORECASE)


_TENSOR_NAME = re.compile(
    r"\.\w{1,40}\.(?:weight|bias|running_mean|running_var)$|^\w{1,40}\.(?:weight|bias)$"
)


def _key(context: Context) -> Tied:
    """Compare the key of a KeyError with the keys of this file."""
    key = context.groups["key"]
    tops = top_keys(context)
    held = {str(step) for row in context.checkpoint.values for step in row.keys}
    held |= {str(step) for row in context.checkpoint.tensors for step in row.keys}
    if key in tops:
        here = f"This file has the top-level key {plain(key)}: the error comes from another file."
        return Tied(fits="no", here=here)
    if key in held:
        here = f"{plain(key)} is in this file, but deeper; the top-level keys are {listed(tops)}."
        return Tied(fits="yes", here=here, fix=_PLAIN)
    if any(not row.path for row in state_dicts(context.checkpoint)):
        return _bare(key)
    shown = f"the top-level keys are {listed(tops)}" if tops else "it has no keys"
    here = f"There is no {plain(key)} in this file; {shown}."
    return Tied(fits="unknown", here=here, fix=_PLAIN)


CODE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="not-in-registry",
        title="The installed code has no class of the name that the configuration asks for",
        pattern=r"There is no such class as|Error locating target|Unable to locate (?:the )?class|"
        r"Unrecognized configuration class",
        cause="A configuration (or a checkpoint with its settings) names classes, and the package that is "
        "installed does not have this one: it is an older or newer version, the module that registers the "
        "class was never imported, or the name is misspelled.",
        advice="Install the version of the framework that the configuration was written for, or update it. "
        "For a class of your own import its module first (custom_imports in mm* projects).",
    ),
    ErrorKind(
        id="package-versions",
        title="The versions of installed packages do not fit each other",
        pattern=r"is used but incompatible\. Please install|which is incompatible|"
        r"(?:is|are) required for a normal functioning|"
        r"requires? [\w-]{1,40}[<>=!~]=?[\d.]{1,12}[^.]{0,40}but "
        r"(?:found|you have|got)|pip'?s dependency resolver does not",
        cause="A package wants another version of a second one than is installed.",
        advice="Install what the message asks for, both packages in one command, so that pip finds versions "
        "that go together: python -m pip install 'torch==X' 'torchvision==Y'.",
    ),
    ErrorKind(
        id="pip-version",
        title="pip finds no build of that version for this Python and system",
        pattern=r"Could not find a version that satisfies the requirement|No matching distribution found for|"
        r"is not a supported wheel on this platform",
        cause="Each release of torch has wheels for some versions of Python and some systems only: old torch "
        "has none for a new Python, CUDA builds (+cu118) are not on PyPI, and there are none for 32 bits.",
        advice="Use a Python that the release supports (torch 1.x: up to 3.10), or a newer torch; for CUDA "
        "builds add --index-url https://download.pytorch.org/whl/cu121. Wheels for Jetson come from NVIDIA.",
    ),
    ErrorKind(
        id="class-missing",
        title="The file needs a class that its module does not have",
        pattern=r"Can'?t get attribute ['\"]?(?P<name>[\w.]{1,120})['\"]? on <module "
        r"['\"]?(?P<module>[\w.]{1,120})|'module' object has no attribute '(?P<rebuild>_rebuild_\w{1,40})|"
        r"module '__main__'[^']{0,80} has no attribute '(?P<main>\w{1,80})",
        finding="whole-module",
        cause="A pickled object names its class and the module that defines it. __main__ is the script "
        "that was running when the file was saved, and here another script is running. Or the package has "
        "changed since.",
        advice="Define or import the class in the script that calls torch.load, before the call. Better: "
        "save model.state_dict() where the class is available.",
        tie=_of_attribute,
        say=_attribute_said,
    ),
    ErrorKind(
        id="dict-for-model",
        title="torch.load returned a dictionary, and the code expects a model",
        pattern=r"['\"]?(?:collections\. ?)?OrderedDict['\"]? object has no attribute "
        rf"['\"]?(?P<name>(?:{_MODEL_METHODS})\b|\w{{1,60}})|"
        rf"['\"]?dict['\"]? object has no attribute ['\"]?(?P<name2>{_MODEL_METHODS})\b|"
        r"'(?:collections\.)?(?:OrderedDict|dict)' object is not callable",
        cause="The file holds weights by name (a state dict), not a model: it has no eval(), to() or cuda(), "
        "and cannot be called with an input.",
        advice="Create the model first, then load the weights into it: model = Net(); "
        "model.load_state_dict(torch.load(path, map_location='cpu')); model.eval().",
        tie=_is_mapping,
        fix=_PLAIN,
    ),
    ErrorKind(
        id="module-changed",
        title="The file holds modules from another version",
        pattern=r"'(?:Conv\w{1,20}|BatchNorm\w{0,8}|Upsample|GELU|SiLU|Hardswish|MultiheadAttention|LayerNorm|"
        r"Hardsigmoid|TransformerEncoder\w{0,8}|Embedding|Linear|ReLU\w?|Dropout|AvgPool\w{2}|MaxPool\w{2}|"
        r"Sequential)' object has no attribute '(?P<name>_\w{1,60}|inplace|ceil_mode|batch_first|transposed|"
        r"track_running_stats|output_padding|divisor_override|align_corners|mode|padding_idx|max_norm|"
        r"elementwise_affine|self_attn|affine|eps|num_heads|bias_k|count_include_pad|antialias)'|"
        r"'(?:Detect|Segment|C2f|C3|SPPF?|Conv|Bottleneck|DetectionModel|YOLO|GPT2Attention|LlamaAttention|"
        r"Model|BertEmbeddings|CLIPTextTransformer|ViT\w{0,20}|SwinTransformer\w{0,6})' object has no "
        r"attribute '(?P<name2>\w{1,60})'|"
        r"object has no attribute '(?:recompute_scale_factor|padding_mode|_qkv_same_embed_dim|approximate|"
        r"norm_first|activation_relu_or_gelu|num_batches_tracked|drop_path1|relative_position_index)'|"
        r"source code of class '[\w.]{1,120}' has changed",
        finding="whole-module",
        cause="A whole pickled model contains its attributes but not its code: the code comes from the "
        "torch installed here, which expects an attribute that the saved version did not have.",
        advice="Use the version of torch (or of the package) that saved it. Or create the model again and "
        "load its state_dict.",
        tie=_old_module,
    ),
    ErrorKind(
        id="python2-text",
        title="The file was written by Python 2",
        pattern=r"'(?P<codec>ascii|utf-?8|utf-?16[\w-]{0,3}|charmap|gbk|gb\d{4,5}|cp\d{3,5}|shift_jis|"
        r"euc[_-]kr|big5|mbcs)' codec can'?t decode bytes? (?:0x[0-9a-f]{2} )?in position",
        cause="Python 2 pickled strings as bytes; Python 3 decodes them as ASCII or UTF-8, which need not "
        "fit. (Opening a checkpoint in text mode, open(path) without 'rb', raises the same error.)",
        advice="Try torch.load(path, encoding='latin1'). If the file is no file of torch but a bare pickle "
        "(weights of Detectron or Caffe2, NumPy arrays): pickle.load(open(path, 'rb'), "
        "encoding='latin1').",
        say=_text_said,
    ),
    ErrorKind(
        id="key-missing",
        title="The checkpoint has no such key",
        pattern=r"KeyError: ?['\"](?P<key>[^'\"]{1,120})['\"]",
        cause="The code looks up a key that this checkpoint does not have: every training script chooses "
        "its own keys (state_dict, model, model_state_dict, net), or the file is itself a state dict.",
        advice="Use the keys that are in the file: checkpoint.keys() lists them.",
        tie=_key,
        when=_is_key_of_checkpoint,
        say=_key_said,
    ),
)
