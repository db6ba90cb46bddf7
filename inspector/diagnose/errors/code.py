"""Messages of Python: code that a file needs, names and keys that are looked up, objects taken for others."""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Said, Tied, Told
from inspector.diagnose.errors.state_names import state_dicts
from inspector.diagnose.errors.ties import global_names, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.pickles.values import package_of

# --- keys and attributes ------------------------------------------------------------------------------------

_MODULE = Fix(style="module")
_PLAIN = Fix(style="plain")


def tie_of_attribute(context: Context) -> Tied:
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


def say_attribute(told: Told) -> Said:
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


def tie_is_mapping(context: Context) -> Tied:
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


def tie_old_module(context: Context) -> Tied:
    """Return whether this file brings modules of another version."""
    if context.checkpoint.module_class is None and not any(
        name.startswith(("torch.nn.modules.", "torchvision.")) for name in global_names(context)
    ):
        return Tied(fits="no", here="This file holds no pickled modules: the error comes from another file.")
    versions = dict(context.checkpoint.versions)
    written = f", written by torch {plain(versions['torch'])}" if "torch" in versions else ""
    return Tied(fits="yes", here=f"This file holds pickled modules{written}.", fix=_MODULE)


def say_text(told: Told) -> Said:
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


def _bare(key: str) -> Tied:
    """Report that the file is a state dict itself, which is what the key was to lead to."""
    here = f"There is no {plain(key)} in this file: it is itself a state dict, with the weights at its top."
    if _NOT_WEIGHTS.search(key):
        return Tied(
            fits="yes", here=here, advice=f"It holds only weights: skip what reads {plain(key)}.", fix=_PLAIN
        )
    advice = "Leave the key out: model.load_state_dict(torch.load(path, map_location='cpu'))."
    return Tied(fits="yes", here=here, advice=advice, fix=_PLAIN)


def when_key_of_checkpoint(told: Told) -> bool:
    """Return whether a missing key was probably looked up in a checkpoint."""
    key = told.groups["key"]
    if _QUANTIZED.search(key):
        return True
    if not key.strip() or " " in key.strip() or told.scene.step == "data":
        return False
    if _OF_CHECKPOINT.search(key) or _TENSOR_NAME.search(key):
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


def say_key(told: Told) -> Said:
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


_QUANTIZED = re.compile(
    r"\.(?:SCB|absmax|quant_map|quant_state[\w.]{0,30}|qweight|qzeros|scales|g_idx|"
    r"(?:weight|input|k|v)_scale(?:_inv)?|weight_zero_point|qweight_type)$"
)


_OF_ADAPTER = re.compile(r"base_model\.model\.|lora[_.]|_lora\b|to_[kqv]_lora|adapter", re.IGNORECASE)


_TENSOR_NAME = re.compile(
    r"\.\w{1,40}\.(?:weight|bias|running_mean|running_var)$|^\w{1,40}\.(?:weight|bias)$"
)


def tie_key(context: Context) -> Tied:
    """Compare the key of a KeyError with the keys of this file."""
    key = context.groups["key"]
    tops = top_keys(context)
    held = {str(step) for row in context.checkpoint.values for step in row.keys}
    held |= {str(step) for row in context.checkpoint.tensors for step in row.keys}
    if any("params_dict[" in frame.code for frame in context.pasted.frames):  # the model's, not the file's
        if key in held:
            here = f"This file has {plain(key)}, for which the model in memory has no parameter."
            return Tied(fits="yes", here=here)
        return Tied(fits="no", here=f"This file has no {plain(key)}: the error comes from another file.")
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


# --- modules that are missing -------------------------------------------------------------------------------

_AS_CUDA = re.compile(r"import \w{1,80} as \w{0,40}_cuda\b")

# Compiled code beside torch: no folder on the path helps, it has to be built or installed for this torch.
_COMPILED = re.compile(
    r"(?:.{0,80}\.)?(?:\w{0,40}_(?:cuda|ext|cext|kernels?|plugin|extension|gpu|lib|C|cpp|native|ops)|_?ext|"
    r"_C|C_ROIPooling|"
    r"cuda_\w{1,40}|amp_C|apex_C|syncbn|"
    r"fused(?:_act|_bias_act|_ops)?|upfirdn2d|MultiScaleDeformableAttention|MSDA|ms_deform_attn|DCNv?[234]|"
    r"dcn_v2|deform_conv|"
    r"pointnet2(?:_ops|_batch|_stack|_utils|_lib)?|roi_align|roi_pooling|[cg]pu_nms|cython_(?:bbox|nms)|"
    r"rotary_emb|"
    r"dropout_layer_norm|diff_\w{0,20}rasterization|simple_knn|raymarching|_?gridencoder|_?shencoder|"
    r"_?freqencoder|chamfer\w{0,6}|"
    r"emd|correlation|MinkowskiEngine\w{0,10}|_raymarching|lltm|knn|frnn|torch_points_kernels)$"
)
_HOW = {
    "flash_attn": "pip install flash-attn --no-build-isolation",
    "flash_attn_cuda": "pip install flash-attn --no-build-isolation",
    "flash_attn_2_cuda": "pip install --force-reinstall --no-cache-dir flash-attn --no-build-isolation",
    "apex": "pip install -v --no-build-isolation . in a clone of NVIDIA/apex (apex on PyPI is another)",
    "amp_C": "build NVIDIA/apex with its CUDA extensions",
    "xformers": "pip install -U xformers",
    "triton": "pip install triton (triton-windows on Windows)",
    "causal_conv1d": "pip install causal-conv1d --no-build-isolation",
    "causal_conv1d_cuda": "pip install --force-reinstall causal-conv1d --no-build-isolation",
    "mamba_ssm": "pip install mamba-ssm --no-build-isolation",
    "selective_scan_cuda": "pip install --force-reinstall mamba-ssm --no-build-isolation",
    "spconv": "pip install spconv-cu120 (the number is that of CUDA)",
    "torch_scatter": "pip install torch-scatter -f https://data.pyg.org/whl/torch-VERSION+CUDA.html",
    "torch_sparse": "pip install torch-sparse -f https://data.pyg.org/whl/torch-VERSION+CUDA.html",
    "torch_cluster": "pip install torch-cluster -f https://data.pyg.org/whl/torch-VERSION+CUDA.html",
    "mmcv": "mim install mmcv",
    "mmcv._ext": "pip uninstall mmcv mmcv-lite, then mim install mmcv (mmcv-full for version 1)",
    "detectron2": "build it from source: pip install 'git+https://github.com/facebookresearch/detectron2.git'",
    "pytorch3d": "pip install 'git+https://github.com/facebookresearch/pytorch3d.git'",
    "bitsandbytes": "pip install -U bitsandbytes",
    "MinkowskiEngine": "build it from source against the installed torch",
    "tinycudann": "pip install git+https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch",
    "nvdiffrast": "pip install git+https://github.com/NVlabs/nvdiffrast --no-build-isolation",
    "kaolin": "install the wheel of kaolin for this torch and CUDA",
    "transformer_engine": "pip install transformer_engine[pytorch] --no-build-isolation",
    "pointnet2_ops": "build it from source: pip install pointnet2_ops_lib/ in the project",
}
_PIP_NAMES = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "pytorch_lightning": "pytorch-lightning",
    "lightning": "lightning",
    "lightning_fabric": "lightning",
    "fairseq": "fairseq",
    "omegaconf": "omegaconf",
    "hydra": "hydra-core",
    "dotenv": "python-dotenv",
    "ldm": "",
    "clip": "git+https://github.com/openai/CLIP.git",
    "whisper": "openai-whisper",
    "pkg_resources": "'setuptools<81'",
    "distutils": "setuptools",
    "dateutil": "python-dateutil",
    "segmentation_models_pytorch": "segmentation-models-pytorch",
    "efficientnet_pytorch": "efficientnet-pytorch",
    "pretrainedmodels": "pretrainedmodels",
    "torch_geometric": "torch-geometric",
    "stable_baselines3": "stable-baselines3",
    "sentence_transformers": "sentence-transformers",
    "huggingface_hub": "huggingface-hub",
}
_PACKAGES = frozenset(
    [
        "accelerate",
        "albumentations",
        "basicsr",
        "datasets",
        "deepspeed",
        "diffusers",
        "dill",
        "einops",
        "fastai",
        "fire",
        "gym",
        "gymnasium",
        "h5py",
        "ignite",
        "imageio",
        "joblib",
        "kornia",
        "librosa",
        "loguru",
        "matplotlib",
        "monai",
        "mmdet",
        "mmengine",
        "mmseg",
        "mmpose",
        "nltk",
        "numpy",
        "onnx",
        "onnxruntime",
        "open_clip",
        "optimum",
        "pandas",
        "peft",
        "psutil",
        "pycocotools",
        "ray",
        "safetensors",
        "scipy",
        "sentencepiece",
        "seaborn",
        "skorch",
        "spacy",
        "speechbrain",
        "tensorboard",
        "tensorboardX",
        "tensordict",
        "termcolor",
        "thop",
        "timm",
        "tiktoken",
        "tokenizers",
        "torch",
        "torchaudio",
        "torchmetrics",
        "torchtext",
        "torchvision",
        "tqdm",
        "transformers",
        "trimesh",
        "trl",
        "ultralytics",
        "wandb",
        "yacs",
        "apex",
        "espnet",
        "espnet2",
        "nemo",
        "catalyst",
        "allennlp",
        "pyannote",
        "tensorflow",
        "keras",
        "jax",
        "easydict",
        "ftfy",
        "regex",
        "requests",
        "six",
        "bs4",
        "tables",
        "lmdb",
        "soundfile",
        "torch_optimizer",
        "pytorch_msssim",
        "lpips",
        "facexlib",
        "gfpgan",
        "realesrgan",
    ]
)
_PYTHON2 = frozenset(
    {"cpickle", "copy_reg", "queue", "urllib2", "configparser", "stringio", "__builtin__", "commands", "imp"}
)
_OF_PYTHON = frozenset({"_bz2", "_lzma", "_ctypes", "_sqlite3", "_ssl", "_tkinter", "readline"})


def _name(told: Told) -> str:
    return (told.groups["module"] or told.groups.get("compiled", "")).strip(".")


def _is_moved(name: str) -> bool:
    """Return whether a module is not in a package that is there: else Python names the package alone."""
    return _MOVED.match(name) is not None and name not in _HOW and _COMPILED.match(name) is None


_MOVED = re.compile(r"(?:mmcv|detectron2|bitsandbytes|pytorch3d|xformers|transformer_engine)\.(?!ops\b)\w")


def when_compiled(told: Told) -> bool:
    """Return whether the missing module is one that is compiled."""
    name = _name(told)
    if told.groups["compiled"]:
        return True
    if package_of(name) == "torch" or _is_moved(name):
        return False
    known = name in _HOW or package_of(name) in _HOW or _COMPILED.match(name) is not None
    return known or _AS_CUDA.search(told.pasted.flat) is not None


def say_compiled(told: Told) -> Said:
    """Explain how this extension is installed, where that is known."""
    name = _name(told)
    how = _HOW.get(name) or _HOW.get(package_of(name), "")
    if not how:
        return Said()
    return Said(
        cause=f"{plain(name)} is compiled code (an extension for CUDA or C++) that is built for one version "
        "of torch and CUDA, and it is not installed here.",
        advice=f"Install it for this torch: {how}. To only read the weights it is not needed where the file "
        "is a state_dict: copying Python files does not replace it.",
    )


def when_library(told: Told) -> bool:
    """Return whether the missing module is of a package that pip knows."""
    name = _name(told)
    top = package_of(name)
    known = top in _PACKAGES or top in _PIP_NAMES or top in _OF_PYTHON
    return known or _is_moved(name) or top.lower() in _PYTHON2


def say_library(told: Told) -> Said:
    """Explain whether a package is not there, or there in another version."""
    name = _name(told)
    top = package_of(name)
    if top.lower() in _PYTHON2:
        return Said(
            title="The code was written for an older Python",
            cause=f"{name} is a module of Python 2 (or was removed from Python 3 since): the code, or a "
            "pickled file, is older than this Python.",
            advice="Use the Python version of the project, or a newer version of the project. Files "
            "pickled by Python 2 may need torch.load(path, encoding='latin1').",
        )
    if top in _OF_PYTHON:
        return Said(
            title="This Python was built without one of its own modules",
            cause=f"{name} belongs to Python itself, and this Python was compiled without it.",
            advice="Install Python from a distribution (apt, conda, python.org), or install the "
            "development package (libbz2-dev, liblzma-dev, libffi-dev) and build Python again.",
        )
    if _is_moved(name):
        return Said(
            title="The installed package has no such module: it is another version",
            cause=f"{plain(top)} is installed, and {plain(name)} is not in it: packages move their modules "
            "between (major) versions, and code and pickled files keep the old names.",
            advice=f"Install the version of {plain(top)} that the file or the project was made with, or "
            "import the module from where it is now. Of a file, save only the state_dict there.",
        )
    install = _PIP_NAMES.get(top, top)
    if name == top:
        return Said(
            cause=f"The package {plain(top)} is not installed in the Python that runs this program "
            "(sys.executable shows which that is).",
            advice=f"Install it there: python -m pip install {install or top}.",
        )
    return Said(
        title="A package is missing, or of another version",
        cause=f"{plain(name)} is part of the package {plain(top)}. The package is not installed here, or "
        "its version does not have this module: packages move their modules between versions, and pickled "
        "files keep the old names.",
        advice=f"Install the version of {plain(top)} that the file or the project was made with, or update "
        f"it: python -m pip install -U {install or top}.",
    )


def when_torchs(told: Told) -> bool:
    """Return whether the missing module is a part of torch."""
    return package_of(_name(told)) == "torch" and _name(told) != "torch"


def say_of_torch(told: Told) -> Said:
    """Explain whether a module of torch is gone or still to come, where that is known."""
    name = _name(told)
    gone = next(
        (since for module, since in _GONE.items() if name == module or name.startswith(f"{module}.")), ""
    )
    if gone:
        return Said(
            title="The code is older than the installed torch",
            cause=f"{name} is gone since torch {gone}: the code (or a package that it uses) was written for "
            "an older torch.",
            advice=f"Update that package or project. Or install a torch before {gone}. For torch._six: in "
            "your own code write from math import inf, and str for string_classes."
            if name.startswith("torch._six")
            else f"Update that package or project, or install a torch before {gone}.",
        )
    return Said()


_GONE = {
    "torch._six": "2.0",
    "torch.utils.ffi": "1.0",
    "torch.legacy": "1.0",
    "torch.utils.serialization": "1.0",
    "torch.utils.trainer": "1.0",
    "torch.distributed._sharded_tensor": "2.0",
    "torch.onnx.symbolic_helper": "2.10",
    "torch.utils.data.datapipes": "2.12",
}


_SCRIPTS = {"torchscript": Tied(fits="yes", here="This file is such an archive, with code of its own.")}


def tie_script(context: Context) -> Tied:
    """Report whether this file is the archive."""
    form = plain(context.checkpoint.format)
    here = f"This file ({form} format) is no TorchScript archive: the error comes from another file."
    return _SCRIPTS.get(form, Tied(fits="no", here=here))


def tie_of_module(context: Context) -> Tied:
    """Return which objects of this file come from the module that is not there."""
    module = (context.groups["module"] or context.groups.get("compiled", "")).strip(".")
    wanted = [name for name in global_names(context) if name.startswith(f"{module}.")]
    if wanted:
        here = f"This file asks for {listed(wanted)}."
        if context.checkpoint.module_class is not None:
            here += f" It is a whole pickled module, {plain(context.checkpoint.module_class)}."
        whole = context.checkpoint.module_class is not None
        return Tied(fits="yes", here=here, fix=_MODULE, finding="whole-module" if whole else "runs-code")
    here = f"This file asks for nothing from {plain(module)}: your own code, or another file, imports it."
    return Tied(fits="no", here=here)


# --- objects that are taken for others ----------------------------------------------------------------------

_BUILTIN = re.compile(
    r"nonetype|int|float|bool|str|list|tuple|set|dict|type|method|function|generator|module|"
    r"tensor|parameter|map|zip|filter|builtin_function_or_method|modulelist|dict_keys|dict_values|"
    r"property|ellipsis|namespace"
)
_NAMED_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state|torch\.load|weights|pretrain|loaded|model\[|snapshot", re.IGNORECASE
)


def tie_is_module(context: Context) -> Tied:
    """Return whether torch.load gives a whole model for this file, where the code wants a dictionary."""
    name = context.checkpoint.module_class
    if name is not None:
        here = f"This file is a whole pickled module, {plain(name)}: torch.load returns the model itself."
        return Tied(fits="yes", here=here, fix=Fix(style="module"), finding="whole-module")
    return Tied(
        fits="no", here="torch.load returns no module for this file: the error comes from another object."
    )


def tie_asks_for_paths(context: Context) -> Tied:
    """Find the paths of another system that are pickled in this file."""
    wanted = [name for name in global_names(context) if name.startswith("pathlib.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds paths: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no pathlib paths: the error comes from another file.")


def tie_holds_modules(context: Context) -> Tied:
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


def when_in_load(told: Told) -> bool:
    """Return whether torch.load was given an object that is no stream either."""
    if _STREAM.search(told.groups["type"]):
        return False
    return told.scene.step == "load" or not told.scene.has_frames


def when_of_load_state_dict(told: Told) -> bool:
    """Return whether None came from load_state_dict: the text shows the call, or only the message."""
    if not told.groups["name"]:
        return True
    return "load_state_dict" in told.pasted.flat or (
        told.groups["name"] == "eval" and not told.scene.has_frames
    )


def when_of_loaded(told: Told) -> bool:
    """Return whether the value that is indexed came from a checkpoint, as far as the line tells."""
    kind = told.groups.get("type") or told.groups.get("type2", "")
    code = told.scene.code or told.pasted.flat
    return _BUILTIN.fullmatch(kind.lower()) is None and _NAMED_CHECKPOINT.search(code) is not None


def tie_not_script(context: Context) -> Tied:
    """Return whether this file is a torch.save file, or an archive for another loader."""
    form, archive = format_of(context.checkpoint.format), context.safety.archive
    if form.torch_loads:
        return Tied(fits="yes", here="This file was written by torch.save and holds no code.", fix=_PLAIN)
    if archive is not None and archive.is_imported:
        return Tied(fits="yes", here=f"This file is {form.what}, which has no such record.", fix=_PLAIN)
    return Tied(fits="no", here=f"This file is in the {plain(form.name)} format.")


def say_operator(told: Told) -> Said:
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


def when_module_attribute(told: Told) -> bool:
    """Return whether it was torch's Module that lacks the attribute."""
    return told.scene.layer == "__getattr__"


# --- values and calls ---------------------------------------------------------------------------------------

_SEQUENCES = {"list", "tuple", "generator", "map", "zip", "batchencoding"}
_PICTURE = re.compile(r"imread|cv2|image|img", re.IGNORECASE)
_NETWORK = re.compile(r"\.group\(|re\.(?:match|search)|find\(|\.text|soup")


def say_none(told: Told) -> Said:
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


def say_sequence(told: Told) -> Said:
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


def say_whose(told: Told) -> Said:
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


def tie_root(context: Context) -> Tied:
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


def say_call(told: Told) -> Said:
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


def say_import(told: Told) -> Said:
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


# --- NumPy --------------------------------------------------------------------------------------------------


def tie_numpy(context: Context) -> Tied:
    """Return whether NumPy's objects are in this file."""
    wanted = [name for name in global_names(context) if name.startswith("numpy.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds NumPy objects: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no NumPy objects: the error comes from another file.")


_EXPECTED = re.compile(r"Expected (?P<wanted>\d{1,5}) from C header, got (?P<have>\d{1,5}) from PyObject")
_VERSIONS = re.compile(
    r"compiled against A[BP]I version (?P<wanted>\w{3,12}),? but this version of numpy is (?P<have>\w{3,12})",
    re.IGNORECASE,
)


def say_abi(told: Told) -> Said:
    """Explain whether the installed NumPy is too old or too new, where the message has both numbers."""
    sizes, versions = _EXPECTED.search(told.text), _VERSIONS.search(told.text)
    wanted, have = _numbers(sizes or versions)
    if wanted > have or "numpy._core" in told.text:
        return Said(
            title="The installed NumPy is too old for compiled code",
            cause="A package with compiled code was built for a newer NumPy than the one that is installed.",
            advice="python -m pip install -U numpy. If something else needs the old NumPy, install a version "
            "of the package from that time instead.",
        )
    return Said()


def _numbers(match: re.Match[str] | None) -> tuple[int, int]:
    try:
        return (0, 0) if match is None else (int(match["wanted"], 0), int(match["have"], 0))
    except ValueError:
        return 0, 0
