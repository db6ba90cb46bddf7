from __future__ import annotations

import io
import random
import re
import tarfile
from collections.abc import Callable

import pytest

from inspector.containers import tar_members as module
from inspector.containers.source import FileSource
from inspector.containers.tar_members import Member, is_tar, padded, read_members, resized_headers
from inspector.errors import ContainerError
from tests.builders.tars import archive
from tests.sweep import table

Write = Callable[..., str]
PARTS = {"sys_info": b"info", "pickle": b"p" * 512, "tensors": b"", "storages": bytes(range(256)) * 5}


@pytest.fixture
def members(write: Write) -> Callable[[bytes], dict[str, Member]]:
    def members(data: bytes) -> dict[str, Member]:
        with FileSource(write(data)) as source:
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
        for name, kind in [("link", tarfile.SYMTYPE), ("folder", tarfile.DIRTYPE)]:
            info = tarfile.TarInfo(name)
            info.type = kind
            made.addfile(info)
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members(buffer.getvalue())) == ["pickle"]


@pytest.mark.parametrize(
    ("name", "kind", "target", "leads"),
    [
        ("storages", tarfile.SYMTYPE, "tensors", "another file of the computer"),
        ("storages", tarfile.LNKTYPE, "other", "another member"),
        ("tensors", tarfile.LNKTYPE, "a/../../x", "another file of the computer"),
        ("pickle", tarfile.SYMTYPE, "other", "another member"),
        ("pickle", tarfile.LNKTYPE, "/etc/passwd", "another file of the computer"),
    ],
)
def test_links_in_place_of_what_torch_reads_are_refused(
    members: Members, name: str, kind: bytes, target: str, leads: str
) -> None:
    with pytest.raises(
        ContainerError, match=rf"a link to {re.escape(target)} in place of {name}.*reads {leads}"
    ):
        members(archive({name: b""}, mtime=0, type=kind, linkname=target))


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE])
def test_what_is_no_file_in_place_of_what_torch_reads_is_refused(members: Members, kind: bytes) -> None:
    data = archive({"storages": b""}, mtime=0)
    sparse = changed(changed(data, 156, kind), 386, b"00000000001\x0000000000001\x00")
    with pytest.raises(ContainerError, match="no plain file named storages"):
        members(sparse)


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
    for broken in (data[:second], data[: second + 511], data[:second] + bytes(2000), data[:600]):
        assert list(members(broken)) == ["a"]
    flipped = bytearray(data)
    flipped[second + 100] ^= 1
    assert list(members(bytes(flipped))) == ["a"]
    assert members(b"") == {}
    assert members(changed(data, 124, b"not a number")) == {}


def test_header_is_what_tarfile_takes_for_one(members: Members) -> None:
    data = archive({"a": b"xyz"}, mtime=0)
    assert list(members(changed(data, 257, bytes(8)))) == ["a"]
    signed = bytearray(changed(data, 265, b"\xff\xfe\xfd"))
    signed[148:156] = b" " * 8
    signed[148:156] = b"%06o\0 " % sum(byte - 256 if byte > 127 else byte for byte in signed[:512])
    assert list(members(bytes(signed))) == ["a"]


def test_long_names_and_global_headers_are_understood(members: Members) -> None:
    buffer = io.BytesIO()
    name = "a" * 300
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as made:
        made.addfile(tarfile.TarInfo(name))
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members(buffer.getvalue())) == [name, "pickle"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", pax_headers={"comment": "x"}) as made:
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members(buffer.getvalue())) == ["pickle"]


def test_nonsense_in_headers_is_an_error(members: Members) -> None:
    data, nonsense = archive({"a": b"x"}), b"24 GNU.sparse.map=a,b,c\n"
    with pytest.raises(ContainerError, match="a header that cannot be read"):
        members(
            changed(data, 124, b"%011o\0" % len(nonsense))[:512] + nonsense.ljust(512, b"\0") + data[1024:]
        )


def test_headers_that_lead_in_front_of_the_file_are_an_error(members: Members) -> None:
    with pytest.raises(ContainerError, match="a member of -4,096 bytes"):
        members(changed(archive({"a": b"x"}, mtime=0), 124, b"\xff" * 10 + b"\xf0\x00"))


def test_headers_that_lead_backwards_are_an_error(members: Members) -> None:
    data = archive({"a": b"x", "b": b"y"}, mtime=0)
    second = data.index(b"b\0\0\0")
    with pytest.raises(ContainerError, match=r"a member of -512 bytes.*byte 1,024"):
        members(data[:second] + changed(data[second:], 124, b"\xff" * 10 + b"\xfe\x00"))


def test_no_more_members_are_read_than_anybody_wrote(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_MEMBERS", 5)
    with pytest.raises(ContainerError, match="more than 5 members"):
        members(archive(dict.fromkeys("abcdef", b"x")))


@table(
    ("data", "expected"),
    [
        (archive({"a": b"x"}, mtime=0), True),
        (archive({"a": b"x"}), True),
        (bytes(512), True),
        (bytes(511), False),
        (b"", False),
        (archive({"a": b"x"})[:700], False),
        (b"\x80\x02N." * 500, False),
        (changed(archive({"a": b"x"}), 124, b"77777777777\0"), True),
    ],
)
def test_what_opens_as_a_tar_archive(write: Write, data: bytes, *, expected: bool) -> None:
    with FileSource(write(data)) as source:
        assert is_tar(source) is expected
    if len(data) < 1 << 20 and data[124:135] != b"77777777777":
        try:
            tarfile.open(fileobj=io.BytesIO(data), mode="r:").close()
        except tarfile.TarError:
            assert not expected
        else:
            assert expected


def test_sizes_may_be_binary_or_missing(members: Members) -> None:
    data = archive({"a": b"xyz"}, mtime=0)
    assert members(changed(data, 124, b"\x80" + (3).to_bytes(11, "big")))["a"].nbytes == 3
    assert members(changed(data, 124, bytes(12)))["a"].nbytes == 0


def test_two_members_of_one_name_are_refused(members: Members) -> None:
    data = archive({"storages": b"x"}, mtime=0)[:1024]
    with pytest.raises(ContainerError, match="two members named storages,"):
        members(data + data)
    other = archive({"a": b"x"}, mtime=0)[:1024]
    assert members(other + other)["a"].start == 1024  # as tarfile


@table(
    "fields",
    [b"no length", b"99 path=a\n", b"9 path=a.", b"7 path\n", b"0 path=a\n", b"21 GNU.sparse.name=a\n"],
)
def test_odd_extended_headers_are_not_written_again(write: Write, fields: bytes) -> None:
    data = archive({"a": b"x"})
    odd = changed(data, 124, b"%011o\0" % len(fields))[:512] + fields.ljust(512, b"\0") + data[1024:]
    with FileSource(write(odd)) as source, pytest.raises(ContainerError, match="an extended header"):
        resized_headers(source, Member("a", 0, 1024, 1536, 1), 7)


def test_several_headers_of_one_member_are_not_written_again(write: Write) -> None:
    data = archive({"a": b"x"})
    with FileSource(write(data[:1024] + data)) as source:
        member = read_members(source)["a"]
        with pytest.raises(ContainerError, match="several headers for one member"):
            resized_headers(source, member, 7)


def extended(text: bytes, kind: bytes = b"x") -> bytes:
    """An extended header, and the header of an empty member."""
    header = changed(changed(archive({"a": b""}), 124, b"%011o\0" % len(text)), 156, kind)[:512]
    return header + text.ljust(padded(len(text)), b"\0") + archive({"a": b""}, mtime=0)[:512]


def comment(nbytes: int) -> bytes:
    return b"%d comment=%b\n" % (nbytes, b"c" * (nbytes - len(str(nbytes)) - 10))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (changed(archive({"a": b"x"}), 124, b"77777777777\0"), "an extended header of 8,589,934,592 bytes"),
        (changed(archive({"a": b"x"}), 124, b"\xff" * 10 + b"\xfc\x00"), "of -1,024 bytes"),
        (extended(comment(600_000)) * 2, "an extended header of 600,064 bytes"),
        (extended(comment(300), b"g") * 2049, "an extended header of 512 bytes"),  # copied for each member
        (extended(b"1" * 16_000), "a number of 100 digits"),  # which takes two seconds
        (extended(b"2 " * 8_000 + b"="), "a long key"),
    ],
)
def test_extended_headers_that_cost_too_much_are_not_read(members: Members, data: bytes, why: str) -> None:
    with pytest.raises(ContainerError, match=why):
        members(data)


def test_long_and_odd_extended_headers_are_read_as_tarfile_does(members: Members) -> None:
    for text in (comment(20_000), comment(40) * 1000, comment(30) + b"0 a=b\n", b"none", b"12 path=abc\n"):
        data = extended(text) + bytes(1024)
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as theirs:
                assert list(members(data)) == theirs.getnames()
        except tarfile.TarError:
            assert members(data) == {}


def test_extended_header_that_is_cut_off(members: Members) -> None:
    assert members(archive({"a": b"x"})[:520]) == {}


def test_members_are_bounded(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MEMBERS", 3)
    members(archive({"a": b"", "b": b""}, mtime=0))
    with pytest.raises(ContainerError, match="more than 3 members"):
        members(archive({"a": b"", "b": b"", "c": b""}, mtime=0))


@table("nbytes", [0, 1, 511, 512, 513, 10**6, 8**11 - 1, 8**11, 10**12])
@table("told", [False, True])
def test_resized_headers_are_read_by_tarfile(write: Write, nbytes: int, *, told: bool) -> None:
    size = {"size": "1280"} if told else {}
    comment = "é" * random.Random(nbytes).randint(1, 90)
    data = archive({"storages": PARTS["storages"]}, pax_headers={"comment": comment, **size})
    with FileSource(write(data)) as source:
        member = read_members(source)["storages"]
        headers = resized_headers(source, member, nbytes)
    with tarfile.open(fileobj=io.BytesIO(headers + bytes(1024))) as made:
        info = made.next()
    assert info is not None
    assert (info.name, info.size, info.mtime) == ("storages", nbytes, 1489000000.25)


def test_resized_plain_header(write: Write) -> None:
    with FileSource(write(archive(PARTS, mtime=0))) as source:
        member = read_members(source)["storages"]
        assert len(resized_headers(source, member, 7)) == 512
        assert resized_headers(source, member, member.nbytes) == source.read(member.header, 512)


def test_padding() -> None:
    assert [padded(nbytes) for nbytes in (0, 1, 512, 513)] == [0, 512, 512, 1024]
