"""The devices that the code of a TorchScript archive names: what was traced makes its tensors there for ever.

`torch.jit.trace` writes the device of a tensor that was made in `forward()` as a constant, see `code/` in
https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/docs/serialization.md. The code is text, and only
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.kinds import records_of
from inspector.containers.zip.records import read_contents
from inspector.errors import ContainerError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.units import cut_text

_DEVICE = re.compile(rb'torch\.device\("([a-z]{1,16}(?::[0-9]{1,3})?)"\)')
_MOST_RECORDS = 256
_MOST_NBYTES = 1 << 24
"""Of code, in all."""
_MOST_CHARS = 80


def devices_in_code(source: Source, entries: Iterable[ZipEntry], folder: str) -> tuple[str, ...]:
    """Return the devices that code names, in order; code that cannot be read names none.

    Args:
        source: The file.
        entries: Its records.
        folder: The archive's folder with its slash.
    """
    found: dict[str, None] = {}
    left = _MOST_NBYTES
    for _, entry in zip(range(_MOST_RECORDS), _code(entries, f"{folder}code/"), strict=False):
        try:
            text = read_contents(source, entry, left)[0]
        except ContainerError:
            continue
        left -= len(text)
        found |= dict.fromkeys(match[1].decode("ascii") for match in _DEVICE.finditer(text))
    return tuple(sorted(found))


def refuse_torchscript(source: Source, limits: Limits, progress: Progress) -> NoReturn:
    """Say that TorchScript is not read, and tell of its code.

    Raises:
        UnsupportedFormatError: Always.
    """
    records = records_of(source, limits, progress)
    error = UnsupportedFormatError(
        "this is a TorchScript archive, which this version does not read",
        where=source.path,
        remedy="load it with torch.jit.load",
        form="torchscript",
    )
    raise with_devices(error, devices_in_code(source, records.directory.entries, records.prefix))


def _code(entries: Iterable[ZipEntry], folder: str) -> Iterator[ZipEntry]:
    return (entry for entry in entries if entry.name.startswith(folder) and entry.name.endswith(".py"))


def with_devices(error: UnsupportedFormatError, devices: tuple[str, ...]) -> UnsupportedFormatError:
    """Return an error whose remedy tells of these devices."""
    if devices:
        error.devices = devices
        named = cut_text(" and ".join(devices), _MOST_CHARS)
        error.remedy = (
            f"{error.remedy}; its code makes tensors on {named}, whatever map_location and .to() say: if "
            "that is in the way, trace it again on the device where it is to run"
        )
    return error
