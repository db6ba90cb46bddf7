"""torch's own containers written anew: a zip as torch lays it out, or a legacy stream.

From `_save` and `_legacy_save` in torch's `torch/serialization.py`. Storages are copied by the kernel where
their CRC is known or nobody asks for it, and read, summed and written where it is not.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

from inspector.containers.legacy import MAGIC, NUMEL, PROTOCOL_VERSION
from inspector.containers.zip.directory import STORED, Entry
from inspector.errors import ExportError
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.pickles.values import Dict
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.archive.zip_layout import DEFAULT_ALIGNMENT, Record, lay_out
from inspector.remap.convert.storages import Piece
from inspector.remap.convert.stored_bytes import Buffered, Stock
from inspector.remap.objects.pickle_writer import write_pickle
from inspector.remap.objects.views import Writing

_SIZES = struct.Struct("<2L")
_UNTYPED = "UntypedStorage"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFile:
    """A file of torch's to write.

    Attributes:
        pickle: The object.
        pieces: Its storages, by the order of their keys.
        stock: Where their bytes are.
        byteorder: How numbers are stored: `little` or `big`.
        target: Descriptor of the empty file.
        progress: Told of bytes copied, asked for cancellation.
    """

    pickle: bytes
    pieces: Sequence[Piece]
    stock: Stock
    byteorder: str
    target: int
    progress: Progress

    def write_zip(self, name: str) -> None:
        """Write a zip whose records stand in a folder of this name."""
        contents: list[bytes | Piece] = [
            self.pickle,
            b"1",
            str(DEFAULT_ALIGNMENT).encode(),
            self.byteorder.encode(),
            *self.pieces,
            b"3\n",
            b"0" * 40,
        ]
        names = ["data.pkl", ".format_version", ".storage_alignment", "byteorder"]
        names += [f"data/{piece.name.key}" for piece in self.pieces]
        names += ["version", ".data/serialization_id"]
        contents[-1] = _serialization_id(names, self.pickle)
        records = [
            _record(f"{name}/{record}", content) for record, content in zip(names, contents, strict=True)
        ]
        self.progress.start("copying", sum(piece.nbytes for piece in self.pieces))
        out = Buffered(self.stock, self.target, self.progress)
        for part in lay_out(records, DEFAULT_ALIGNMENT):
            if isinstance(part, bytes):
                out.write(part)
                continue
            content = contents[part.number]
            if isinstance(content, bytes):
                out.write(content)
            else:
                crc = self._copy_summed(content, out)
                records[part.number] = records[part.number]._replace(crc=crc)
        out.flush()

    def write_legacy(self) -> None:
        """Write a legacy stream.

        Raises:
            ExportError: torch could not read a storage of it.
        """
        untyped = next((piece for piece in self.pieces if piece.name.cls[1] == _UNTYPED), None)
        if untyped is not None:
            raise ExportError(
                "torch cannot read untyped storages (such as float8 has) from legacy files",
                remedy="choose the zip container",
            )
        pieces = {piece.name.key: piece for piece in self.pieces}
        info = Dict(
            [
                ("protocol_version", PROTOCOL_VERSION),
                ("little_endian", True),
                ("type_sizes", Dict([("short", 2), ("int", 4), ("long", 4)])),
            ]
        )
        out = Buffered(self.stock, self.target, self.progress)
        for value in (MAGIC, PROTOCOL_VERSION, info):
            out.write(write_pickle(value, Writing()))
        out.write(self.pickle)
        out.write(write_pickle([*sorted(pieces)], Writing()))
        self.progress.start("copying", sum(piece.nbytes for piece in self.pieces))
        for key in sorted(pieces):
            piece = pieces[key]
            out.write(NUMEL.pack(piece.name.numel))
            if self.stock.is_cast(piece.source, piece.dtype):
                self._copy_summed(piece, out)
            else:
                _copy(piece, out)
        out.flush()

    def _copy_summed(self, piece: Piece, out: Buffered) -> int:
        """Write a storage and give its CRC."""
        crc = 0 if self.stock.is_cast(piece.source, piece.dtype) else self.stock.crc(piece)
        if crc:
            _copy(piece, out)
            return crc
        for chunk in self._chunks(piece):
            crc = zlib.crc32(chunk, crc)
            out.write(chunk)
            self.progress.advance(len(chunk))
        return crc

    def _chunks(self, piece: Piece) -> Iterator[bytes]:
        chunks = self.stock.read(piece, self.progress)
        if self.stock.caster is None or not self.stock.is_cast(piece.source, piece.dtype):
            return chunks
        return self.stock.caster.cast(chunks, self.progress)


def _copy(piece: Piece, out: Buffered) -> None:
    for span in piece.ranges:
        out.copy(piece.source, span)


def check_length(piece: Piece, owner_of: Callable[[str], str]) -> None:
    """Refuse a storage that the file does not hold as its pickle says.

    Raises:
        ExportError: It is longer or shorter.
    """
    itemsize = 1 if piece.name.cls[1] == _UNTYPED else ITEMSIZES[piece.dtype]
    if piece.nbytes != piece.name.numel * itemsize:
        raise ExportError(
            "the bytes of a tensor are not as many as the pickle says",
            where=owner_of(piece.source),
            remedy="the file is damaged: fetch or copy it again",
        )


def _record(name: str, content: bytes | Piece) -> Record:
    """Describe a record; the CRC of a storage is put in once it has been copied."""
    nbytes = content.nbytes if isinstance(content, Piece) else len(content)
    crc = 0 if isinstance(content, Piece) else zlib.crc32(content)
    return Record(Entry(name, 0, nbytes, nbytes, STORED, crc, 0, 0), crc, nbytes, nbytes)


def _serialization_id(names: Sequence[str], pickle: bytes) -> bytes:
    """Give forty digits for this file; torch writes some and reads them for its log."""
    return f"{zlib.crc32(chr(10).join(names).encode()):020d}{zlib.crc32(pickle):020d}".encode()
