"""Whose code a frame of a traceback is: the user's, torch's, a framework's or Python's own."""

from __future__ import annotations

import re
from typing import Literal

from inspector.records import dataclass

Owner = Literal["yours", "torch", "framework", "python"]

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?:[^/]{1,200}\.egg/)?(?P<package>[^/]{1,200})")
# What stands below torch's folder, in a build from source or a path that was shortened.
_TORCH = re.compile(
    r"(?:.*/)?(?P<package>torch)/(?:nn|optim|utils|cuda|autograd|distributed|jit|amp|mps|xpu|_dynamo|_inductor|"
    r"_functorch|fx|package|hub\.py|serialization\.py|storage\.py|functional\.py|_utils\.py|_tensor\.py|"
    r"tensor\.py|_ops\.py|random\.py|multiprocessing|onnx|export|quantization|ao|nested|sparse|_refs|_prims|"
    r"_weights_only_unpickler\.py|_decomp|_subclasses)(?:/|$)"
)
_FRAMEWORKS = (
    "accelerate|transformers|pytorch_lightning|lightning|lightning_fabric|fairseq|ultralytics|mmcv|mmengine|"
    "mmdet|detectron2|fastai|diffusers|peft|deepspeed|apex|ignite|timm|safetensors|bitsandbytes|torchvision|"
    "torchaudio|monai|sentence_transformers|flash_attn|xformers|huggingface_hub|catalyst|allennlp|espnet2?|"
    "speechbrain|stable_baselines3|torch_geometric|torchmetrics|numpy|joblib"
)
_FRAMEWORK = re.compile(rf"(?:.*/)?(?P<package>{_FRAMEWORKS})/(?:[^/]{{1,80}}/){{0,8}}[^/]{{1,80}}\.py$")
_OWN = re.compile(
    r"<frozen |<string>$|.*/lib/python\d(?:\.\d{1,2})?/|.*/(?:python|anaconda|miniconda|envs)[^/]{0,40}/lib/|"
    r"(?:.*/)?(?:runpy|pickle|threading|zipfile|_pickle)\.py$|(?:.*/)?multiprocessing/",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """What a path says.

    Attributes:
        owner: Whose code it is; `python` is Python's own.
        package: The package that it belongs to, such as `torch`; empty for the user's own code.
        place: The path from the package on, such as `torch/optim/adam.py`; else its last two steps.
    """

    owner: Owner
    package: str
    place: str


def locate(path: str) -> Located:
    """Return whose code a file is, by its path."""
    steps = path.replace("\\", "/")
    match = _INSTALLED.match(steps) or _TORCH.match(steps) or _FRAMEWORK.match(steps)
    if match is not None:
        package = match["package"]
        owner: Owner = "torch" if package == "torch" else "framework"
        return Located(
            owner=owner, package=package.removesuffix(".py"), place=steps[match.start("package") :]
        )
    last = "/".join(steps.split("/")[-2:])
    return Located(owner="python" if _OWN.match(steps) else "yours", package="", place=last)
