"""Messages of pip that builds a package, and of libraries of the system that a package needs."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import ErrorKind, Said, Told
from inspector.diagnose.errors.ties import ABOUT_MACHINE
from inspector.diagnose.listing import plain
from inspector.pickles.values import package_of

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

INSTALLING_ERRORS: tuple[ErrorKind, ...] = (
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
