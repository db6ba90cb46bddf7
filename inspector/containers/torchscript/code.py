"""What the code of a TorchScript archive says of its objects: which tensors are weights, and fixed devices.

The code is text, see https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/docs/serialization.md, and
is only looked at. Each class lists its parameters and buffers by name. `torch.jit.trace` writes the device of
a tensor that was made in `forward()` as a constant: there it is made for ever, whatever `map_location` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from inspector.containers.container import CodeDevice
from inspector.containers.source import Source
from inspector.containers.zip.kinds import Records
from inspector.containers.zip.records import read_contents
from inspector.errors import ContainerError
from inspector.progress import Progress

FOLDER, _ENDING = "code/", ".py"
_CLASS = re.compile(
    rb"^class (\S{1,300})\(Module\):\n  __parameters__ = \[([^\n]*)\]\n(?:  __buffers__ = (\[[^\n]*\]))?",
    re.MULTILINE,
)
_NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_DEVICE = re.compile(rb'torch\.device\("([a-z]{1,16}(?::[0-9]{1,3})?)"\)')
_RUN_AT_LOAD = re.compile(rb"^  def __setstate__\(", re.MULTILINE)
_FILES = re.compile(rb"\btorch\.(save|from_file)\(")
_MOST_RECORDS = 4096
_MOST_NBYTES = 1 << 25
"""Of code, in all."""
_MOST_PLACES = 1000


class Members(NamedTuple):
    """The tensors of a class that belong into a state dict.

    Attributes:
        parameters: The names of its parameters.
        buffers: Those of its buffers; None where the code is so old that it does not list them.
    """

    parameters: frozenset[str]
    buffers: frozenset[str] | None


class Code(NamedTuple):
    """What the code says.

    Attributes:
        members: The tensors of each class, by its dotted name.
        devices: The devices in it, in the order of the file.
        is_whole: Whether all of it was looked at.
        runs_at_load: Where code stands that runs as soon as an object of its class is loaded.
        files: Where code calls operators that read or write files, with their names.
    """

    members: dict[str, Members]
    devices: tuple[CodeDevice, ...]
    is_whole: bool
    runs_at_load: tuple[str, ...]
    files: tuple[str, ...]


def read_code(source: Source, records: Records, progress: Progress) -> Code:
    """Look through the code of an archive; code that cannot be read says nothing."""
    members: dict[str, Members] = {}
    devices: list[CodeDevice] = []
    runs: list[str] = []
    files: list[str] = []
    names = sorted(name for name in records.below(FOLDER) if name.endswith(_ENDING))
    left, is_whole = _MOST_NBYTES, len(names) <= _MOST_RECORDS
    for name in names[:_MOST_RECORDS]:
        progress.advance(0)
        text = _text(source, records, name, left)
        if text is None:
            is_whole = False
            continue
        left -= len(text)
        members |= _members(name, text)
        devices += [CodeDevice(match[1].decode("ascii"), at) for match, at in _places(_DEVICE, name, text)]
        runs += [at for _, at in _places(_RUN_AT_LOAD, name, text)]
        files += [f"torch.{match[1].decode('ascii')} in {at}" for match, at in _places(_FILES, name, text)]
    return Code(members, tuple(dict.fromkeys(devices))[:_MOST_PLACES], is_whole, tuple(runs), tuple(files))


def _members(name: str, text: bytes) -> dict[str, Members]:
    """Return the tensors of the classes in one record."""
    module = name[len(FOLDER) : -len(_ENDING)].replace("/", ".")
    return {
        f"{module}.{match[1].decode('utf-8', 'replace')}": Members(
            _names(match[2]), None if match[3] is None else _names(match[3])
        )
        for match in _CLASS.finditer(text)
    }


def _text(source: Source, records: Records, name: str, left: int) -> bytes | None:
    entry = records.get(name)
    try:
        return None if entry is None else read_contents(source, entry, left).data
    except ContainerError:
        return None


def _names(listed: bytes) -> frozenset[str]:
    return frozenset(match[1].decode("utf-8", "replace") for match in _NAME.finditer(listed))


def _places(wanted: re.Pattern[bytes], name: str, text: bytes) -> Iterator[tuple[re.Match[bytes], str]]:
    """Yield what matches in one record, each with its place."""
    line, start = 1, 0
    for match in islice(wanted.finditer(text), _MOST_PLACES):
        line += text.count(b"\n", start, match.start())
        start = match.start()
        yield match, f"{name}:{line}"
