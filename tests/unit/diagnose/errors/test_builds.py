"""Builds of torch and of extensions that lack something."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.machine import is_of_system, package_with
from tests.unit.diagnose.explaining import explained, on

BACKEND = "NotImplementedError: Could not run '{}' with arguments from the '{}' backend."
BACKENDS = (
    ("aten::empty_strided", "CUDA", "CPU-only build"),
    ("torchvision::nms", "CUDA", "installed without CUDA"),
    ("quantized::conv2d.new", "CPU", "quantized"),
    ("aten::add.out", "QuantizedCPU", "quantized"),
    ("aten::_local_scalar_dense", "Meta", "meta device"),
    ("aten::addcmul_", "SparseCPU", "sparse"),
    ("torchvision::nms", "MPS", "Apple GPU"),
    ("aten::odd", "XPU", "for this device"),
)


def test_backends() -> None:
    titles = [explain_error(BACKEND.format(name, backend), None).title for name, backend, _ in BACKENDS]
    assert [title for title, row in zip(titles, BACKENDS, strict=True) if row[2] not in title] == []


def test_since_when_torch_knows_an_argument() -> None:
    found = explain_error("TypeError: 'weights_only' is an invalid keyword argument for Unpickler()", None)
    assert "came with torch 1.13" in found.cause
    assert "every file as weights_only=False would" in found.advice
    found = explain_error("AttributeError: module 'torch' has no attribute 'compile'", None)
    assert found.advice == "Update torch to 2.0 or newer. Or leave compile out."
    odd = explain_error("AttributeError: module 'torch.odd' has no attribute 'thing'", None)
    assert odd.id == "torch-import"


def test_a_file_on_cuda_asks_for_it() -> None:
    text = "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'"
    assert explained(text, on(("a", "cuda:0")), id_="cpu-only-build").fits == "yes"
    assert explained(text, on(("a", "cpu")), id_="cpu-only-build").fits == "no"


def test_libraries_of_torch_itself_are_no_extension() -> None:
    text = "ImportError: {}: undefined symbol: cudaX"
    assert "force-reinstall torch" in explain_error(text.format("/x/torch/lib/libtorch_cuda.so"), None).advice
    assert "every compiled extension" in explain_error(text.format("/x/_ext.so"), None).advice


MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"


def test_whose_library_is_missing() -> None:
    frame = '  File "/v/site-packages/torch/__init__.py", line 1, in <module>\n    x\n'
    assert "CUDA 10.1" not in explain_error(MISSING.format("libcudart.so"), None).cause
    said = explain_error(MISSING.format("libcudart.so.10.1"), None)
    assert "libcudart.so is a library of CUDA, and its number (10.1)" in said.cause
    assert "force-reinstall torch" in explain_error(frame + MISSING.format("libcudnn.so.9"), None).advice
    assert "a library of CUDA" not in explain_error(MISSING.format("libnvinfer.so.8"), None).cause
    for name in ("libc10.so", "libtorch_cuda_cu.so"):
        assert "import torch above" in explain_error(MISSING.format(name), None).advice
    assert explain_error(MISSING.format("libGL.so.1"), None).id == "system-library"
    page = "ImportError: DLL load failed: The paging file is too small for this operation to complete."
    assert explain_error(page, None).id == "host-memory"


def test_symbols_of_torchs_python_binding_want_torch_first() -> None:
    text = "ImportError: x/lltm_cpp.so: undefined symbol: THPVariableClass"
    assert "Write import torch above" in explain_error(text, None).advice


def test_operators_of_torchvision_that_are_not_loaded() -> None:
    assert "not loaded" in explain_error("RuntimeError: No such operator torchvision::nms", None).title
    xla = "Could not run 'aten::empty_strided' with arguments from the 'XLA' backend."
    assert "xm.save" in explain_error(xla, None).advice
    library = "bitsandbytes/libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats"
    assert explain_error(library, None).id == "bitsandbytes"


OF_INSTALLING_MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"
BUILD = "Complete output from command python setup.py egg_info:\nModuleNotFoundError: No module named '{}'"


def test_packages_that_bring_libraries() -> None:
    brought = {
        "libGL.so.1": "libgl1",
        "libGLU.so.1": "libglu1-mesa",
        "libavcodec.so.58": "ffmpeg",
        "libsndfile.so": "libsndfile1",
        "libcudart.so.11.0": "",
        "libc10.so": "",
    }
    assert {name: package_with(name) for name in brought} == brought
    assert is_of_system("libcuda.so.1")
    assert not is_of_system("libcudart.so.12")


def test_a_missing_library_names_its_package() -> None:
    found = explain_error(OF_INSTALLING_MISSING.format("libGL.so.1"), None)
    assert "apt-get install libgl1." in found.advice
    assert "opencv-python-headless" in found.advice
    assert "headless" not in explain_error(OF_INSTALLING_MISSING.format("libgomp.so.1"), None).advice
    assert "libsndfile1" in explain_error("OSError: sndfile library not found", None).advice
    loaded = "OSError: cannot load library 'libportaudio.so.2'"
    assert "libportaudio2" in explain_error(loaded, None).advice
    assert "--gpus all" in explain_error(OF_INSTALLING_MISSING.format("libcuda.so.1"), None).advice


def test_pip_builds_without_what_is_installed() -> None:
    isolated = explain_error(BUILD.format("torch"), None)
    assert isolated.id == "pip-build"
    assert "--no-build-isolation" in isolated.advice
    assert "--upgrade pip" in explain_error(BUILD.format("skbuild"), None).advice
    uv = "Failed to build 'flash-attn==2.5.8'\nModuleNotFoundError: No module named 'torch'"
    assert "--no-build-isolation" in explain_error(uv, None).advice
    plain = explain_error("ERROR: Failed building wheel for tokenizers", None)
    assert "Look at the first error above" in plain.advice
    assert explain_error("ModuleNotFoundError: No module named 'skbuild'", None).id == "module-missing"
