"""Zips and legacy files that attack whoever reads them: groups 18 to 21 and 24."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from tests.builders import tars, zips
from tests.builders.legacy import MAGIC
from tests.builders.legacy import checkpoint as legacy
from tests.builders.pickles import (
    NONE,
    dict_,
    legacy_storage,
    list_,
    name,
    number,
    op,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.builders.zips import Record, build_zip
from tests.hostile.streams import PAYLOAD, PAYLOAD_AS_TEXT, long_int

Rows = dict[int, dict[str, tuple[Callable[[], bytes], dict[str, Any]]]]
HONEST = state_dict(w=tensor(storage(), 2))
EVIL = stream(proto(), PAYLOAD)
AMBIGUOUS = {
    "answer": "ambiguous",
    "verdict": "runs-code|dangerous",
    "oddities": "several records could be data.pkl",
}


def archive(*records: Record, version: Record | None = None) -> bytes:
    return build_zip(*records, version or Record(name="archive/version", data=b"3\n"))


def pickled(data: bytes = HONEST, name: str | bytes = "archive/data.pkl", **lies: Any) -> Record:
    """The record of the pickle, with whatever its headers lie about."""
    return Record(name=name, data=data, **lies)


_UNSURE = {"answer": "ambiguous"}
_EVIL = {"globals": "posix.system", "verdict": "dangerous"}
_DANGEROUS = {"calls": "system", "verdict": "dangerous", "answer": "never"}
STORED = Record(name="archive/data/0", data=bytes(8))


def _bomb() -> bytes:
    """Fifty kilobytes that inflate to 51 MB of instructions."""
    return archive(pickled(proto() + NONE * 51_000_000 + b".", method=8))


def _started(*records: Record) -> zips.ZipBuilder:
    builder = zips.ZipBuilder()
    _go_on(builder, *records)
    return builder


def _go_on(builder: zips.ZipBuilder, *records: Record) -> tuple[bytes, int]:
    """Begin a directory anew with more records and a version; return what the last one was."""
    before = bytes(builder.central), builder.count
    builder.central.clear()
    builder.count = 0
    for record in (*records, Record(name="archive/version", data=b"3\n")):
        builder.add(record)
    return before


def _fake_end() -> bytes:
    """A second directory and a second end in the comment of the first: all readers take the later one."""
    builder = _started(pickled(), STORED)
    honest, count = _go_on(builder, pickled(EVIL))
    start = len(builder.body)
    behind, nbytes = start + len(honest) + zips.END.size, len(builder.central)
    evil = builder.central + zips.END.pack(b"PK\5\6", 0, 0, builder.count, builder.count, nbytes, behind, 0)
    end = zips.END.pack(b"PK\5\6", 0, 0, count, count, len(honest), start, len(evil))
    return bytes(builder.body) + honest + end + bytes(evil)


def _far_end() -> bytes:
    """A harmless archive that lost its end, and behind it an evil one whose end is hard to find."""
    builder = _started(pickled(), STORED)
    _go_on(builder, pickled(EVIL))
    return builder.finish() + bytes(69_500)


def _early_locator() -> bytes:
    """An end with a Zip64 locator so near the start that miniz does not look at it; the rest is its comment.

    Whoever believes the locator reads the harmless directory, and torch reads the other.
    """
    builder = zips.ZipBuilder()
    builder.add(Record(name="a/"))
    room = zips.LOCATOR64.size + zips.END.size
    front = bytes(builder.body)
    builder.body += bytes(room)
    directories = []
    for data in (HONEST, EVIL):
        _go_on(builder, pickled(data), STORED)
        directories.append(bytes(builder.central))
    body, nbytes = bytes(builder.body), len(directories[0])
    start = len(body)
    wide = zips.END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, 3, 3, nbytes, start)
    behind = directories[0] + directories[1] + wide
    locator = zips.LOCATOR64.pack(b"PK\6\7", 0, start + 2 * nbytes, 1)
    most = len(body) - len(front) - room + len(behind)
    end = zips.END.pack(b"PK\5\6", 0, 0, 3, 3, nbytes, start + nbytes, most)
    return front + locator + end + body[len(front) + room :] + behind


def _broken_deflate() -> bytes:
    """A pickle in a packed record that is damaged behind the pickle's end: torch does not mind."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(EVIL) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 40
    data = bytearray(archive(pickled(packed, nbytes=len(EVIL) + 9, time=1), STORED))
    struct.pack_into("<H", data, data.index(b"PK\1\2") + 10, 8)
    return bytes(data)


def _prefixed() -> bytes:
    """An archive behind other bytes: torch counts from the file's start, zipfile from the archive's own."""
    honest, evil = archive(pickled(), STORED), archive(pickled(EVIL), STORED)
    bodies = [data[: data.index(b"PK\1\2")] for data in (honest, evil)]
    most = max(map(len, bodies))
    parts = b""
    for data, body in zip((honest, evil), bodies, strict=True):
        directory = data[len(body) : data.index(b"PK\5\6")]
        parts += body.ljust(most, b"\0") + directory
    return parts + zips.END.pack(b"PK\5\6", 0, 0, 3, 3, len(directory), most, 0)


def _overlapping() -> bytes:
    first = archive(pickled(), STORED)
    at = first.index(b"archive/data/0") - 30
    return archive(
        pickled(),
        STORED,
        *(Record(name=f"archive/data/{key}", nbytes=8, stored_nbytes=8, offset=at) for key in range(1, 1000)),
    )


def _eval_magic() -> bytes:
    """A legacy file whose magic number is computed while it is loaded."""
    magic = b"c__builtin__\neval\n(S'0x1950a86a20f9469cfc6c'\ntR."
    rest = legacy(state_dict(w=tensor(legacy_storage(), 2)), ("0", 2, bytes(8)))
    return magic + rest[len(pickle.dumps(0x1950A86A20F9469CFC6C, 2)) :]


def zip_and_tar() -> bytes:
    """A zip whose first local header, name and extra field are the header of a tar file."""
    filler = struct.pack("<2H", 0x7777, 508) + b"0" * 508
    data = bytearray(archive(pickled(extra=filler), STORED))
    for field in range(100, 156, 8):  # mode, owner, group, size, time: numbers, and the checksum with them
        data[field : field + 8] = b"0000000\0"
    data[124:148] = b"00000000000\0" * 2
    data[329:345] = b"0000000\0" * 2
    return tars.with_header(bytes(data), 300, b"")


def _legacy(numel: int = 2, data: bytes = bytes(8), **lies: Any) -> Callable[[], bytes]:
    return lambda: legacy(state_dict(w=tensor(legacy_storage(numel=numel), 2)), ("0", numel, data), **lies)


def _zip_in_tail() -> bytes:
    """What zipfile sees as a zip and torch as a legacy pickle: the first four bytes decide."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("archive/data.pkl", EVIL)
        file.writestr("archive/version", "3\n")
    return legacy(state_dict(w=tensor(legacy_storage(), 2)), ("0", 2, bytes(8))) + inner.getvalue()


def _stops(reason: str) -> dict[str, Any]:
    return {"answer": "errors", "reason": reason}


def _two(notes: str) -> dict[str, Any]:
    """What is read in two ways, both harmless."""
    return {**_UNSURE, "verdict": "runs-code", "notes": notes}


CASES: Rows = {
    18: {
        "two data.pkl, the evil one first": (
            lambda: archive(pickled(EVIL), pickled(), STORED),
            AMBIGUOUS | _EVIL,
        ),
        "two data.pkl, the evil one last": (
            lambda: archive(pickled(), pickled(EVIL), STORED),
            AMBIGUOUS | _EVIL,
        ),
        "DATA.PKL beside data.pkl": (
            lambda: archive(pickled(), pickled(EVIL, "archive/DATA.PKL"), STORED),
            AMBIGUOUS | _EVIL,
        ),
        "a name with a NUL": (
            lambda: archive(pickled(), pickled(EVIL, b"archive/data.pkl\0.txt"), STORED),
            AMBIGUOUS | _EVIL,
        ),
        "two records of one storage": (lambda: archive(pickled(), STORED, STORED), {"answer": "ambiguous"}),
        "five hundred data.pkl": (lambda: archive(*[pickled()] * 500, STORED), AMBIGUOUS),
    },
    19: {
        "a wrong checksum": (
            lambda: archive(pickled(crc=1), STORED),
            {"notes": "checksum of data.pkl is wrong", "tensors": 1},
        ),
        "a local name of its own": (
            lambda: archive(pickled(local_name="archive/DATA.txt"), STORED),
            {"tensors": 1},
        ),
        **{
            f"flag {flag:#x}": (
                lambda flag=flag: archive(pickled(flags=flag), STORED),
                {"error": "encrypted"},
            )
            for flag in (0x1, 0x40)
        },
        "a masked directory": (lambda: archive(pickled(EVIL, flags=0x2000), STORED), _UNSURE | _EVIL),
        "method 99": (lambda: archive(pickled(method=99), STORED), {"error": "method 99 is not supported"}),
        "a fake end record in the comment": (_fake_end, _UNSURE | _EVIL),
        "an end farther back than most programs look": (_far_end, _UNSURE | _EVIL),
        "a Zip64 locator in front of byte 76": (_early_locator, _UNSURE | _EVIL),
        "a packed pickle with damage behind its end": (_broken_deflate, _UNSURE | _EVIL),
        "an archive with a prefix": (_prefixed, {**_UNSURE, **_EVIL, "notes": "in different places"}),
        "a pickle that is a folder": (
            lambda: archive(pickled(attributes=0x10), STORED),
            _two("takes a record for a folder"),
        ),
        "a pickle of two sizes": (
            lambda: archive(pickled(HONEST + b"more", nbytes=len(HONEST), time=1), STORED),
            _two("two sizes"),
        ),
        "a storage of two sizes": (
            lambda: archive(pickled(), Record(name="archive/data/0", data=bytes(8), nbytes=6, time=1)),
            _two("two sizes"),
        ),
        "a storage that is a folder": (
            lambda: archive(pickled(), Record(name="archive/data/0", data=bytes(8), attributes=0x10)),
            _two("takes a record for a folder"),
        ),
        **{
            f"a storage with {lie}": (
                lambda lie=lie: archive(pickled(), Record(name="archive/data/0", data=bytes(8), **lie)),
                {"answer": "errors", "verdict": "weights-only", "reason": words},
            )
            for lie, words in (
                ({"flags": 1}, "unsupported encryption"),
                ({"flags": 32}, "unsupported feature"),
                ({"method": 99}, "unsupported method"),
                ({"local_signature": b"PKxx"}, "invalid header"),
            )
        },
        "DATA.PKL alone": (
            lambda: archive(pickled(EVIL, "archive/DATA.PKL"), STORED),
            {"answer": "never", **_EVIL},
        ),
        "no folder": (
            lambda: build_zip(pickled(name="data.pkl"), Record(name="version", data=b"3\n")),
            _stops("file in archive is not in a subdirectory: data.pkl"),
        ),
        "a folder in another case": (
            lambda: archive(pickled(), STORED, Record(name="ARCHIVE/x")),
            _stops("not in a subdirectory archive/: ARCHIVE/x"),
        ),
        "BYTEORDER": (
            lambda: archive(pickled(), STORED, Record(name="archive/BYTEORDER", data=b"middle")),
            _stops("Unknown endianness type: middle"),
        ),
        "a byte order with a line break": (
            lambda: archive(pickled(), STORED, Record(name="archive/byteorder", data=b"little\n")),
            _stops("Unknown endianness type"),
        ),
        "a version that hides another": (
            lambda: archive(pickled(), STORED, Record(name="archive/.data/version", data=b"99")),
            _stops("with version 99"),
        ),
        "a version that cannot be read": (
            lambda: archive(pickled(), STORED, version=Record(name="archive/version", data=b"3", flags=1)),
            _stops("unsupported encryption"),
        ),
        "TorchScript by a name that is cut": (
            lambda: build_zip(
                pickled(EVIL, "f" * 497 + "/data.pkl"), Record(name="f" * 497 + "/constants.pkl.bak")
            ),
            {"error": "TorchScript"},
        ),
        "a pickle in an archive of torch.export": (
            lambda: archive(pickled(EVIL), STORED, Record(name="archive/archive_format", data=b"pt2")),
            {"answer": "never", **_EVIL},
        ),
        "a second disk": (
            lambda: archive(pickled(EVIL), Record(name="archive/data/0", data=bytes(8), disk=2)),
            _UNSURE | _EVIL,
        ),
        "a slash in front": (
            lambda: build_zip(
                pickled(name="/data.pkl"),
                Record(name="/data/0", data=bytes(8)),
                Record(name="/version", data=b"3\n"),
            ),
            {"tensors": 1, "answer": "accepts", "verdict": "weights-only"},
        ),
        "a record outside of the folder": (
            lambda: archive(pickled(), STORED, Record(name="else/x", data=b"")),
            _stops("file in archive is not in a subdirectory archive/: else/x"),
        ),
        "no version": (lambda: build_zip(pickled(), STORED), _stops(r'hasRecord\("version"\) to be true')),
        "bytes behind the end": (
            lambda: archive(pickled(), STORED) + bytes(100),
            {"tensors": 1, "answer": "accepts"},
        ),
        "a zip behind a legacy file": (_zip_in_tail, {"format": "legacy", "tensors": 1}),
    },
    20: {
        "50 kilobytes that inflate to 51 megabytes": (_bomb, {"error": "more than 20,000,000 instructions"}),
        "a small size declared for a bomb": (
            lambda: archive(pickled(HONEST + bytes(10_000_000), method=8, nbytes=100), STORED),
            {"error": "breaks off"},
        ),
        "the size of an honest pickle declared for a bomb": (
            lambda: archive(pickled(HONEST + bytes(10_000_000), method=8, nbytes=len(HONEST)), STORED),
            _two("compressed record is damaged or longer"),
        ),
        "a terabyte declared": (
            lambda: archive(pickled(method=8, nbytes=1 << 40, zip64=True), STORED),
            {"error": "larger than"},
        ),
    },
    21: {
        "a thousand records over the same bytes": (_overlapping, {"document_nbytes": r"", "tensors": 1}),
        "two storages over the same bytes": (
            lambda: archive(
                pickled(state_dict(a=tensor(storage("0"), 2), b=tensor(storage("1"), 2))),
                Record(name="archive/data/0", data=bytes(8)),
                Record(
                    name="archive/data/1",
                    nbytes=8,
                    stored_nbytes=8,
                    offset=len(pickled(state_dict(a=tensor(storage("0"), 2), b=tensor(storage("1"), 2))).data)
                    + 30
                    + 16,
                ),
            ),
            {"notes": "Several records share bytes"},
        ),
        "a directory that claims a thousand million records": (
            lambda: _claiming(0x3B9ACA00),
            _two("directory is damaged"),
        ),
    },
    24: {
        "a payload in front of a storage of a tar file": (lambda: _tar(PAYLOAD + op("POP")), _DANGEROUS),
        "a payload behind the storages of a tar file": (lambda: _tar(views=PAYLOAD + op("POP")), _DANGEROUS),
        "a tar file of a thousand million storages": (lambda: _tar(count=10**9), {"error": "malformed"}),
        "a tar file that is larger than it is": (lambda: _tar()[:3000], {"error": "cut off"}),
        "a terabyte of elements": (_legacy(numel=1 << 40), {"document_nbytes": "", "answer": "errors"}),
        "no keys": (lambda: legacy(state_dict(w=tensor(legacy_storage(), 2)), keys=[]), {"answer": "errors"}),
        "half of the data": (_legacy(data=bytes(4)), {"answer": "errors", "findings": "truncated"}),
        "keys that are no list": (_legacy(keys=7), {"error": "the list of storage keys is malformed"}),
        "magic through eval": (
            _eval_magic,
            {
                "calls": "eval",
                "oddities": "computed while loading",
                "verdict": "dangerous",
                "answer": "never",
            },
        ),
        **{
            f"a payload in a tar file {how}": (build, _DANGEROUS)
            for how, build in (
                (
                    "without the magic word",
                    lambda: tars.with_header(_tar(PAYLOAD + op("POP")), 257, bytes(8)),
                ),
                (
                    "with a signed checksum",
                    lambda: tars.with_header(_tar(PAYLOAD + op("POP")), 265, b"\xff\xfe", signed=True),
                ),
                ("behind 1,500 members", lambda: _tar(PAYLOAD + op("POP"), crowd=1500)),
            )
        },
        "a payload in a tar file behind a hard link": (
            lambda: tars.linked(_tar_members(PAYLOAD + op("POP")), "storages"),
            {"error": "a link to", "runs": "posix.system", "verdict": "dangerous"},
        ),
        "a tar file whose name is a payload": (
            lambda: tars.with_header(_tar(), 0, PAYLOAD_AS_TEXT.ljust(100, b"\0")),
            _UNSURE | _EVIL,
        ),
        "a tar file behind a member whose name is a payload": (
            lambda: tars.with_header(_tar(crowd=1), 0, PAYLOAD_AS_TEXT.ljust(100, b"\0")),
            _UNSURE | _EVIL,
        ),
        "a zip that is a tar file": (zip_and_tar, {"answer": "ambiguous", "verdict": "runs-code"}),
        **{
            f"a payload in the {what}, {how}": (
                _legacy(**{part: stream(proto(), *code)}),
                {"calls": "posix.system", "globals": "posix.system", **_DANGEROUS},
            )
            for part, what, value in (
                ("magic", "magic number", long_int(MAGIC)),
                ("version", "protocol version", number(1001)),
                ("info", "system's facts", dict_()),
                ("keys", "storage keys", list_(text("0"))),
            )
            for how, code in (
                ("dropped", (PAYLOAD, op("POP"), value)),
                ("left below the value", (PAYLOAD, value)),
                ("dropped with a mark", (op("MARK"), PAYLOAD, op("POP_MARK"), value)),
            )
        },
        "a persistent id in the system's facts": (
            _legacy(info=stream(proto(), legacy_storage())),
            _stops("written in a way that torch cannot read"),
        ),
        "a payload in place of the system's facts": (
            _legacy(info=stream(proto(), PAYLOAD)),
            {"calls": "posix.system", **_DANGEROUS},
        ),
        "a payload behind the facts": (
            lambda: legacy(stream(proto(), dict_((text("a"), PAYLOAD)))),
            {"calls": r"'a', 'posix.system\(\"id\"\)'", "verdict": "dangerous", "answer": "never"},
        ),
    },
}


def _tar(before: bytes = b"", views: bytes = b"", count: int = 1, crowd: int = 0) -> bytes:
    """A tar file of torch 0.1 that does something while its storages are read, behind a crowd of members."""
    others = {f"other{number}": b"" for number in range(crowd)}
    return tars.archive(others | _tar_members(before, views, count), mtime=0 if crowd else tars.WRITTEN)


def _tar_members(before: bytes = b"", views: bytes = b"", count: int = 1) -> dict[str, bytes]:
    said = tuple_(number(1), text("cpu"), name("torch.FloatStorage"))
    record = stream(proto(), before, said) + struct.pack("<q", 2) + bytes(8)
    return {
        "pickle": stream(proto(), dict_((text("w"), tars.reference(2)))),
        "tensors": tars.tensors_member([tars.Tensor(2, 1, (2,), (1,))]),
        "storages": stream(proto(), number(count)) + record + stream(proto(), views, op("EMPTY_LIST")),
    }


def _claiming(count: int) -> bytes:
    """An honest zip whose Zip64 end claims any number of records."""
    data = bytearray(zips.build_zip(pickled(), STORED, zip64=True))
    at = data.rindex(b"PK\6\6")
    struct.pack_into("<2Q", data, at + 24, count, count)
    return bytes(data)
