"""A safetensors file: its header, read without trust in what it says of itself, and what its own loader says.

See https://huggingface.co/docs/safetensors (Format): eight bytes give the length of the header, at most 100
MB; it is one JSON object with an entry for each tensor, and texts under `__metadata__`; spaces may follow.
`json` alone would take gigabytes for a hundred megabytes of brackets, so the object is taken apart entry by
entry: nearly all are written as safetensors itself writes them, and one expression reads those.

Nothing in such a file is a program, and nothing says a device. `Metadata::validate` in
`safetensors/src/tensor.rs` refuses files whose tensors leave holes, overlap, or do not end where the file
does; their tensors are listed all the same, as far as each has bytes of its own. torch packs two elements of
`F4` into one of its own, and has no types of six bits: `load_file` refuses files with those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import NamedTuple, NoReturn

from inspector.containers.base import Cannot, Format
from inspector.containers.container import Container, StoredBytes, losses
from inspector.containers.notes import Note, NoteKind, shown
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.source import Source
from inspector.containers.unread import read_as_other_pickle
from inspector.errors import ContainerError, DamagedError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value
from inspector.progress import Progress


class Code(NamedTuple):
    """One element type."""

    dtype: str
    bits: int
    packed: int = 1  # how many of its elements are one of torch's
    loads: bool = True  # whether `load_file` makes tensors of it
    since: str = ""  # the first release whose `save_file` and `load_file` do, where not all do


CODES: dict[str, Code] = {
    "BOOL": Code("bool", 8),
    "F4": Code("float4_e2m1fn_x2", 4, packed=2, since="0.6"),
    "F6_E2M3": Code("float6_e2m3", 6, loads=False),
    "F6_E3M2": Code("float6_e3m2", 6, loads=False),
    "U8": Code("uint8", 8),
    "I8": Code("int8", 8),
    "F8_E5M2": Code("float8_e5m2", 8),
    "F8_E4M3": Code("float8_e4m3fn", 8),
    "F8_E5M2FNUZ": Code("float8_e5m2fnuz", 8, since="0.8"),
    "F8_E4M3FNUZ": Code("float8_e4m3fnuz", 8, since="0.8"),
    "F8_E8M0": Code("float8_e8m0fnu", 8, since="0.6"),
    "I16": Code("int16", 16),
    "U16": Code("uint16", 16, since="0.6"),
    "F16": Code("float16", 16),
    "BF16": Code("bfloat16", 16),
    "I32": Code("int32", 32),
    "U32": Code("uint32", 32, since="0.6"),
    "F32": Code("float32", 32),
    "C64": Code("complex64", 64, since="0.7"),
    "F64": Code("float64", 64),
    "I64": Code("int64", 64),
    "U64": Code("uint64", 64, since="0.6"),
}
BY_DTYPE = {row.dtype: (code, row) for code, row in CODES.items() if row.loads}
"""What it calls torch's types."""


# --- the header ---------------------------------------------------------------------------------------------


METADATA = "__metadata__"
_LENGTH_NBYTES = 8
_MOST_HEADER_NBYTES = 100_000_000
_MOST_ENTRY_NBYTES = 1 << 16
_MOST_PLAIN = 64  # dimensions of an entry that is read in one go
_MOST_DEPTH = 100  # serde_json, which safetensors reads it with, goes no deeper than 127
_ASK_EACH = 8192
_MOST_COUNT = (1 << 64) - 1
_FETCH = "fetch or copy the file again"
_FIELDS = ("dtype", "shape", "data_offsets")

_WS = r"[ \t\n\r]*+"
_TEXT = r'"((?:[^"\\\x00-\x1f]|\\.)*+)"'
_NUMBER = r"(?:0|[1-9][0-9]{0,19})"
_COLON, _COMMA = f"{_WS}:{_WS}", f"{_WS},{_WS}"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.DOTALL)


_OPEN = _compiled(rf"{_WS}\{{{_WS}")
_CLOSE = _compiled(rf"{_WS}\}}")
_NEXT = _compiled(_COMMA)
_NAME = _compiled(f"{_TEXT}{_COLON}")
_STRING = _compiled(_TEXT)
_BLANKS = _compiled(_WS)
_MARK = _compiled(r'["{}\[\]]')
_ENTRY = (
    rf'\{{{_WS}"dtype"{_COLON}"([A-Z0-9_]{{1,16}})"{_COMMA}'
    rf'"shape"{_COLON}\[{_WS}((?:{_NUMBER}(?:{_COMMA}{_NUMBER}){{0,{_MOST_PLAIN}}}+)?+){_WS}\]{_COMMA}'
    rf'"data_offsets"{_COLON}\[{_WS}({_NUMBER}){_COMMA}({_NUMBER}){_WS}\]{_WS}\}}'
)
_PLAIN = _compiled(_ENTRY)


class Entry(NamedTuple):
    """One tensor, as the header has it."""

    name: str
    code: str  # its element type, in safetensors' words
    shape: tuple[int, ...]  # sizes by dimension, in elements of that type
    start: int
    end: int


class Header(NamedTuple):
    """What a header says."""

    data_start: int
    entries: list[Entry]
    metadata: list[tuple[str, str]]


def read_header(source: Source, limits: Limits, look: Callable[[int], None]) -> Header:
    """Read the header of a file."""
    nbytes = int.from_bytes(source.read(0, _LENGTH_NBYTES), "little")
    data = source.read_upto(_LENGTH_NBYTES, nbytes)
    if len(data) < nbytes:
        raise DamagedError(
            "the file ends within its header",
            where=f"{len(data):,} of {nbytes:,} bytes",
            remedy="the file is incomplete: fetch or copy it again",
        )
    reading = _Reading(data, limits, look)
    reading.read()
    return Header(_LENGTH_NBYTES + nbytes, reading.entries, reading.metadata)


class _Reading:
    def __init__(self, data: bytes, limits: Limits, look: Callable[[int], None]) -> None:
        self._data = data
        self._most = limits.tensors
        self._look = look
        self.entries: list[Entry] = []
        self.metadata: list[tuple[str, str]] = []
        self._has_metadata = False
        # Tensors share their shapes, so that a pickle of many writes each once.
        self._shapes: dict[bytes, tuple[int, ...]] = {}

    def read(self) -> None:
        """Read all of it."""
        pos = self._object(0, self._member)
        end = self._matched(_BLANKS, pos, "").end()
        if end < len(self._data):
            raise self._damaged("something stands behind its end", end)
        for number, (name, _, shape, first, last) in enumerate(self.entries):
            if number % _ASK_EACH == 0:
                self._look(1)
            if max(first, last, *shape) > _MOST_COUNT:
                raise _malformed(name, "a number in it is too large")
        names = [entry.name for entry in self.entries]
        if len(set(names)) < len(names):
            raise DamagedError(
                "the header names a tensor twice",
                where=shown(_first_double(names)),
                remedy="programs read different things from it: fetch it again, or write it anew",
            )

    def _object(self, pos: int, member: Callable[[str, int], int]) -> int:
        pos = self._matched(_OPEN, pos, "it is no JSON object").end()
        found = _CLOSE.match(self._data, pos)
        while found is None:
            name = self._matched(_NAME, pos, "a name is expected")
            pos = member(self._text(name), name.end())
            found = _CLOSE.match(self._data, pos)
            if found is None:
                pos = self._matched(_NEXT, pos, "the JSON breaks off, or a comma is missing").end()
        return found.end()

    def _member(self, name: str, pos: int) -> int:
        self._look(1)
        if name == METADATA:
            return self._texts(pos)
        if len(self.entries) >= self._most:
            raise ContainerError(f"the file has more than {self._most:,} tensors")
        plain = _PLAIN.match(self._data, pos)
        if plain is None:
            entry, end = self._odd_entry(name, pos)
        else:
            code, sizes, start, last = plain.groups()
            shape = self._shapes.get(sizes)
            if shape is None:
                shape = self._shapes[sizes] = tuple(map(int, sizes.split(b","))) if sizes else ()
            entry, end = Entry(name, code.decode(), shape, int(start), int(last)), plain.end()
        self.entries.append(entry)
        return end

    def _texts(self, pos: int) -> int:
        """Read the metadata: an object of texts, or null, which says as much as no metadata."""
        if self._has_metadata:
            raise self._damaged(f"it has {METADATA} twice", pos)
        self._has_metadata = True
        return pos + 4 if self._data.startswith(b"null", pos) else self._object(pos, self._metadatum)

    def _metadatum(self, name: str, pos: int) -> int:
        self._look(1)
        found = self._matched(_STRING, pos, f"a value in {METADATA} is no text")
        self.metadata.append((name, self._text(found)))
        return found.end()

    def _odd_entry(self, name: str, pos: int) -> tuple[Entry, int]:
        """Read an entry that is written in another order than safetensors does, or has more in it."""
        end = self._end_of_value(name, pos)
        try:
            fields = json.loads(
                self._data[pos:end],
                object_pairs_hook=_Pairs,
                parse_int=_count_of,
                parse_float=_no_number,
                parse_constant=_no_number,
            )
        except ValueError as error:
            raise _malformed(name, "it is no JSON") from error
        if not isinstance(fields, _Pairs):
            raise _malformed(name, "it is no object")
        found = [[value for key, value in fields if key == field] for field in _FIELDS]
        if any(len(values) != 1 for values in found):
            raise _malformed(name, f"it must have {', '.join(_FIELDS)}, each once")
        code, shape, offsets = found[0][0], _counts(found[1][0]), _counts(found[2][0])
        if not isinstance(code, str) or shape is None or offsets is None or len(offsets) != 2:
            raise _malformed(name, f"{', '.join(_FIELDS)} are not a type, sizes and two offsets")
        return Entry(name, code, shape, offsets[0], offsets[1]), end

    def _end_of_value(self, name: str, pos: int) -> int:
        """Return where an object or a list ends; one that is long or deep is not looked at further."""
        depth, at, most = 0, pos, min(len(self._data), pos + _MOST_ENTRY_NBYTES)
        while mark := _MARK.search(self._data, at, most):
            self._look(1)
            at = mark.end()
            if mark[0] == b'"':
                at = self._matched(_STRING, mark.start(), "a text has no end").end()
                continue
            depth += 1 if mark[0] in b"{[" else -1
            if depth <= 0:
                return at
            if depth > _MOST_DEPTH:
                break
        raise _malformed(name, "it is too long, nested too deeply, or has no end")

    def _matched(self, pattern: re.Pattern[bytes], pos: int, otherwise: str) -> re.Match[bytes]:
        found = pattern.match(self._data, pos)
        if found is None:
            raise self._damaged(otherwise, pos)
        return found

    def _text(self, found: re.Match[bytes]) -> str:
        raw = found[1]
        try:
            text = json.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
            text.encode()
        except ValueError as error:  # of Unicode, or of JSON
            raise self._damaged("a text is not Unicode", found.start()) from error
        return str(text)

    def _damaged(self, why: str, pos: int) -> DamagedError:
        return DamagedError(
            f"the header is not written as safetensors does: {why}", where=f"byte {pos + 8:,}", remedy=_FETCH
        )


class _Pairs(list[tuple[str, object]]):
    """The members of an object in order, those of one name included."""


def _count_of(text: str) -> int:
    if not 0 < len(text) <= 20 or text.startswith("-"):
        raise ValueError(text)
    return int(text)


def _no_number(text: str) -> None:
    raise ValueError(text)


def _counts(value: object) -> tuple[int, ...] | None:
    is_counts = type(value) is list and all(type(one) is int for one in value)
    return tuple(value) if isinstance(value, list) and is_counts else None


def _malformed(name: str, why: str) -> DamagedError:
    return DamagedError(
        f"the entry of a tensor in the header is not valid: {why}", where=shown(name), remedy=_FETCH
    )


def _first_double(names: list[str]) -> str:
    return next(name for name, other in pairwise(sorted(names)) if name == other)


# --- the file -----------------------------------------------------------------------------------------------


_MOST_SIZE = (1 << 64) - 1
_MOST_CHARS = 80
_SAYS = "SafetensorError: Error while deserializing header: "
_INCOMPLETE = f"{_SAYS}incomplete metadata, file not fully covered"


class _Laid(NamedTuple):
    entry: Entry
    code: Code


def _refuse_code(entry: Entry) -> NoReturn:
    raise ContainerError(
        f"a tensor has the type {shown(entry.code)}, which is none of safetensors 0.8",
        where=shown(entry.name),
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
    return sorted(rows, key=lambda row: row[0][3:])


class Safetensors(Format):
    """What safetensors writes."""

    name = "safetensors"
    what = "a safetensors file"
    loader = "safetensors.torch.load_file"
    device_from = "load_file(path, device=...) decides"
    suffix = ".safetensors"
    reads_by_name = True
    copied_as = "state-dict"
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "a safetensors file has no devices, so there are none to change",
            "give load_file the device, or write a file for torch.load: export -o model.pth",
        ),
    )

    @override
    def matches(self, source: Source) -> bool:
        head = source.read_upto(0, _LENGTH_NBYTES + 1)
        nbytes = int.from_bytes(head[:_LENGTH_NBYTES], "little")
        return head[_LENGTH_NBYTES:] == b"{" and 0 < nbytes <= _MOST_HEADER_NBYTES

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
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
            dtype, bits, packed, loads, _ = code
            key, nbytes, start = str(number), end - begin if end > begin else 0, data_start + begin
            itemsize = bits * packed // 8
            if loads and nbytes % itemsize == 0:
                own = StorageId(key, dtype, itemsize, NO_DEVICE, nbytes // itemsize, untyped=False, view=None)
            else:  # no whole number of elements
                own = StorageId(key, "uint8", 1, NO_DEVICE, nbytes, untyped=True, view=None)
            storage_ids[key] = own
            pairs.append(
                (name, StoredTensor(key, dtype, shape if packed == 1 else _packed_shape(shape, code)))
            )
            if is_whole or source.reaches(start + nbytes):
                stored[key] = StoredBytes(0, start, nbytes)
        work.breathe()
        in_order = _in_order(rows)
        container = Container(
            path=source.path,
            format="safetensors",
            file_nbytes=source.file_nbytes,
            root=_root(pairs, header),
            storage_ids=storage_ids,
            stored=stored,
            notes=(*([Note(NoteKind.OVERLAP)] if _overlap(in_order) else []), *losses(storage_ids, stored)),
            refusal=_refusal(rows, in_order, source.nbytes - header.data_start),
            tied=_tied(header),
        )
        header.entries.clear()
        return container

    @override
    def read_rival(self, source: Source, limits: Limits, progress: Progress) -> bool:
        return read_as_other_pickle(source, limits, progress)
