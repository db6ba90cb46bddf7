"""What torch says to one location tag, or to a device that a tensor names itself, on a machine.

torch asks each backend in turn for the tag, see `_deserialize` and `default_restore_location` in torch's
`torch/serialization.py`. The texts are those of the target's torch, of 2.13 where that is not known; what
torch says to odd indices (`cuda:x`) and to devices that tensors name themselves is always that of 2.13.
"""

from __future__ import annotations

import re

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.roles.devices import DeviceType, device_type
from inspector.target import versions
from inspector.target.evidence import TorchFound
from inspector.target.profile import Profile
from inspector.target.versions import Release, release_of

Failure = tuple[str, str]
"""The id of the finding that explains an error, and the error in torch's words."""

_MAP_TO_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
# The tag must be the name of a type, or go on with a colon or a digit.
_TYPE = re.compile(r"([a-z_]+)(?=\Z|:|[0-9])")
_INDEX = re.compile(r"(?::(0|[1-9][0-9]*))?")
_MOST_INDEX = (1 << 31) - 1


def restore_failure(tag: str, target: Profile) -> Failure | None:
    """Return (finding, message) for restoring one location tag on a machine, or None if that works."""
    if tag == NO_DEVICE:  # what no file writes: the loader decides
        return None
    release = release_of(target.torch_version)
    kind = _type_of(tag, release)
    if kind is None or kind.since is None or release < kind.since:
        return "unknown-device", _unknown(tag, release)
    if kind.is_plugin:
        return kind.missing, _unregistered(kind, release)
    if kind.is_numbered:
        return _restore_indexed(kind, tag, target, release)
    if target.offers(kind.name, None):
        return None
    return kind.missing, f"RuntimeError: torch.UntypedStorage(): Storage device not recognized: {kind.name}"


def _type_of(tag: str, release: Release) -> DeviceType | None:
    """Return the type whose backend takes a tag, if there is one that goes by the name in it."""
    if tag.startswith("mps") and release >= versions.MPS_BY_PREFIX:
        return device_type("mps")
    match = _TYPE.match(tag)
    kind = device_type(match[1] if match else "")
    return kind if kind.is_numbered or tag == kind.name else None


def landing_place(tag: str, current: int) -> str:
    """Return the device that a tag means where it can be restored: `cuda` is the current one.

    So is `cuda:255`: torch keeps an index in eight bits with a sign, and -1 means the current device.
    """
    if tag.startswith("mps"):
        return "mps"
    name, _, index = tag.partition(":")
    kind = device_type(name)
    if kind.since is None:
        return tag
    if not kind.is_numbered:
        return name
    number = _as_signed_byte(int(index)) if index else -1
    return f"{name}:{current if number == -1 else number}"


def _unknown(tag: str, release: Release) -> str:
    """Return what torch says to a tag that no backend takes."""
    if release == (2, 1):  # its HPU backend looks for its module before it looks at the tag
        return "AssertionError: HPU device module is not loaded"
    storage = "torch.storage.UntypedStorage"
    if release < versions.UNTYPED_STORAGE:
        storage = "torch.FloatStorage"  # one for each type of elements; this is by far the commonest
    elif release < versions.PUBLIC_STORAGE:
        storage = "torch._UntypedStorage" if release == (1, 11) else "torch.storage._UntypedStorage"
    return f"RuntimeError: don't know how to restore data location of {storage} (tagged with {tag})"


def _unregistered(kind: DeviceType, release: Release) -> str:
    if release >= versions.ONE_DESERIALIZE:
        return kind.word("RuntimeError: The {NAME} device module is not registered. ") + _MAP_TO_CPU
    if kind.name == "hpu":
        return "AssertionError: HPU device module is not loaded"
    return kind.word(
        "RuntimeError: Attempting to load the storages to the {NAME} device but "
        "torch.storage._StorageBase.{name}() or torch.storage.TypedStorage.{name}() is not generated. "
        "Please use torch.utils.generate_methods_for_privateuse1_backend to generate "
        "storage.{name}() method first."
    )


def _restore_indexed(kind: DeviceType, tag: str, target: Profile, release: Release) -> Failure | None:
    index = _INDEX.fullmatch(tag, len(kind.name))
    if index is None:
        return "unknown-device", f"RuntimeError: Invalid device string: '{tag}'"
    if index[1] is not None and int(index[1][:11]) > _MOST_INDEX:
        return "unknown-device", (
            f"RuntimeError: Could not parse device index '{index[1]}' in device string '{tag}'"
        )
    number = None if index[1] is None else _as_signed_byte(int(index[1]))
    if number is not None and number < -1:
        return "unknown-device", "RuntimeError: Device index must not be negative"
    if kind.name == "mtia" and number is None:
        return kind.missing, "RuntimeError: Cannot execute getCurrentDevice() without MTIA backend."
    return _missing(kind, max(number or 0, 0), target, release)


def _as_signed_byte(index: int) -> int:
    """Return what torch makes of an index: its `DeviceIndex` has eight bits and a sign."""
    return (index + 128) % 256 - 128


def _missing(kind: DeviceType, index: int, target: Profile, release: Release) -> Failure | None:
    count = target.count(kind.name)
    if index < count:
        return None
    if count == 0:
        return kind.missing, _unavailable(kind, release)
    return kind.out_of_range or kind.missing, (
        f"RuntimeError: Attempting to deserialize object on {kind.name.upper()} device {index} but "
        f"torch.{kind.name}.device_count() is {count}. Please use torch.load with map_location to map your "
        "storages to an existing device."
    )


def _unavailable(kind: DeviceType, release: Release) -> str:
    advice = _MAP_TO_CPU
    if release < versions.SAYS_TORCH_DEVICE:
        advice = advice.replace("torch.device('cpu')", "'cpu'")
    said = (
        "RuntimeError: Attempting to deserialize object on a {NAME} device but torch.{name}.is_available() "
    )
    return f"{kind.word(said)}is False. {advice}"


def send_failure(device: str, target: Profile) -> Failure | None:
    """Return (finding, message) for sending a tensor to the device it names itself, or None if that works.

    Only the first sentence: the rest lists what this build of torch has registered.
    """
    name, _, index = device.partition(":")
    if target.offers(name, int(index) if index.isdecimal() else None):
        return None
    kind = device_type(name)
    if name == "cuda" and target.count(name):
        error = "AcceleratorError" if release_of(target.torch_version) >= (2, 8) else "RuntimeError"
        return kind.out_of_range, f"{error}: CUDA error: invalid device ordinal"
    said = said_without_gpu(target) if name == "cuda" else None
    return kind.missing, said[0] if said else kind.word(kind.send_error)


def said_without_gpu(target: Profile) -> tuple[str, str] | None:
    """Return what a build for CUDA says where no GPU can be used; None for another build.

    First what it raises as it sets CUDA up, as a probe met it, then what those parts of torch raise that ask
    CUDA at once.
    """
    found = target.evidence.torch if target.evidence else TorchFound()
    is_for_cuda = found.cuda or "+cu" in (target.torch_version or "")
    if not is_for_cuda or found.cuda_available:
        return None
    said = (found.cuda_messages or ("Found no NVIDIA driver on your system.",))[-1]
    error = "AcceleratorError" if release_of(target.torch_version) >= (2, 8) else "RuntimeError"
    cause = "CUDA driver version is insufficient for CUDA runtime version"
    if "No CUDA GPUs" in said:
        cause = "no CUDA-capable device is detected"
    return f"RuntimeError: {said}", f"{error}: CUDA error: {cause}"


def generator_failure(device: str, target: Profile) -> Failure | None:
    """Return (finding, message) for making a random generator on a device, or None if that works."""
    name, _, index = device.partition(":")
    if name != "meta" and target.offers(name, int(index) if index.isdecimal() else None):
        return None
    kind = device_type(name)
    said = said_without_gpu(target) if name == "cuda" else None
    return kind.missing, said[1] if said else kind.word(kind.generator_error)


# ------------------------------------------------------------------------------------------------------------
# Where `torch.jit.load` puts the tensors of a TorchScript file, and what it says where it cannot.
#
# Its unpickler is C++ and restores tags its own way, see `Unpickler::readInstruction` in torch's
# `torch/csrc/jit/serialization/unpickler.cpp`: the tag must name a type of device that it knows, also where
# `map_location` sends everything elsewhere. The words are those of torch 2.13 without the device.

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
        place: The text of `map_location`, which was found to be there; None without one.
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
    return "", _script_missing(name, tag, target, has_index=bool(index))


def _script_missing(name: str, tag: str, target: Profile, *, has_index: bool) -> Failure:
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
