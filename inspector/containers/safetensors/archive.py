"""A safetensors file taken apart: its tensors as rows, and what its own loader says to it.

Nothing in such a file is a program, and nothing says a device. `Metadata::validate` in
`safetensors/src/tensor.rs` refuses files whose tensors leave holes, overlap, or do not end where the file
does; their tensors are listed all the same, as far as each has bytes of its own.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple, NoReturn

from inspector.containers.container import Container, StoredBytes, damage_note
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.safetensors.dtypes import CODES, Code
from inspector.containers.safetensors.header import METADATA, Entry, Header, read_header
from inspector.containers.source import Source
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text

_MOST_SIZE = (1 << 64) - 1
_MOST_CHARS = 80
_ASK_EACH = 8192
_SAYS = "SafetensorError: Error while deserializing header: "
_INCOMPLETE = f"{_SAYS}incomplete metadata, file not fully covered"


class _Laid(NamedTuple):
    """An entry with what its type is."""

    entry: Entry
    code: Code


def read_safetensors(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a safetensors file apart."""
    work = limits.counted(progress.advance)
    header = read_header(source, limits, work.look)
    rows = [_Laid(entry, CODES.get(entry.code) or _refuse_code(entry)) for entry in header.entries]
    storage_ids: dict[str, StorageId] = {}
    stored: dict[str, StoredBytes] = {}
    pairs: list[tuple[Value, Value]] = []
    data_start = header.data_start
    # Of a file that ends before its last tensor does, each is asked about.
    is_whole = source.reaches(data_start + max([max(entry[3:]) for entry in header.entries], default=0))
    for number, (entry, code) in enumerate(rows):
        if number % _ASK_EACH == 0:
            work.breathe()
        name, _, shape, begin, end = entry
        dtype, bits, packed, loads = code
        key, nbytes, start = str(number), end - begin if end > begin else 0, data_start + begin
        itemsize = bits * packed // 8
        if loads and nbytes % itemsize == 0:
            own = StorageId(key, dtype, itemsize, NO_DEVICE, nbytes // itemsize, untyped=False, view=None)
        else:  # no whole number of elements
            own = StorageId(key, "uint8", 1, NO_DEVICE, nbytes, untyped=True, view=None)
        storage_ids[key] = own
        pairs.append((name, StoredTensor(key, dtype, shape if packed == 1 else _packed_shape(shape, code))))
        if is_whole or source.reaches(start + nbytes):
            stored[key] = StoredBytes(0, start, nbytes)
    lost = damage_note(storage_ids, stored) if len(stored) < len(storage_ids) else None
    work.breathe()
    in_order = _in_order(rows)
    container = Container(
        path=source.path,
        format="safetensors",
        file_nbytes=source.file_nbytes,
        root=_root(pairs, header),
        storage_ids=storage_ids,
        stored=stored,
        notes=(*([Note(NoteKind.OVERLAP)] if _overlap(in_order) else []), *([] if lost is None else [lost])),
        refusal=_refusal(rows, in_order, source.nbytes - header.data_start),
        tied=_tied(header),
    )
    header.entries.clear()
    return container


def _refuse_code(entry: Entry) -> NoReturn:
    kind = escape_text(cut_text(entry.code, _MOST_CHARS))
    raise ContainerError(
        f"a tensor has the type {kind}, which is none of safetensors 0.8",
        where=escape_text(cut_text(entry.name, _MOST_CHARS)),
        remedy="look for the program that wrote it, or for a newer version of this one",
    )


def _packed_shape(shape: tuple[int, ...], code: Code) -> tuple[int, ...]:
    """Return the sizes as torch counts them: the last dimension has fewer where elements are packed."""
    return (*shape[:-1], -(-shape[-1] // code.packed)) if shape else shape


def _root(pairs: list[tuple[Value, Value]], header: Header) -> Value:
    """Return the dictionary that loading makes; the metadata, which it does not return, are an attribute."""
    root = Call(Global("collections", "OrderedDict"), (), "reduce")
    root.pairs = pairs
    if header.metadata:
        root.state = Dict([(METADATA, Dict(list(header.metadata)))])
    return root


def _tied(header: Header) -> tuple[tuple[str, str], ...]:
    """Return the names that `save_model` left out, each with the name that its tensor is kept under."""
    if not header.metadata:
        return ()
    names = {entry.name for entry in header.entries}
    return tuple((name, kept) for name, kept in header.metadata if kept in names and name not in names)


# --- what the loader says -----------------------------------------------------------------------------------


def _refusal(rows: list[_Laid], in_order: list[_Laid], nbytes: int) -> str:
    """Return what safetensors' loader says to the tensors; empty where it takes them.

    Args:
        rows: The tensors.
        in_order: The same in the order of their bytes.
        nbytes: How many bytes stand behind the header.
    """
    reached = 0
    for row in in_order:
        entry = row.entry
        if entry.start != reached or entry.end < entry.start:
            return f"{_SAYS}invalid offset for tensor `{entry.name[:_MOST_CHARS]}`"
        reached = entry.end
        reason = _misfit(row)
        if reason:
            return _SAYS + reason
    if reached != nbytes:
        return _INCOMPLETE
    unread = next((row.entry.code for row in rows if not row.code.loads), "")
    odd = next(
        (row.entry for row in rows if row.code.packed > 1 and row.entry.shape[-1] % row.code.packed), None
    )
    if odd is not None:
        return (
            "SafetensorError: f4_x2 dtype requires that the last dim be divisible by 2 in torch: "
            f"got {list(odd.shape)}"
        )
    return f"SafetensorError: Dtype not understood: {unread}" if unread else ""


def _misfit(row: _Laid) -> str:
    """Return why the bytes of a tensor cannot be what its sizes and type say; empty where they can."""
    entry, code = row
    bits = code.bits
    nbits = 8 * (entry.end - entry.start)
    if bits * prod(entry.shape) == nbits and 0 < nbits <= _MOST_SIZE:  # nearly all
        return ""
    for size in (*entry.shape, 1):  # counted in this order, where a 0 ends all growth
        bits *= size
        if bits > _MOST_SIZE:
            break
    if bits > _MOST_SIZE:
        return "overflow computing buffer size from shape and/or element type"
    if bits % 8:
        return (
            "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, "
            "this is invalid."
        )
    if bits // 8 != entry.end - entry.start:
        return "invalid shape, data type, or offset for tensor"
    return ""


def _overlap(rows: list[_Laid]) -> bool:
    spans = [row.entry for row in rows if row.entry.end > row.entry.start]
    return any(one.end > other.start for one, other in pairwise(spans))


def _in_order(rows: list[_Laid]) -> list[_Laid]:
    """Return tensors by where they begin, and where they end."""
    return sorted(rows, key=lambda row: row[0][3:])
