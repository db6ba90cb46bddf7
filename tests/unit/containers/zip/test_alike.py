"""Records in columns are those that they are entry by entry, or are left to that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from inspector.containers.source import BytesSource
from inspector.containers.zip import directory as directory_module
from inspector.containers.zip.alike import Alike
from inspector.containers.zip.directory import DEFLATED, Entries, ZipEntry, read_directory
from inspector.containers.zip.kinds import Records
from inspector.errors import CancelledError, ContainerError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip

_FEW = 20
_FAR = (1 << 33) + 7


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for records that are alike in small archives, and in small pieces."""
    monkeypatch.setattr(directory_module, "MANY", 12)
    monkeypatch.setattr(directory_module, "_ASK_EACH", 7)


def records(count: int = _FEW, folder: str = "a/") -> list[Record]:
    """What torch writes: the pickle and a version, the storages, and what comes last."""
    storages = [Record(name=f"{folder}data/{number}", data=b"x" * (number % 5)) for number in range(count)]
    first = [Record(name=f"{folder}data.pkl", data=b"N."), Record(name=f"{folder}byteorder", data=b"little")]
    return [*first, *storages, Record(name=f"{folder}version", data=b"3\n")]


def entries_of(data: bytes, *, plainly: bool = False) -> tuple[ZipEntry, ...]:
    with pytest.MonkeyPatch.context() as patch:
        if plainly:
            patch.setattr(directory_module, "MANY", 1 << 30)
        found = read_directory(BytesSource(data, "a.zip"), Limits()).entries
    return tuple(found)


def alike_in(data: bytes) -> int:
    """How many records are in columns; that they are those of the other way is seen beside that."""
    found = read_directory(BytesSource(data, "a.zip"), Limits()).entries
    plain = entries_of(data, plainly=True)
    assert tuple(found) == plain
    if not isinstance(found, Entries):
        return 0
    assert [found[row] for row in range(len(found))] == list(plain)
    assert found[-1] == plain[-1]
    assert found[::-3] == list(plain[::-3])
    with pytest.raises(IndexError):
        found[len(found)]
    return len(found.alike)


def changed(row: int, **fields: object) -> bytes:
    """An archive with one record of the storages changed; the second and the tenth first in the order."""
    made = records()
    made[row] = replace(made[row], **fields)  # type: ignore[arg-type]
    return build_zip(*made)


def test_records_as_torch_writes_them_are_read_together() -> None:
    assert alike_in(build_zip(*records())) == _FEW
    assert alike_in(build_zip(*records(400))) == 400
    assert alike_in(build_zip(*records(), zip64=True, comment=b"c")) == _FEW
    assert alike_in(build_zip(*records(folder="\u00e9(.*/"))) == _FEW
    assert alike_in(build_zip(*records(10))) == 10
    assert alike_in(build_zip(*records()[:-1])) == _FEW  # nothing comes last
    empty = [replace(record, flags=0x808 if record.data else 0x800) for record in records()]  # as torch does
    assert alike_in(build_zip(*empty)) == _FEW
    packed = [replace(record, flags=0x808) for record in records()]
    assert alike_in(build_zip(*packed)) == _FEW


def test_keys_in_the_order_of_their_texts() -> None:
    """As torch up to 2.0 wrote them."""
    made = records(60)
    storages = sorted(made[2:-1], key=lambda record: record.name)
    assert alike_in(build_zip(*made[:2], *storages, made[-1])) == 60


def test_places_beyond_4_gib_are_read_together() -> None:
    made = [
        replace(record, offset=_FAR if row > 9 else None, central_extra=b"")
        for row, record in enumerate(records())
    ]

    def far(row: int, record: Record) -> Record:
        extra = b"\x01\0\x08\0" + (4).to_bytes(8, "little")
        return replace(record, offset=0xFFFFFFFF, central_extra=extra) if row > 9 else record

    data = build_zip(*[far(row, record) for row, record in enumerate(records())])
    assert len(made) == len(records())
    assert alike_in(data) == _FEW
    entries = entries_of(data)
    assert [entry.header_offset for entry in entries[10:]] == [4] * (len(entries) - 10)


def test_records_that_are_odd_end_what_is_alike() -> None:
    """What stands before them may be in columns; all the rest is read entry by entry."""
    wide = b"\x01\0\x08\0" + (4).to_bytes(8, "little")
    odd: dict[str, dict[str, object]] = {
        "a key with a zero before it": {"name": "a/data/015"},
        "a key that is no number": {"name": "a/data/x"},
        "a long key": {"name": "a/data/1234567890"},
        "another folder": {"name": "b/data/15"},
        "capitals": {"name": "A/data/15"},
        "an extra field": {"central_extra": b"ab\0\0"},
        "a place told twice": {"central_extra": wide},
        "a place told nowhere": {"offset": 0xFFFFFFFF},
        "a comment": {"comment": b"c"},
        "another time": {"time": 3},
        "other flags": {"flags": 8},
        "encryption": {"flags": 1},
        "another method": {"method": 99},
        "packed": {"method": DEFLATED, "data": b"y" * 90},
        "a folder": {"attributes": 0x10},
        "a disk": {"disk": 1},
        "another size in the file": {"method": DEFLATED, "data": b"y" * 90, "nbytes": 7},
    }
    counts = {}
    for name, fields in odd.items():
        data = changed(17, **fields)
        try:
            entries_of(data, plainly=True)
        except ContainerError as error:
            with pytest.raises(ContainerError, match=str(error)[:30]):
                entries_of(data)
        else:
            counts[name] = alike_in(data)
    assert set(counts.values()) <= {0, 12, 13, 14, 15, _FEW}
    assert any(counts.values())
    first = {name: alike_in(changed(2, **fields)) for name, fields in odd.items() if name in counts}
    assert set(first.values()) <= {0, 19, _FEW}  # what is odd may stand before


def test_what_miniz_refuses_is_refused() -> None:
    made = records()
    for fields in ({"offset": 1 << 20}, {"disk": 5}, {"flags": 0x2000}, {"nbytes": 3, "stored_nbytes": 4}):
        for row in (0, 2, 12, len(made) - 1):
            data = changed(row, **fields)
            with pytest.raises(ContainerError) as plain:
                entries_of(data, plainly=True)
            with pytest.raises(ContainerError) as together:
                entries_of(data)
            assert str(together.value) == str(plain.value)


def test_all_alike_but_odd() -> None:
    """All of one kind, and that kind is none of torch's."""
    for fields, count in (
        ({"attributes": 0x10}, 0),
        ({"disk": 1}, 0),
        ({"comment": b"c"}, 0),
        ({"central_extra": b"ab\0\0"}, 0),
        ({"flags": 1}, _FEW),
    ):
        made = records()
        made[2:-1] = [replace(record, **fields) for record in made[2:-1]]  # type: ignore[arg-type]
        assert alike_in(build_zip(*made)) == count


def test_doubled_keys_and_keys_far_apart_are_no_columns() -> None:
    made = records()
    twice = [*made[:9], replace(made[8], data=b"evil"), *made[9:]]
    assert alike_in(build_zip(*twice)) == 0
    far = [*made[:9], replace(made[9], name="a/data/900000000"), *made[10:]]
    assert alike_in(build_zip(*far)) == 0


def test_cut_directories_end_in_words() -> None:
    data = build_zip(*records())
    source = BytesSource(data, "a.zip")
    assert alike_in(data)
    start = read_directory(source, Limits()).start
    for at in range(start, len(data) - 22, 5):
        broken = data[:at] + b"\xee" + data[at + 1 :]
        outcomes = []
        for plainly in (False, True):
            try:
                outcomes.append(entries_of(broken, plainly=plainly))
            except ContainerError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_reading_is_cancelled_between_pieces() -> None:
    class Asked(Progress):
        times = 0

        @override
        def advance(self, units: int = 0) -> None:
            self.times += 1
            if self.times == 3:
                self.cancel()
            super().advance(units)

    with pytest.raises(CancelledError):
        read_directory(BytesSource(build_zip(*records(90)), "a.zip"), Limits(), Asked())


def test_the_first_records_are_shown_before_the_others() -> None:
    shown: list[str] = []
    read_directory(
        BytesSource(build_zip(*records()), "a.zip"),
        Limits(),
        on_first=lambda entries: shown.extend(entry.name for entry in entries),
    )
    assert shown == ["a/data.pkl", "a/byteorder"]
    shown.clear()
    odd = [replace(record, time=row) for row, record in enumerate(records(60))]
    read_directory(
        BytesSource(build_zip(*odd), "a.zip"),
        Limits(),
        on_first=lambda entries: shown.extend(entry.name for entry in entries),
    )
    assert len(shown) >= 7


# --- by their names -----------------------------------------------------------------------------------------


def both(data: bytes) -> tuple[Records, Records]:
    """The records read together and entry by entry."""
    together = Records(read_directory(BytesSource(data, "a.zip"), Limits()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory_module, "MANY", 1 << 30)
        return together, Records(read_directory(BytesSource(data, "a.zip"), Limits()))


_KEYS = ["0", "7", "19", "20", "007", "-1", "\u0663", "1_0", "x", "", "9" * 9, "9" * 5000, "7 "]


def test_records_are_found_as_one_by_one() -> None:
    made = records()
    shadows = [
        *made[:2],
        Record(name="A/data/5", data=b"first"),
        *made[2:-1],
        Record(name="A/DATA/6", data=b"last"),
        Record(name="a/data/x", data=b"x"),
        made[-1],
    ]
    asked: list[Callable[[Records], object]] = [
        *(lambda records, key=key: records.get(f"data/{key}") for key in _KEYS),
        *(lambda records, key=key: records.storage(key) for key in _KEYS),
        lambda records: records.get("DATA/7"),
        lambda records: records.get("Data.PKL"),
        lambda records: records.get("version"),
        lambda records: records.get("nothing"),
        lambda records: records.storages(_KEYS),
        lambda records: records.storages(["3", "5", "6"]),
        lambda records: list(records.names),
        lambda records: records.prefix,
        lambda records: records.share_a_name(),
        *(
            lambda records, folder=folder: list(records.below(folder))
            for folder in ("", "d", "data/", "data/1", "v")
        ),
        *(
            lambda records, name=name: records.lists(name)
            for name in ("version", "data.pkl", "constants.pkl")
        ),
    ]
    for data in (build_zip(*made), build_zip(*shadows), build_zip(*made, Record(name="a/VERSION"))):
        together, plain = both(data)
        assert isinstance(together.directory.entries, Entries)
        for ask in asked:
            assert ask(together) == ask(plain)


def test_columns_are_for_storages_that_are_looked_for_first() -> None:
    together, plain = both(build_zip(*records()))
    assert plain.alike is None
    assert together.alike is not None
    together.own = "data/"
    assert together.alike is None
    together.own, together.pattern = "", "x/{}"
    assert together.alike is None
    shadowed, _ = both(build_zip(*records(), Record(name="A/data/3", data=b"evil")))
    assert shadowed.alike is None
    elsewhere, _ = both(build_zip(Record(name="b/data.pkl"), *records()))
    assert elsewhere.alike is None


def test_no_key_is_found_before_the_end_is_known() -> None:
    assert Alike("a/", 100, 0).find("0") is None
