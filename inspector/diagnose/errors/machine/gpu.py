"""Messages of CUDA, ROCm and Apple's Metal while a program runs: no file brings them about."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE, ABOUT_MACHINE, about_code, paths_with_dtype
from inspector.units import escape_text, format_count

_GPU = re.compile(r"(?P<name>[\w() -]{3,60}?) with CUDA capability (?P<sm>sm_\d{2,3}) is not compatible")
_KNOWN = re.compile(r"supports CUDA capabilities (?P<list>(?:(?:sm|compute)_\d{2,3}[a-z]? ?){1,40})")
_OLDEST_NEW = 90
_VOLTA = 70


def _kernel_image(told: Told) -> Said:
    """Explain which GPU it is and what the build knows, where a warning above says so."""
    flat = told.pasted.flat
    if "hip" in told.text.lower()[:200] or "gfx" in flat or "rocm" in flat.lower():
        return _ROCM
    gpu, known = _GPU.search(flat), _KNOWN.search(flat)
    if gpu is None:
        return _of_extension(flat)
    number = int(gpu["sm"][3:])
    has = f"; this build has code for {known['list'].strip()}" if known is not None else ""
    cause = (
        f"{escape_text(gpu['name'].strip())} is {gpu['sm']}{has}. CUDA code is compiled for each "
        "architecture of GPU."
    )
    return Said(cause=cause, advice=_NEW_GPU if number >= _VOLTA and number >= _OLDEST_NEW else _OTHER_GPU)


def _of_extension(flat: str) -> Said:
    """Explain that not torch but a package with kernels of its own was built without this GPU."""
    match = _EXTENSION.search(flat)
    if match is None:
        return Said()
    name = match["name"].lower().replace("_", "-").replace("flash-attn", "flash-attention")
    return Said(
        title=f"{name} has no code for this GPU",
        cause=f"The kernel that failed belongs to {name}, not to torch: it was compiled without the "
        "architecture of this GPU.",
        advice=f"Install a build of {name} for this GPU, or build it from source with TORCH_CUDA_ARCH_LIST "
        "set to the GPU's compute capability; or turn it off (torch has scaled_dot_product_attention).",
    )


_EXTENSION = re.compile(
    r"(?P<name>flash[_-]?att(?:n|ention)|xformers|bitsandbytes|apex|spconv|MinkowskiEngine|mamba_ssm|"
    r"causal_conv1d|pytorch3d|detectron2|mmcv|torch_scatter|torch_sparse|exllama\w{0,3}|auto_?gptq|tinycudann|"
    r"diff_gaussian_rasterization|deepspeed)(?=[/\\])",
    re.IGNORECASE,
)
_ROCM = Said(
    title="This build of torch for ROCm has no code for this GPU",
    cause="Code for AMD GPUs is compiled for each architecture (gfx1030, gfx1100 ...), and this build of "
    "torch, or of an extension, has none for this GPU.",
    advice="Install a build of torch for a ROCm that supports the GPU. For a GPU beside a supported one, "
    "set HSA_OVERRIDE_GFX_VERSION before Python starts: 10.3.0 for other RDNA 2 GPUs, 11.0.0 for other "
    "RDNA 3.",
)
_NEW_GPU = (
    "Install a build of torch with newer CUDA: RTX 50 (sm_120) and B200 (sm_100) need torch 2.7 or newer "
    "for CUDA 12.8 (pip install torch --index-url https://download.pytorch.org/whl/cu128), H100 (sm_90) "
    "CUDA 11.8 or newer."
)
_OTHER_GPU = (
    "Install a build of torch that has code for this GPU: a newer one for a new GPU (sm_86 needs CUDA 11.1 "
    "or newer), an older one for an old GPU (builds for CUDA 12.8 and newer drop sm_50 to sm_61, and those "
    "since torch 2.0 sm_35)."
)


def _device_assert(told: Told) -> Said:
    """Explain which index is out of range, where the assertion above says so."""
    flat = told.pasted.flat
    if "srcSelectDimSize" in flat or "indexSelect" in flat:
        return Said(
            title="An index is out of range, probably a token id of an embedding",
            cause="The assertion srcIndex < srcSelectDimSize failed: an embedding or index_select was "
            "asked for a row that it does not have. The tokenizer knows more tokens than the embedding has "
            "rows, or positions are longer than the model allows.",
        )
    if "n_classes" in flat or "cur_target" in flat or re.search(r"\bt >= 0 && t <", flat):
        return Said(
            title="A class label is out of range",
            cause="The assertion t >= 0 && t < n_classes failed: a label is negative, or not below the "
            "number of classes that the model has outputs for.",
        )
    return Said()


_ASSERT_ADVICE = (
    "Run the same batch on the CPU, or with CUDA_LAUNCH_BLOCKING=1, to see the true line. Compare "
    "labels.min() and labels.max() with the number of classes, and the ids with embedding.num_embeddings "
    "(call model.resize_token_embeddings(len(tokenizer)) after adding tokens). Restart the process: CUDA "
    "does not work in it any more."
)


def _mps_dtype(told: Told) -> Said:
    """Explain that a dtype is missing rather than an operation."""
    if "bfloat16" not in told.text.lower():
        return Said()
    return Said(
        title="The Apple GPU (mps) has no bfloat16 here",
        cause="bfloat16 on mps needs macOS 14 and torch 2.6 or so; this torch or macOS is older.",
        advice="Use float16 or float32: torch_dtype=torch.float16, model.half(), or .float(). Or update "
        "macOS and torch.",
    )


def _float64(context: Context) -> Tied:
    """Find the tensors of this file that Apple's GPUs cannot hold."""
    paths = paths_with_dtype(context, "float64", "complex128")
    if paths:
        here = f"{format_count(len(paths), 'tensor')} of this file are float64 or complex128."
        return Tied(fits="yes", here=here, paths=paths)
    return Tied(
        fits="no",
        here="No tensor in this file is float64: the tensor comes from your code, usually from NumPy.",
    )


GPU_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="no-kernel-image",
        title="This build of torch has no code for this GPU",
        pattern=r"no kernel image is available for execution|CUDA error: device kernel image is invalid|"
        r"HIP error: (?:invalid device function|shared object initialization failed)|"
        r"with CUDA capability sm_\d{2,3} is not compatible with the current PyTorch|"
        r"provided PTX was compiled with an unsupported toolchain|hipErrorNoBinaryForGpu|invalid device "
        r"function|"
        r"Unable to find code object for all current devices|cuda runtime error \((?:48|209)\)|"
        r"PyTorch no longer supports this GPU because it is too old",
        cause="CUDA code is compiled for each architecture of GPU (compute capability, sm_86 and so on). "
        "This torch, or a compiled extension, was built without the one of this GPU, which is too new or "
        "too old for it.",
        advice="Install a build of torch that has it: torch.cuda.get_arch_list() shows what this one has. "
        "A new GPU needs a build for newer CUDA (RTX 50: torch 2.7 or newer, cu128; RTX 30: CUDA 11.1 or "
        "newer), an old one an older torch. If only an extension fails, build it again with "
        "TORCH_CUDA_ARCH_LIST set.",
        tie=ABOUT_MACHINE,
        say=_kernel_image,
    ),
    ErrorKind(
        id="driver-mismatch",
        title="The NVIDIA driver was updated and is not loaded yet",
        pattern=r"driver/library version mismatch|forward compatibility was attempted on non supported HW|"
        r"unsupported display driver ?/ ?cuda driver combination",
        cause="The driver's kernel module and its libraries are of different versions: the driver was "
        "updated while the old one is still loaded, or a container brings libraries of its own (libcuda in "
        "LD_LIBRARY_PATH, cuda-compat).",
        advice="Restart the machine, or reload the module (sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset "
        "nvidia, then nvidia-smi). In a container, remove the cuda-compat package from LD_LIBRARY_PATH, or "
        "update the host's driver. Until then load with map_location='cpu'.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="cuda-start",
        title="CUDA could not be started in this process",
        pattern=r"CUDA unknown error|Unexpected error from cudaGetDeviceCount|CUDA (?:initialization "
        r")?error: initialization error|"
        r"CUDA error: system not yet initialized|CUDA driver initialization failed|CUDA-capable device\(s\) "
        r"is/are busy or unavailable|"
        r"CUDA-capable devices are busy or unavailable|CUDA error: unknown error|cuda runtime error \(30\)|"
        r"cuda runtime error \((?:46|3|802|999)\)",
        cause="The driver does not answer: it was updated without a restart, the machine slept (nvidia_uvm "
        "then needs to be loaded again), CUDA_VISIBLE_DEVICES was changed after CUDA had started, another "
        "process has the GPU in exclusive mode, or, on machines with NVSwitch, the fabric manager is not "
        "running.",
        advice="See whether nvidia-smi works. sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm helps "
        "after sleep, a restart after an update of the driver. Set CUDA_VISIBLE_DEVICES before Python "
        "starts. checkpoint-inspector target looks for the reason; until then load with map_location='cpu'.",
        tie=ABOUT_MACHINE,
        never="_worker_loop",
    ),
    ErrorKind(
        id="device-assert",
        title="An index is out of range on the GPU (device-side assert)",
        pattern=r"device-side assert|Assertion '?(?:srcIndex < srcSelectDimSize|t >= 0 && t < n_classes|"
        r"cur_target|"
        r"input_val >= zero|-?sizes?\[i\] <= index)|cuda runtime error \((?:59|710)\)|DSA\b.{0,40} assert",
        cause="Code on the GPU checked an index and found it out of range: a class label that is not below "
        "the number of classes, or a token id beyond the embedding. It is reported late, so the line in "
        "the traceback may be another.",
        advice=_ASSERT_ADVICE,
        tie=about_code(
            "Not the file's devices: labels or ids do not fit the model. Compare them with the shapes in "
            "this file, such as the first size of the embedding or of the last layer."
        ),
        say=_device_assert,
    ),
    ErrorKind(
        id="illegal-memory",
        title="Code on the GPU read or wrote outside of its memory",
        pattern=r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction "
        r"was encountered|"
        r"cuda runtime error \((?:77|700|4|719)\)|uncorrectable ECC error|CUDA error: launch timed out",
        cause="A CUDA kernel failed: a compiled extension that does not fit this torch or GPU, indices out "
        "of range, an overheated or overclocked GPU, or a bug in that version of torch. It is reported "
        "late, so the line in the traceback may be another.",
        advice="Run with CUDA_LAUNCH_BLOCKING=1 to see the true line, and the same batch on the CPU. Build "
        "custom CUDA extensions again for the installed torch, or update torch.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="cudnn",
        title="cuDNN or cuBLAS failed",
        pattern=r"CUDNN_STATUS_\w{3,40}|CUBLAS_STATUS_(?!ALLOC)\w{3,40}|cuDNN version (?:incompatibility|"
        r"mismatch)|"
        r"unable to find (?:a valid cuDNN algorithm|an engine to execute)|CUFFT_\w{3,30}|CUSOLVER_STATUS|"
        r"CUSPARSE_STATUS|"
        r"cuDNN error|cublas runtime error|Unable to load any of \{?libcudnn|cuda runtime error \((?:11|8)\)",
        cause="Most often the GPU has no memory left when the library starts. Otherwise its version does "
        "not fit: another cuDNN or CUDA in LD_LIBRARY_PATH, or a build of torch without code for this GPU. "
        "An index that is out of range can be reported here as well.",
        advice="Look at nvidia-smi and lower the batch size. Take other CUDA and cuDNN folders out of "
        "LD_LIBRARY_PATH: torch brings its own. Run the same batch on the CPU, which names a wrong shape "
        "or index.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="mps-float64",
        title="Apple GPUs have no float64",
        pattern=r"MPS framework doesn'?t support float64|MPS backend (?:but it )?(?:does(?: not|n'?t) "
        r"(?:have )?support|doesn'?t support) "
        r"(?:for )?(?:that dtype|float64|complex128|complex)|Trying to convert (?:complex\w{0,8}|double|"
        r"float64) to the MPS",
        cause="The mps device does not support float64 (double) or complex128, and such a tensor was moved "
        "or loaded there. NumPy arrays are float64 by default.",
        advice="Convert before moving: tensor.float().to('mps'), or np.float32 in NumPy. For a file that "
        "holds such tensors, load with map_location='cpu', convert them with .float(), then move.",
        tie=_float64,
    ),
    ErrorKind(
        id="mps-placeholder",
        title="The model is on the Apple GPU (mps), its input on the CPU",
        pattern=r"Placeholder storage has not been allocated on MPS|Placeholder tensor is empty",
        cause="On mps this is how tensors on different devices show: the weights of the layer are on mps, "
        "and its input, or another tensor it needs, is still on the CPU (or the other way round).",
        advice="Move both: model.to('mps') and inputs = inputs.to('mps'), also token ids, masks and hidden "
        "states. Tensors made in forward() need device=x.device.",
        tie=about_code(
            "Where the tensors of this file were saved does not decide it: the code moves model and input."
        ),
    ),
    ErrorKind(
        id="mps-unsupported",
        title="The Apple GPU (mps) does not have this operation",
        pattern=r"The operator '?aten::[\w.:]{1,60}'? is not currently (?:implemented|supported) (?:for|on) "
        r"the MPS|"
        r"not (?:implemented|supported) (?:for|on) (?:the )?MPS|Output channels > 65536 not supported at "
        r"the MPS|"
        r"MPS: (?:un)?supported|not supported on MPS|MPSNDArray|The MPS backend is supported on MacOS",
        cause="torch does not have this operation on Apple GPUs, or not in this version of torch or macOS.",
        advice="Set PYTORCH_ENABLE_MPS_FALLBACK=1 before Python starts: such operations then run on the "
        "CPU. Or update torch and macOS, or use device='cpu'.",
        tie=ABOUT_CODE,
        say=_mps_dtype,
    ),
    ErrorKind(
        id="xformers",
        title="xformers has no attention for this device or dtype",
        pattern=r"No operator found for '?memory_efficient_attention|xformers? wasn'?t build with CUDA|"
        r"xFormers can'?t load C\+\+/CUDA extensions",
        cause="xformers was built for another torch, or without CUDA, or the tensors are on the CPU or in "
        "float32, where its kernels do not run.",
        advice="Install the xformers that belongs to this torch (pip install -U xformers installs both), "
        "or turn it off: torch 2 has scaled_dot_product_attention of its own.",
        tie=ABOUT_CODE,
    ),
)
