"""Messages about builds of torch and its extensions, their libraries, and how packages are installed."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_MACHINE, devices_of, fix_for, paths_on
from inspector.diagnose.listing import listed, plain
from inspector.pickles.values import package_of


def _on_cuda(context: Context) -> Tied:
    """Find what torch.load would put on CUDA again."""
    devices = devices_of(context, "cuda")
    if not devices:
        return Tied(fits="no", here="No tensor of this file was saved on CUDA: your code asks for it.")
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again. Your code may, too."
    return Tied(fits="yes", here=here, paths=paths_on(context, devices), fix=fix_for(context, devices))


def _is_mismatch(told: Told) -> bool:
    """Return whether the library belongs to what is compiled for torch, and memory was not the trouble."""
    if _NO_MEMORY.search(told.text) or "libbitsandbytes" in told.text:
        return False
    missing = _MISSING.search(told.text)
    return missing is None or not is_of_system(missing["library"])


def _mismatch(told: Told) -> Said:
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


def _backend(told: Told) -> Said:
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


def _too_old(told: Told) -> Said:
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
_NEW = "|".join(name for name in _SINCE if name not in {"compile", "mps"})


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


def _is_building(told: Told) -> bool:
    """Return whether pip (or uv) was building a package, so that no program ran yet."""
    flat = told.pasted.flat
    return _BUILDING.search(f"{flat[:_MOST_SEARCHED]} {flat[-_MOST_SEARCHED:]}") is not None


def _build(told: Told) -> Said:
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


def _system(told: Told) -> Said:
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


BUILD_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="cpu-only-build",
        title="This torch was built without CUDA",
        pattern=r"module '?torch\._C'? has no attribute '?_cuda_(?:get|set)(?:Device|RNG|CurrentStream|"
        r"ArchFlags|Memory|Compiled|DriverVersion)\w{0,20}|"
        r"module '?torch\._C'? has no attribute '?_cuda_(?!customAllocator|beginAllocate)\w{1,40}|"
        r"libcudart functions unavailable|PyTorch was compiled without CUDA support|"
        r"Cannot get CUDA generator without ATen_cuda|Cannot initialize CUDA without ATen_cuda",
        finding="cuda-unavailable",
        cause="The code asks torch for a CUDA device, and the installed torch is a CPU-only build ('+cpu' "
        "in torch.__version__, or None in torch.version.cuda). A GPU and its driver make no difference "
        "then.",
        advice="Install a build of torch with CUDA (the selector on pytorch.org gives the command). To go "
        "on without, load with map_location='cpu' and take .cuda() and torch.cuda.set_device out of the "
        "code.",
        tie=_on_cuda,
    ),
    ErrorKind(
        id="backend-missing",
        title="An extension was installed without CUDA",
        pattern=r"Could not run ['\"]?(?P<operator>[\w:.]{1,80})['\"]? with arguments from the "
        r"['\"]?(?P<backend>\w{1,30})['\"]? backend|"
        r"implementation for device cuda:?\d? not found|Not compiled with GPU support|"
        r"Couldn'?t load custom C\+\+ ops|operator torchvision::nms does not exist|"
        r"no such operator:? ?torchvision::\w{1,20}|Unknown builtin op: ?\w{1,30}::\w{1,40}",
        cause="The tensors are on a GPU, and the package that brings the operator (torchvision, torchaudio "
        "or another extension) was built without CUDA or for another torch.",
        advice="Install torch and torchvision together, of the same release and CUDA: pip install -U torch "
        "torchvision --index-url https://download.pytorch.org/whl/cu124. Until then run that step on the "
        "CPU.",
        tie=ABOUT_MACHINE,
        say=_backend,
    ),
    ErrorKind(
        id="extension-mismatch",
        title="A compiled extension does not fit this torch",
        pattern=r"undefined symbol: ?\w{2,200}|DLL load failed|symbol not found in flat namespace|"
        r"specified (?:procedure|module) could not be found|error loading ['\"]?.{1,300}?\.dll|"
        r"cannot open shared object file|version '?(?:GLIBCXX|GLIBC|CXXABI)_[\d.]{1,12}'? not found|"
        r"detected that PyTorch and torch\w{2,12} were compiled with different CUDA|Library not loaded: "
        r"?@rpath",
        cause="A compiled library could not be loaded: it was built for another version of torch, CUDA or "
        "Python than the one installed, or a library it needs is not there.",
        advice="Install the extension again so that it fits: pip install --force-reinstall --no-cache-dir "
        "of the package, with the wheel for this torch and CUDA, or build it from source. After updating "
        "torch, every compiled extension must be built again. Take other CUDA folders out of "
        "LD_LIBRARY_PATH.",
        tie=ABOUT_MACHINE,
        when=_is_mismatch,
        say=_mismatch,
    ),
    ErrorKind(
        id="extension-build",
        title="A CUDA extension could not be built",
        pattern=r"CUDA_HOME environment variable is not set|Error building extension|Ninja is required to "
        r"load C\+\+|"
        r"detected CUDA version \([\d.]{1,8}\) mismatches the version|Unable to JIT load the|nvcc not found|"
        r"MSVC is required|"
        r"Error compiling objects for extension|nvcc fatal|unsupported GNU version|Unknown CUDA arch|"
        r"Command '?\['ninja|'?cl'? is not recognized|Unable to find cl",
        cause="The package compiles CUDA code when it is installed or first used, and the compiler (nvcc, "
        "of the same CUDA version as torch) or the C++ compiler is not there.",
        advice="Install the CUDA toolkit of torch.version.cuda and set CUDA_HOME to it, or install a wheel "
        "that is already built. For loading a checkpoint the extension is often not needed.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="bitsandbytes",
        title="bitsandbytes does not find CUDA",
        pattern=r"CUDA Setup failed despite (?:GPU|CUDA) being available|libbitsandbytes\w{0,20}\.(?:so|dll)|"
        r"CUDA is required but not available for bitsandbytes|str2optimizer\w{0,30}|"
        r"cquantize_blockwise|cget_col_row_stats|requires? (?:the latest version of )?bitsandbytes",
        cause="bitsandbytes computes in 8 or 4 bits on a GPU, and found no CUDA library that it was built "
        "for (or no GPU at all).",
        advice="pip install -U bitsandbytes, and run python -m bitsandbytes, which says what is missing. "
        "Without an NVIDIA GPU load the model without load_in_8bit and load_in_4bit.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="torch-too-old",
        title="This torch is older than the code",
        pattern=rf"got an unexpected keyword argument '?(?P<name>{_NEW})\b|"
        r"'?(?P<name2>weights_only|mmap)'? is an invalid keyword argument for|"
        rf"module '?torch(?:\.[\w.]{{1,40}})?'? has no attribute '?(?P<name3>{_NEW}|compile)\b",
        cause="The code uses an argument or a name that came with a later version of torch than the one "
        "installed.",
        advice="Update torch, or leave the argument out.",
        tie=ABOUT_MACHINE,
        say=_too_old,
    ),
    ErrorKind(
        id="torch-import",
        title="The code and the installed torch are of different versions",
        pattern=r"module '?torch(?:\.[\w.]{1,60})?'? has no attribute '?\w{1,60}|"
        r"cannot import name '?\w{1,60}'? from (?:partially initialized module )?"
        r"'?torch(?:\.[\w.]{1,60})?(?!\w)",
        cause="The code asks torch for a name that this version does not have: it was removed since (the "
        "code is older than torch), or it came later (the code is newer). A file of your own called "
        "torch.py does the same.",
        advice="Use the version of torch that the project asks for (its requirements.txt), or the "
        "project's newer version. See that no torch.py lies beside the script.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="system-library",
        title="A shared library of the system is missing",
        pattern=r"(?P<library>lib[\w+-]{1,40}(?:\.\d{1,2})?\.so[.\d]{0,12}): cannot open shared object file|"
        r"cannot load library '(?P<loaded>lib[\w+-]{1,40}\.so[.\d]{0,12})|sndfile library not found",
        cause="A package loads a shared library that is not installed here.",
        advice="Install the package of the system that brings it.",
        tie=ABOUT_MACHINE,
        when=lambda told: is_of_system(_library(told)),
        say=_system,
    ),
    ErrorKind(
        id="pip-build",
        title="pip could not build a package",
        pattern=r"No module named:? ?['\"]?(?P<module>[\w.]{1,120})|Failed building wheel for|"
        r"metadata-generation-failed|setup\.py egg_info|Failed to build (?:installable )?wheel|"
        r"legacy-install-failure|Could not build wheels for",
        cause="pip found no wheel of the package for this Python and builds it from source, which failed. "
        "No checkpoint is involved.",
        advice="Look at the first error above. Update pip (python -m pip install --upgrade pip setuptools "
        "wheel), or install a wheel that is already built for this Python and torch.",
        tie=ABOUT_MACHINE,
        when=_is_building,
        say=_build,
    ),
)
