"""Messages about modules that cannot be imported: compiled ones, packages, parts of torch, own code."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import global_names
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.pickles.values import package_of

_MODULE = Fix(style="module")
_NO_MODULE = (
    r"(?:No module named:? ?|packages that were not found in your environment: ?)['\"]?"
    r"(?P<module>[\w.]{1,120})"
)
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
_PIP = {
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


def _is_compiled(told: Told) -> bool:
    name = _name(told)
    if told.groups["compiled"]:
        return True
    if package_of(name) == "torch" or _is_moved(name):
        return False
    known = name in _HOW or package_of(name) in _HOW or _COMPILED.match(name) is not None
    return known or _AS_CUDA.search(told.pasted.flat) is not None


def _compiled(told: Told) -> Said:
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


def _is_library(told: Told) -> bool:
    name = _name(told)
    top = package_of(name)
    return _is_moved(name) or top in _PACKAGES or top in _PIP or top.lower() in _PYTHON2 or top in _OF_PYTHON


def _library(told: Told) -> Said:
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
    install = _PIP.get(top, top)
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


def _is_torchs(told: Told) -> bool:
    return package_of(_name(told)) == "torch" and _name(told) != "torch"


def _of_torch(told: Told) -> Said:
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


def _script(context: Context) -> Tied:
    """Report whether this file is the archive."""
    form = plain(context.checkpoint.format)
    here = f"This file ({form} format) is no TorchScript archive: the error comes from another file."
    return _SCRIPTS.get(form, Tied(fits="no", here=here))


def _of_module(context: Context) -> Tied:
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


MODULE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="torchscript-file",
        title="The file is a TorchScript model, and was read as a pickle",
        pattern=r"No module named:? ?['\"]?__torch__|on <module ['\"]?__torch__",
        cause="__torch__ is no package: it stands for the code that a TorchScript archive (written by "
        "torch.jit.save) has in it. Only torch.jit.load reads that; an older torch.load takes the archive "
        "for an ordinary checkpoint.",
        advice="Read it with torch.jit.load(path, map_location='cpu'); its weights are model.state_dict(). "
        "For training, use the checkpoint that torch.save wrote.",
        tie=_script,
    ),
    ErrorKind(
        id="extension-missing",
        title="A compiled extension is not installed",
        pattern=rf"{_NO_MODULE}|(?:cannot import name|name) "
        rf"'(?P<compiled>_C|_ext|\w{{1,40}}_(?:cuda|ext|cpp))'",
        cause="The module is compiled code (an extension for CUDA or C++), which belongs to a project or a "
        "package and is built for one version of torch and CUDA. It was not built or installed here, or "
        "for another Python.",
        advice="Build it as the project says (usually python setup.py install, pip install . or make.sh in "
        "its ops folder), with the torch that will use it, or install a wheel for this torch and CUDA. "
        "Copying Python files does not replace it.",
        tie=_of_module,
        when=_is_compiled,
        say=_compiled,
    ),
    ErrorKind(
        id="torch-module-gone",
        title="The installed torch does not have that module",
        pattern=_NO_MODULE,
        cause="The module belongs to torch itself, in another version: it was removed since (the code is "
        "older than torch), or it came later (the code, or the file, is newer).",
        advice="Use the version of torch that the project asks for, or update the project. If a file asks "
        "for it, update torch to the version that wrote the file.",
        tie=_of_module,
        when=_is_torchs,
        say=_of_torch,
    ),
    ErrorKind(
        id="library-missing",
        title="A package is not installed",
        pattern=_NO_MODULE,
        cause="The package is not installed in the Python that runs this program.",
        advice="Install it there: python -m pip install and its name.",
        tie=_of_module,
        when=_is_library,
        say=_library,
    ),
    ErrorKind(
        id="module-missing",
        title="The file needs Python code that cannot be imported here",
        pattern=_NO_MODULE,
        finding="whole-module",
        cause="A pickled object names the module that defines its class, and Python imports that module "
        "while loading. The file was saved in a project that has such a module; here it cannot be found, "
        "or another module of that name is found first.",
        advice="Run the script in the project that the file comes from, or add that folder with "
        "sys.path.insert(0, folder). Better: load it there once and save model.state_dict().",
        tie=_of_module,
    ),
)
