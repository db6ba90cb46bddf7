"""The members of a tar archive: headers of 512 bytes, and contents that are padded to a multiple of that.

The format is "ustar" of POSIX.1-1988 with the extended headers of POSIX.1-2001, see "ustar Interchange
Format" and "pax Extended Header" in the Open Group's description of `pax`. torch 0.1 wrote it with Python's
`tarfile` in its PAX form: an extended header with the file's time stands in front of nearly every member.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.containers.source import Source
from inspector.errors import ContainerError
from inspector.units import cut_text, escape_text

BLOCK_NBYTES = 512
_EXTENDED = b"x"
_ODD_KINDS = frozenset({b"x", b"g", b"L", b"K", b"S"})  # they say something of what follows
_REGULAR = frozenset({b"0", b"\0"})
_SIZE, _CHECKSUM, _KIND, _PREFIX = slice(124, 136), slice(148, 156), slice(156, 157), slice(345, 500)
_NAME = slice(0, 100)
_MAGIC = b"ustar"
_BINARY = 0x80  # a size that is no octal number: GNU's way, which Python's tarfile writes, too
_MOST_MEMBERS = 1000
_MOST_EXTENDED_NBYTES = 1 << 16
_MOST_NAME = 60
_ODD = "save the file again with the program that wrote it"


class Member(NamedTuple):
    """One file of the archive.

    Attributes:
        name: Its name.
        start: Where its first header stands: the extended one where it has one.
        header: Where its own header stands.
        payload: Where its contents start.
        nbytes: How many there are.
    """

    name: str
    start: int
    header: int
    payload: int
    nbytes: int

    @property
    def end(self) -> int:
        """Where its contents end."""
        return self.payload + self.nbytes


class _Header(NamedTuple):
    name: str
    nbytes: int
    kind: bytes


def read_members(source: Source) -> dict[str, Member]:
    """List the regular files of an archive by their names.

    Raises:
        ContainerError: An extended header is malformed, there are too many members, or two of one name.
    """
    found: dict[str, Member] = {}
    pos = start = 0
    extended: dict[str, str] = {}
    for _ in range(_MOST_MEMBERS):
        header = _parse_header(source.read_upto(pos, BLOCK_NBYTES))
        if header is None:
            return found
        payload = pos + BLOCK_NBYTES
        if header.kind == _EXTENDED and start == pos:
            extended = dict(_parse_extended(_contents(source, payload, header.nbytes), payload))
            pos = payload + padded(header.nbytes)
            continue
        if header.kind in _ODD_KINDS:
            raise _odd(f"a header of kind {header.kind.decode()}", pos)
        name = extended.get("path", header.name)
        member = Member(name, start, pos, payload, _size(extended, header.nbytes, pos))
        if name in found:
            raise _odd(f"two members named {escape_text(cut_text(name, _MOST_NAME))}", pos)
        if header.kind in _REGULAR:
            found[name] = member
        pos = start = payload + padded(member.nbytes)
        extended = {}
    raise ContainerError(f"the tar archive has more than {_MOST_MEMBERS:,} members", where=source.path)


def padded(nbytes: int) -> int:
    """Give how many bytes so many take in an archive."""
    return -(-nbytes // BLOCK_NBYTES) * BLOCK_NBYTES


def _contents(source: Source, start: int, nbytes: int) -> bytes:
    if nbytes > _MOST_EXTENDED_NBYTES:
        raise _odd(f"an extended header of {nbytes:,} bytes", start)
    return source.read(start, nbytes)


def _parse_header(block: bytes) -> _Header | None:
    """Read a header; None where none stands, which ends an archive."""
    if (
        len(block) < BLOCK_NBYTES
        or block[257:262] != _MAGIC
        or _parse_number(block[_CHECKSUM]) != _sum(block)
    ):
        return None
    nbytes = _parse_number(block[_SIZE])
    if nbytes is None:
        return None
    name, prefix = (_text(block[part]) for part in (_NAME, _PREFIX))
    return _Header(f"{prefix}/{name}" if prefix else name, nbytes, block[_KIND])


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _sum(block: bytes) -> int:
    """Give the checksum of a header: the sum of its bytes, with blanks in the place of the checksum."""
    return sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" ")


def _parse_number(field: bytes) -> int | None:
    """Read a number of a header: octal digits, or binary after a byte that says so; None if it is neither."""
    if field[0] == _BINARY:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    return int(digits, 8) if all(digit in b"01234567" for digit in digits) else None


def _parse_extended(data: bytes, start: int) -> list[tuple[str, str]]:
    """Read the fields of an extended header, each `LENGTH KEY=VALUE` and a line break, LENGTH in bytes.

    Raises:
        ContainerError: They are malformed, or say that the file is stored in pieces.
    """
    fields = []
    while data:
        digits, _, _ = data.partition(b" ")
        nbytes = int(digits) if digits.isdigit() and len(digits) < len(str(_MOST_EXTENDED_NBYTES)) else 0
        field = data[len(digits) + 1 : nbytes - 1]
        key, equals, value = field.decode("utf-8", "surrogateescape").partition("=")
        if not equals or data[nbytes - 1 : nbytes] != b"\n" or key.startswith("GNU.sparse"):
            raise _odd("an extended header that cannot be read", start)
        fields.append((key, value))
        data = data[nbytes:]
    return fields


def _size(extended: dict[str, str], nbytes: int, pos: int) -> int:
    """Give the size of a member; the extended header's counts where it tells one."""
    told = extended.get("size")
    if told is None:
        return nbytes
    if not (told.isascii() and told.isdigit() and len(told) < 20):
        raise _odd("an extended header that cannot be read", pos)
    return int(told)


def _odd(what: str, pos: int) -> ContainerError:
    return ContainerError(
        f"the tar archive has {what}, which torch never wrote", where=f"byte {pos:,}", remedy=_ODD
    )


# --- writing ------------------------------------------------------------------------------------------------


def resized_headers(source: Source, member: Member, nbytes: int) -> bytes:
    """Give the headers of a member, extended one included, with another size.

    Raises:
        ContainerError: They cannot be read (any more).
    """
    own = _with_size(source.read(member.header, BLOCK_NBYTES), nbytes)
    if member.start == member.header:
        return own
    block = source.read(member.start, BLOCK_NBYTES)
    start = member.start + BLOCK_NBYTES
    fields = _parse_extended(source.read(start, _parse_number(block[_SIZE]) or 0), start)
    data = b"".join(_field(key, str(nbytes) if key == "size" else value) for key, value in fields)
    return _with_size(block, len(data)) + data + bytes(padded(len(data)) - len(data)) + own


def _field(key: str, value: str) -> bytes:
    """Write a field of an extended header; its length counts its own digits."""
    rest = f" {key}={value}\n".encode("utf-8", "surrogateescape")
    nbytes = len(rest) + 1
    while nbytes != len(rest) + len(str(nbytes)):
        nbytes = len(rest) + len(str(nbytes))
    return str(nbytes).encode() + rest


def _with_size(block: bytes, nbytes: int) -> bytes:
    """Give a header with another size, and the checksum of that."""
    is_octal = nbytes < 8**11
    size = b"%011o\0" % nbytes if is_octal else bytes([_BINARY]) + nbytes.to_bytes(11, "big")
    new = block[: _SIZE.start] + size + block[_SIZE.stop :]
    return new[: _CHECKSUM.start] + b"%06o\0 " % _sum(new) + new[_CHECKSUM.stop :]
