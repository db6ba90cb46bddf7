"""The attributes of an agent: JSON, in which whatever JSON cannot hold is a pickle in Base64.

`json_to_data` in `stable_baselines3/common/save_util.py` has cloudpickle load every value below
`:serialized:`, without asking what it runs; the texts beside it are for people alone.
"""

from __future__ import annotations

import binascii
from typing import NamedTuple

from inspector.containers.folders.small_json import Members, read_json, value_of
from inspector.containers.inner.files import InnerFiles
from inspector.containers.source import BytesSource, Source
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.records import read_contents
from inspector.errors import ContainerError, PickleError, TooLargeError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text

RECORD = "data"
_PICKLED = ":serialized:"
_MOST_CHARS = 60
_MOST_NBYTES = 64 << 20
_MOST_PICKLES = 4096


class _Reading(NamedTuple):
    """What reading takes."""

    source: Source
    files: InnerFiles
    limits: Limits
    progress: Progress


class Attributes(NamedTuple):
    """What was read of them.

    Attributes:
        root: Their values by name.
        unread: The names of those whose pickle cannot be read, fit for a screen.
    """

    root: Dict
    unread: tuple[str, ...]


def read_attributes(
    source: Source, entry: ZipEntry, files: InnerFiles, limits: Limits, progress: Progress
) -> Attributes:
    """Read the attributes; `files` takes over what their pickles refer to."""
    data = read_contents(source, entry, _MOST_NBYTES).data
    members = read_json(BytesSource(data, RECORD), limits)
    reading = _Reading(source, files, limits, progress)
    pairs: list[tuple[Value, Value]] = []
    unread: list[str] = []
    if sum(isinstance(found, Members) for _, found in members) > _MOST_PICKLES:
        raise TooLargeError(f"there are more than {_MOST_PICKLES:,} pickled attributes")
    for name, found in members:
        progress.advance(0)
        try:
            pairs.append((name, _value(name, found, reading)))
        except (PickleError, ContainerError, ValueError) as error:  # of a text that is no Base64
            source.programs.miss(
                f"{RECORD}: {cut_text(name, _MOST_CHARS)}", str(getattr(error, "what", error))
            )
            unread.append(escape_text(cut_text(name, _MOST_CHARS)))
    return Attributes(Dict(pairs), tuple(unread))


def _value(name: str, found: object, reading: _Reading) -> Value:
    """Return one value."""
    if not isinstance(found, Members) or not any(key == _PICKLED for key, _ in found):
        return value_of(found)
    packed = dict(found)[_PICKLED]  # of several members of one name the last counts
    if not isinstance(packed, str):
        raise ContainerError("a pickle is no text", where=name)
    data = binascii.a2b_base64(packed.encode())  # whatever else stands in it is passed over, as in Python
    source, files, limits, progress = reading
    where = f"{RECORD}: {cut_text(name, _MOST_CHARS)}"
    machine = Machine(data, name=where, limits=limits, progress=progress)
    stream = source.programs.run(machine, RECORD, "object")
    if stream.persistent_ids:  # cloudpickle finds nothing that they could mean, and stops
        raise ContainerError("a pickle refers to something outside of itself", where=name)
    files.add_pickle(f"{RECORD}/{name}", stream)
    return stream.root
