"""Packages with compiled parts that files name: where they run, what fails elsewhere, what to use then.

A package of which nobody can say that it fails somewhere has no `runs_on`: it is only told that it has to be
built for the torch of the machine. Each row names the source where it was read.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.records import dataclass

_GPUS = frozenset({"cuda", "rocm"})
_BUILT = "A build for another torch fails with 'undefined symbol'."
_SDPA = "torch.nn.functional.scaled_dot_product_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package, or a part of one.

    Attributes:
        classes: The last steps of the names that are meant; empty for all.
        steps: Names with one of these steps anywhere are meant too: what people copy into their own projects.
        is_builtin: Whether it comes with torch, so that nothing is needed where it runs.
        runs_on: Where it runs (`cuda` is NVIDIA's, `rocm` AMD's); None where no place is known to fail.
        fails: What Python or torch says in other places, or while it is imported there; `{NAME}` stands for
            the backend.
        install: How to get it; a sentence.
        instead: What does the same elsewhere; a sentence.
    """

    name: str
    modules: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    is_builtin: bool = False
    runs_on: frozenset[str] | None = None
    fails: str = ""
    install: str = ""
    instead: str = ""
    source: str

    def has(self, name: str) -> bool:
        """Return whether a dotted name comes from it."""
        parts = name.split(".")
        if self.steps and not self.steps.isdisjoint(parts[:-1]):
            return True
        begins = any(name.startswith(f"{module}.") for module in self.modules)
        return begins and (not self.classes or parts[-1] in self.classes)


PACKAGES: tuple[Package, ...] = (
    Package(
        name="flash-attn",
        modules=("flash_attn",),
        runs_on=_GPUS,
        fails="ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        install="pip install flash-attn --no-build-isolation compiles it for the torch that is installed.",
        instead=f"torch has the same attention ({_SDPA}); in transformers, attn_implementation='sdpa' takes "
        "the same weights.",
        source="https://github.com/Dao-AILab/flash-attention/blob/main/flash_attn/flash_attn_interface.py",
    ),
    Package(
        name="mamba-ssm",
        modules=("mamba_ssm",),
        runs_on=_GPUS,
        fails="ModuleNotFoundError: No module named 'selective_scan_cuda'",
        install="pip install mamba-ssm --no-build-isolation compiles it for the torch that is installed.",
        instead="MambaForCausalLM of transformers runs without these kernels, slowly.",
        source="https://github.com/state-spaces/mamba/blob/main/mamba_ssm/ops/selective_scan_interface.py",
    ),
    Package(
        name="causal-conv1d",
        modules=("causal_conv1d",),
        runs_on=_GPUS,
        fails="ModuleNotFoundError: No module named 'causal_conv1d_cuda'",
        install="pip install causal-conv1d --no-build-isolation compiles it for the torch that is installed.",
        instead="torch.nn.functional.conv1d with groups=channels and zeros on the left computes the same.",
        source="https://github.com/Dao-AILab/causal-conv1d/blob/main/causal_conv1d/causal_conv1d_interface.py",
    ),
    Package(
        name="xFormers",
        modules=("xformers",),
        install="Each release of xFormers is built for one torch: take the one for the installed torch. Its "
        "attention is for GPUs; on a CPU it can end with 'No operator found for "
        "`memory_efficient_attention_forward`'.",
        instead=f"{_SDPA} computes the same attention.",
        source="https://github.com/facebookresearch/xformers/blob/main/xformers/ops/fmha/dispatch.py",
    ),
    Package(
        name="Triton",
        modules=("triton",),
        runs_on=_GPUS | {"xpu"},
        fails="RuntimeError: 0 active drivers ([]). There should only be one.",
        install="It comes with torch for Linux.",
        instead="The kernels need a version in plain PyTorch.",
        source="https://github.com/triton-lang/triton/blob/main/python/triton/runtime/driver.py",
    ),
    Package(
        name="TensorRT",
        modules=("torch_tensorrt", "torch2trt", "tensorrt"),
        runs_on=frozenset({"cuda"}),
        fails="ModuleNotFoundError: No module named 'tensorrt'",
        install="An engine runs on the kind of GPU and the TensorRT that it was built with. On another GPU: "
        "'The engine plan file is generated on an incompatible device'.",
        instead="Use the model that the engine was compiled from.",
        source="https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/troubleshooting.html",
    ),
    Package(
        name="spconv",
        modules=("spconv",),
        runs_on=frozenset({"cuda", "cpu"}),
        install="pip install spconv-cu120 (or the package for another CUDA); spconv alone is for the CPU, on "
        "Linux only, and slow.",
        source="https://github.com/traveller59/spconv/blob/master/README.md",
    ),
    Package(
        name="MinkowskiEngine",
        modules=("MinkowskiEngine",),
        runs_on=frozenset({"cuda", "cpu"}),
        install="Build it from source; without CUDA: python setup.py install --cpu_only.",
        source="https://github.com/NVIDIA/MinkowskiEngine/blob/master/README.md",
    ),
    Package(
        name="the extensions of PyTorch Geometric",
        modules=("torch_scatter", "torch_sparse", "torch_cluster", "torch_spline_conv"),
        runs_on=_GPUS | {"cpu"},
        fails="RuntimeError: src must be CPU tensor",
        install="https://data.pyg.org/whl has builds for each torch, with and without CUDA.",
        source="https://github.com/rusty1s/pytorch_scatter/blob/master/csrc/cpu/utils.h",
    ),
    Package(
        name="torch's quantized layers",
        modules=(
            "torch.ao.nn.quantized",
            "torch.ao.nn.intrinsic.quantized",
            "torch.nn.quantized",
            "torch.nn.intrinsic.quantized",
        ),
        classes=frozenset(
            {"Linear", "LinearReLU", "LinearPackedParams", "LSTM", "GRU", "QFunctional", "PackedParameter"}
            | {"Embedding", "EmbeddingBag", "EmbeddingPackedParams"}
            | {f"Conv{relu}{dims}d" for relu in ("", "ReLU") for dims in (1, 2, 3)}
        ),
        is_builtin=True,
        runs_on=frozenset({"cpu"}),
        fails="NotImplementedError: Could not run 'quantized::linear' with arguments from the '{NAME}' "
        "backend.",
        install="On Apple silicon, set torch.backends.quantized.engine = 'qnnpack' before torch.load, else "
        "it stops with 'Didn't find engine for operation quantized::linear_prepack NoQEngine'.",
        source="https://github.com/pytorch/pytorch/issues/123507",
    ),
    Package(
        name="torchao's int4 layout for tensor cores",
        modules=("torchao",),
        classes=frozenset(
            {"TensorCoreTiledLayout", "TensorCoreTiledAQTTensorImpl", "TensorCoreTiledLayoutType"}
        ),
        install="It is packed for the kind of device that it was quantized on: moving it ends with "
        "'TensorCoreTiledAQTTensorImpl does not support conversion from ... to ...'.",
        instead="For another kind of device, quantize the original weights again there.",
        source="https://github.com/pytorch/ao/blob/main/torchao/dtypes/uintx/tensor_core_tiled_layout.py",
    ),
    Package(
        name="detectron2's modulated deformable convolution",
        modules=("detectron2.layers",),
        classes=frozenset({"ModulatedDeformConv"}),
        runs_on=_GPUS,
        fails="NotImplementedError: Deformable Conv is not supported on CPUs!",
        instead="torchvision.ops.deform_conv2d, with a mask, runs on CPUs as well.",
        source="https://github.com/facebookresearch/detectron2/blob/main/detectron2/layers/deform_conv.py",
    ),
    Package(
        name="Detectron2",
        modules=("detectron2",),
        install=f"It is built from source, for the installed torch. {_BUILT}",
        source="https://detectron2.readthedocs.io/en/latest/tutorials/install.html",
    ),
    Package(
        name="the fused operations of StyleGAN2 for PyTorch",
        steps=frozenset({"fused_act", "upfirdn2d"}),
        runs_on=_GPUS,
        fails="OSError: CUDA_HOME environment variable is not set.",
        install="They are compiled when they are imported, which takes nvcc.",
        instead="In plain PyTorch, fused_leaky_relu is leaky_relu(x + bias, 0.2) * 2 ** 0.5, and upfirdn2d "
        "stands beside the compiled one as upfirdn2d_native.",
        source="https://github.com/rosinality/stylegan2-pytorch/blob/master/op/upfirdn2d.py",
    ),
    Package(
        name="NVIDIA's StyleGAN code",
        modules=("torch_utils.persistence", "torch_utils.ops", "dnnlib"),
        install="The folders torch_utils and dnnlib of its repository must be importable. Without CUDA its "
        "operations use their slow versions in plain PyTorch; call the generator with force_fp32=True then.",
        source="https://github.com/NVlabs/stylegan3/blob/main/torch_utils/ops/upfirdn2d.py",
    ),
    Package(
        name="NVIDIA's apex",
        modules=("apex",),
        install="It is built from source (github.com/NVIDIA/apex): the apex of PyPI is another package.",
        instead="torch.nn.LayerNorm takes the weights of its FusedLayerNorm.",
        source="https://github.com/NVIDIA/apex/blob/master/apex/normalization/fused_layer_norm.py",
    ),
    Package(
        name="bitsandbytes",
        modules=("bitsandbytes",),
        install="Release 0.50 runs on CPUs and on NVIDIA, AMD, Intel and Apple GPUs; old ones need CUDA.",
        source="https://pypi.org/project/bitsandbytes/0.50.2/",
    ),
    Package(
        name="DeepSpeed's operations",
        modules=("deepspeed.ops",),
        install="They are compiled when they are first used, which takes nvcc and ninja.",
        source="https://www.deepspeed.ai/tutorials/advanced-install/",
    ),
    Package(
        name="MMCV's operations",
        modules=("mmcv.ops",),
        install=f"mim install mmcv finds a build for the installed torch; mmcv-lite has none. {_BUILT}",
        source="https://mmcv.readthedocs.io/en/latest/get_started/installation.html",
    ),
    Package(
        name="PyTorch3D",
        modules=("pytorch3d",),
        install=f"Its builds are for one torch, one CUDA and one Python each. {_BUILT}",
        source="https://github.com/facebookresearch/pytorch3d/blob/main/INSTALL.md",
    ),
    Package(
        name="TorchSparse",
        modules=("torchsparse",),
        install=f"It is built from source, for the installed torch. {_BUILT}",
        source="https://github.com/mit-han-lab/torchsparse/blob/master/README.md",
    ),
)
"""What is more particular stands further up: the first row that knows a name has it."""


def packages_of(names: Iterable[str]) -> list[tuple[Package, list[str]]]:
    """Return the rows that dotted names come from, each with its names."""
    found: dict[str, tuple[Package, list[str]]] = {}
    for name in names:
        row = next((row for row in PACKAGES if row.has(name)), None)
        if row is not None:
            found.setdefault(row.name, (row, []))[1].append(name)
    return list(found.values())
