"""Other devices in files of torch that are bytes within a pickle: each is written anew where it stands.

In protocol 2 the bytes are a text that is encoded in Latin-1 while loading (`save_bytes` in CPython's
`Lib/pickle.py`); from 3 on they stand as they are. The length before them changes with them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource, FileSource
from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import HiddenDevice
from inspector.model.values.embedded import contents_of
from inspector.pickles.instructions import CODES, U4, U8, iter_instructions
from inspector.pickles.machine import Stream
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.remap.plan import TOGETHER, Plan, plan_remap, with_viewed
from inspector.remap.relabel import CopyWriter
from inspector.remap.rewrite import Edit
from inspector.remap.rules import Rule

Rewrite = Callable[[Stream, Plan], bytes]
_ZIP, _LEGACY = "zip", "legacy"
# Instructions that push bytes or the text of them, with how long their length is; and the next longer one.
_WIDTHS = {"SHORT_BINBYTES": 1, "BINBYTES": 4, "BINBYTES8": 8, "BYTEARRAY8": 8}
_WIDTHS |= {"SHORT_BINUNICODE": 1, "BINUNICODE": 4, "BINUNICODE8": 8}
_PLACES = {CODES[name]: width for name, width in _WIDTHS.items()}
_LONGER = {CODES["SHORT_BINBYTES"]: CODES["BINBYTES"], CODES["SHORT_BINUNICODE"]: CODES["BINUNICODE"]}
_TEXTS = frozenset(CODES[name] for name in _WIDTHS if name.endswith(("UNICODE", "UNICODE8")))


def embedded_edits(
    data: bytes,
    inside: Sequence[tuple[HiddenDevice, Value]],
    moves: Mapping[int, str],
    rewrite: Rewrite,
    progress: Progress,
) -> list[Edit]:
    """Return what changes in a pickle so that files within it have other devices."""
    rules: dict[bytes, dict[str, str]] = {}
    for index, (row, value) in enumerate(inside):
        own = rules.setdefault(contents_of(value, data), {})
        to = moves.get(index, row.device)
        if own.setdefault(row.device, to) != to:
            raise PlanError(
                "one file of torch in bytes stands in several places, which are sent to different devices",
                where=row.path,
                remedy=TOGETHER,
            )
    edits: list[Edit] = []
    for contents, devices in rules.items():
        going = [Rule(device=device, to=to) for device, to in devices.items() if device != to]
        if going:
            new = _relabeled(contents, going, rewrite, progress)
            found = list(_literals(data, contents, new))
            if not found:
                raise PlanError("a file of torch in bytes is written in a way that cannot be changed")
            edits += found
    return edits


def _relabeled(contents: bytes, rules: list[Rule], rewrite: Rewrite, progress: Progress) -> bytes:
    source = BytesSource(contents, "the bytes within")
    container = read_container(source, DEFAULT_LIMITS, progress)
    if container.format not in {_ZIP, _LEGACY}:
        raise PlanError("a file within bytes is of a format whose devices cannot be changed there")
    plan = plan_remap(build_checkpoint(container, progress=progress), rules)
    pickle = rewrite(container.pickle(), with_viewed(plan, container.storage_ids.values()))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bytes")  # noqa: PTH118 - `os.open` takes it
        target = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            writer = CopyWriter(
                source=source, target=target, pickle=pickle, limits=DEFAULT_LIMITS, progress=progress
            )
            (writer.write_zip if container.format == _ZIP else writer.write_legacy)()
        finally:
            os.close(target)
        with FileSource(path) as copy:
            return copy.read(0, copy.nbytes)


def _literals(data: bytes, contents: bytes, new: bytes) -> Iterator[Edit]:
    """Yield the edits of the instructions that push these contents, as bytes or as a text."""
    text = contents.decode("latin-1").encode()
    for start, end in iter_instructions(data, 0, len(data)):
        code = data[start]
        width = _PLACES.get(code)
        if width is None:
            continue
        is_text = code in _TEXTS
        if data[start + 1 + width : end] == (text if is_text else contents):
            yield Edit(start, end, _pushing(code, width, new.decode("latin-1").encode() if is_text else new))


def _pushing(code: int, width: int, payload: bytes) -> bytes:
    """Return the instruction that pushes a payload, in the way it was written before where that has room."""
    if width == 1 and len(payload) > 0xFF:
        code, width = _LONGER[code], U4.size
    if width == U8.size:
        return bytes([code]) + U8.pack(len(payload)) + payload
    return bytes([code]) + len(payload).to_bytes(width, "little") + payload
