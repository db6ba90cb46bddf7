"""The members of a tar archive, as Python's `tarfile` finds them: that is what `torch.load` asks.

A header is whatever `tarfile` takes for one: without the magic word, with a signed checksum, with numbers in
base 256, behind extended headers and long names. So `tarfile` itself lists the members; it only reads
headers, here from a file that gives none of absurd length. torch 0.1 wrote the format with it in its PAX form
(POSIX.1-2001): an extended header with the file's time stands in front of nearly every member.
"""

from __future__ import annotations

import posixpath
import re
import tarfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, cast

from inspector.containers.source import Source
from inspector.errors import CheckpointError, ContainerError
from inspector.units import cut_text, escape_text

INFO, OBJECT, TENSORS, STORAGES = "sys_info", "pickle", "tensors", "storages"
NEEDED = (OBJECT, TENSORS, STORAGES)
BLOCK_NBYTES = 512
_SIZE, _CHECKSUM, _KIND = slice(124, 136), slice(148, 156), slice(156, 157)
_EXTENDED, _GLOBAL = b"xgX", b"g"
_BINARY = 0x80  # a size that is no octal number: GNU's way, which Python's tarfile writes, too
_MOST_MEMBERS = 100_000
_MOST_EXTENDED_NBYTES = 1 << 20
_MOST_KEY = 256
_MANY_DIGITS = re.compile(rb"\d{100}")
_FIELD = re.compile(rb"(\d+) ([^=]{1,%d})" % (_MOST_KEY + 1))
_MOST_NAME = 60
_ODD = "save the file again with the program that wrote it"
# What `tarfile` raises besides its own errors where a header tells nonsense; torch.load ends with it.
_NONSENSE = (ValueError, LookupError, ArithmeticError, OSError, RecursionError, TypeError)


class Member(NamedTuple):
    """One file of the archive."""

    name: str
    start: int  # where its first header stands: the extended one where it has one
    header: int  # where its own header stands
    payload: int
    nbytes: int

    @property
    def end(self) -> int:
        """Where its contents end."""
        return self.payload + self.nbytes


class _Headers:
    """What `tarfile` sees of a file: its bytes, in pieces of bounded length.

    Python before 3.11.10 reads an extended header in a time that grows with the square of a row of digits, or
    of the fields that share a key (CVE-2024-6232). So headers that have either are refused before it does.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pos = 0
        self._kind = b""  # of the header that was read just now
        self._left = _MOST_EXTENDED_NBYTES

    def read(self, nbytes: int) -> bytes:
        """Read as files do; no header is as long as what is refused here."""
        kind, pos, self._kind = self._kind, self._pos, b""
        # One block for each member is nothing, but what is said for all of them is copied for each.
        self._left -= nbytes if kind == _GLOBAL else max(nbytes - BLOCK_NBYTES, 0)
        if self._left < 0:
            raise _odd(f"an extended header of {nbytes:,} bytes", pos)
        data = self._source.read_upto(pos, nbytes)
        self._pos += len(data)
        if not kind:
            self._kind = data[_KIND] if data[_KIND] in _EXTENDED else b""
        else:
            _refuse_slow(data, pos)
        return data

    def seek(self, pos: int) -> int:
        """Go to a place, none of which is in front of the file, see `_Info`."""
        self._pos = pos
        return pos

    def tell(self) -> int:
        """Return the place."""
        return self._pos


class _Info(tarfile.TarInfo):
    """A header whose size is a size: some Pythons end the archive at a negative one, others go backwards."""

    def _block(self, count: int) -> int:
        """Return how many bytes so many take in the archive, for `tarfile`, which asks it of each header."""
        if count < 0:
            raise _odd(f"a member of {count:,} bytes", self.offset)
        return padded(count)


def _refuse_slow(data: bytes, pos: int) -> None:
    if _MANY_DIGITS.search(data):
        raise _odd("a number of 100 digits", pos)
    start = 0
    while found := _FIELD.match(data, start):
        if len(found[2]) > _MOST_KEY:
            raise _odd("a long key in an extended header", pos)
        start += int(found[1]) or len(data)


def is_tar(source: Source) -> bool:
    """Return whether Python's `tarfile` opens a file, at which `torch.load` reads it as a tar archive."""
    try:
        _open(source)
    except tarfile.TarError:
        return False
    except (CheckpointError, *_NONSENSE):
        return True  # torch.load ends there, and reads nothing else
    return True


def list_members(source: Source) -> Iterator[tarfile.TarInfo]:
    """List all members of an archive, up to where `tarfile` gives up."""
    try:
        opened = _open(source)
        for _ in range(_MOST_MEMBERS):
            info = opened.next()
            if info is None:
                return
            cast("Any", opened).members.clear()  # it would keep all of them
            yield info
    except tarfile.TarError:
        return  # the archive is cut off there, or none at all
    except _NONSENSE as error:
        raise _odd(f"a header that cannot be read ({escape_text(str(error))})", 0) from error
    raise ContainerError(f"the tar archive has more than {_MOST_MEMBERS:,} members", where=source.path)


def read_members(source: Source) -> dict[str, Member]:
    """Return the regular files of an archive by their names."""
    found: dict[str, Member] = {}
    met: set[str] = set()
    for info in list_members(source):
        name, is_needed = info.name, info.name in NEEDED
        if is_needed and name in met:
            raise _odd(f"two members named {_shown(name)}", info.offset)
        if is_needed:
            met.add(name)
            _check_kind(info)
        if is_file(info):
            found[name] = Member(
                name, info.offset, info.offset_data - BLOCK_NBYTES, info.offset_data, info.size
            )
    return found


def is_file(info: tarfile.TarInfo) -> bool:
    """Return whether a member has contents of its own, in one piece."""
    return (info.isreg() or info.type not in tarfile.SUPPORTED_TYPES) and not info.sparse and info.size >= 0


def _check_kind(info: tarfile.TarInfo) -> None:
    if info.issym() or info.islnk():
        target = posixpath.normpath(info.linkname)
        leads = "another file of the computer" if _climbs(info, target) else "another member"
        raise _odd(
            f"a link to {_shown(info.linkname)} in place of {info.name}, so that loading reads {leads}",
            info.offset,
        )
    if not is_file(info):
        raise _odd(f"no plain file named {info.name}", info.offset)


def _climbs(info: tarfile.TarInfo, target: str) -> bool:
    """Return whether a link is made on disk, or leads out of the folder that torch unpacks into."""
    is_unpacked = info.name != OBJECT
    return (is_unpacked and info.issym()) or target.startswith(("/", ".."))


def _open(source: Source) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast("IO[bytes]", _Headers(source)), mode="r:", tarinfo=_Info)


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_NAME))


def padded(nbytes: int) -> int:
    """Return how many bytes so many records take in an archive."""
    return -(-nbytes // BLOCK_NBYTES) * BLOCK_NBYTES


def _sum(block: bytes) -> int:
    """Return the checksum of a header: the sum of its bytes, with blanks in the place of the checksum."""
    return sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" ")


def _parse_extended(data: bytes, start: int) -> list[tuple[str, str]]:
    """Read the fields of an extended header, each `LENGTH KEY=VALUE` and a line break, LENGTH in bytes."""
    fields = []
    pos = 0
    while pos < len(data) and data[pos]:  # zeros fill the block
        digits, _, _ = data[pos : pos + len(str(_MOST_EXTENDED_NBYTES))].partition(b" ")
        end = pos + (int(digits) if digits.isdigit() else 0)
        field = data[pos + len(digits) + 1 : max(end - 1, 0)]
        key, equals, value = field.decode("utf-8", "surrogateescape").partition("=")
        if not key or not equals or data[end - 1 : end] != b"\n":
            raise _malformed(start)
        fields.append((key, value))
        pos = end
    return fields


def _malformed(start: int) -> ContainerError:
    return _odd("an extended header that cannot be read", start)


def _odd(what: str, pos: int) -> ContainerError:
    return ContainerError(
        f"the tar archive has {what}, which torch never wrote", where=f"byte {pos:,}", remedy=_ODD
    )


# --- writing ------------------------------------------------------------------------------------------------


def resized_headers(source: Source, member: Member, nbytes: int) -> bytes:
    """Return the headers of a member, extended one included, with another size."""
    own = _with_size(source.read(member.header, BLOCK_NBYTES), nbytes)
    if member.start == member.header:
        return own
    block = source.read(member.start, BLOCK_NBYTES)
    start = member.start + BLOCK_NBYTES
    told = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").size
    if block[_KIND] != b"x" or start + padded(told) != member.header:
        raise _odd("several headers for one member", member.start)
    fields = _parse_extended(source.read(start, told), start)
    if any(key.startswith("GNU.sparse") for key, _ in fields):  # it is stored in pieces
        raise _malformed(start)
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
    is_octal = nbytes < 8**11
    size = b"%011o\0" % nbytes if is_octal else bytes([_BINARY]) + nbytes.to_bytes(11, "big")
    new = block[: _SIZE.start] + size + block[_SIZE.stop :]
    return new[: _CHECKSUM.start] + b"%06o\0 " % _sum(new) + new[_CHECKSUM.stop :]
