"""The pickles within pickles: byte strings that a program hands to what unpickles them.

`pickle.dump` writes the bytes of a tensor as a whole file of torch, which `torch.storage._load_from_bytes`
opens again while loading, with `weights_only=False`. What such bytes would run is run with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers.programs import Programs
from inspector.containers.source import BytesSource, Source
from inspector.errors import ContainerError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.values import Blob, Call, Global, Value
from inspector.progress import Progress

OPENER = "torch.storage._load_from_bytes"
_OPENERS = frozenset(
    {
        OPENER,
        "pickle.loads",
        "_pickle.loads",
        "cPickle.loads",
        "dill.loads",
        "dill._dill.loads",
        "cloudpickle.loads",
        "cloudpickle.cloudpickle.loads",
        "io.BytesIO",
        "_io.BytesIO",
    }
)
_ENCODE = "_codecs.encode"  # how protocols 0 to 2 write bytes
_MOST_FOUND = 1024
_MOST_DEPTH = 3


def read_nested(programs: Programs, limits: Limits, progress: Progress, depth: int = 0) -> None:
    """Read what the programs unpickle in turn, and add it to them.

    Raises:
        CancelledError: The work was cancelled.
    """
    from inspector.containers.unread import read_programs  # noqa: PLC0415 - few files have any

    found = 0
    for name, stream in programs.streams():
        for data in _handed_bytes(stream):
            progress.advance(0)
            found += 1
            if found > _MOST_FOUND or depth >= _MOST_DEPTH:
                programs.note_unread(name)
                return
            source: Source = BytesSource(data, name)
            try:
                read_programs(source, limits, progress)
            except (PickleError, ContainerError):
                programs.note_unread(name)
            read_nested(source.programs, limits, progress, depth + 1)
            programs.adopt(source.programs, f"{name} > bytes")


def _handed_bytes(stream: Stream) -> Iterator[bytes]:
    for call in stream.calls:
        func = call.func
        if isinstance(func, Global) and func.dotted in _OPENERS and isinstance(call.args, tuple):
            for value in call.args:
                data = _as_bytes(value, stream)
                if data is not None:
                    yield data


def _as_bytes(value: Value, stream: Stream) -> bytes | None:
    """Return the bytes that a value stands for; None where it is something else."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Blob):
        return stream.data[value.offset : value.offset + value.nbytes] if value.kind != "int" else None
    if isinstance(value, Call) and isinstance(value.func, Global) and value.func.dotted == _ENCODE:
        text = value.args[0] if isinstance(value.args, tuple) and value.args else None
        if isinstance(text, Blob):
            text = stream.data[text.offset : text.offset + text.nbytes].decode("utf-8", "replace")
        return text.encode("latin-1", "replace") if isinstance(text, str) else None
    return None
