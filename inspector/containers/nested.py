"""The pickles within pickles: byte strings that a program hands to what unpickles them.

`pickle.dump` writes the bytes of a tensor as a whole file of torch, which `torch.storage._load_from_bytes`
opens again while loading, with `weights_only=False`. What such bytes would run is run with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from inspector.containers.programs import Programs
from inspector.containers.source import BytesSource, Source
from inspector.errors import BrokenOffError, ContainerError, InvalidPickleError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.values import Blob, Call, Global, Value
from inspector.progress import Progress

OPENER = "torch.storage._load_from_bytes"
OPENERS = frozenset(
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
    """Read what the programs unpickle in turn, and add it to them."""
    from inspector.containers.unread import read_programs  # noqa: PLC0415 - few files have any

    found = 0
    opened = set(map(id, programs.opened))
    for name, stream in programs.streams():
        for data in _handed_bytes(stream, opened):
            progress.advance(0)
            found += 1
            if found > _MOST_FOUND or depth >= _MOST_DEPTH:
                programs.note_unread(name)
                return
            if data is None:
                programs.note_unread(name)
                continue
            source: Source = BytesSource(data, name)
            try:
                read_programs(source, limits, progress)
            except (BrokenOffError, InvalidPickleError):
                pass  # every unpickler stops there
            except (PickleError, ContainerError):
                programs.note_unread(name)
            read_nested(source.programs, limits, progress, depth + 1)
            programs.adopt(source.programs, f"{name} > bytes")


def _handed_bytes(stream: Stream, opened: AbstractSet[int]) -> Iterator[bytes | None]:
    """Yield the bytes that a stream hands to what unpickles them; None for those that are not at hand."""
    for call in stream.calls:
        func = call.func
        if (
            id(call) not in opened
            and isinstance(func, Global)
            and func.dotted in OPENERS
            and isinstance(call.args, tuple)
        ):
            for value in call.args:
                if _is_elsewhere(value, stream):
                    yield None
                elif (data := _as_bytes(value, stream)) is not None:
                    yield data


def _is_elsewhere(value: Value, stream: Stream) -> bool:
    """Return whether bytes are so large that they stayed in the file, of which the stream is a part."""
    if isinstance(value, Call) and isinstance(value.args, tuple) and value.args:
        value = value.args[0]
    return isinstance(value, Blob) and value.offset + value.nbytes > len(stream.data)


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
