"""Every format that is read, and what each step of the program answers to it.

A row names a genuine file of the format and what must be found in it. Of each step it says that it works
(`YES`), or words of the one sentence that stands in its place; `steps.py` runs them. To add a format is to
add a row. `python -m tests.formats` writes the table to docs/formats.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.builders.arrays import array, arrays
from tests.builders.folders import adapters, brain, pipeline, shard, tensordict, trainer
from tests.builders.megatron import megatron
from tests.corpus import CORPUS

YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One format, with a file of it.

    Attributes:
        name: Its word in `show --json`.
        title: What people call it.
        sample: The file or folder, below the corpus.
        make: Makes the file in a folder instead, for what need not be kept.
        tensors: How many tensors are listed.
        devices: The devices that they are said to have been saved on, sorted.
        roles: Their roles, sorted.
        slots: How many optimizer slots have the name of their parameter, of how many.
        code: Words of the snippet: the call that loads such a file.
        weights: How many tensors a state dict of it holds, where some are no weights; else all of them.
        cut: How much of the file is left for `recover`.
        check: Words of `check --target cpu` about such a file.
        remap: `YES`, or words of the sentence that says why not.
        in_place: The same of `remap --in-place`.
        state_dict: The same of `export --format state-dict`.
        safetensors: The same of `export -o x.safetensors`.
        verify: The same of `verify` of the first of those copies that can be made.
        recover: The same of `recover` with a file that is cut.
    """

    name: str
    title: str
    sample: str = ""
    make: Callable[[Path], Path] | None = None
    tensors: int
    devices: tuple[str, ...] = ("cpu",)
    roles: tuple[str, ...] = ("buffer", "parameter")
    slots: tuple[int, int] = (0, 0)
    code: str = "torch.load("
    weights: int | None = None
    cut: float = 0.7
    check: str = ""
    remap: str = YES
    in_place: str = YES
    state_dict: str = YES
    safetensors: str = YES
    verify: str = YES
    recover: str = YES

    def file(self, folder: Path) -> Path:
        """Return the sample; one that is made lies in this folder."""
        return self.make(folder) if self.make else CORPUS / self.sample


ROWS: tuple[Row, ...] = (
    Row(
        name="zip",
        title="torch.save since 1.6 (zip)",
        sample="devices/zip_train_cuda_capturable.pt",
        tensors=10,
        devices=("cpu", "cuda:0"),
        roles=("optimizer", "parameter", "rng"),
        slots=(6, 6),
        weights=2,
        check="cuda-unavailable",
    ),
    Row(
        name="legacy",
        title="torch.save before 1.6 (legacy)",
        sample="devices/legacy_train_cuda_step_cpu.pt",
        tensors=10,
        devices=("cpu", "cuda:0"),
        roles=("optimizer", "parameter", "rng"),
        slots=(6, 6),
        weights=2,
        check="cuda-unavailable",
    ),
    Row(
        name="tar",
        title="torch.save of 0.1 (tar)",
        sample="tar/tar_cpu.pth",
        tensors=5,
        in_place="everything behind them would move",
    ),
    Row(
        name="safetensors",
        title="safetensors",
        sample="safetensors/all.safetensors",
        tensors=16,
        devices=("none",),
        code="load_file(",
        cut=0.98,
        remap="a safetensors file has no devices, so there are none to change",
        in_place="a safetensors file has no devices, so there are none to change",
        recover="the file name is one for safetensors, but the file would be for torch.load",
    ),
    Row(
        name="torchscript",
        title="TorchScript (torch.jit.save)",
        sample="torchscript/conv.pt",
        tensors=2,
        roles=("parameter",),
        code="torch.jit.load(",
        check="torch.jit.load",
    ),
    Row(
        name="dcp",
        title="torch.distributed.checkpoint (DCP) folder",
        sample="dcp/plain",
        tensors=10,
        devices=("none",),
        roles=("buffer", "optimizer", "parameter"),
        code="dcp_to_torch_save(",
        weights=9,
        verify="no copy whose bytes could be compared",
        recover="by leaving out what is not",
        in_place="a folder cannot be changed in place",
    ),
    Row(
        name="deepspeed",
        title="DeepSpeed folder (ZeRO 1 to 3)",
        make=lambda _: CORPUS.parent / "distributed" / "deepspeed_zero1",
        tensors=40,
        roles=("optimizer", "parameter"),
        slots=(21, 21),
        code="get_fp32_state_dict_from_zero_checkpoint(",
        weights=9,
        in_place="a folder cannot be changed in place",
        verify="no copy whose bytes could be compared",
        recover="by leaving out what is not",
    ),
    Row(
        name="megatron",
        title="Megatron-LM folder",
        make=megatron,
        tensors=8,
        devices=("cpu", "cuda:0", "cuda:1"),
        roles=("optimizer", "parameter", "rng"),
        slots=(0, 2),
        code="folder.rglob(",
        check="cuda-unavailable",
        in_place="a folder cannot be changed in place",
        state_dict="the file holds several models",
        safetensors="the file holds several models",
        verify="no copy whose bytes could be compared",
        recover="only single files are recovered",
    ),
    Row(
        name="distcp",
        title="one rank's file of a distributed checkpoint (.distcp)",
        make=lambda folder: Path(shutil.copyfile(CORPUS / "dcp/plain/__0_0.distcp", folder / "__0_0.distcp")),
        tensors=10,
        roles=("other",),
        check="Not a directory",
        remap="but the file would be for torch.load",
        in_place="is only a part of it",
        state_dict="no weights of a model",
        safetensors="no weights of a model",
        verify="is only a part of it",
        recover="but the file would be for torch.load",
    ),
    Row(
        name="sharded",
        title="a model in several files (Hugging Face)",
        sample="hf_sharded",
        tensors=9,
        devices=("cuda:0",),
        code="weight_map",
        in_place="a folder cannot be changed in place",
        recover="only single files are recovered",
    ),
    Row(
        name="folder",
        title="a folder of a trainer",
        make=lambda folder: trainer(folder / "run", is_safe=False),
        tensors=4,
        devices=("cuda:0",),
        roles=("optimizer", "parameter"),
        slots=(2, 2),
        weights=2,
        check="cuda-unavailable",
        in_place="a folder cannot be changed in place",
        recover="only single files are recovered",
    ),
    Row(
        name="diffusers",
        title="a pipeline of diffusers",
        make=lambda folder: pipeline(
            folder / "p", {"unet": {"diffusion_pytorch_model.bin": shard("w", "b")}}
        ),
        tensors=2,
        devices=("cuda:0",),
        roles=("parameter",),
        code="DiffusionPipeline.from_pretrained(",
        in_place="a folder cannot be changed in place",
        recover="only single files are recovered",
    ),
    Row(
        name="speechbrain",
        title="a checkpoint of SpeechBrain (CKPT+...)",
        make=lambda folder: brain(folder / "CKPT+1"),
        tensors=2,
        roles=("parameter",),
        code="recover_if_possible(",
        in_place="a folder cannot be changed in place",
        recover="only single files are recovered",
    ),
    Row(
        name="adapters",
        title="several adapters of PEFT",
        make=lambda folder: adapters(folder / "a"),
        tensors=4,
        devices=("none",),
        roles=("parameter",),
        code="load_adapter(",
        remap="no file of this folder names a device",
        in_place="a folder cannot be changed in place",
        state_dict="the file holds several models",
        safetensors="the file holds several models",
        recover="only single files are recovered",
    ),
    Row(
        name="tensordict",
        title="a memory-mapped TensorDict",
        make=lambda folder: tensordict(folder / "t", weight=(2, 2), bias=(2,)),
        tensors=2,
        devices=("none",),
        roles=("parameter",),
        code="TensorDict.load_memmap(",
        remap="no file of this folder names a device",
        in_place="a folder cannot be changed in place",
        cut=1,  # what tells it stands at the end of its smallest file
        recover="only single files are recovered",
    ),
    Row(
        name="pt2",
        title="torch.export (.pt2)",
        sample="export/model.pt2",
        tensors=4,
        roles=("other", "parameter"),
        weights=2,
        code="torch.export.load(",
        check="torch.export.load",
        remap="the devices of an exported program stand in its graph",
        in_place="the devices of an exported program stand in its graph",
    ),
    Row(
        name="stable-baselines3",
        title="Stable-Baselines3 (PPO.save)",
        make=lambda _: CORPUS.parent / "frameworks" / "sb3" / "ppo_cartpole.zip",
        tensors=48,
        roles=("optimizer", "parameter"),
        slots=(36, 36),
        weights=12,
        code="PPO.load(",
        check="PPO.load runs whatever the file names",
        remap="sends all tensors to the device that load is given",
        in_place="sends all tensors to the device that load is given",
    ),
    Row(
        name="package",
        title="torch.package",
        sample="package/pkg.pt",
        tensors=18,
        code="importer = PackageImporter(",
        check="whose loader imports whatever its pickles name",
        in_place="several pickles hold them",
        state_dict="the file holds several models",
        safetensors="the file holds several models",
    ),
    Row(
        name="pickle",
        title="pickle.dump, cloudpickle, dill",
        sample="plain_pickle/state_p4.pkl",
        tensors=8,
        devices=("cpu", "cuda:1", "none"),
        code="CPUUnpickler(file)",
        in_place="everything behind them would move",
        weights=3,
        check="cuda-unavailable",
    ),
    Row(
        name="joblib",
        title="joblib.dump",
        sample="joblib/arrays.joblib",
        tensors=8,
        devices=("cpu", "cuda:1", "none"),
        code="joblib.load(",
        in_place="everything behind them would move",
        weights=3,
        check="cuda-unavailable",
    ),
    Row(
        name="npy",
        title="one NumPy array (.npy)",
        make=array,
        tensors=1,
        devices=("none",),
        roles=("other",),
        code="torch.from_numpy(array)",
        check="torch.load does not read this file",
        remap="the arrays of NumPy have no devices, so there are none to change",
        in_place="the arrays of NumPy have no devices, so there are none to change",
        cut=1.0,
        state_dict="no weights of a model",
        safetensors="no weights of a model",
    ),
    Row(
        name="npz",
        title="NumPy arrays (.npz)",
        make=arrays,
        tensors=3,
        devices=("none",),
        code="torch.from_numpy(arrays[name])",
        check="torch.load does not read this file",
        cut=0.6,
        remap="the arrays of NumPy have no devices, so there are none to change",
        in_place="the arrays of NumPy have no devices, so there are none to change",
    ),
    Row(
        name="gguf",
        title="GGUF (llama.cpp)",
        sample="gguf/small.gguf",
        tensors=3,
        devices=("none",),
        roles=("parameter",),
        code="GGUFReader(",
        cut=0.9,
        remap="torch has no strided tensors of q8_0",
        in_place="a GGUF file has no devices, so there are none to change",
        state_dict="torch has no strided tensors of q8_0",
        safetensors="is q8_0",
    ),
)
