from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable

import pytest

from inspector.containers import tar_members as module
from inspector.containers.source import Source
from inspector.containers.tar_members import Member, padded, read_members, resized_headers
from inspector.errors import ContainerError, DamagedError
from tests.builders.tars import archive

Write = Callable[..., str]
PARTS = {"sys_info": b"info", "pickle": b"p" * 512, "tensors": b"", "storages": bytes(range(256)) * 5}


@pytest.fixture
def members(write: Write) -> Callable[[bytes], dict[str, Member]]:
    def members(data: bytes) -> dict[str, Member]:
        with Source(write(data)) as source:
            return read_members(source)

    return members


Members = Callable[[bytes], dict[str, Member]]


@pytest.mark.parametrize("mtime", [0, 1489000000.25])
def test_members_are_those_of_tarfile(members: Members, mtime: float) -> None:
    data = archive(PARTS, mtime=mtime)
    found = members(data)
    assert {name: data[one.payload : one.end] for name, one in found.items()} == PARTS
    with tarfile.open(fileobj=io.BytesIO(data)) as theirs:
        assert {one.name: (one.offset, one.offset_data, one.size) for one in theirs} == {
            name: (one.start, one.payload, one.nbytes) for name, one in found.items()
        }
    assert all((one.header > one.start) == bool(mtime) for one in found.values())


def test_names_and_sizes_come_from_extended_headers_first(members: Members) -> None:
    data = archive({"short": b"1234"}, mtime=0, pax_headers={"path": "storages", "size": "4", "comment": "x"})
    assert {name: one.nbytes for name, one in members(data).items()} == {"storages": 4}


def test_prefix_belongs_to_the_name(members: Members) -> None:
    name = "a" * 90 + "/" + "b" * 90
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as made:
        made.addfile(tarfile.TarInfo(name))
    assert list(members(buffer.getvalue())) == [name]


def test_folders_and_links_are_passed_over(members: Members) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, kind in [("storages", tarfile.SYMTYPE), ("folder", tarfile.DIRTYPE)]:
            info = tarfile.TarInfo(name)
            info.type = kind
            made.addfile(info)
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members(buffer.getvalue())) == ["pickle"]


def changed(data: bytes, start: int, new: bytes) -> bytes:
    """A header changed, and its checksum with it."""
    block = bytearray(data[:512])
    block[start : start + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[512:]


def test_list_ends_where_no_header_stands(members: Members) -> None:
    data = archive({"a": b"x", "b": b"y"}, mtime=0)
    second = data.index(b"b\0\0\0")
    for broken in (data[:second], data[: second + 511], data[:second] + bytes(2000)):
        assert list(members(broken)) == ["a"]
    flipped = bytearray(data)
    flipped[second + 100] ^= 1
    assert list(members(bytes(flipped))) == ["a"]
    assert members(b"") == {}
    assert members(changed(data, 124, b"not a number")) == {}


def test_sizes_may_be_binary_or_missing(members: Members) -> None:
    data = archive({"a": b"xyz"}, mtime=0)
    assert members(changed(data, 124, b"\x80" + (3).to_bytes(11, "big")))["a"].nbytes == 3
    assert members(changed(data, 124, bytes(12)))["a"].nbytes == 0


@pytest.mark.parametrize("kind", [b"g", b"L", b"K", b"S"])
def test_headers_that_change_what_follows_are_refused(members: Members, kind: bytes) -> None:
    with pytest.raises(ContainerError, match=f"a header of kind {kind.decode()}, which torch never wrote"):
        members(changed(archive({"a": b"x"}, mtime=0), 156, kind))


def test_two_extended_headers_in_a_row_are_refused(members: Members) -> None:
    data = archive({"a": b"x"})
    with pytest.raises(ContainerError, match="a header of kind x"):
        members(data[:1024] + data)


def test_two_members_of_one_name_are_refused(members: Members) -> None:
    data = archive({"a": b"x"}, mtime=0)[:1024]
    with pytest.raises(ContainerError, match="two members named a,"):
        members(data + data)


@pytest.mark.parametrize(
    "fields",
    [
        b"no length",
        b"99 path=a\n",
        b"9 path=a.",
        b"7 path\n",
        b"0 path=a\n",
        b"99999999999999999999 path=a\n",
        b"27 GNU.sparse.major=1\n\n\n\n\n\n",
        b"11 size=-1\n",
        b"30 size=99999999999999999999\n\n",
    ],
)
def test_extended_headers_that_cannot_be_read(members: Members, fields: bytes) -> None:
    data = archive({"a": b"x"})
    size = b"%011o\0" % len(fields)
    with pytest.raises(ContainerError, match="an extended header"):
        members(changed(data, 124, size)[:512] + fields.ljust(512, b"\0") + data[1024:])


def test_huge_extended_headers_are_not_read(members: Members) -> None:
    data = archive({"a": b"x"})
    with pytest.raises(ContainerError, match="an extended header of 8,589,934,591 bytes"):
        members(changed(data, 124, b"77777777777\0"))


def test_extended_header_that_is_cut_off(members: Members) -> None:
    with pytest.raises(DamagedError, match="ends too early"):
        members(archive({"a": b"x"})[:520])


def test_members_are_bounded(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MEMBERS", 3)
    members(archive({"a": b"", "b": b""}, mtime=0))
    with pytest.raises(ContainerError, match="more than 3 members"):
        members(archive({"a": b"", "b": b"", "c": b""}, mtime=0))


@pytest.mark.parametrize("nbytes", [0, 1, 511, 512, 513, 10**6, 8**11 - 1, 8**11, 10**12])
@pytest.mark.parametrize("told", [False, True])
def test_resized_headers_are_read_by_tarfile(write: Write, nbytes: int, *, told: bool) -> None:
    size = {"size": "1280"} if told else {}
    comment = "é" * random.Random(nbytes).randint(1, 90)
    data = archive({"storages": PARTS["storages"]}, pax_headers={"comment": comment, **size})
    with Source(write(data)) as source:
        member = read_members(source)["storages"]
        headers = resized_headers(source, member, nbytes)
    with tarfile.open(fileobj=io.BytesIO(headers + bytes(1024))) as made:
        info = made.next()
    assert info is not None
    assert (info.name, info.size, info.mtime) == ("storages", nbytes, 1489000000.25)


def test_resized_plain_header(write: Write) -> None:
    with Source(write(archive(PARTS, mtime=0))) as source:
        member = read_members(source)["storages"]
        assert len(resized_headers(source, member, 7)) == 512
        assert resized_headers(source, member, member.nbytes) == source.read(member.header, 512)


def test_padding() -> None:
    assert [padded(nbytes) for nbytes in (0, 1, 512, 513)] == [0, 512, 512, 1024]
