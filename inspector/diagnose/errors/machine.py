"""Messages about the machine: builds and kernels of torch, GPUs, memory, and what other processes do."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.errors.ties import (
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
from inspector.units import escape_text, format_count, format_nbytes

# --- builds of torch, and of what is built against it -------------------------------------------------------


def tie_on_cuda(context: Context) -> Tied:
    """Find what torch.load would put on CUDA again."""
    devices = devices_of(context, "cuda")
    if not devices:
        return Tied(fits="no", here="No tensor of this file was saved on CUDA: your code asks for it.")
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again. Your code may, too."
    return Tied(fits="yes", here=here, paths=paths_on(context, devices), fix=fix_for(context, devices))


_MISSING = re.compile(
    r"(?P<library>lib[\w+-]{1,40}(?:\.\d{1,2})?\.so)(?:\.(?P<version>\d{1,3}(?:\.\d{1,3}){0,3}))?: "
    r"cannot open shared object file"
)


def lacking_library(told: Told) -> dict[str, str]:
    """Find the library that was not found, whose it is, and whether torch itself asked for it."""
    match = _MISSING.search(told.text)
    library = "" if match is None else match["library"]
    in_torch = any(frame.place.endswith("torch/__init__.py") for frame in told.pasted.frames[-3:])
    return {
        "lacking": plain(library),
        "version": "" if match is None else match["version"] or "",
        "named": f" ({plain(library)} is not found)" if library else "",
        "of_system": _brought_by(library) or _driver_of(library),
        "in_torch": "yes" if in_torch else "",
    }


def who_brings(told: Told) -> dict[str, str]:
    """Find the package that brings a library, or the driver that does."""
    library = told.groups["library"] or "libsndfile.so"
    return {"library": plain(library), "brought_by": _brought_by(library), "of_driver": _driver_of(library)}


def _brought_by(library: str) -> str:
    """Return the package of Debian and Ubuntu that brings a library; empty where it is not known."""
    known = [name for name in _BROUGHT_BY if library.startswith(name)]
    return _BROUGHT_BY[max(known, key=len)] if known else ""


def _driver_of(library: str) -> str:
    return "yes" if library.partition(".so")[0] + ".so" in _DRIVER.split() else ""


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


# --- GPUs ---------------------------------------------------------------------------------------------------

_GPU = re.compile(r"(?P<name>[\w() -]{3,60}?) with CUDA capability (?P<sm>sm_\d{2,3}) is not compatible")
_KNOWN = re.compile(r"supports CUDA capabilities (?P<list>(?:(?:sm|compute)_\d{2,3}[a-z]? ?){1,40})")


def gpu_and_build(told: Told) -> dict[str, str]:
    """Read which GPU it is and what the build knows, where a warning above says so."""
    gpu, known = _GPU.search(told.pasted.flat), _KNOWN.search(told.pasted.flat)
    if gpu is None:
        return {"gpu": "", "sm": ""}
    has = f"; this build has code for {known['list'].strip()}" if known is not None else ""
    return {"gpu": f"{escape_text(gpu['name'].strip())} is {gpu['sm']}{has}.", "sm": gpu["sm"]}


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


def tie_mapped(context: Context) -> Tied:
    """Report whether the file may be the one that was shorter than its map."""
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


# --- memory -------------------------------------------------------------------------------------------------

_LITTLE_NBYTES = 100_000_000  # no machine that runs torch ends at less
_UNITS = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_MUCH_ELSE = 0.4  # of the card; contexts of CUDA and the desktop take less


def gpu_sizes(told: Told) -> dict[str, str]:
    """Read what a message says of the memory of a GPU, and whether that tells what filled it."""
    sizes = {name: _size(pattern, told.text) for name, pattern in _SIZES.items()}
    tried, total, free = sizes["tried"], sizes["total"], sizes["free"]
    # Before torch 1.5 what was cached came on top of what was allocated.
    own = sizes["own"] or sizes["allocated"] + sizes["cached"]
    used = total - free - own if total and free and own else 0
    huge = tried and (tried > total > 0 or tried > _HUGE_NBYTES)
    shown = {"tried": tried, "total": total, "free": free, "own": own}
    return {
        **{name: format_nbytes(round(size)) for name, size in shown.items()},
        "used": format_nbytes(round(used)) if used > _MUCH_ELSE * total else "",
        "huge": "yes" if huge else "",
    }


def _size(pattern: str, text: str) -> float:
    """Return a size that a message names, in bytes; 0 where it names none."""
    match = re.search(pattern.replace("SIZE", _SIZE), text, re.IGNORECASE)
    if match is None:
        return 0
    number, unit = filter(None, match.groups())
    return float(number) * _UNITS.get(unit.lower(), 1)


_SIZE = r"(\d{1,6}(?:\.\d{1,4})?) ?([KMGT]i?B)"
_SIZES = {
    "tried": "Tried to allocate SIZE",
    "total": "total capacity of SIZE|SIZE (?:total capacity|of which)",
    "free": "SIZE (?:is )?free",
    "own": "SIZE (?:reserved in total|memory in use)",
    "allocated": "SIZE already allocated",
    "cached": "SIZE cached",
}


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
