"""Messages about the machine: builds and kernels of torch, GPUs, memory, and what other processes do."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, Said, Tied, Told
from inspector.diagnose.errors.ties import (
    ABOUT_CODE,
    devices_of,
    fix_for,
    of_finding,
    paths_on,
    paths_with_dtype,
)
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.model.obstacles import is_damaged
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import device_totals
from inspector.pickles.values import package_of
from inspector.units import escape_text, format_count, format_nbytes

# --- builds of torch, and of what is built against it -------------------------------------------------------


def tie_on_cuda(context: Context) -> Tied:
    """Find what torch.load would put on CUDA again."""
    devices = devices_of(context, "cuda")
    if not devices:
        return Tied(fits="no", here="No tensor of this file was saved on CUDA: your code asks for it.")
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again. Your code may, too."
    return Tied(fits="yes", here=here, paths=paths_on(context, devices), fix=fix_for(context, devices))


def when_mismatch(told: Told) -> bool:
    """Return whether the library belongs to what is compiled for torch, and memory was not the trouble."""
    if _NO_MEMORY.search(told.text) or "libbitsandbytes" in told.text:
        return False
    missing = _MISSING.search(told.text)
    return missing is None or not is_of_system(missing["library"])


def say_mismatch(told: Told) -> Said:
    """Explain whose library it is: torch's own, CUDA's, or an extension's."""
    missing = _MISSING.search(told.text)
    if missing is not None and _LOADED_BY_TORCH.match(missing["library"]):
        return _WITHOUT_TORCH
    if _OF_PYTHON_BINDING.search(told.text):
        return _WITHOUT_TORCH
    in_torch = any(frame.place.endswith("torch/__init__.py") for frame in told.pasted.frames[-3:])
    if missing is not None and missing["version"] and not in_torch and _OF_CUDA.match(missing["library"]):
        return _other_cuda(missing["library"], missing["version"])
    if not in_torch and not _OF_TORCH.search(told.text):
        return Said()
    named = "" if missing is None else f" ({plain(missing['library'])} is not found)"
    return Said(
        title="torch was installed with libraries that do not belong together",
        cause=f"torch itself could not be imported{named}: its libraries, or those of CUDA that it finds "
        "first (in LD_LIBRARY_PATH, or from pip's nvidia packages), are missing or of different versions. "
        "On a "
        "Jetson torch uses the CUDA of JetPack, which has to be installed and of the version that torch was "
        "built for.",
        advice="Install torch again in a clean environment: python -m pip install --force-reinstall torch. "
        "Take other CUDA folders out of LD_LIBRARY_PATH (unset LD_LIBRARY_PATH). On Windows also install "
        "the Visual C++ runtime.",
    )


def _other_cuda(library: str, version: str) -> Said:
    """Explain which CUDA an extension was built for."""
    return Said(
        cause=f"{plain(library)} is a library of CUDA, and its number ({plain(version)}) is that of the CUDA "
        "which the package was built for. There is no such library here: torch brings those of "
        "torch.version.cuda only.",
        advice="Install the package's wheel for the CUDA that torch.version.cuda shows, or build it again "
        "from source against this torch. Linking another version under that name does not help.",
    )


_OF_PYTHON_BINDING = re.compile(r"undefined symbol: ?_?(?:Z\w{0,6})?THP\w", re.IGNORECASE)
_NO_MEMORY = re.compile(r"paging file|(?:WinError|os error) 1455", re.IGNORECASE)
_MISSING = re.compile(
    r"(?P<library>lib[\w+-]{1,40}(?:\.\d{1,2})?\.so)(?:\.(?P<version>\d{1,3}(?:\.\d{1,3}){0,3}))?: "
    r"cannot open shared object file"
)
_OF_CUDA = re.compile(r"lib(?:cu(?:dart|blas|fft|rand|solver|sparse|pti)|nvrtc|nvToolsExt|nvJitLink|npp)")
_LOADED_BY_TORCH = re.compile(r"lib(?:c10|torch)\w{0,30}\.so$")
_WITHOUT_TORCH = Said(
    cause="A compiled extension needs the libraries of torch (libc10, libtorch), and they are not found: it "
    "was imported before torch, or it was built for another version of torch, whose libraries had other "
    "names.",
    advice="Write import torch above the import of the extension. If that does not help, install or build "
    "the extension again for the installed torch.",
)
_OF_TORCH = re.compile(
    r"torch[/\\]lib[/\\]|libtorch_?\w{0,20}\.so|torch/_C\.|libnvJitLink|nvJitLink|libcus\w{3,12}\.so|"
    r"libcudnn\w{0,30}\.so|(?:shm|fbgemm|c10)\.dll"
)


def say_backend(told: Told) -> Said:
    """Explain what a missing backend means, by the operator and the backend that the message names."""
    operator, backend = told.groups["operator"].lower(), told.groups["backend"].lower()
    if not operator and _NO_OPERATOR.search(told.text):
        return _NOT_LOADED
    if backend in {"", "cuda", "hip"}:
        return _CPU_BUILD if operator.startswith("aten::") else Said()
    if "quantized" in operator or "quantized" in backend:
        return _QUANTIZED
    return _OF_BACKEND.get(backend.removesuffix("cpu").removesuffix("cuda"), _OTHER_BACKEND)


_NO_OPERATOR = re.compile(r"no such operator|does not exist|Unknown builtin op", re.IGNORECASE)
_NOT_LOADED = Said(
    title="torchvision's compiled operators are not loaded",
    cause="torch does not know torchvision::nms and the like: torchvision was built for another torch, was "
    "built from source without its C++ part, or is not imported before a TorchScript model that uses it.",
    advice="Install torch and torchvision together, of the same release: pip install -U torch torchvision. "
    "Import torchvision before torch.jit.load.",
)
_CPU_BUILD = Said(
    title="This torch has no CUDA: it is a CPU-only build",
    cause="An operation was asked for on CUDA, and this build of torch has no CUDA code at all (a CPU-only "
    "build, or one that was stripped for mobile). The file or the code names a CUDA device.",
    advice="Load with map_location='cpu' (torch.jit.load(path, map_location='cpu') for TorchScript) and "
    "move nothing to cuda. For the GPU, install a CUDA build of torch from pytorch.org.",
)
_QUANTIZED = Said(
    title="A quantized operation got an ordinary tensor, or the other way round",
    cause="Quantized layers compute with quantized tensors on the CPU only. The input was not quantized "
    "(QuantStub missing), a layer was not converted, or the model was moved to a GPU.",
    advice="Keep a quantized model on the CPU, and put QuantStub and DeQuantStub around it (or call the "
    "model that convert() returned). For a GPU load the model that is not quantized.",
)
_META = Said(
    title="A tensor on the meta device has no data",
    cause="The operation got a tensor on the meta device, which has a shape but no data: the weights were "
    "never loaded.",
    advice="Load the weights with load_state_dict(state_dict, assign=True), or build the model without "
    "device='meta' (low_cpu_mem_usage=False in from_pretrained).",
)
_SPARSE = Said(
    title="The operation does not exist for sparse tensors",
    cause="The operation got a sparse tensor and is defined for dense ones only: an embedding with "
    "sparse=True has sparse gradients, which Adam and most optimizers refuse.",
    advice="Convert it: tensor.to_dense(), or use sparse=False (or SparseAdam, SGD).",
)
_MPS = Said(
    title="The Apple GPU (mps) does not have this operation",
    cause="torch does not have this operation on Apple GPUs, or not in this version.",
    advice="Set PYTORCH_ENABLE_MPS_FALLBACK=1 before Python starts, update torch, or run it on the CPU: "
    ".to('cpu').",
)
_OTHER_BACKEND = Said(
    title="The operation does not exist for this device",
    cause="torch found no code for this operation on the device that the tensors are on: the package that "
    "brings it was built without that device, or the operation is not defined there.",
    advice="Run it on the CPU (model.to('cpu'), inputs.to('cpu')), or install the package's build for this "
    "device, of the same release as torch.",
)


_XLA = Said(
    title="The tensors are on a TPU (XLA), and torch_xla is not here",
    cause="The file was saved with tensors on a TPU, whose form map_location does not change; or the code "
    "runs XLA tensors without torch_xla.",
    advice="Move them to the CPU where they were made and save again: xm.save(model.state_dict(), path), or "
    "tensor.cpu() before torch.save. To read such a file import torch_xla first; this program can write a "
    "copy of it for the CPU.",
)
_OF_BACKEND = {"meta": _META, "mps": _MPS, "sparse": _SPARSE, "sparsecsr": _SPARSE, "xla": _XLA}


def say_too_old(told: Told) -> Said:
    """Explain since when torch knows the argument or the name."""
    name = told.groups.get("name") or told.groups.get("name2") or told.groups.get("name3", "")
    since = _SINCE[name.lower()]
    return Said(
        cause=f"{name} came with torch {since}: the torch that is installed is older than the code (or the "
        "instructions).",
        advice=f"Update torch to {since} or newer. Or leave {name} out.{_WITHOUT.get(name.lower(), '')}",
    )


_SINCE = {
    "weights_only": "1.13",
    "mmap": "2.1",
    "assign": "2.1",
    "add_safe_globals": "2.4",
    "safe_globals": "2.5",
    "get_unsafe_globals_in_checkpoint": "2.5",
    "set_default_load_endianness": "2.1",
    "untypedstorage": "2.0",
    "compile": "2.0",
    "xpu": "2.0",
    "float8_e4m3fn": "2.1",
    "float8_e5m2": "2.1",
    "uint16": "2.3",
    "uint32": "2.3",
    "uint64": "2.3",
    "register_pytree_node": "2.2",
    "set_default_device": "2.0",
    "get_default_device": "2.3",
    "scaled_dot_product_attention": "2.0",
    "_use_new_zipfile_serialization": "1.4",
    "fused": "1.13",
    "foreach": "1.12",
    "capturable": "1.12",
    "maximize": "1.11",
    "is_autocast_available": "2.4",
    "mps": "1.12",
    "device_mesh": "2.2",
    "rmsnorm": "2.4",
    "custom_op": "2.4",
}
_WITHOUT = {
    "weights_only": " Older versions load every file as weights_only=False would: load only files you trust.",
    "mmap": " The file is then read into memory as a whole.",
    "assign": " load_state_dict then copies into the tensors of the model.",
}
NEW = "|".join(name for name in _SINCE if name not in {"compile", "mps"})


# What pip, its build environments and uv print around the error of a package that they build.
_BUILDING = re.compile(
    r"setup\.py egg_info|pip-build-env-|[/\\]pip-(?:build|install|req-build|wheel)-|get_requires_for_build_|"
    r"Failed (?:building|to build).{0,20} wheel|legacy-install-failure|Could not build wheels for|"
    r"Failed to (?:download and )?build '|metadata-generation-failed|prepare_metadata_for_build_|"
    r"Getting requirements to build|The build backend returned an error|[/\\]builds-v\d",
    re.IGNORECASE,
)
_MOST_SEARCHED = 64 * 1024
# Modules that a setup.py imports though pip does not put them into the environment that it builds in.
_IMPORTED_BY_SETUP = frozenset({"torch", "numpy", "Cython", "packaging", "wheel", "psutil", "pkg_resources"})

_DRIVER = "libcuda.so libnvidia-ml.so libnvcuvid.so libnvidia-encode.so"
# Packages of Debian and Ubuntu, by the beginning of the library's name; the longest that fits counts.
_BROUGHT_BY = {
    "libGL": "libgl1",
    "libGLU": "libglu1-mesa",
    "libEGL": "libegl1",
    "libGLES": "libgles2",
    "libOpenGL": "libopengl0",
    "libOSMesa": "libosmesa6",
    "libglfw": "libglfw3",
    "libgthread-2.0": "libglib2.0-0",
    "libglib-2.0": "libglib2.0-0",
    "libgobject-2.0": "libglib2.0-0",
    "libSM": "libsm6",
    "libICE": "libice6",
    "libX11": "libx11-6",
    "libXext": "libxext6",
    "libXrender": "libxrender1",
    "libxcb": "libxcb1",
    "libsndfile": "libsndfile1",
    "libsox": "libsox-dev sox",
    "libportaudio": "libportaudio2",
    "libav": "ffmpeg",
    "libswresample": "ffmpeg",
    "libswscale": "ffmpeg",
    "libgomp": "libgomp1",
    "libnuma": "libnuma1",
    "libaio": "libaio-dev",
    "libopenblas": "libopenblas0",
    "libgfortran": "libgfortran5",
    "libmpi": "libopenmpi-dev",
    "libibverbs": "libibverbs1",
    "librdmacm": "librdmacm1",
    "libturbojpeg": "libturbojpeg",
    "libgeos": "libgeos-dev",
    "libspatialindex": "libspatialindex-dev",
    "libtinfo": "libtinfo5",
    "libcrypt": "libcrypt1",
    "libssl": "libssl-dev",
    "libffi": "libffi-dev",
}


def when_building(told: Told) -> bool:
    """Return whether pip (or uv) was building a package, so that no program ran yet."""
    flat = told.pasted.flat
    return _BUILDING.search(f"{flat[:_MOST_SEARCHED]} {flat[-_MOST_SEARCHED:]}") is not None


def say_build(told: Told) -> Said:
    """Explain why a setup.py does not find a module that may well be there."""
    name = told.groups.get("module", "").strip(".")
    if not name:
        return Said()
    if package_of(name) in _IMPORTED_BY_SETUP:
        return Said(
            title=f"pip builds a package in an environment without {plain(name)}",
            cause=f"The package's setup.py imports {plain(name)}. pip builds packages in an environment of "
            "their own, where what you have installed is not seen. (Old versions of pip build in the "
            "Python at hand, where it then has to be.) No checkpoint is involved.",
            advice=f"With {plain(name)}, setuptools and wheel in place, build without that environment: "
            "python -m pip install --no-build-isolation PACKAGE. Or install a wheel that is already built "
            "for this Python and torch.",
        )
    return Said(
        cause=f"pip found no wheel of the package for this Python, so it builds the package from source, "
        f"and its setup.py needs {plain(name)}. An old pip does not know the newer kinds of wheels and does "
        "not install what a build needs. No checkpoint is involved.",
        advice="Update pip, which then finds a wheel: python -m pip install --upgrade pip setuptools wheel. "
        "If there is none for this Python, use another version of Python or of the package.",
    )


def package_with(library: str) -> str:
    """Return the package of Debian and Ubuntu that brings a library; empty where it is not known."""
    known = [name for name in _BROUGHT_BY if library.startswith(name)]
    return _BROUGHT_BY[max(known, key=len)] if known else ""


def is_of_system(library: str) -> bool:
    """Return whether a library belongs to the system, rather than to CUDA, torch or an extension."""
    return bool(package_with(library)) or _is_of_driver(library)


def _is_of_driver(library: str) -> bool:
    return library.partition(".so")[0] + ".so" in _DRIVER.split()


def _library(told: Told) -> str:
    return told.groups["library"] or told.groups["loaded"] or "libsndfile.so"


def say_system(told: Told) -> Said:
    """Explain which package brings the library."""
    library = _library(told)
    if _is_of_driver(library):
        return Said(
            title="The NVIDIA driver's libraries are not here",
            cause=f"{plain(library)} belongs to the NVIDIA driver, not to torch: there is no driver on this "
            "machine, or the container was started without the GPUs.",
            advice="Install the driver, or start the container with --gpus all (--nv with Singularity). "
            "On a machine without a GPU install the CPU builds of torch and of the package.",
        )
    package = package_with(library)
    more = " Or use opencv-python-headless, which needs no display." if library in _OF_DISPLAYS else ""
    return Said(
        cause=f"A package loads {plain(library)}, a shared library of the system, which is not installed "
        "here: small containers leave it out. It has nothing to do with torch or a file.",
        advice=f"Debian and Ubuntu: apt-get install {package}. With conda, the package of the same library "
        f"from conda-forge.{more}",
    )


_OF_DISPLAYS = frozenset(
    {"libGL.so.1", "libSM.so.6", "libXext.so.6", "libXrender.so.1", "libgthread-2.0.so.0", "libICE.so.6"}
)


def when_system_library(told: Told) -> bool:
    """Return whether the missing library comes with the system, not with a package of Python."""
    return is_of_system(_library(told))


# --- GPUs ---------------------------------------------------------------------------------------------------

_GPU = re.compile(r"(?P<name>[\w() -]{3,60}?) with CUDA capability (?P<sm>sm_\d{2,3}) is not compatible")
_KNOWN = re.compile(r"supports CUDA capabilities (?P<list>(?:(?:sm|compute)_\d{2,3}[a-z]? ?){1,40})")
_OLDEST_NEW = 90
_VOLTA = 70


def say_kernel_image(told: Told) -> Said:
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


def say_device_assert(told: Told) -> Said:
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


def say_mps_dtype(told: Told) -> Said:
    """Explain that a dtype is missing rather than an operation."""
    if "bfloat16" not in told.text.lower():
        return Said()
    return Said(
        title="The Apple GPU (mps) has no bfloat16 here",
        cause="bfloat16 on mps needs macOS 14 and torch 2.6 or so; this torch or macOS is older.",
        advice="Use float16 or float32: torch_dtype=torch.float16, model.half(), or .float(). Or update "
        "macOS and torch.",
    )


def tie_float64(context: Context) -> Tied:
    """Find the tensors of this file that Apple's GPUs cannot hold."""
    paths = paths_with_dtype(context, "float64", "complex128")
    if paths:
        here = f"{format_count(len(paths), 'tensor')} of this file are float64 or complex128."
        return Tied(fits="yes", here=here, paths=paths)
    return Tied(
        fits="no",
        here="No tensor in this file is float64: the tensor comes from your code, usually from NumPy.",
    )


# --- processes that were killed -----------------------------------------------------------------------------


def say_killed(told: Told) -> Said:
    """Explain what to do where the load itself was killed."""
    if told.scene.step in {"load", "load-weights"} or "load" in told.pasted.flat.lower():
        return Said(
            advice="Load with map_location='cpu', mmap=True and weights_only=True, which reads only what is "
            "used; build the model under torch.device('meta') and call load_state_dict(..., assign=True), "
            "so that the weights are in memory once. Leave out the optimizer state. More swap helps, too."
        )
    return Said()


# --- other processes, and threads ---------------------------------------------------------------------------

_BUS_ERROR = re.compile(
    r"bus error|\bsigbus\b|signal 7\b|exit(?:ed)?(?: with)? (?:code|status):? ?(?:135|-7)\b"
)


def say_worker(told: Told) -> Said:
    """Explain what ended the worker, where the message has the signal."""
    text = told.pasted.flat.lower()
    if _is_of_map(text):
        return Said(
            title="The process read what a file or the shared memory no longer has (bus error)",
            cause="A file that is mapped (torch.load(mmap=True), safetensors, numpy's mmap_mode) was cut or "
            "replaced while it was read, or its disk failed or filled up. Where workers hand batches over, "
            "it is /dev/shm that is full.",
            advice="Write checkpoints under another name and rename them when they are whole; load without "
            "mmap. In a container start with --shm-size=8g, or use num_workers=0.",
        )
    if "bus error" in text or "shared memory" in text or "shm" in text:
        return Said(
            cause="The workers hand batches over in shared memory (/dev/shm), and there is not enough: a "
            "container has 64 MB unless told otherwise.",
            advice="Start the container with --shm-size=8g (or --ipc=host), or use num_workers=0.",
        )
    if "killed by signal: killed" in text:
        return Said(
            cause="The system ended a worker because the machine ran out of memory: each worker holds its "
            "own copy of what the dataset touches.",
            advice="Use fewer workers (num_workers=0 or 2) or a smaller batch.",
        )
    return Said()


def _is_of_map(text: str) -> bool:
    """Return whether a text of small letters has a bus error, and nothing of workers or shared memory."""
    is_bus_error = _BUS_ERROR.search(text) is not None
    return is_bus_error and not ("worker" in text or "shm" in text or "shared memory" in text)


def tie_worker(context: Context) -> Tied:
    """Report whether the file may be the one that was shorter than its map."""
    if not _is_of_map(context.pasted.flat.lower()):
        return ABOUT_CODE(context)
    if is_damaged(context.checkpoint):
        return Tied(
            fits="yes",
            here="Bytes of this file are missing: a program that maps it (mmap=True) and reads them ends so.",
            finding="truncated",
            fix=Fix(recovers=True),
        )
    return Tied(
        fits="unknown",
        here="This file is whole now; whether it was while the program ran cannot be told from it.",
    )


def say_nccl(told: Told) -> Said:
    """Explain what NCCL reports, where it says more than that it failed."""
    text = told.pasted.flat.lower()
    if "out of memory" in text:
        return Said(
            cause="NCCL found no GPU memory left.",
            advice="Lower the batch size; look for other programs in nvidia-smi.",
        )
    if "timeout" in told.text.lower() or "timed out" in told.text.lower():
        return Said(
            title="A process waited in vain for the others",
            cause="Another process stopped or did something else: it raised an error of its own, ran out "
            "of memory, or only rank 0 saves or evaluates while the others wait.",
            advice="Look for the first error of any rank above. Call the same collective operations on "
            "every rank; where rank 0 works alone, let the others wait in dist.barrier(), or raise "
            "timeout= in init_process_group.",
        )
    return Said()


def say_pin(told: Told) -> Said:
    """Explain that the thread lost its workers, where it ended without an error of its own."""
    if not told.groups["lost"] and not told.groups["ended"]:
        return Said()
    return Said(
        cause="With pin_memory=True a thread copies batches into memory that the GPU reads directly, and it "
        "ended early: it lost the connection to the workers (they were killed, or the program was ending), "
        "or it stopped between epochs, which torch 1.7 and 1.8 do with persistent_workers=True.",
        advice="Pass pin_memory=False to the DataLoader, which changes nothing but speed, or "
        "persistent_workers=False; or update torch. num_workers=0 shows an error that a worker hides.",
    )


def when_fork_cuda(told: Told) -> bool:
    """Return whether it was a worker of a DataLoader that a start of CUDA failed in."""
    return not told.groups["start"] or "_worker_loop" in told.pasted.flat


def when_pin_memory(told: Told) -> bool:
    """Return whether a lost connection is that of the thread that pins memory."""
    return not told.groups["lost"] or told.scene.step == "pin"


# --- memory -------------------------------------------------------------------------------------------------

_LITTLE_NBYTES = 100_000_000  # no machine that runs torch ends at less
_UNITS = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_SIZE = r"(?P<{}>\d{{1,6}}(?:\.\d{{1,4}})?) ?(?P<{}_unit>[KMGT]i?B)"
_TRIED = re.compile(rf"Tried to allocate {_SIZE.format('n', 'n')}", re.IGNORECASE)
_TOTAL = re.compile(rf"{_SIZE.format('n', 'n')} (?:total capacity|of which)", re.IGNORECASE)
_CAPACITY = re.compile(rf"total capacity of {_SIZE.format('n', 'n')}", re.IGNORECASE)
_FREE = re.compile(rf"{_SIZE.format('n', 'n')} (?:is )?free", re.IGNORECASE)
_OWN = re.compile(rf"{_SIZE.format('n', 'n')} (?:reserved in total|memory in use)", re.IGNORECASE)
_ALLOCATED = re.compile(rf"{_SIZE.format('n', 'n')} already allocated", re.IGNORECASE)
_CACHED = re.compile(rf"{_SIZE.format('n', 'n')} cached", re.IGNORECASE)
_MUCH_ELSE = 0.4  # of the card; contexts of CUDA and the desktop take less
_LOADS = frozenset({"load", "nested-load", "script-load", "load-weights", "load-optimizer"})


def tie_memory(context: Context) -> Tied:
    """Report what this file puts on each device."""
    for id_ in ("does-not-fit", "all-ranks-on-one-device"):
        found = context.findings.get(id_)
        if found is not None:
            return of_finding(found, in_full=True)
    totals = [total for total in device_totals(context.checkpoint) if is_accelerator(total.device)]
    if not totals:
        here = (
            "This file puts nothing on a GPU: the memory is used by the model, its batches, or other "
            "programs."
        )
        return Tied(fits="no", here=here)
    shown = listed([f"{format_nbytes(total.nbytes)} on {total.device}" for total in totals])
    return Tied(
        fits="yes",
        here=f"Loaded without map_location, this file takes {shown}, in addition to the model itself.",
        paths=paths_on(context, [total.device for total in totals]),
        fix=Fix(option=("map_location", "'cpu'")),
    )


def _size(pattern: re.Pattern[str], text: str) -> float:
    """Return a size that a message names, in bytes; 0 where it names none."""
    match = pattern.search(text)
    return float(match["n"]) * _UNITS.get(match["n_unit"].lower(), 1) if match is not None else 0


def say_out_of_memory(told: Told) -> Said:
    """Explain what filled the GPU, by the sizes in the message and by what the program was doing."""
    tried, total = _size(_TRIED, told.text), _size(_TOTAL, told.text) or _size(_CAPACITY, told.text)
    # Before torch 1.5 what was cached came on top of what was allocated.
    own = _size(_OWN, told.text) or _size(_ALLOCATED, told.text) + _size(_CACHED, told.text)
    free = _size(_FREE, told.text)
    if tried and (tried > total > 0 or tried > _HUGE_NBYTES):
        return Said(
            title="A single tensor is larger than the GPU",
            cause=f"One operation asked for {format_nbytes(round(tried))} at once, which no setting makes "
            "fit: an image of too high a resolution, a sequence that is too long (attention grows with its "
            "square), a batch that is too large, or a wrong shape.",
            advice="Print the shape of the input. Use a smaller image (resize, or tiles), a shorter input "
            "or a smaller batch; for attention use scaled_dot_product_attention or flash attention.",
        )
    if total and free and own and total - free - own > _MUCH_ELSE * total:
        used = format_nbytes(round(total - free - own))
        return Said(
            title="Another program uses the memory of the GPU",
            cause=f"Of {format_nbytes(round(total))} this process has {format_nbytes(round(own))}, and "
            f"{format_nbytes(round(free))} are free: about {used} belong to other processes, such as a run "
            "that was not ended, a notebook, or another user's.",
            advice="nvidia-smi shows them: end those that are yours (a crashed run may still be there), "
            "or use another GPU: CUDA_VISIBLE_DEVICES=1, and map_location='cpu' for checkpoints, which "
            "otherwise go to the GPU they were saved on. Only then lower the batch size.",
        )
    if told.scene.step in _LOADS:
        return Said()
    known = told.scene.has_frames and told.scene.step
    return Said(
        cause="The model, what the forward pass keeps for the gradients, the optimizer (Adam: twice the "
        "weights) and the batch together do not fit"
        + ("." if known else ", or other programs use the GPU, or a checkpoint was loaded onto it as well.")
        + " What was loaded without map_location stays on the GPU in addition.",
        advice="Lower the batch size, the resolution of the input or the length of the sequences; see in "
        "nvidia-smi whether other programs use the GPU. For inference: torch.no_grad() and model.half(). "
        "For training: mixed precision, gradient checkpointing and accumulation. When resuming, load with "
        "map_location='cpu' and delete the checkpoint before training continues. "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragments.",
    )


_HUGE_NBYTES = 100 << 30


def tie_host_memory(context: Context) -> Tied:
    """Report how much of the machine's memory this file takes."""
    nbytes = sum(storage.nbytes for storage in context.checkpoint.storages)
    if nbytes < _LITTLE_NBYTES:
        here = f"The tensors of this file take {format_nbytes(nbytes)}: that is not what filled the memory."
        return Tied(fits="no", here=here)
    here = (
        f"The tensors of this file take {format_nbytes(nbytes)}; a model in memory takes about as much again."
    )
    return Tied(fits="yes", here=here, fix=Fix(option=("mmap", "True")))


def _of_machine(told: Told) -> Said:
    """Explain what filled the machine: a file, or the program itself."""
    if told.scene.step in _LOADS:
        return Said(
            cause="torch.load reads the whole file into memory, in addition to the model. A damaged file, or "
            "one that is no checkpoint, can name sizes that no machine has, and ends in the same error.",
        )
    if "numpy" in told.text.lower() or told.scene.has_frames or "DefaultCPUAllocator" in told.text:
        return Said(
            cause="The program asked for more memory than is left: the data and what is computed from it, "
            "the model, its outputs that are kept, and the workers of the DataLoader together.",
            advice="Look at the line: a batch, an image or a list that grows. Use smaller batches and fewer "
            "workers, keep numbers (loss.item()) instead of tensors, and evaluate under torch.no_grad(). "
            "If it is the checkpoint that is read: torch.load(path, mmap=True).",
        )
    return Said()


def say_page(told: Told) -> Said:
    """Explain whose memory ended: Windows' has a limit of its own."""
    text = told.text.lower()
    if "paging file" not in text and "1455" not in text:
        return _of_machine(told)
    library = ".dll" in text
    return Said(
        title="Windows has no virtual memory left (the paging file is too small)",
        cause="Windows reserves virtual memory (RAM and paging file together) for all that is loaded. Here "
        "it ran out while "
        + (
            "a library of torch or CUDA was loaded: each Python process, such as each worker of a "
            "DataLoader, loads gigabytes of them."
            if library
            else "a file was mapped or read: mapping a checkpoint reserves its whole size."
        ),
        advice="Enlarge the paging file (System > Advanced system settings > Performance > Advanced > "
        "Virtual memory) on a disk with room, and restart. "
        + ("Use fewer workers: num_workers=0." if library else "Close other programs that hold memory."),
    )
