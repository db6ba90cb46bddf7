"""Whether Python's `tarfile` opens a file, told from its first bytes where that can be.

`torch.load` asks this of every file that is no zip, before it takes it for pickles. `tarfile` itself is asked
only about files whose first bytes may be a header, which it takes longer to import than to read those.
"""

from __future__ import annotations

from inspector.containers.source import Source

_HEADER_NBYTES = 512
_CHECKSUM = slice(148, 156)
# What Python's `int(text, 8)` takes, with blanks around; or a number in base 256.
_OCTAL = frozenset(b"01234567_oO+") | frozenset(range(0x21))
_BINARY = 0x80


def passes_for_tar(source: Source) -> bool:
    """Return whether a file opens as a tar archive."""
    head = source.read_upto(0, _HEADER_NBYTES)
    field = head[_CHECKSUM]
    if len(head) < _HEADER_NBYTES or not (field[0] & _BINARY or _OCTAL.issuperset(field)):
        return False
    from inspector.containers.tar.members import is_tar  # noqa: PLC0415 - few files pass for one

    return is_tar(source)
