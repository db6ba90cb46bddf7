"""Handlers of the opcodes that push numbers, strs and bytes; see `handlers`."""

from __future__ import annotations

import re
import struct

from inspector.pickles.instructions import F8, I4, U2, U4, U8
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.state import WEIGHT_SHIFT, BrokenStreamError, CutOffError, Handler, State
from inspector.pickles.values import Blob, BlobKind, ByteArray, ByteString, Value

_U1 = struct.Struct("<B")
_DIGITS_READ_AT_ONCE = 4000  # Python refuses to convert more than 4300 digits
_QUICK_NBYTES = 256  # a line of this length is read at once, however many escapes it has


# --- constants and numbers ----------------------------------------------------------------------------------


def _constant(value: Value) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        state.stack.append(value)
        return pos

    return handler


def _number(form: struct.Struct) -> Handler:
    unpack_from, nbytes = form.unpack_from, form.size

    def handler(state: State, data: bytes, pos: int) -> int:
        state.stack.append(unpack_from(data, pos)[0])
        state.literals += 1
        return pos + nbytes

    return handler


def _binint1(state: State, data: bytes, pos: int) -> int:
    state.stack.append(data[pos])
    return pos + 1


def _line(data: bytes, pos: int) -> int:
    end = data.find(b"\n", pos)
    if end < 0:
        raise CutOffError("a line has no end")
    return end


def _int(state: State, data: bytes, pos: int) -> int:
    end = _line(data, pos)
    text = data[pos:end]
    if text in {b"00", b"01"}:  # how protocols 0 and 1 spell False and True
        state.stack.append(text == b"01")
    else:
        state.stack.append(_parse_int(state, pos, text))
    return end + 1


def _long(state: State, data: bytes, pos: int) -> int:
    end = _line(data, pos)
    state.stack.append(_parse_int(state, pos, data[pos:end].removesuffix(b"L")))
    return end + 1


def _parse_int(state: State, pos: int, text: bytes) -> Value:
    state.literals += 1
    if len(text) > _DIGITS_READ_AT_ONCE:
        return Blob("digits", pos, len(text))
    digits = text.removeprefix(b"-")
    if digits.isdigit() and (digits == b"0" or not digits.startswith(b"0")):
        return int(text)
    state.note(OddityKind.TEXT_INT, pos)
    try:
        int(text, 8 if text.lstrip(b"+-").startswith(b"0") and text.isdigit() else 0)
    except ValueError:
        state.faults.add(StreamFault.NO_NUMBER)
    return Blob("digits", pos, len(text))


def _float(state: State, data: bytes, pos: int) -> int:
    end = _line(data, pos)
    text = data[pos:end]
    if len(text) > _DIGITS_READ_AT_ONCE:
        raise BrokenStreamError("a number is too long")
    number = float(text)
    if b"_" in text or text != text.strip():
        state.note(OddityKind.TEXT_FLOAT, pos)
    state.literals += 1
    state.stack.append(number)
    return end + 1


def _counted_int(length: struct.Struct) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        start, end = _span(data, pos, length)
        state.literals += 1
        if end - start > state.limits.long_nbytes:
            state.stack.append(Blob("int", start, end - start))
        else:
            state.stack.append(int.from_bytes(data[start:end], "little", signed=True))
        return end

    return handler


def _span(data: bytes, pos: int, length: struct.Struct) -> tuple[int, int]:
    count: int = length.unpack_from(data, pos)[0]
    start = pos + length.size
    if count < 0:
        raise BrokenStreamError("a length is negative")
    if start + count > len(data):
        raise CutOffError("an operand runs past the end of the pickle")
    return start, start + count


# --- strs and bytes with a length ---------------------------------------------------------------------------


def _counted_text(length: struct.Struct) -> Handler:
    size, unpack_from = length.size, length.unpack_from

    def handler(state: State, data: bytes, pos: int) -> int:
        count = unpack_from(data, pos)[0]
        start = pos + size
        end: int = start + count
        if end > len(data) or count > state.short_nbytes:
            return _long_text(state, data, _span(data, pos, length))
        try:
            text = data[start:end].decode()
        except UnicodeDecodeError:
            return _long_text(state, data, (start, end))
        state.literals += 1 + (count >> WEIGHT_SHIFT)
        state.stack.append(text)
        return end

    return handler


def _long_text(state: State, data: bytes, span: tuple[int, int]) -> int:
    """Push a str that is long, or takes long: a surrogate costs as much as a hundred other characters."""
    start, end = span
    if not _push_large(state, "text", span):
        state.tick()
        state.add_text(end - start)
        state.stack.append(data[start:end].decode("utf-8", "surrogatepass"))
    return end


def _counted_string(length: struct.Struct) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        start, end = span = _span(data, pos, length)
        if not _push_large(state, "string", span):
            if end - start > state.short_nbytes:
                state.tick()
            state.add_text(end - start)
            _push_string(state, data[start:end])
        return end

    return handler


def _push_string(state: State, raw: bytes) -> None:
    """Push a byte string of Python 2. `torch.load` takes them all for UTF-8, and stops where one is not."""
    text = ByteString.of(raw)
    if not text.isascii() and not _is_decodable(text):
        state.tick()
        state.faults.add(StreamFault.UNDECODABLE_TEXT)
    state.stack.append(text)


def _is_decodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _push_large(state: State, kind: BlobKind, span: tuple[int, int]) -> bool:
    """Push what is too large to be copied as its place in the stream; return whether it is."""
    start, end = span
    is_large = end - start > state.limits.text_nbytes
    if is_large:
        state.literals += 1
        state.stack.append(Blob(kind, start, end - start))
    return is_large


def _counted_bytes(length: struct.Struct) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        start, end = span = _span(data, pos, length)
        if not _push_large(state, "bytes", span):
            state.literals += 1
            state.stack.append(data[start:end])
        return end

    return handler


def _bytearray(state: State, data: bytes, pos: int) -> int:
    start, end = span = _span(data, pos, U8)
    if not _push_large(state, "bytearray", span):
        state.created += 1
        state.stack.append(ByteArray(data[start:end]))
    return end


# --- strs on a line -----------------------------------------------------------------------------------------

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|([\\'\"abfnrtv])|(x))")
_ESCAPED = {
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def _string(state: State, data: bytes, pos: int) -> int:
    end = _line(data, pos)
    if end - pos < 2 or data[pos] != data[end - 1] or data[pos] not in b"'\"":
        raise BrokenStreamError("a string of protocol 0 is not quoted")
    if not _push_large(state, "string-line", (pos, end)):
        _weigh_line(state, end - pos)
        _push_string(state, _ESCAPE.sub(_unescape, data[pos + 1 : end - 1]))
    return end + 1


def _unescape(match: re.Match[bytes]) -> bytes:
    """Return what an escape of Python 2's `repr` means; `codecs.escape_decode` would write warnings."""
    hexadecimal, octal, letter, broken = match.groups()
    if broken is not None:
        raise BrokenStreamError("a string of protocol 0 has a broken escape")
    if hexadecimal is not None:
        return bytes.fromhex(hexadecimal.decode())
    return _ESCAPED[letter] if octal is None else bytes([int(octal, 8) & 0xFF])


def _unicode(state: State, data: bytes, pos: int) -> int:
    end = _line(data, pos)
    if not _push_large(state, "text-line", (pos, end)):
        _weigh_line(state, end - pos)
        state.stack.append(data[pos:end].decode("raw-unicode-escape"))
    return end + 1


def _weigh_line(state: State, nbytes: int) -> None:
    if nbytes > _QUICK_NBYTES:
        state.tick()
    state.add_text(nbytes)


# --- buffers outside the stream -----------------------------------------------------------------------------


def _next_buffer(state: State, data: bytes, pos: int) -> int:
    state.note(OddityKind.OUT_OF_BAND_BUFFER, pos)
    state.literals += 1
    state.stack.append(Blob("buffer", pos, 0))
    return pos


def _readonly_buffer(state: State, data: bytes, pos: int) -> int:
    """Leave what is immutable as it is; of anything else a view is made, which no pickle can hold."""
    top = state.stack.pop()
    is_fixed = type(top) is bytes or (isinstance(top, Blob) and top.kind in {"bytes", "buffer"})
    state.stack.append(top if is_fixed else Blob("buffer", pos, 0))
    return pos


LITERALS: dict[str, Handler] = {
    "NONE": _constant(None),
    "NEWTRUE": _constant(value=True),
    "NEWFALSE": _constant(value=False),
    "INT": _int,
    "BININT": _number(I4),
    "BININT1": _binint1,
    "BININT2": _number(U2),
    "LONG": _long,
    "LONG1": _counted_int(_U1),
    "LONG4": _counted_int(I4),
    "FLOAT": _float,
    "BINFLOAT": _number(F8),
    "STRING": _string,
    "SHORT_BINSTRING": _counted_string(_U1),
    "BINSTRING": _counted_string(I4),
    "UNICODE": _unicode,
    "SHORT_BINUNICODE": _counted_text(_U1),
    "BINUNICODE": _counted_text(U4),
    "BINUNICODE8": _counted_text(U8),
    "BINBYTES": _counted_bytes(U4),
    "SHORT_BINBYTES": _counted_bytes(_U1),
    "BINBYTES8": _counted_bytes(U8),
    "BYTEARRAY8": _bytearray,
    "NEXT_BUFFER": _next_buffer,
    "READONLY_BUFFER": _readonly_buffer,
}
