"""Who opens a file, on which machine, for what; and what the program's first answer must be.

Each row makes its files with torch, runs one command as that person would, and looks at the first thing that
they read: of `check` the lines down to the first fix, of other commands all they print. A sentence counts by
what it says, so rows name words that must or must not stand there.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn

from inspector.cli import main as run_program
from tests.torch.situation_files import (
    Evil,
    apex_optimizer,
    gan,
    holds,
    is_absent,
    is_safetensors,
    is_smaller,
    lightning,
    net,
    pickled,
    safetensors_file,
    saved,
    sharded,
    split,
    state_dict,
    tied,
    traced,
    trained,
    training,
    truncated,
    unzipped,
    whole_module,
    with_average,
    with_buffer,
    with_loss,
    written,
)

PROFILES = Path(__file__).parents[1] / "data" / "profiles"
Story = Literal["handed a file", "resumes elsewhere", "publishes", "on a cluster"]
STORIES: tuple[Story, ...] = ("handed a file", "resumes elsewhere", "publishes", "on a cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One row.

    Attributes:
        story: Who it is, see `STORIES`.
        has: What the file is, where it is opened, and what for.
        make: Writes the files into the working folder.
        run: The command, without the program's name; TEXT stands for `text`, PROFILES for the machines.
        text: An error text that is pasted, or comes on standard input.
        code: The exit code.
        says: Patterns that the first answer matches, its lines joined.
        fix: A pattern that the first fix matches; empty where none is looked at.
        also: Patterns that something further down matches.
        never: Patterns that nothing in the whole output matches.
        then: Looks at what the command wrote; None where it writes nothing.
    """

    story: Story
    has: str
    make: Callable[[], object]
    run: str
    text: str = ""
    code: int = 0
    says: tuple[str, ...] = ()
    fix: str = ""
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    then: Callable[[], object] | None = None


NO_CUDA = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
TWO_DEVICES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:0 and cpu!"
)
IN_ADAM = f"""  File "train.py", line 18, in <module>
    optimizer.step()
  File "/opt/lib/python3.11/site-packages/torch/optim/adam.py", line 432, in _single_tensor_adam
    exp_avg.lerp_(grad, 1 - beta1)
{TWO_DEVICES}"""
RESUMING = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
optimizer = torch.optim.Adam(model.parameters())
checkpoint = torch.load('run.pt')
model.load_state_dict(checkpoint['model'])
optimizer.load_state_dict(checkpoint['optimizer'])
model.to('cuda')
model(torch.randn(4, 2, device='cuda')).sum().backward()
optimizer.step()
"""
IN_LOSS = f"""  File "train.py", line 31, in <module>
    loss = criterion(output, target)
  File "/opt/lib/python3.11/site-packages/torch/nn/modules/loss.py", line 821, in forward
    return F.binary_cross_entropy_with_logits(
{TWO_DEVICES}"""
MODULE_NAMES = """RuntimeError: Error(s) in loading state_dict for Sequential:
    Missing key(s) in state_dict: "0.weight", "0.bias", "1.weight", "1.bias".
    Unexpected key(s) in state_dict: "module.0.weight", "module.0.bias", "module.1.weight"."""
WHOLE_GIVEN = """RuntimeError: Error(s) in loading state_dict for Sequential:
    Missing key(s) in state_dict: "0.weight", "0.bias", "1.weight", "1.bias".
    Unexpected key(s) in state_dict: "epoch", "model", "optimizer", "scheduler", "rng_state"."""
SIZES = """RuntimeError: Error(s) in loading state_dict for Sequential:
    size mismatch for 0.weight: copying a param with shape torch.Size([3, 2]) from checkpoint,
    the shape in current model is torch.Size([7, 2])."""
GROUPS = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
HALF = "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same"
IN_PICKLE = f"""  File "/opt/lib/python3.11/site-packages/joblib/numpy_pickle.py", line 658, in load
    obj = _unpickle(fobj, filename, mmap_mode)
  File "/opt/lib/python3.11/site-packages/torch/storage.py", line 530, in _load_from_bytes
    return torch.load(io.BytesIO(b), weights_only=False)
{NO_CUDA}"""
MAPPED_TO_CPU = r"torch\.load\(['\"]{}['\"], map_location=['\"]cpu['\"]"
MAPPED = r"torch\.load\(['\"]{}['\"], map_location=.*{}"
LITERAL = (r"\bFILE\b", r"\bOUT\b")


def to_cpu(name: str) -> str:
    return MAPPED_TO_CPU.format(re.escape(name))


def to(name: str, device: str) -> str:
    return MAPPED.format(re.escape(name), re.escape(device))


# --- handed a file ------------------------------------------------------------------------------------------

HANDED: tuple[Situation, ...] = (
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; no GPU",
        make=state_dict("cuda:0"),
        run="check best.pth --target cpu",
        code=1,
        says=("DOES NOT LOAD", "Attempting to deserialize", "cuda"),
        fix=to_cpu("best.pth"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; no GPU; the traceback is pasted",
        make=state_dict("cuda:0"),
        run="check best.pth --target cpu --error-text TEXT",
        text=NO_CUDA,
        code=1,
        says=("saved on cuda:0", "map_location"),
        fix=to_cpu("best.pth"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:1; one GPU",
        make=state_dict("cuda:1"),
        run="check best.pth --target cuda",
        code=1,
        says=("DOES NOT LOAD", "CUDA device 1"),
        fix=to("best.pth", "cuda:0"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="layers saved on cuda:0 to cuda:3; one GPU",
        make=split(("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        run="check big.pt --target cuda",
        code=1,
        says=("DOES NOT LOAD",),
        fix=r"torch\.load\(['\"]big\.pt['\"], map_location=(?:['\"](?:cuda:0|cpu)['\"]|\{.*cuda:3)",
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; one GPU",
        make=state_dict("cuda:0"),
        run="check best.pth --target cuda",
        says=("LOADS on", "SAFE"),
        never=("DOES NOT", "different devices"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on the CPU; one GPU",
        make=state_dict("cpu"),
        run="check best.pth --target cuda",
        says=("LOADS on", "SAFE"),
        never=("DOES NOT", "map_location"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on the CPU; someone else's traceback is pasted",
        make=state_dict("cpu"),
        run="check best.pth --target cpu --error-text TEXT",
        text=NO_CUDA,
        says=("No tensor of this file is on a cuda device", "another file"),
        never=("=> torch.load", "--map", "What to do: Load it with map_location"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on mps by a Mac; one NVIDIA GPU",
        make=state_dict("mps"),
        run="check best.pth --target cuda",
        code=1,
        says=("DOES NOT LOAD", "mps"),
        fix=to("best.pth", "cuda:0"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; a Mac",
        make=state_dict("cuda:0"),
        run="check best.pth --target mps",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to("best.pth", "mps"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved on an Ascend NPU; no GPU",
        make=state_dict("npu:0"),
        run="check best.pth --target cpu",
        code=1,
        says=("DOES NOT LOAD", "tagged with npu:0"),
        fix=to_cpu("best.pth"),
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="weights saved from DataParallel; names do not fit",
        make=saved(lambda _: nn.DataParallel(net()).state_dict(), "best.pth"),
        run="check best.pth --target cpu --error-text TEXT",
        text=MODULE_NAMES,
        says=("module\\.", "prefix"),
        never=("another model",),
    ),
    Situation(
        story="handed a file",
        has="a training file given to load_state_dict as it is",
        make=training("cpu"),
        run="check run.pt --target cpu --error-text TEXT",
        text=WHOLE_GIVEN,
        says=(r"load_state_dict\(checkpoint\[['\"]model['\"]\]\)",),
    ),
    Situation(
        story="handed a file",
        has="weights for another number of classes",
        make=state_dict("cpu"),
        run="check best.pth --target cpu --error-text TEXT",
        text=SIZES,
        says=("3 . 2 here, 7 . 2 in your model",),
        never=("1 tensor of this file have",),
    ),
    Situation(
        story="handed a file",
        has="weights; the code calls model.eval() on what torch.load returned",
        make=state_dict("cpu"),
        run="check best.pth --target cpu --error-text TEXT",
        text="AttributeError: 'collections.OrderedDict' object has no attribute 'eval'",
        says=("dictionary", "load_state_dict"),
    ),
    Situation(
        story="handed a file",
        has="a state dict; the code asks for checkpoint['state_dict']",
        make=state_dict("cpu"),
        run="check best.pth --target cpu --error-text TEXT",
        text="    model.load_state_dict(checkpoint['state_dict'])\nKeyError: 'state_dict'",
        says=(r"load_state_dict\(checkpoint\)|at its top|is the state dict|are at the root",),
    ),
    Situation(
        story="handed a file",
        has="half-precision weights on a GPU; float32 input",
        make=saved(lambda saving: saving.on("cuda:0", net().half().state_dict()), "best.pth"),
        run="check best.pth --target cuda --error-text TEXT",
        text=HALF,
        says=("dtype|precision", r"\.half\(\)|\.float\(\)|autocast"),
        never=("on different devices", "CPU tensor and a GPU tensor"),
    ),
    Situation(
        story="handed a file",
        has="a whole model saved on cuda:0, its code elsewhere; no GPU",
        make=whole_module("cuda:0"),
        run="check model.pt --target cpu",
        code=1,
        says=("DOES NOT LOAD", "models.yolo.Model"),
        fix=r"map_location=['\"]cpu['\"].*weights_only=(True|False)|snippet model\.pt|remap model\.pt",
        never=LITERAL,
    ),
    Situation(
        story="handed a file",
        has="a whole model; its code is not there",
        make=whole_module("cpu"),
        run="check model.pt --target cpu --error-text TEXT",
        text="ModuleNotFoundError: No module named 'models'",
        code=1,
        says=("models.yolo.Model",),
    ),
    Situation(
        story="handed a file",
        has="weights with a NumPy number beside them; torch 2.6 or newer",
        make=saved(lambda _: {"model": net().state_dict(), "best": np.float64(0.5)}, "best.pth"),
        run="check best.pth --target cpu",
        code=1,
        says=("numpy", "weights_only|list of names|allow"),
        fix=r"safe_globals|weights_only=False|--only weights|snippet best\.pth",
        never=("DANGEROUS", *LITERAL),
    ),
    Situation(
        story="handed a file",
        has="weights with the program's options (argparse.Namespace) beside them",
        make=saved(lambda _: {"model": net().state_dict(), "args": Namespace(lr=0.1)}, "best.pth"),
        run="check best.pth --target cpu",
        code=1,
        says=("argparse.Namespace",),
        fix=r"safe_globals|weights_only=False|--only weights|snippet best\.pth",
        never=("DANGEROUS", *LITERAL),
    ),
    Situation(
        story="handed a file",
        has="a file from a stranger that runs a command when loaded",
        make=saved(lambda _: {"model": net().state_dict(), "x": Evil()}, "best.pth"),
        run="check best.pth --target cpu",
        code=1,
        says=("DANGEROUS", r"system"),
        never=(r"=> torch\.load\([^)]*weights_only=False",),
    ),
    Situation(
        story="handed a file",
        has="half of a download",
        make=truncated,
        run="check best.pth --target cpu",
        code=1,
        says=("truncated|incomplete|end of the file is missing|cut|[Ff]etch",),
        never=("programs read different things",),
    ),
    Situation(
        story="handed a file",
        has="a web page instead of the file",
        make=written("best.pth", b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"),
        run="check best.pth --target cpu",
        code=3,
        says=("web page",),
    ),
    Situation(
        story="handed a file",
        has="a Git LFS pointer instead of the file",
        make=written(
            "best.pth",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 102400\n",
        ),
        run="check best.pth --target cpu",
        code=3,
        says=("LFS", "git lfs pull"),
    ),
    Situation(
        story="handed a file",
        has="a file of no bytes",
        make=written("best.pth", b""),
        run="check best.pth --target cpu",
        code=3,
        says=("empty|no bytes",),
    ),
    Situation(
        story="handed a file",
        has="a folder: the browser unpacked the file",
        make=unzipped,
        run="check best.pth --target cpu --error-text TEXT",
        text="IsADirectoryError: [Errno 21] Is a directory: 'best.pth'",
        code=3,
        says=("folder", "zip|unpack"),
    ),
    Situation(
        story="handed a file",
        has="a folder: the file manager unpacked the file",
        make=unzipped,
        run="check best.pth --target cpu",
        code=3,
        says=("unpacked checkpoint", r"zip -0 -r packed\.pth whole"),
    ),
    Situation(
        story="handed a file",
        has="data.pkl of a checkpoint that was unpacked",
        make=unzipped,
        run="check best.pth/whole/data.pkl --target cpu",
        code=3,
        says=("part of an unpacked checkpoint", "folder"),
        never=("program that wrote it", "not written by torch"),
    ),
    Situation(
        story="handed a file",
        has="a checkpoint compressed with gzip",
        make=lambda: (
            state_dict("cpu", _use_new_zipfile_serialization=False)(),
            Path("best.pth").write_bytes(gzip.compress(Path("best.pth").read_bytes())),
        ),
        run="check best.pth --target cpu",
        code=1,
        says=("gzip",),
    ),
    Situation(
        story="handed a file",
        has="a safetensors file",
        make=safetensors_file,
        run="check model.safetensors --target cpu",
        says=("LOADS", r"load_file"),
    ),
    Situation(
        story="handed a file",
        has="features pickled with joblib on a GPU; no GPU",
        make=pickled,
        run="check features.pkl --target cpu --error-text TEXT",
        text=IN_PICKLE,
        code=1,
        says=("joblib|pickle",),
        never=(r"=> torch\.load\(", "What to do: Load it with map_location"),
    ),
    Situation(
        story="handed a file",
        has="float64 weights; a Mac",
        make=saved(lambda saving: saving.on("cuda:0", net().double().state_dict()), "best.pth"),
        run="check best.pth --target mps",
        code=1,
        says=("float64|DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        never=(r"cuda:0=mps", r"map_location=['\"]mps"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on the meta device: there are none",
        make=saved(lambda _: net().to("meta").state_dict(), "best.pth"),
        run="check best.pth --target cuda",
        says=("LOADS on", "have no data", "no values", "Cannot copy out of meta tensor"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; a GTX 1080, which this torch has no kernels for",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/gpu-too-old-1080.json",
        says=("no code for the old GPU", "no kernel image is available", "whl/cu126"),
    ),
    Situation(
        story="handed a file",
        has="a model that needs apex",
        make=apex_optimizer,
        run="check run.pt --target cpu",
        code=1,
        says=("is_available\\(\\) is False",),
        also=("apex",),
        never=("sys.path",),
    ),
    Situation(
        story="handed a file",
        has="a traced model that fails after .to('cuda')",
        make=traced,
        run="check traced.pt --target cuda --error-text TEXT",
        text="RuntimeError: The following operation failed in the TorchScript interpreter.\n"
        "Traceback of TorchScript, serialized code (most recent call last):\n"
        '  File "code/__torch__.py", line 7, in forward\n'
        f'    _0 = torch.zeros([2], device=torch.device("cpu"))\n{TWO_DEVICES}',
        code=1,
        says=("[Tt]raced|TorchScript", "trace it|[Tt]race .*again|torch.jit.script"),
    ),
    Situation(
        story="handed a file",
        has="a model for llama.cpp",
        make=written("model.bin", b"GGUF" + bytes(64)),
        run="check model.bin --target cpu",
        code=3,
        says=("GGUF", "llama"),
    ),
    Situation(
        story="handed a file",
        has="weights of Keras",
        make=written("model.pth", b"\x89HDF\r\n\x1a\n" + bytes(64)),
        run="check model.pth --target cpu",
        code=3,
        says=("HDF5",),
    ),
    Situation(
        story="handed a file",
        has="a path with a typing error",
        make=state_dict("cpu"),
        run="check bset.pth --target cpu",
        code=3,
        says=("no such file|does not exist|not there", "bset.pth"),
    ),
    Situation(
        story="handed a file",
        has="a traceback about two dtypes, and a bfloat16 file",
        make=saved(lambda _: net().bfloat16().state_dict(), "best.pth"),
        run="check best.pth --target cpu --error-text TEXT",
        text="RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16",
        says=("dtype|precision", "bfloat16"),
    ),
    Situation(
        story="handed a file",
        has="weights on the GPU; the code calls .numpy()",
        make=state_dict("cuda:0"),
        run="check best.pth --target cuda --error-text TEXT",
        text="TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
        "tensor to host memory first.",
        says=(r"\.cpu\(\)",),
    ),
    Situation(
        story="handed a file",
        has="a GPU that this torch has no kernels for",
        make=state_dict("cuda:0"),
        run="check best.pth --target cuda --error-text TEXT",
        text="RuntimeError: CUDA error: no kernel image is available for execution on the device",
        says=("compute capability|architecture|built for", "[Ii]nstall"),
        never=("--map",),
    ),
    Situation(
        story="handed a file",
        has="map_location=0",
        make=state_dict("cuda:0"),
        run="check best.pth --target cuda --error-text TEXT",
        text="    result = map_location(storage, location)\nTypeError: 'int' object is not callable",
        says=("map_location", "'cuda:0'"),
    ),
    Situation(
        story="handed a file",
        has="a compiled extension that is not there",
        make=state_dict("cuda:0"),
        run="check best.pth --target cuda --error-text TEXT",
        text="ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        says=("compiled|extension|built", "[Ii]nstall|build"),
        never=("sys.path",),
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; a Windows laptop with an RTX 4070 and pip's torch for the CPU",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/cpu-only-windows.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("built without CUDA", "Install a CUDA build"),
    ),
    Situation(
        story="handed a file",
        has="weights saved on cuda:0; CUDA_VISIBLE_DEVICES is empty in this shell",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/hidden-by-empty-variable.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("CUDA_VISIBLE_DEVICES",),
    ),
)

# --- resumes elsewhere --------------------------------------------------------------------------------------

RESUMES: tuple[Situation, ...] = (
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; no GPU",
        make=training("cuda:0"),
        run="check run.pt --target cpu",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("run.pt"),
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; the code to resume on a GPU",
        make=training("cuda:0"),
        run="snippet run.pt --target cuda --style resume",
        says=(r"model\.to\(.*optimizer\.load_state_dict", r"scheduler\.load_state_dict", r"set_rng_state"),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on the CPU; the code to resume on a GPU moves the model",
        make=training("cpu"),
        run="snippet run.pt --target cuda --style resume",
        says=(r"model\.to\(.*cuda.*optimizer\.load_state_dict",),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; a Mac",
        make=training("cuda:0"),
        run="check run.pt --target mps",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to("run.pt", "mps") + "|" + to_cpu("run.pt"),
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; an Intel GPU",
        make=training("cuda:0"),
        run="check run.pt --target xpu",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to("run.pt", "xpu") + "|" + to_cpu("run.pt"),
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; an AMD GPU, which torch calls cuda",
        make=training("cuda:0"),
        run="check run.pt --target rocm",
        says=("LOADS on",),
        never=("DOES NOT",),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:1; a machine with two GPUs",
        make=training("cuda:1"),
        run="check run.pt --target 2xcuda",
        says=("LOADS on",),
        never=("DOES NOT",),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:1; the second GPU is wanted",
        make=training("cuda:1"),
        run="check run.pt --target cuda:1",
        says=("LOADS on", "cuda:1"),
        never=("DOES NOT", "1 NVIDIA GPU:"),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; the second of two GPUs is wanted",
        make=training("cuda:0"),
        run="snippet run.pt --target 2xcuda:1 --style resume",
        says=("cuda:1",),
        never=(r"to\(['\"]cuda:0",),
    ),
    Situation(
        story="resumes elsewhere",
        has="layers on cuda:0 to cuda:3; two GPUs",
        make=split(("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        run="check big.pt --target 2xcuda",
        code=1,
        says=("DOES NOT LOAD", "CUDA device [23]"),
        fix=r"torch\.load\(['\"]big\.pt['\"]",
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="a state dict spread over two GPUs; a machine with both",
        make=split(("cuda:0", "cuda:1")),
        run="check big.pt --target 2xcuda",
        says=("LOADS on",),
        never=("can stop", "stops with"),
    ),
    Situation(
        story="resumes elsewhere",
        has="the random state saved on the GPU with the rest; a GPU",
        make=training("cuda:0", with_rng=True),
        run="check run.pt --target cuda",
        says=("LOADS on", "[Rr]andom"),
    ),
    Situation(
        story="resumes elsewhere",
        has="the random state on the GPU; set_rng_state refuses it",
        make=training("cuda:0", with_rng=True),
        run="check run.pt --target cuda --error-text TEXT",
        text="TypeError: RNG state must be a torch.ByteTensor",
        says=("rng_state", r"\.cpu\(\)|map_location"),
    ),
    Situation(
        story="resumes elsewhere",
        has="optimizer.step() finds two devices after resuming",
        make=training("cuda:0"),
        run="check run.pt --target cuda --error-text TEXT",
        text=IN_ADAM,
        says=("optimizer", r"model\.to|move"),
        never=("--map", "batch was not moved"),
    ),
    Situation(
        story="resumes elsewhere",
        has="a loss with pos_weight finds two devices",
        make=saved(with_loss, "run.pt"),
        run="check run.pt --target cuda --error-text TEXT",
        text=IN_LOSS,
        says=(r"criterion\.to\(|loss",),
        never=(r"--map [^ ]*criterion", r"=> .*criterion.*=cuda"),
    ),
    Situation(
        story="resumes elsewhere",
        has="a loss's state on the CPU beside a model on the GPU; a GPU",
        make=saved(with_loss, "run.pt"),
        run="check run.pt --target cuda",
        says=("LOADS on",),
        never=("can stop", "--map"),
    ),
    Situation(
        story="resumes elsewhere",
        has="a GAN trained on two GPUs; a machine with both",
        make=saved(gan, "gan.pt"),
        run="check gan.pt --target 2xcuda",
        says=("LOADS on",),
        never=("model lies on 2", "can stop"),
    ),
    Situation(
        story="resumes elsewhere",
        has="a GAN; the code to load it",
        make=saved(gan, "gan.pt"),
        run="snippet gan.pt --target cuda",
        says=("netG", "netD"),
    ),
    Situation(
        story="resumes elsewhere",
        has="an average of the weights on the CPU beside the model on the GPU; a GPU",
        make=saved(with_average, "run.pt"),
        run="check run.pt --target cuda",
        says=("LOADS on",),
        never=("can stop",),
    ),
    Situation(
        story="resumes elsewhere",
        has="a replay buffer on the CPU beside a policy on the GPU; a GPU",
        make=saved(with_buffer, "agent.pt"),
        run="check agent.pt --target cuda",
        says=("LOADS on",),
        never=("model lies on", "can stop"),
    ),
    Situation(
        story="resumes elsewhere",
        has="an optimizer of other parameters",
        make=training("cpu"),
        run="check run.pt --target cpu --error-text TEXT",
        text=GROUPS,
        says=("1 group of 4 parameters",),
    ),
    Situation(
        story="resumes elsewhere",
        has="class weights on cuda:1, used as they are loaded; one GPU",
        make=saved(
            lambda saving: {
                "model": saving.on("cuda:0", net().state_dict()),
                "class_weights": saving.on("cuda:1", torch.ones(3)),
            },
            "run.pt",
        ),
        run="check run.pt --target cuda",
        code=1,
        says=("DOES NOT LOAD", "CUDA device 1"),
        fix=r"torch\.load\(['\"]run\.pt['\"]",
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="a Lightning checkpoint of a GPU; no GPU",
        make=saved(lightning, "last.ckpt"),
        run="check last.ckpt --target cpu",
        code=1,
        says=("DOES NOT LOAD",),
        fix=r"map_location=['\"]cpu['\"]",
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="a Lightning checkpoint of a GPU; the code for the CPU",
        make=saved(lightning, "last.ckpt"),
        run="snippet last.ckpt --target cpu --style lightning",
        says=(r"load_from_checkpoint\(", r"map_location=['\"]cpu['\"]"),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:1, the random state on the CPU, where it has to stay; one GPU",
        make=training("cuda:1"),
        run="check run.pt --target cuda",
        code=1,
        says=("DOES NOT LOAD",),
        fix=r"torch\.load\(['\"]run\.pt['\"], map_location=(?:\{['\"]cuda:1|['\"]cpu['\"])",
        never=LITERAL,
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; one card of 24 GB",
        make=training("cuda:0"),
        run="check run.pt --target cuda@24gb",
        says=("LOADS on",),
    ),
    Situation(
        story="resumes elsewhere",
        has="the script that loads on the CPU; which line fails?",
        make=lambda: (
            training("cuda:0")(),
            Path("train.py").write_text(
                "import torch\nfrom torch import nn\n"
                "model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))\n"
                "checkpoint = torch.load('run.pt')\nmodel.load_state_dict(checkpoint['model'])\n",
                encoding="utf-8",
            ),
        ),
        run="check run.pt --target cpu --script train.py",
        code=1,
        says=("Line 4 fails", r"\+checkpoint = torch\.load\('run\.pt', map_location=\"cpu\"\)"),
    ),
    Situation(
        story="resumes elsewhere",
        has="a script that moves the model after the optimizer is loaded; a GPU",
        make=lambda: (training("cuda:0")(), Path("train.py").write_text(RESUMING, encoding="utf-8")),
        run="check run.pt --target cuda --script train.py",
        code=1,
        says=(
            r"Line 10 fails\. 10: optimizer\.step\(\)",
            r"\+model\.to\('cuda'\) optimizer\.load_state_dict",
        ),
        never=("batch was not moved",),
    ),
    Situation(
        story="resumes elsewhere",
        has="transformers' optimizer.pt, saved from a GPU; a GPU",
        make=saved(lambda _: trained()[1], "optimizer.pt"),
        run="check optimizer.pt --target cuda",
        says=("LOADS on",),
        never=("can stop",),
    ),
    Situation(
        story="resumes elsewhere",
        has="weights saved on cuda:0; a driver older than torch's CUDA",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/driver-too-old-470.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("driver is too old",),
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:1; one of two cards works",
        make=training("cuda:1"),
        run="check run.pt --target PROFILES/works-one-of-two-3090.json",
        code=1,
        says=("DOES NOT LOAD", "CUDA device 1"),
        fix=r"torch\.load\(['\"]run\.pt['\"], map_location=(?:\{['\"]cuda:1|['\"]cpu['\"])",
    ),
    Situation(
        story="resumes elsewhere",
        has="training on cuda:0; an M2",
        make=training("cuda:0"),
        run="check run.pt --target PROFILES/works-apple-m2.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=r"torch\.load\(['\"]run\.pt['\"], map_location=(?:\{['\"]cuda:0['\"]: ['\"]mps|['\"]cpu['\"])",
    ),
)

# --- publishes ----------------------------------------------------------------------------------------------

PUBLISHES: tuple[Situation, ...] = (
    Situation(
        story="publishes",
        has="training on cuda:0; the weights alone, on the CPU",
        make=training("cuda:0"),
        run="remap run.pt -o public.pth --only weights --map *=cpu",
        then=holds("public.pth", {"cpu"}, "optimizer", "rng_state"),
    ),
    Situation(
        story="publishes",
        has="training on cuda:0; as safetensors",
        make=training("cuda:0"),
        run="remap run.pt -o public.safetensors --format safetensors",
        then=is_safetensors("public.safetensors"),
    ),
    Situation(
        story="publishes",
        has="a slice of a large tensor, saved with all of it",
        make=saved(lambda _: {"w": torch.zeros(1_000_000)[:64]}, "slice.pt"),
        run="check slice.pt --target cpu",
        says=("LOADS on", "4.0 MB are stored that no tensor uses", r"--compact|clone\(\)"),
    ),
    Situation(
        story="publishes",
        has="a slice of a large tensor; without what nothing views",
        make=saved(lambda _: {"w": torch.randn(4096)[:64]}, "slice.pt"),
        run="remap slice.pt -o small.pt --compact",
        then=is_smaller("small.pt", than="slice.pt"),
    ),
    Situation(
        story="publishes",
        has="options beside the weights; provably without code",
        make=saved(lambda _: {"model": net().state_dict(), "args": Namespace(lr=0.1)}, "best.pth"),
        run="remap best.pth -o public.pth --only weights",
        then=holds("public.pth", {"cpu"}, "args"),
    ),
    Situation(
        story="publishes",
        has="tied weights; as safetensors",
        make=saved(tied, "lm.pt"),
        run="remap lm.pt -o lm.safetensors --format safetensors",
        then=is_safetensors("lm.safetensors"),
    ),
    Situation(
        story="publishes",
        has="tied weights; safetensors refuses them",
        make=saved(tied, "lm.pt"),
        run="check lm.pt --target cpu --error-text TEXT",
        text="RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk and "
        "potential differences when loading them again: [{'lm_head.weight', 'wte.weight'}].",
        says=("wte.weight|lm_head.weight",),
    ),
    Situation(
        story="publishes",
        has="the weights alone; are they free of code?",
        make=state_dict("cpu"),
        run="check best.pth --target cpu",
        says=("SAFE: weights only",),
    ),
    Situation(
        story="publishes",
        has="a file saved inside DataParallel; plain names",
        make=saved(lambda _: nn.DataParallel(net()).state_dict(), "best.pth"),
        run="remap best.pth -o plain.pth --format state-dict --strip-prefix module.",
        then=holds("plain.pth", {"cpu"}, "module.0.weight"),
    ),
    Situation(
        story="publishes",
        has="float64 weights on cuda:0; a copy for a Mac",
        make=saved(lambda saving: saving.on("cuda:0", net().double().state_dict()), "best.pth"),
        run="remap best.pth -o mac.pth --map cuda:0=mps",
        code=2,
        says=("float64", "mps"),
    ),
)

# --- on a cluster -------------------------------------------------------------------------------------------


def _json(look: Callable[[dict[str, object]], bool]) -> Callable[[str], bool]:
    return lambda text: look(json.loads(text))


CLUSTER: tuple[Situation, ...] = (
    Situation(
        story="on a cluster",
        has="weights of cuda:3; a node with one GPU; as JSON",
        make=state_dict("cuda:3"),
        run="check best.pth --target cuda --json",
        code=1,
        says=('"loads": ?false', "CUDA device 3", '"id": ?"cuda-index-out-of-range"'),
    ),
    Situation(
        story="on a cluster",
        has="what is in the file, as JSON",
        make=training("cuda:0"),
        run="show run.pt --json",
        says=('"device": ?"cuda:0"', '"role": ?"optimizer"', '"parameter": ?"0.weight"'),
    ),
    Situation(
        story="on a cluster",
        has="what is on the GPU",
        make=training("cuda:0"),
        run="show run.pt --filter device:cuda:0",
        says=("exp_avg", "cuda:0"),
        never=(r"optimizer/state/0/step\b",),
    ),
    Situation(
        story="on a cluster",
        has="a traceback from the log, through a pipe",
        make=state_dict("cuda:1"),
        run="check best.pth --target cuda --error-file -",
        text="[rank1]: RuntimeError: Attempting to deserialize object on CUDA device 1 but "
        "torch.cuda.device_count() is 1. Please use torch.load with map_location to map your storages to an "
        "existing device.",
        code=1,
        says=("saved on cuda:1",),
        fix=to("best.pth", "cuda:0"),
        never=LITERAL,
    ),
    Situation(
        story="on a cluster",
        has="a file that is no checkpoint, as JSON",
        make=written("best.pth", b"<html></html>"),
        run="check best.pth --target cpu --json",
        code=3,
        says=('"error"', "html-page|web page"),
    ),
    Situation(
        story="on a cluster",
        has="four ranks that load one file of cuda:0; the code",
        make=training("cuda:0"),
        run="snippet run.pt --target 4xcuda --style distributed",
        says=("LOCAL_RANK", r"map_location=.*(?:cpu|rank|device)"),
    ),
    Situation(
        story="on a cluster",
        has="two ranks on one GPU: NCCL stops",
        make=training("cuda:0"),
        run="check run.pt --target 2xcuda --error-text TEXT",
        text="ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 10",
        says=("rank", "set_device|LOCAL_RANK"),
    ),
    Situation(
        story="on a cluster",
        has="one shard of a model",
        make=sharded(),
        run="check llm/pytorch_model-00001-of-00002.bin --target cuda",
        says=("LOADS on",),
    ),
    Situation(
        story="on a cluster",
        has="the folder of a model in shards",
        make=sharded(),
        run="check llm --target cuda",
        says=("LOADS", r"from_pretrained\("),
    ),
    Situation(
        story="on a cluster",
        has="the folder of a model in shards; the code for a GPU",
        make=sharded(),
        run="snippet llm --target cuda",
        says=(r"pytorch_model\.bin\.index\.json", r'model\.to\("cuda:0"\)', r"model\.load_state_dict"),
    ),
    Situation(
        story="on a cluster",
        has="a copy for one GPU of layers on four",
        make=split(("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        run="remap big.pt -o one.pt --target cuda",
        then=holds("one.pt", {"cuda:0"}),
    ),
    Situation(
        story="on a cluster",
        has="library code that cannot be edited: the file itself",
        make=state_dict("cuda:1"),
        run="remap best.pth --in-place --map cuda:1=cuda:0",
        then=holds("best.pth", {"cuda:0"}),
    ),
    Situation(
        story="on a cluster",
        has="the file as it was before --in-place",
        make=lambda: (
            state_dict("cuda:1")(),
            answer_to("remap best.pth --in-place --map cuda:1=cuda:0"),
        ),
        run="remap best.pth --undo",
        then=holds("best.pth", {"cuda:1"}),
    ),
    Situation(
        story="on a cluster",
        has="a copy; is it the same?",
        make=lambda: (state_dict("cuda:1")(), answer_to("remap best.pth -o copy.pth --map cuda:1=cpu")),
        run="verify copy.pth --against best.pth --map cuda:1=cpu",
        says=("devices as planned",),
    ),
    Situation(
        story="on a cluster",
        has="what a copy would change, without writing it",
        make=state_dict("cuda:1"),
        run="remap best.pth -o copy.pth --map cuda:1=cpu --dry-run",
        says=("cuda:1", "cpu"),
        then=lambda: is_absent("copy.pth"),
    ),
    Situation(
        story="on a cluster",
        has="what can be saved of half a file",
        make=truncated,
        run="recover best.pth -o saved.pth",
        says=("2 of 4|tensor",),
    ),
    Situation(
        story="on a cluster",
        has="the machine where it will be loaded: a script to describe it",
        make=lambda: None,
        run="target --probe-script",
        says=("import torch|torch",),
    ),
    Situation(
        story="on a cluster",
        has="weights saved on cuda:0; a container started without the GPU",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/docker-without-gpus.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("--gpus all",),
    ),
    Situation(
        story="on a cluster",
        has="weights saved on cuda:0; the driver was updated under the running kernel",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/driver-mismatch.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("restart|reboot",),
    ),
    Situation(
        story="on a cluster",
        has="weights saved on cuda:0; a node where this user may not use the GPU",
        make=state_dict("cuda:0"),
        run="check best.pth --target PROFILES/no-permission-cluster.json",
        code=1,
        says=("DOES NOT LOAD",),
        fix=to_cpu("best.pth"),
        also=("permission|may not|render|video",),
    ),
)

ROWS: tuple[Situation, ...] = (*HANDED, *RESUMES, *PUBLISHES, *CLUSTER)


# --- running ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command printed.

    Attributes:
        code: Its exit code.
        whole: All of it, on both streams, its lines joined.
        first: What is read first.
        fix: The first fix; empty without one.
    """

    code: int
    whole: str
    first: str
    fix: str


def answer_to(command: str) -> None:
    """Run a command before the one of a row."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_program(shlex.split(command)) == 0


def answer(row: Situation) -> Answer:
    """Make the files of a row in the working folder, and run its command."""
    row.make()
    words = shlex.split(row.run.replace("PROFILES", str(PROFILES)))
    arguments = [row.text if word == "TEXT" else word for word in words]
    out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(row.text)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_program(arguments)
    except SystemExit as stopped:  # what argparse refuses
        code = int(stopped.code or 0)
    finally:
        sys.stdin = stdin
    lines = f"{out.getvalue()}\n{err.getvalue()}".splitlines()
    is_check = row.run.startswith("check") and "--json" not in row.run
    start = lines.index("The error") if "The error" in lines else 0
    fixes = [place + 1 for place, line in enumerate(lines) if place >= start and line.endswith(" with:")]
    first = fixes[0] if fixes and is_check else len(lines)
    end = next((place for place in range(first, len(lines)) if not lines[place]), len(lines))
    code_lines = takewhile(lambda line: line[:1] != " " or line.startswith(" " * 7), lines[first:])
    return Answer(
        code=code,
        whole=_joined(lines),
        first=_joined(lines[start:end]),
        fix=_joined([*code_lines]),
    )


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def wrong(row: Situation) -> Iterator[str]:
    """Yield what is wrong with the answer to a row."""
    found = answer(row)
    if found.code != row.code:
        yield f"exit code {found.code}, not {row.code}"
    yield from (f"nothing of {pattern!r}" for pattern in row.says if not re.search(pattern, found.first))
    if row.fix and not re.search(row.fix, found.fix):
        yield f"the first fix is {found.fix!r}, not {row.fix!r}"
    yield from (f"nowhere {pattern!r}" for pattern in row.also if not re.search(pattern, found.whole))
    yield from (f"it says {pattern!r}" for pattern in row.never if re.search(pattern, found.whole))
    if row.then is not None and found.code == 0:
        try:
            row.then()
        except Exception as error:  # noqa: BLE001 - told with the rest
            yield f"{type(error).__name__}: {error}"
