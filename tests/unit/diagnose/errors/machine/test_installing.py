"""What pip cannot build, and libraries of the system that are not there."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.machine.installing import is_of_system, package_with

MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"
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
    found = explain_error(MISSING.format("libGL.so.1"), None)
    assert "apt-get install libgl1." in found.advice
    assert "opencv-python-headless" in found.advice
    assert "headless" not in explain_error(MISSING.format("libgomp.so.1"), None).advice
    assert "libsndfile1" in explain_error("OSError: sndfile library not found", None).advice
    loaded = "OSError: cannot load library 'libportaudio.so.2'"
    assert "libportaudio2" in explain_error(loaded, None).advice
    assert "--gpus all" in explain_error(MISSING.format("libcuda.so.1"), None).advice


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
