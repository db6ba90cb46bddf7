"""A safetensors file written: its header, then each tensor in the order of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator

from inspector.containers.copying import write_over
from inspector.containers.storage_reader import STEP_NBYTES
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.model.tensors.elements import copy_strided, is_contiguous
from inspector.model.tensors.views import TensorFacts
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.convert.stored_bytes import Buffered, Stock, read_at
from inspector.remap.safetensors.contents import SafetensorsPlan, Slot, format_header


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """A file to write.

    Attributes:
        contents: What it holds.
        stock: Where the bytes are.
        target: Descriptor of the empty file.
        progress: Told of bytes copied, asked for cancellation.
    """

    contents: SafetensorsPlan
    stock: Stock
    target: int
    progress: Progress

    def write(self) -> None:
        """Write it."""
        header = format_header(self.contents)
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
        """Yield a tensor's bytes in row-major order, a chunk at a time."""
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
