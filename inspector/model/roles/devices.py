"""Device strings as they stand in a file, split into type and index, and in a fixed order."""

from __future__ import annotations

import re

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.records import dataclass

_DEVICE = re.compile(r"([a-z_][a-z0-9_]*)(?::([0-9]{1,3}))?")


def split_device(text: str) -> tuple[str, int | None] | None:
    """Split `cuda:1` into `("cuda", 1)` and `cpu` into `("cpu", None)`; return None if it is no device."""
    match = _DEVICE.fullmatch(text)
    if match is None:
        return None
    return match[1], None if match[2] is None else int(match[2])


def device_order(text: str) -> tuple[int, str, int]:
    """Return a sort key: accelerators by type and number, then the CPU, meta, what is no device, and none."""
    parts = split_device(text)
    if parts is None:
        return 3, text, 0
    kind, index = parts
    return {"cpu": 1, "meta": 2, NO_DEVICE: 4}.get(kind, 0), kind, -1 if index is None else index


def is_accelerator(text: str) -> bool:
    """Return whether a device string names something other than the CPU and meta."""
    return device_order(text)[0] in {0, 3}


def is_destination(text: str) -> bool:
    """Return whether tensors can be sent there: torch knows it, takes data on it, and spells it like this."""
    kind, index = split_device(text) or ("", None)
    row = DEVICE_TYPES.get(kind)
    return row is not None and row.holds_data and (index is None or row.is_numbered)


# The one table of torch's device types: a new type is a row here, and everything else reads it.
#
# A row says what torch restores on such a device and what it says where there is none, what machines with
# one are called, and how loading code asks for it.

_NOT_COMPILED = "AssertionError: Torch not compiled with {NAME} enabled"
_NOT_LINKED = "RuntimeError: PyTorch is not linked with support for {name} devices"
_NO_MODULE = "ModuleNotFoundError: No module named 'torch.{name}'"
_NOT_RUN = (
    "NotImplementedError: Could not run 'aten::empty.memory_format' with arguments from the '{NAME}' backend."
)
_UNPARSED = (
    "RuntimeError: Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, "
    "maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: "
    "{name}"
)
_NO_GENERATOR = "RuntimeError: Backend doesn`t support getNewGenerator()"
_NO_GENERATOR_YET = "RuntimeError: Cannot execute getNewGenerator() without {NAME} backend."
_NO_LIBRARY = "RuntimeError: Cannot get {NAME} generator without ATen_{name} library."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceType:
    """One type of device.

    Attributes:
        name: Its name in torch: `cuda`.
        noun: What people call one such device; empty for those that no machine profile counts.
        place: What a machine with one is called after "on"; empty where its label serves.
        labels: What a machine with one of them is called in a list, and one with more.
        presets: The numbers of devices of the machines that are offered as targets.
        holds_data: Whether tensors on it have data that can be sent there.
        is_numbered: Whether its devices have numbers: torch refuses `cpu:0`.
        lacks: The dtypes that it has no numbers for.
        since: The first release of torch that restores storages on it by itself, as `(2, 4)`; None for none.
        is_plugin: Whether torch knows it only with its maker's package, which no profile looks for.
        missing: The id of the finding for files that were saved on one, where there is none.
        out_of_range: That for a number that is not there; empty for the same as `missing`.
        send_error: What torch 2.13 says where a tensor names such a device and there is none. In all these
            texts `{name}` and `{NAME}` stand for the name.
        available: The Python expression that asks torch for one, in loading code.
        askable: The first release of torch that knows that expression; None for all.
        collective: The backend of torch.distributed by which its devices talk to each other.
        in_pieces: Whether its allocator rounds sizes up to pieces, as that of CUDA does.
    """

    name: str
    noun: str = ""
    place: str = ""
    labels: tuple[str, str] = ("", "")
    presets: tuple[int, ...] = ()
    holds_data: bool = True
    is_numbered: bool = True
    lacks: frozenset[str] = frozenset()
    since: tuple[int, int] | None = None
    is_plugin: bool = False
    missing: str = "unknown-device"
    out_of_range: str = ""
    send_error: str = _UNPARSED
    generator_error: str = _NO_GENERATOR
    available: str = ""
    askable: tuple[int, int] | None = None
    collective: str = ""
    in_pieces: bool = False

    @property
    def best(self) -> str:
        """The first device of this type."""
        return f"{self.name}:0" if self.is_numbered else self.name

    def label(self, count: int) -> str:
        """Return what a machine with so many of them is called."""
        return self.labels[count > 1].format(count=count)

    def devices(self, count: int) -> tuple[str, ...]:
        """Return the names of so many devices."""
        if not self.is_numbered:
            return (self.name,) if count else ()
        return tuple(f"{self.name}:{index}" for index in range(count))

    def word(self, text: str) -> str:
        """Return one of torch's texts with this type's name in it."""
        return text.format(name=self.name, NAME=self.name.upper())


_ROWS = (
    DeviceType(
        name="cuda",
        noun="CUDA GPU",
        labels=("1 NVIDIA GPU", "{count} NVIDIA GPUs"),
        presets=(1, 2, 4, 8),
        since=(1, 0),
        missing="cuda-unavailable",
        out_of_range="cuda-index-out-of-range",
        send_error=_NOT_COMPILED,
        generator_error=_NO_LIBRARY,
        available="torch.cuda.is_available()",
        collective="nccl",
        in_pieces=True,
    ),
    DeviceType(
        name="mps",
        noun="Apple GPU",
        place="Apple silicon",
        labels=("Apple silicon", ""),
        presets=(1,),
        is_numbered=False,
        lacks=frozenset({"float64", "complex128"}),  # empty_mps in aten/src/ATen/mps/EmptyTensor.cpp
        since=(1, 13),
        missing="mps-unavailable",
        send_error=_NOT_LINKED,
        generator_error=_NO_GENERATOR_YET,
        available="torch.backends.mps.is_available()",
        askable=(1, 12),  # torch/backends/mps/__init__.py
    ),
    DeviceType(
        name="xpu",
        noun="Intel GPU",
        place="a machine with an Intel GPU",
        labels=("Intel GPU (XPU)", "{count} Intel GPUs (XPU)"),
        presets=(1,),
        since=(2, 4),
        missing="xpu-unavailable",
        send_error=_NOT_COMPILED,
        generator_error=_NO_LIBRARY,
        available="torch.xpu.is_available()",
        askable=(2, 3),  # torch/xpu/__init__.py
        collective="xccl",
    ),
    DeviceType(name="cpu", is_numbered=False, since=(0, 1)),
    DeviceType(
        name="meta",
        holds_data=False,
        is_numbered=False,
        since=(1, 13),
        generator_error="RuntimeError: META device type not an accelerator.",
    ),
    DeviceType(name="hpu", since=(2, 1), is_plugin=True, send_error=_NO_MODULE),
    DeviceType(name="mtia", since=(2, 10), send_error=_NOT_COMPILED, generator_error=_NO_GENERATOR_YET),
    DeviceType(
        name="xla",
        send_error=_NOT_RUN,
        generator_error="RuntimeError: Cannot get XLA generator without torch_xla library.",
    ),
    DeviceType(name="npu"),
    DeviceType(name="ipu", send_error=_NOT_RUN),
    DeviceType(name="maia", send_error=_NOT_RUN),
    DeviceType(name="mlu"),
    DeviceType(name="musa"),
    DeviceType(name="privateuseone", since=(2, 1), is_plugin=True, send_error=_NO_MODULE),
)
DEVICE_TYPES: dict[str, DeviceType] = {row.name: row for row in _ROWS}
"""By name. Machines offer their devices in this order, the best first."""

DEVICE_FINDINGS = frozenset(id_ for row in _ROWS for id_ in (row.missing, row.out_of_range) if id_)
"""Ids of the findings that say that a device is missing."""

# torch parses these names as well, and no tensor can be on such a device.
_PARSED_ONLY = {
    "lazy": DeviceType(name="lazy", send_error=_NOT_RUN.replace("{NAME}", "Lazy")),
    "vulkan": DeviceType(name="vulkan", send_error=_NOT_LINKED),
}


def device_type(name: str) -> DeviceType:
    """Return what is known of a type, whatever a file calls it."""
    known = DEVICE_TYPES.get(name) or _PARSED_ONLY.get(name)
    return DeviceType(name=name) if known is None else known
