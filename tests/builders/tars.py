"""Tar checkpoints as torch 0.1 wrote them, by Python's own tarfile."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.builders.pickles import name, number, op, proto, stream, text, tuple_

INFO = {"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 8}}
WRITTEN = 1489000000.25  # a time with a fraction has an extended header, as all files of those days do


class Storage(NamedTuple):
    key: int
    location: str
    data: bytes
    cls: str = "torch.FloatStorage"


class Tensor(NamedTuple):
    """A view of a storage, or of a view of one."""

    key: int
    storage: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    cls: str = "torch.FloatTensor"


View = tuple[int, int, int, int]


def storages_member(
    storages: Sequence[Storage], views: Sequence[View] = (), *, protocol: int = 2, itemsize: int = 4
) -> bytes:
    parts = [pickle.dumps(len(storages), protocol)]
    for one in storages:
        said = stream(proto(protocol), tuple_(number(one.key), text(one.location), name(one.cls)))
        parts += [said, struct.pack("<q", len(one.data) // itemsize), one.data]
    return b"".join([*parts, pickle.dumps(list(views), protocol)])


def tensors_member(tensors: Sequence[Tensor], *, protocol: int = 2) -> bytes:
    parts = [pickle.dumps(len(tensors), protocol)]
    for one in tensors:
        said = stream(proto(protocol), tuple_(number(one.key), number(one.storage), name(one.cls)))
        numbers = (*one.shape, *one.stride, one.offset)
        parts += [said, struct.pack(f"<i4x{len(numbers)}q", len(one.shape), *numbers)]
    return b"".join(parts)


def reference(key: int | str) -> bytes:
    """A persistent id in the object's pickle."""
    return text(str(key)) + op("BINPERSID")


def archive(members: Mapping[str, bytes], *, mtime: float = WRITTEN, **fields: object) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as made:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size, info.mtime = len(data), mtime
            for field, value in fields.items():
                setattr(info, field, value)
            made.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def checkpoint(
    root: bytes,
    storages: Sequence[Storage],
    tensors: Sequence[Tensor],
    views: Sequence[View] = (),
    *,
    mtime: float = WRITTEN,
    protocol: int = 2,
) -> bytes:
    """A whole file around an object's stream."""
    members = {
        "sys_info": pickle.dumps(INFO, protocol),
        "pickle": root,
        "tensors": tensors_member(tensors, protocol=protocol),
        "storages": storages_member(storages, views, protocol=protocol),
    }
    return archive(members, mtime=mtime)


def with_header(data: bytes, start: int, new: bytes, *, signed: bool = False) -> bytes:
    """The same file with other bytes in its first header, and the checksum of that."""
    block = bytearray(data[:512])
    block[start : start + len(new)] = new
    block[148:156] = b" " * 8
    values = [byte - 256 if signed and byte > 127 else byte for byte in block]
    block[148:156] = b"%06o\0 " % sum(values)
    return bytes(block) + data[512:]


def linked(members: Mapping[str, bytes], name: str) -> bytes:
    """A tar file in which one member is a hard link to another of a long name, as GNU's tar writes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.GNU_FORMAT) as made:
        for member, data in members.items():
            info = tarfile.TarInfo("x" * 150 if member == name else member)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.LNKTYPE, "x" * 150
        made.addfile(link)
    return buffer.getvalue()
