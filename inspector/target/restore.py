"""What torch says to one location tag, or to a device that a tensor names itself, on a machine.

torch asks each backend in turn for the tag, see `_deserialize` and `default_restore_location` in torch's
`torch/serialization.py`. The texts are those of the target's torch, of 2.13 where that is not known; what
torch says to odd indices (`cuda:x`) and to devices that tensors name themselves is always that of 2.13.
"""

from __future__ import annotations

import re

from inspector.target import versions
from inspector.target.machine.profile import Profile
from inspector.target.versions import BACKENDS, Release, release_of

Failure = tuple[str, str]
"""The id of the finding that explains an error, and the error in torch's words."""

_MAP_TO_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
# In the order in which torch asks them; the tag must be the name, or go on with a colon or a digit.
_BACKENDS = re.compile(r"(cuda|privateuseone|hpu|xpu|mtia)(?:\Z|:|[0-9])")
_UNREGISTERED = frozenset({"privateuseone", "hpu"})
_INDEX = re.compile(r"(?::(0|[1-9][0-9]*))?")
_MOST_INDEX = (1 << 31) - 1
_DISPATCHED = {"xla": "XLA", "ipu": "IPU", "lazy": "Lazy", "maia": "MAIA"}


def restore_failure(tag: str, target: Profile) -> Failure | None:
    """Give (finding, message) for restoring one location tag on a machine, or None if that works."""
    release = release_of(target.torch_version)
    if tag == "cpu" or (tag == "meta" and release >= BACKENDS["meta"]):
        return None
    if _is_mps(tag, release):
        if target.mps:
            return None
        return "mps-unavailable", "RuntimeError: torch.UntypedStorage(): Storage device not recognized: mps"
    backend = _BACKENDS.match(tag)
    if backend is None or release < BACKENDS[backend[1]]:
        return "unknown-device", _unknown(tag, release)
    kind = backend[1]
    if kind in _UNREGISTERED:
        return "unknown-device", _unregistered(kind, release)
    return _restore_indexed(kind, tag, target, release)


def landing_place(tag: str, current: int) -> str:
    """Give the device that a tag means where it can be restored: `cuda` is the current one.

    So is `cuda:255`: torch keeps an index in eight bits with a sign, and -1 means the current device.
    """
    if tag.startswith("mps"):
        return "mps"
    kind, _, index = tag.partition(":")
    if kind not in {"cuda", "xpu", "mtia", "hpu"}:
        return kind if kind in {"cpu", "meta"} else tag
    number = _as_signed_byte(int(index)) if index else -1
    return f"{kind}:{current if number == -1 else number}"


def _is_mps(tag: str, release: Release) -> bool:
    if release < versions.MPS_BY_PREFIX:
        return tag == "mps" and release >= BACKENDS["mps"]
    return tag.startswith("mps")


def _unknown(tag: str, release: Release) -> str:
    """Give what torch says to a tag that no backend takes."""
    if release == (2, 1):  # its HPU backend looks for its module before it looks at the tag
        return "AssertionError: HPU device module is not loaded"
    storage = "torch.storage.UntypedStorage"
    if release < versions.UNTYPED_STORAGE:
        storage = "torch.FloatStorage"  # one for each type of elements; this is by far the commonest
    elif release < versions.PUBLIC_STORAGE:
        storage = "torch._UntypedStorage" if release == (1, 11) else "torch.storage._UntypedStorage"
    return f"RuntimeError: don't know how to restore data location of {storage} (tagged with {tag})"


def _unregistered(kind: str, release: Release) -> str:
    name = kind.upper()
    if release >= versions.ONE_DESERIALIZE:
        return f"RuntimeError: The {name} device module is not registered. {_MAP_TO_CPU}"
    if kind == "hpu":
        return "AssertionError: HPU device module is not loaded"
    return (
        f"RuntimeError: Attempting to load the storages to the {name} device but "
        f"torch.storage._StorageBase.{kind}() or torch.storage.TypedStorage.{kind}() is not generated. "
        "Please use torch.utils.generate_methods_for_privateuse1_backend to generate "
        f"storage.{kind}() method first."
    )


def _restore_indexed(kind: str, tag: str, target: Profile, release: Release) -> Failure | None:
    index = _INDEX.fullmatch(tag, len(kind))
    if index is None:
        return "unknown-device", f"RuntimeError: Invalid device string: '{tag}'"
    if index[1] is not None and int(index[1][:11]) > _MOST_INDEX:
        return "unknown-device", (
            f"RuntimeError: Could not parse device index '{index[1]}' in device string '{tag}'"
        )
    number = None if index[1] is None else _as_signed_byte(int(index[1]))
    if number is not None and number < -1:
        return "unknown-device", "RuntimeError: Device index must not be negative"
    if kind == "mtia":
        message = "RuntimeError: Cannot execute getCurrentDevice() without MTIA backend."
        return "unknown-device", message if number is None else _unavailable(kind, release)
    return _missing(kind, max(number or 0, 0), target, release)


def _as_signed_byte(index: int) -> int:
    """Give what torch makes of an index: its `DeviceIndex` has eight bits and a sign."""
    return (index + 128) % 256 - 128


def _missing(kind: str, index: int, target: Profile, release: Release) -> Failure | None:
    count = target.cuda if kind == "cuda" else target.xpu
    if index < count:
        return None
    if count == 0:
        return f"{kind}-unavailable", _unavailable(kind, release)
    finding = "cuda-index-out-of-range" if kind == "cuda" else "xpu-unavailable"
    return finding, (
        f"RuntimeError: Attempting to deserialize object on {kind.upper()} device {index} but "
        f"torch.{kind}.device_count() is {count}. Please use torch.load with map_location to map your "
        "storages to an existing device."
    )


def _unavailable(kind: str, release: Release) -> str:
    advice = _MAP_TO_CPU
    if release < versions.SAYS_TORCH_DEVICE:
        advice = advice.replace("torch.device('cpu')", "'cpu'")
    return (
        f"RuntimeError: Attempting to deserialize object on a {kind.upper()} device but "
        f"torch.{kind}.is_available() is False. {advice}"
    )


def send_failure(device: str, target: Profile) -> Failure | None:
    """Give (finding, message) for sending a tensor to the device it names itself, or None if that works.

    Only the first sentence: the rest lists what this build of torch has registered.
    """
    kind, _, index = device.partition(":")
    if target.offers(kind, int(index) if index.isdecimal() else None):
        return None
    if kind == "cuda" and target.cuda:
        error = "AcceleratorError" if release_of(target.torch_version) >= (2, 8) else "RuntimeError"
        return "cuda-index-out-of-range", f"{error}: CUDA error: invalid device ordinal"
    if kind in _DISPATCHED:
        name = _DISPATCHED[kind]
        return "unknown-device", (
            "NotImplementedError: Could not run 'aten::empty.memory_format' with arguments from the "
            f"'{name}' backend."
        )
    return _sent_away(kind)


def _sent_away(kind: str) -> Failure:
    if kind in {"cuda", "xpu", "mtia"}:
        finding = "unknown-device" if kind == "mtia" else f"{kind}-unavailable"
        return finding, f"AssertionError: Torch not compiled with {kind.upper()} enabled"
    if kind in {"mps", "vulkan"}:
        finding = "mps-unavailable" if kind == "mps" else "unknown-device"
        return finding, f"RuntimeError: PyTorch is not linked with support for {kind} devices"
    if kind in _UNREGISTERED:
        return "unknown-device", f"ModuleNotFoundError: No module named 'torch.{kind}'"
    return "unknown-device", (
        "RuntimeError: Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, "
        "maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: "
        f"{kind}"
    )


def generator_failure(device: str, target: Profile) -> Failure | None:
    """Give (finding, message) for making a random generator on a device, or None if that works."""
    kind, _, index = device.partition(":")
    if kind == "meta":
        return "unknown-device", "RuntimeError: META device type not an accelerator."
    if target.offers(kind, int(index) if index.isdecimal() else None):
        return None
    if kind in {"mps", "mtia"}:
        finding = "mps-unavailable" if kind == "mps" else "unknown-device"
        return finding, f"RuntimeError: Cannot execute getNewGenerator() without {kind.upper()} backend."
    if kind in {"cuda", "xpu", "xla"}:
        library = "torch_xla" if kind == "xla" else f"ATen_{kind}"
        finding = "unknown-device" if kind == "xla" else f"{kind}-unavailable"
        return finding, f"RuntimeError: Cannot get {kind.upper()} generator without {library} library."
    return "unknown-device", "RuntimeError: Backend doesn`t support getNewGenerator()"
