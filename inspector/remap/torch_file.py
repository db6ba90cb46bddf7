"""A copy in torch's own containers, written from the storages of another file.

Storages are copied by the kernel where their CRC is known or nobody asks for it, and read, summed and
written where it is not.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from inspector.containers.legacy import MAGIC, NUMEL, PROTOCOL_VERSION
from inspector.errors import ExportError
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.pickles.values import Dict
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.pickle_writer import UNTYPED, Writing, write_pickle
from inspector.remap.storages import Buffered, Piece, Stock
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, storage_name, torch_records, write_zip

if TYPE_CHECKING:
    from concurrent.futures import Future

_INFO = Dict(
    [
        ("protocol_version", PROTOCOL_VERSION),
        ("little_endian", True),
        ("type_sizes", Dict([("short", 2), ("int", 4), ("long", 4)])),
    ]
)


_LARGE_NBYTES = 1 << 18
Submit = Callable[[Callable[[bytes, int], int], bytes, int], "Future[int]"]
"""Has a function called in another thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFile:
    """A file of torch's to write."""

    pickle: bytes
    pieces: Sequence[Piece]
    stock: Stock
    byteorder: str
    target: int
    progress: Progress

    def write_zip(self, folder: str) -> None:
        """Write a zip whose records stand in a folder of this name."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only this needs it

        out = self._start()
        with ThreadPoolExecutor(1) as pool:
            storages = (
                (piece.name.key, piece.nbytes, partial(self._copy, piece, out, pool.submit))
                for piece in self.pieces
            )
            records = torch_records(
                folder,
                self.pickle,
                storages,
                byteorder=self.byteorder,
                serialization_id=self._serialization_id(),
            )
            write_zip(records, DEFAULT_ALIGNMENT, out.write)
        out.flush()

    def write_legacy(self) -> None:
        """Write a legacy stream, as `_legacy_save` in torch's `torch/serialization.py` does."""
        if any(piece.name.cls == UNTYPED for piece in self.pieces):
            raise ExportError(
                "torch cannot read untyped storages (such as float8 has) from legacy files",
                remedy="choose the zip container",
            )
        out = self._start()
        for value in (MAGIC, PROTOCOL_VERSION, _INFO):
            out.write(write_pickle(value, Writing()))
        out.write(self.pickle)
        ordered = sorted(self.pieces, key=lambda piece: piece.name.key)
        out.write(write_pickle([piece.name.key for piece in ordered], Writing()))
        for piece in ordered:
            out.write(NUMEL.pack(piece.name.numel))
            self._copy(piece, out, None)
        out.flush()

    def _start(self) -> Buffered:
        self.progress.start("copying", sum(piece.nbytes for piece in self.pieces))
        return Buffered(self.stock, self.target, self.progress)

    def _serialization_id(self) -> bytes:
        """Return forty digits for this file; torch writes some and reads them for its log."""
        names = [
            "data.pkl",
            ".format_version",
            ".storage_alignment",
            "byteorder",
            *(storage_name(piece.name.key) for piece in self.pieces),
            "version",
            ".data/serialization_id",
        ]
        return b"%020d%020d" % (zlib.crc32("\n".join(names).encode()), zlib.crc32(self.pickle))

    def _copy(self, piece: Piece, out: Buffered, submit: Submit | None) -> int:
        """Write a storage and return its CRC, computed in a thread; or 0 where nobody asks for it."""
        is_cast = self.stock.is_cast(piece.source, piece.dtype)
        crc = 0 if is_cast or submit is None else self.stock.crc(piece)
        if crc or not (is_cast or submit):
            for span in piece.ranges:
                out.copy(piece.source, span)
            return crc
        for chunk in self._chunks(piece):
            if submit is None or len(chunk) < _LARGE_NBYTES:
                crc = zlib.crc32(chunk, crc)
                out.write(chunk)
            else:  # neither holds the interpreter's lock, and one takes about as long as the other
                summed = submit(zlib.crc32, chunk, crc)
                out.write(chunk)
                crc = summed.result()
            self.progress.advance(len(chunk))
        return crc

    def _chunks(self, piece: Piece) -> Iterator[bytes]:
        chunks = self.stock.read(piece, self.progress)
        if self.stock.caster is None or not self.stock.is_cast(piece.source, piece.dtype):
            return chunks
        return self.stock.caster.cast(chunks, self.progress)


def check_length(piece: Piece, owner_of: Callable[[str], str]) -> None:
    """Refuse a storage that the file does not hold as its pickle says."""
    itemsize = 1 if piece.name.cls == UNTYPED else ITEMSIZES[piece.dtype]
    if piece.nbytes != piece.name.numel * itemsize:
        raise ExportError(
            "the size of a tensor's storage is not what the pickle says",
            where=owner_of(piece.source),
            remedy="the file is damaged: fetch or copy it again",
        )
