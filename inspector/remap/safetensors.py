"""The safetensors format: what of a state dict it can hold, and the bytes of the file.

See https://huggingface.co/docs/safetensors (Format): the length of the header (8 bytes, little endian), the
header as JSON, padded with spaces, then the tensors, each in the order of rows, one behind the other without
gaps. There is no device, no sharing and no stride. As `save_model` of safetensors does, a tensor of several
names is kept under the first of them, and `__metadata__` tells which it is for the others.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from inspector.containers.copying import write_over
from inspector.containers.safetensors import BY_DTYPE
from inspector.containers.storage_reader import STEP_NBYTES
from inspector.model.tensors.dtypes import ITEMSIZES, copy_strided, is_contiguous
from inspector.model.tensors.views import TensorFacts
from inspector.pickles.values import Call, Dict, Value
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.forms import LeftOut
from inspector.remap.objects import tensors_in
from inspector.remap.storages import Buffered, Stock, read_at
from inspector.units import cut_text

_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_ALIGNMENT = 8
_MOST_CHARS = 80
_MOST_BITS = 512  # Python prints no numbers of thousands of digits

_OURS = {"format": "pt"}  # by which loaders tell whose tensors these are
_RESERVED = "the metadata of safetensors has another use for this name"


class Slot(NamedTuple):
    """One tensor to write."""

    name: str
    facts: TensorFacts
    dtype: str
    start: int
    nbytes: int


class Row(NamedTuple):
    """A tensor in the header: where its bytes begin behind it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int


class SafetensorsPlan(NamedTuple):
    """What a safetensors file holds.

    Attributes:
        tied: Names left out, each with the name that its tensor is kept under.
    """

    slots: list[Slot]
    metadata: dict[str, str]
    tied: tuple[tuple[str, str], ...]
    left_out: tuple[LeftOut, ...]
    refusals: tuple[str, ...]

    @property
    def header(self) -> bytes:
        """The beginning of the file."""
        rows = (Row(slot.name, slot.dtype, slot.facts.shape, slot.start) for slot in self.slots)
        return format_header(rows, self.metadata)


def plan_safetensors(
    entries: Sequence[tuple[str, Value]], facts: Sequence[TensorFacts | None], cast: dict[str, str]
) -> SafetensorsPlan:
    """Decide what a safetensors file of a state dict holds."""
    tensors = [
        (name, fact, value) for (name, value), fact in zip(entries, facts, strict=True) if fact is not None
    ]
    refusals = [reason for name, fact, value in tensors if (reason := _refusal(name, fact, value))]
    tied = find_tied([(name, _view(fact)) for name, fact, _ in tensors])
    gone = dict(tied)
    kept = [(name, fact) for name, fact, _ in tensors if name not in gone and fact.dtype in BY_DTYPE]
    # Larger elements first, so that every tensor begins at a multiple of its own.
    kept.sort(key=lambda item: -ITEMSIZES[cast.get(item[1].dtype, item[1].dtype)])
    slots, start = [], 0
    for name, fact in kept:
        dtype = cast.get(fact.dtype, fact.dtype)
        nbytes = prod(fact.shape) * ITEMSIZES[dtype]
        slots.append(Slot(name, fact, dtype, start, nbytes))
        start += nbytes
    plain = [(name, value) for (name, value), fact in zip(entries, facts, strict=True) if fact is None]
    texts = {name: str(value) for name, value in plain if _is_text(name, value) and name not in _OURS}
    left_out = tuple(_left_out(name, value) for name, value in plain if name not in texts)
    return SafetensorsPlan(slots, texts | gone | _OURS, tuple(tied), left_out, tuple(refusals))


def _left_out(name: str, value: Value) -> LeftOut:
    if name in _OURS:
        return LeftOut(name, _RESERVED, 0, 0)
    count, nbytes = tensors_in(value)
    return LeftOut(name, "neither a tensor nor a str", count, nbytes, is_lost=count > 0)


def find_tied(views: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    """Return the names of tensors that have another name already, and which; of several the first in order.

    Args:
        views: Each name with what it views, None for what cannot be shared.
    """
    names: dict[object, list[str]] = {}
    for name, view in views:
        if view is not None:
            names.setdefault(view, []).append(name)
    return [
        (name, min(shared))
        for shared in names.values()
        if len(shared) > 1
        for name in shared
        if name != min(shared)
    ]


def _view(facts: TensorFacts) -> object:
    if facts.storage is None or not facts.nbytes:
        return None
    return facts.storage.key, facts.dtype, facts.offset, facts.shape, facts.stride


def _refusal(name: str, facts: TensorFacts, value: Value) -> str:
    what = refusal_of(
        name, facts.dtype, facts.layout, is_stored=facts.storage is not None, is_number=not facts.shape
    )
    return what or (
        f"{cut_text(name, _MOST_CHARS)} is conjugated or negated on the fly" if _has_math_bits(value) else ""
    )


def refusal_of(name: str, dtype: str, layout: str, *, is_stored: bool, is_number: bool = False) -> str:
    """Return why a tensor cannot stand in a safetensors file; empty if it can."""
    shown = cut_text(name, _MOST_CHARS)
    if layout not in {"strided", "storage"}:
        return f"{shown} is {layout}"
    if dtype not in BY_DTYPE:
        return f"{shown} is {dtype}"
    if is_number and BY_DTYPE[dtype][1].packed > 1:
        return f"{shown} is {dtype} without dimensions"  # which have to count its halves
    if not is_stored:
        return f"{shown} has no bytes in the file"
    if name == _METADATA or not _is_unicode(name):
        return "a name is not one that the format allows"
    return ""


def _is_text(name: str, value: Value) -> bool:
    """Return whether a value can stand in the metadata as a text."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return False
    return isinstance(value, str | int | float) and _is_unicode(name + str(value)) and name != _METADATA


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as JSON: a lone surrogate cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _has_math_bits(value: Value) -> bool:
    """Return whether a tensor's bytes are not its values: `conj()` and the imaginary part only set a bit."""
    while isinstance(value, Call) and isinstance(value.args, tuple) and value.args:
        if isinstance(value.args[-1], Dict) and value.args[-1].pairs and len(value.args) > 6:
            return True
        value = value.args[0]
    return False


def format_header(rows: Iterable[Row], metadata: Mapping[str, str] = _OURS) -> bytes:
    """Return the beginning of a file, with its length before it."""
    found: dict[str, object] = {_METADATA: metadata}
    for row in rows:
        end = row.start + prod(row.shape) * ITEMSIZES[row.dtype]
        code, held = BY_DTYPE[row.dtype]
        found[row.name] = {
            "dtype": code,
            "shape": [*row.shape[:-1], *(size * held.packed for size in row.shape[-1:])],
            "data_offsets": [row.start, end],
        }
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return _LENGTH.pack(len(text)) + text


# --- A safetensors file written: its header, then each tensor in the order of rows --------------------------


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """A file to write."""

    contents: SafetensorsPlan
    stock: Stock
    target: int
    progress: Progress

    def write(self) -> None:
        """Write it."""
        header = self.contents.header
        self.progress.start("copying", sum(slot.nbytes for slot in self.contents.slots))
        out = Buffered(self.stock, self.target, self.progress)
        out.write(header)
        for slot in self.contents.slots:
            self._write_slot(slot, len(header) + slot.start, out)
        out.flush()

    def _write_slot(self, slot: Slot, place: int, out: Buffered) -> None:
        facts = slot.facts
        if not slot.nbytes:
            return
        if self.stock.caster is not None and slot.dtype != facts.dtype:
            for data in self.stock.caster.cast(self._chunks(facts), self.progress):
                out.write(data)
                self.progress.advance(len(data))
        elif is_in_row_order(facts):
            out.copy(storage_key(facts), facts.span)
        else:
            out.flush()
            self._straighten(facts, self.target, place)

    def _chunks(self, facts: TensorFacts) -> Iterator[bytes]:
        if is_in_row_order(facts):
            yield from self.stock.read_range(storage_key(facts), facts.span, self.progress)
            return
        fd = self.stock.spool().fileno()
        self._straighten(facts, fd, 0)
        for pos in range(0, facts.nbytes, STEP_NBYTES):
            yield read_at(fd, pos, min(STEP_NBYTES, facts.nbytes - pos))

    def _straighten(self, facts: TensorFacts, target: int, place: int) -> None:
        """Write a tensor whose elements stand in another order in its storage."""
        read = self.stock.reader(storage_key(facts), self.progress)
        stride = () if facts.stride is None else facts.stride
        copy_strided(
            (facts.shape, stride, facts.offset or 0),
            ITEMSIZES[facts.dtype],
            read,
            lambda offset, data: write_over(target, place + offset, bytes(data)),
            self.progress if target == self.target else Progress(),
        )
        os.lseek(target, place + facts.nbytes, os.SEEK_SET)


def storage_key(facts: TensorFacts) -> str:
    """Return the key of the storage that a tensor views."""
    return "" if facts.storage is None else facts.storage.key


def is_in_row_order(facts: TensorFacts) -> bool:
    """Return whether a tensor's elements already stand in the order of rows; those of a bare storage do."""
    return facts.stride is None or is_contiguous(facts.shape, facts.stride)
