from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import random
import re
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.containers import tar_archive as module
from inspector.containers.container import Container, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.containers.programs import count_globals
from inspector.containers.source import FileSource
from inspector.containers.tar_archive import (
    Cursor,
    Member,
    is_tar,
    padded,
    read_members,
    relocate,
    resized_headers,
)
from inspector.containers.unread import passes_for_tar
from inspector.errors import (
    CheckpointError,
    ContainerError,
    DamagedError,
    PickleError,
    UnsupportedFormatError,
)
from inspector.limits import Limits
from inspector.model.build import build_checkpoint
from inspector.pickles.values import Call, Dict, Global, PersistentId
from inspector.progress import Progress
from tests.builders import legacy, zips
from tests.builders.pickles import NONE, call, dict_, list_, name, number, op, proto, stream, text, tuple_
from tests.builders.tars import (
    INFO,
    Storage,
    Tensor,
    archive,
    checkpoint,
    reference,
    storages_member,
    tensors_member,
    with_header,
)
from tests.sweep import table, tries

TakeApart = Callable[..., Container]
SIX, TWO = struct.pack("<6f", *range(6)), b"88888888"
STORAGES = Storage(1000, "cuda:0", SIX), Storage(2000, "cpu", TWO)
TENSORS = Tensor(1, 1000, (2, 3), (3, 1)), Tensor(2, 2000, (2,), (1,), 0), Tensor(3, 1001, (), (), 1)
VIEWS = [(1001, 1000, 2, 3)]
ROOT = stream(
    proto(),
    dict_(
        (text("w"), reference(1)),
        (text("again"), reference(1)),
        (text("b"), reference(2)),
        (text("v"), reference(3)),
        (text("s"), reference(2000)),
        (text("sv"), reference(1001)),
    ),
)
WHOLE = checkpoint(ROOT, STORAGES, TENSORS, VIEWS)


def members(**changes: bytes) -> bytes:
    parts = {
        "sys_info": pickle.dumps(INFO, 2),
        "pickle": ROOT,
        "tensors": tensors_member(TENSORS),
        "storages": storages_member(STORAGES, VIEWS),
    }
    return archive(parts | changes)


@table("protocol", [0, 1, 2, 3, 4])
@table("mtime", [0, 1489000000.25])
def test_every_part_is_found(take_apart: TakeApart, protocol: int, mtime: float) -> None:
    data = checkpoint(ROOT, STORAGES, TENSORS, VIEWS, protocol=protocol, mtime=mtime)
    found = take_apart(data)
    assert (found.format, found.file_nbytes) == ("tar", len(data))
    assert found.pickle().data[: found.pickle().end] == ROOT
    assert found.stored == {
        "1000": StoredBytes(0, data.index(SIX), 24),
        "2000": StoredBytes(0, data.index(TWO), 8),
        "1001": StoredBytes(0, data.index(SIX) + 8, 12),
    }
    places = {key: (one.location, one.numel, one.dtype) for key, one in found.storage_ids.items()}
    assert places == {
        "1000": ("cuda:0", 6, "float32"),
        "2000": ("cpu", 2, "float32"),
        "1001": ("cuda:0", 3, "float32"),
    }
    assert found.versions == (("protocol_version", "1000"), ("little_endian", "True"))


def test_tensors_are_given_as_newer_files_have_them(take_apart: TakeApart) -> None:
    found = take_apart(WHOLE)
    root = found.stream.root
    assert isinstance(root, Dict)
    values = dict(root.pairs)
    assert values["w"] is values["again"]
    made = values["w"]
    assert isinstance(made, Call)
    assert isinstance(made.func, Global)
    assert made.func.dotted == "torch._utils._rebuild_tensor"
    assert made.args[1:] == (0, (2, 3), (3, 1))
    assert values["v"].args[1:] == (1, (), ())
    assert values["v"].args[0] is values["sv"]
    assert isinstance(values["s"], PersistentId)


def test_rows_of_the_model(take_apart: TakeApart) -> None:
    rows = build_checkpoint(take_apart(WHOLE)).tensors
    assert [(row.path, row.device, row.shape, row.storage, row.layout) for row in rows] == [
        ("w", "cuda:0", (2, 3), "1000", "strided"),
        ("again", "cuda:0", (2, 3), "1000", "strided"),
        ("b", "cpu", (2,), "2000", "strided"),
        ("v", "cuda:0", (), "1001", "strided"),
        ("s", "cpu", (2,), "2000", "storage"),
        ("sv", "cuda:0", (3,), "1001", "storage"),
    ]
    assert not any(row.problem for row in rows)


def test_all_that_loading_does_is_told(take_apart: TakeApart) -> None:
    hostile = stream(proto(), tuple_(number(1), text("cpu"), call("os.system", text("id"))))
    data = members(storages=pickle.dumps(1, 2) + hostile)
    with pytest.raises(ContainerError, match="the length of storages in the tar file is malformed"):
        take_apart(data)
    hostile = stream(proto(), tuple_(call("os.system", text("id")), op("POP"), text("x")))
    views = stream(proto(), call("os.popen", text("id")), op("POP"), list_())
    first = storages_member(STORAGES)
    data = members(
        storages=first[: first.rindex(b"\x80\x02")] + views, tensors=pickle.dumps(0, 2), pickle=hostile
    )
    programs = take_apart(data).programs
    assert [(program.name, program.kind) for program in programs] == [
        ("storages", "part"),
        ("tensors", "part"),
        ("pickle", "object"),
    ]
    assert count_globals(programs) == {"torch.FloatStorage": 2, "os.popen": 1, "os.system": 1}
    assert [len(program.stream.calls) for program in programs] == [1, 0, 1]


def test_what_torch_does_not_read_stops_nobody(take_apart: TakeApart) -> None:
    for info in (b"", b"nonsense", stream(proto(), call("os.system", text("id")))):
        found = take_apart(members(sys_info=info))
        assert found.versions == ()
        assert "os.system" not in count_globals(found.programs)
    parts = {"pickle": ROOT, "tensors": tensors_member(TENSORS), "storages": storages_member(STORAGES, VIEWS)}
    assert take_apart(archive(parts)).versions == ()


def test_class_of_a_module_comes_with_its_source(take_apart: TakeApart) -> None:
    cls = tuple_(name("nets.Net"), text("nets.py"), text("class Net: pass")) + op("BINPERSID")
    empty = tuple_() + op("BINPERSID")
    found = take_apart(members(pickle=stream(proto(), list_(cls, empty, reference("0x1"), reference(77)))))
    root = found.stream.root
    assert isinstance(root, list)
    assert isinstance(root[0], Global)
    assert all(isinstance(item, PersistentId) for item in root[1:])


# --- not whole ----------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_file_cut_off_anywhere(write: Callable[..., str]) -> None:
    whole = read_container(write(WHOLE))
    last = WHOLE.rindex(b"\x80\x02", 0, len(WHOLE.rstrip(b"\0")))
    for nbytes in range(1, len(WHOLE), tries(41, 7)):
        with contextlib.suppress(CheckpointError):
            assert read_container(write(WHOLE[:nbytes])).stored == whole.stored
            assert nbytes > last
            continue
        assert nbytes < last + 64


def test_cut_is_named(take_apart: TakeApart) -> None:
    with pytest.raises(DamagedError, match="the tar file is cut off: it has no member storages"):
        take_apart(WHOLE[: WHOLE.index(b"storages\0")])
    for place in (WHOLE.index(SIX) + 7, WHOLE.index(SIX) + 24, WHOLE.index(TWO) + 8):
        with pytest.raises(DamagedError, match="cut off within its storages, and what is behind has no name"):
            take_apart(WHOLE[:place])


def test_first_of_all_formats_is_named(take_apart: TakeApart) -> None:
    old = stream(proto(), tuple_(number(1000), name("torch.FloatStorage")))
    with pytest.raises(UnsupportedFormatError, match="from before torch 0"):
        take_apart(members(storages=pickle.dumps(1, 2) + old))


@table(
    "fields",
    [
        number(1),
        tuple_(number(1)),
        tuple_(text("1"), text("cpu")),
        tuple_(text("1"), text("cpu"), name("torch.FloatStorage")),
        tuple_(op("LONG1", b"\x10" + b"\x01" * 16), text("cpu"), name("torch.FloatStorage")),
        tuple_(number(1), number(0), name("torch.FloatStorage")),
        tuple_(number(1), text("cpu"), name("torch.NoSuchStorage")),
    ],
)
def test_malformed_storages(take_apart: TakeApart, fields: bytes) -> None:
    record = stream(proto(), fields) + struct.pack("<q", 2) + TWO
    with pytest.raises(ContainerError, match="a storage in the tar file is malformed"):
        take_apart(members(storages=pickle.dumps(1, 2) + record + pickle.dumps([], 2)))


@pytest.mark.parametrize("numel", [-1, 1 << 62])
def test_lengths_that_cannot_be(take_apart: TakeApart, numel: int) -> None:
    record = stream(proto(), tuple_(number(1), text("cpu"), name("torch.FloatStorage")))
    data = pickle.dumps(1, 2) + record + struct.pack("<q", numel) + TWO
    with pytest.raises(ContainerError, match="is malformed"):
        take_apart(members(storages=data))


@table(
    "views",
    [7, [7], [(1, 2, 3)], [(1, 1000, 0, "x")], [(1, 77, 0, 1)], [(1001, 1000, None, 3)]],
)
def test_malformed_views(take_apart: TakeApart, views: object) -> None:
    data = storages_member(STORAGES)
    data = data[: data.rindex(b"\x80\x02")] + pickle.dumps(views, 2)
    with pytest.raises(ContainerError, match="is malformed"):
        take_apart(members(storages=data))


def test_too_many_views(take_apart: TakeApart) -> None:
    data = members(storages=storages_member(STORAGES, [(number, 1000, 0, 1) for number in range(5)]))
    with pytest.raises(ContainerError, match="the list of views"):
        take_apart(data, storages=4)


@table(
    "fields",
    [
        number(1),
        tuple_(number(1), number(1000)),
        tuple_(text("1"), number(1000), name("a.B")),
        tuple_(number(1), text("1000"), name("a.B")),
        tuple_(number(1), number(77), name("a.B")),
    ],
)
def test_malformed_tensors(take_apart: TakeApart, fields: bytes) -> None:
    data = pickle.dumps(1, 2) + stream(proto(), fields) + struct.pack("<i4xq", 0, 0)
    with pytest.raises(ContainerError, match="a tensor in the tar file is malformed"):
        take_apart(members(tensors=data))


def test_pickle_that_breaks_off_in_a_whole_file(take_apart: TakeApart) -> None:
    with pytest.raises(PickleError, match="breaks off before its end: storages at byte"):
        take_apart(members(storages=storages_member(STORAGES)[:20]))
    with pytest.raises(PickleError, match="breaks off before its end: pickle"):
        take_apart(members(pickle=ROOT[:-1]))


# --- with other devices -------------------------------------------------------------------------------------


def test_relocated_container_has_other_devices_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.pth"
    path.write_bytes(WHOLE)
    container = read_container(str(path))
    before = build_checkpoint(container)
    moved = relocate(container, {"1000": "cpu"})
    after = build_checkpoint(moved)
    assert {row.device for row in after.tensors} == {"cpu"}
    assert [row._replace(device="") for row in after.tensors] == [
        row._replace(device="") for row in before.tensors
    ]
    assert {one.location for one in moved.storage_ids.values()} == {"cpu"}


Begin = Callable[..., Cursor]


@pytest.fixture
def begin(write: Callable[..., str]) -> Iterator[Begin]:
    """Stand at the beginning of a member with these bytes, behind others and in front of more."""
    sources = []

    def begin(data: bytes, more: bytes = b"behind", **limits: float) -> Cursor:
        source = FileSource(write(b"before" + data + more))
        sources.append(source)
        member = Member("storages", 0, 0, 6, len(data))
        return Cursor(source, member, Limits(**limits), Progress())

    yield begin
    for source in sources:
        source.close()


def test_long_pickles_are_fetched_in_pieces(begin: Begin) -> None:
    long = stream(proto(), list_(*[text("x" * 100)] * 50))
    assert len(begin(long).pickle().root) == 50
    with pytest.raises(PickleError, match="longer than 1,000 bytes: storages at byte 6"):
        begin(long, pickle_nbytes=1000).pickle()


def test_nothing_is_read_behind_the_member(begin: Begin) -> None:
    data = pickle.dumps("text", 2)
    with pytest.raises(PickleError, match="breaks off"):
        begin(data[:-1], data[-1:]).pickle()
    cursor = begin(data, b"")
    cursor._member = cursor._member._replace(nbytes=len(data) + 1)
    assert cursor.pickle().root == "text"
    with pytest.raises(DamagedError, match="cut off within its storages"):
        cursor.take(1)
    with pytest.raises(ContainerError, match="the length of storages"):
        begin(b"1234").take(5)
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        begin(b"R.").pickle()


@pytest.mark.parametrize("count", [-1, 10**6, True, "3", None])
def test_counts_that_cannot_be(begin: Begin, count: object) -> None:
    with pytest.raises(ContainerError, match="the number of storages in the tar file is malformed: byte 6"):
        begin(pickle.dumps(count, 2)).count()


def test_work_is_bounded(begin: Begin) -> None:
    cursor = begin(pickle.dumps(1, 2) * 3, storages=1)
    cursor.breathe()
    cursor.pickle()
    cursor.breathe()
    cursor.pickle()
    with pytest.raises(ContainerError, match="holds too much to read"):
        cursor.breathe()
    with pytest.raises(ContainerError, match="holds too much to read"):
        begin(b"", ends_s=0).breathe()


def test_geometry(begin: Begin) -> None:
    assert begin(struct.pack("<i4x5q", 2, 3, 4, 5, 6, 7)).geometry() == (7, (3, 4), (5, 6))
    assert begin(struct.pack("<i4xq", 0, 7)).geometry() == (7, (), ())
    for ndim in (-1, 65):
        with pytest.raises(ContainerError, match="the shape of a tensor"):
            begin(struct.pack("<i4x5q", ndim, 3, 4, 5, 6, 7)).geometry()


Write = Callable[..., str]
PARTS = {"sys_info": b"info", "pickle": b"p" * 512, "tensors": b"", "storages": bytes(range(256)) * 5}


@pytest.fixture
def members_members(write: Write) -> Callable[[bytes], dict[str, Member]]:
    def members_members(data: bytes) -> dict[str, Member]:
        with FileSource(write(data)) as source:
            return read_members(source)

    return members_members


Members = Callable[[bytes], dict[str, Member]]


@pytest.mark.parametrize("mtime", [0, 1489000000.25])
def test_members_are_those_of_tarfile(members_members: Members, mtime: float) -> None:
    data = archive(PARTS, mtime=mtime)
    found = members_members(data)
    assert {name: data[one.payload : one.end] for name, one in found.items()} == PARTS
    with tarfile.open(fileobj=io.BytesIO(data)) as theirs:
        assert {one.name: (one.offset, one.offset_data, one.size) for one in theirs} == {
            name: (one.start, one.payload, one.nbytes) for name, one in found.items()
        }
    assert all((one.header > one.start) == bool(mtime) for one in found.values())


def test_names_and_sizes_come_from_extended_headers_first(members_members: Members) -> None:
    data = archive({"short": b"1234"}, mtime=0, pax_headers={"path": "storages", "size": "4", "comment": "x"})
    assert {name: one.nbytes for name, one in members_members(data).items()} == {"storages": 4}


def test_prefix_belongs_to_the_name(members_members: Members) -> None:
    name = "a" * 90 + "/" + "b" * 90
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as made:
        made.addfile(tarfile.TarInfo(name))
    assert list(members_members(buffer.getvalue())) == [name]


def test_folders_and_links_are_passed_over(members_members: Members) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, kind in [("link", tarfile.SYMTYPE), ("folder", tarfile.DIRTYPE)]:
            info = tarfile.TarInfo(name)
            info.type = kind
            made.addfile(info)
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members_members(buffer.getvalue())) == ["pickle"]


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
    members_members: Members, name: str, kind: bytes, target: str, leads: str
) -> None:
    with pytest.raises(
        ContainerError, match=rf"a link to {re.escape(target)} in place of {name}.*reads {leads}"
    ):
        members_members(archive({name: b""}, mtime=0, type=kind, linkname=target))


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE])
def test_what_is_no_file_in_place_of_what_torch_reads_is_refused(
    members_members: Members, kind: bytes
) -> None:
    data = archive({"storages": b""}, mtime=0)
    sparse = changed(changed(data, 156, kind), 386, b"00000000001\x0000000000001\x00")
    with pytest.raises(ContainerError, match="no plain file named storages"):
        members_members(sparse)


def changed(data: bytes, start: int, new: bytes) -> bytes:
    """A header changed, and its checksum with it."""
    block = bytearray(data[:512])
    block[start : start + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[512:]


def test_list_ends_where_no_header_stands(members_members: Members) -> None:
    data = archive({"a": b"x", "b": b"y"}, mtime=0)
    second = data.index(b"b\0\0\0")
    for broken in (data[:second], data[: second + 511], data[:second] + bytes(2000), data[:600]):
        assert list(members_members(broken)) == ["a"]
    flipped = bytearray(data)
    flipped[second + 100] ^= 1
    assert list(members_members(bytes(flipped))) == ["a"]
    assert members_members(b"") == {}
    assert members_members(changed(data, 124, b"not a number")) == {}


def test_header_is_what_tarfile_takes_for_one(members_members: Members) -> None:
    data = archive({"a": b"xyz"}, mtime=0)
    assert list(members_members(changed(data, 257, bytes(8)))) == ["a"]
    signed = bytearray(changed(data, 265, b"\xff\xfe\xfd"))
    signed[148:156] = b" " * 8
    signed[148:156] = b"%06o\0 " % sum(byte - 256 if byte > 127 else byte for byte in signed[:512])
    assert list(members_members(bytes(signed))) == ["a"]


def test_long_names_and_global_headers_are_understood(members_members: Members) -> None:
    buffer = io.BytesIO()
    name = "a" * 300
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as made:
        made.addfile(tarfile.TarInfo(name))
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members_members(buffer.getvalue())) == [name, "pickle"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", pax_headers={"comment": "x"}) as made:
        made.addfile(tarfile.TarInfo("pickle"))
    assert list(members_members(buffer.getvalue())) == ["pickle"]


def test_nonsense_in_headers_is_an_error(members_members: Members) -> None:
    data, nonsense = archive({"a": b"x"}), b"24 GNU.sparse.map=a,b,c\n"
    with pytest.raises(ContainerError, match="a header that cannot be read"):
        members_members(
            changed(data, 124, b"%011o\0" % len(nonsense))[:512] + nonsense.ljust(512, b"\0") + data[1024:]
        )


def test_headers_that_lead_in_front_of_the_file_are_an_error(members_members: Members) -> None:
    with pytest.raises(ContainerError, match="a member of -4,096 bytes"):
        members_members(changed(archive({"a": b"x"}, mtime=0), 124, b"\xff" * 10 + b"\xf0\x00"))


def test_headers_that_lead_backwards_are_an_error(members_members: Members) -> None:
    data = archive({"a": b"x", "b": b"y"}, mtime=0)
    second = data.index(b"b\0\0\0")
    with pytest.raises(ContainerError, match=r"a member of -512 bytes.*byte 1,024"):
        members_members(data[:second] + changed(data[second:], 124, b"\xff" * 10 + b"\xfe\x00"))


def test_sizes_may_be_binary_or_missing(members_members: Members) -> None:
    data = archive({"a": b"xyz"}, mtime=0)
    assert members_members(changed(data, 124, b"\x80" + (3).to_bytes(11, "big")))["a"].nbytes == 3
    assert members_members(changed(data, 124, bytes(12)))["a"].nbytes == 0


def test_two_members_of_one_name_are_refused(members_members: Members) -> None:
    data = archive({"storages": b"x"}, mtime=0)[:1024]
    with pytest.raises(ContainerError, match="two members named storages,"):
        members_members(data + data)
    other = archive({"a": b"x"}, mtime=0)[:1024]
    assert members_members(other + other)["a"].start == 1024  # as tarfile


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
def test_extended_headers_that_cost_too_much_are_not_read(
    members_members: Members, data: bytes, why: str
) -> None:
    with pytest.raises(ContainerError, match=why):
        members_members(data)


def test_long_and_odd_extended_headers_are_read_as_tarfile_does(members_members: Members) -> None:
    for word in (comment(20_000), comment(40) * 1000, comment(30) + b"0 a=b\n", b"none", b"12 path=abc\n"):
        data = extended(word) + bytes(1024)
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as theirs:
                assert list(members_members(data)) == theirs.getnames()
        except tarfile.TarError:
            assert members_members(data) == {}


def test_extended_header_that_is_cut_off(members_members: Members) -> None:
    assert members_members(archive({"a": b"x"})[:520]) == {}


def test_members_are_bounded(members_members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MEMBERS", 3)
    members_members(archive({"a": b"", "b": b""}, mtime=0))
    with pytest.raises(ContainerError, match="more than 3 members"):
        members_members(archive({"a": b"", "b": b"", "c": b""}, mtime=0))


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


TAR = archive({"a": b"x"}, mtime=0)


@table(
    ("data", "expected"),
    [
        (TAR, True),
        (archive({"a": b"x"}), True),
        (with_header(TAR, 257, bytes(8)), True),
        (bytes(512), True),
        (TAR[:511], False),
        (archive({"a": b"x"})[:700], False),
        (b"\x80\x02N." * 500, False),
        (TAR[:148] + b"zzzzzzzz" + TAR[156:], False),
        (TAR[:148] + b"\x80\0\0\0\0\0\0\1" + TAR[156:], False),
        (TAR[:148] + b"0000001\0" + TAR[156:], False),
        (legacy.checkpoint(stream(NONE)) + bytes(600), False),
        (zips.checkpoint(stream(NONE)) + bytes(600), False),
        (b"", False),
    ],
)
def test_what_passes_for_tar(write: Write, data: bytes, *, expected: bool) -> None:
    with FileSource(write(data)) as source:
        assert is_tar(source) is passes_for_tar(source) is expected
    try:
        tarfile.open(fileobj=io.BytesIO(data), mode="r:").close()
    except tarfile.TarError:
        assert not expected
    else:
        assert expected


def test_what_torch_ends_with_passes_for_tar(write: Write) -> None:
    for data in (gzip.compress(TAR), changed(archive({"a": b"x"}), 124, b"77777777777\0")):
        with open_source(write(data)) as source:
            assert is_tar(source)
            assert passes_for_tar(source)
