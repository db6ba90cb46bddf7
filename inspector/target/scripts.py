"""Where `torch.jit.load` puts the tensors of a TorchScript file, and what it says where it cannot.

Its unpickler is C++ and restores tags its own way, see `Unpickler::readInstruction` in torch's
`torch/csrc/jit/serialization/unpickler.cpp`: the tag must name a type of device that it knows, also where
`map_location` sends everything elsewhere. The words are those of torch 2.13 without the device.
"""

from __future__ import annotations

from inspector.model.roles.device_types import device_type
from inspector.target.machine.profile import Profile
from inspector.target.restore import Failure, landing_place, said_without_gpu, send_failure

_TYPES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, "
    "hpu, mtia, privateuseone"
)
_KNOWN = frozenset(_TYPES.split(", "))
_RESTORED = frozenset({"cuda", "xpu", "hpu", "mtia", "mps", "privateuseone"})
_ALWAYS = frozenset({"cpu", "meta"})
# torch.export.load only logs the RuntimeError that stopped it.
_CAUGHT = (
    "RuntimeError: We ran into an error when deserializing the saved file. Please check the warnings above "
    "for possible errors."
)


def land_script(tag: str, place: str | None, target: Profile, current: int) -> tuple[str, Failure | None]:
    """Return where a storage with a tag lands, or (finding, message) of the failure.

    Args:
        tag: The tag.
        place: The text of `map_location`, which was found to be there; None without one.
        target: The machine.
        current: The number of the current device.
    """
    name, _, index = tag.partition(":")
    is_there = name in _ALWAYS or target.offers(name, int(index) if index.isdecimal() else None)
    if name not in _KNOWN and not is_there:
        return "", (
            "unknown-device",
            f"RuntimeError: Expected one of {_TYPES} device type at start of device string: {name}",
        )
    if place is not None:
        return landing_place(place, current), None
    if is_there:
        return name if name in _ALWAYS else landing_place(tag, current), None
    return "", _missing(name, tag, target, has_index=bool(index))


def _missing(name: str, tag: str, target: Profile, *, has_index: bool) -> Failure:
    kind = device_type(name)
    if name not in _RESTORED:
        said = "supported devices include CPU, CUDA, HPU and privateuseone however got"
        return "unknown-device", f"RuntimeError: {said} {name.upper()}"
    failure = send_failure(tag, target)
    if target.count(name) and failure is not None:
        return failure
    without_gpu = said_without_gpu(target) if name == "cuda" else None
    if without_gpu:
        return kind.missing, without_gpu[0 if has_index else 1]
    if name == "mps" or not has_index:
        return kind.missing, f"RuntimeError: PyTorch is not linked with support for {name} devices"
    backend = "PrivateUse1" if name == "privateuseone" else name.upper()
    return kind.missing, (
        "NotImplementedError: Could not run 'aten::empty_strided' with arguments from the "
        f"'{backend}' backend."
    )


def land_exported(tag: str, _place: str | None, target: Profile, current: int) -> tuple[str, Failure | None]:
    """Return the same of `torch.export.load`, which sends each tensor where it was, whatever it is told.

    See `_build_file_map` in torch's `torch/export/pt2_archive/_package.py`.
    """
    failure = None if tag.partition(":")[0] in _ALWAYS else send_failure(tag, target)
    if failure is None:
        return landing_place(tag, current), None
    is_caught = not failure[1].startswith(("AssertionError", "ModuleNotFoundError"))
    return "", (failure[0], _CAUGHT) if is_caught else failure
