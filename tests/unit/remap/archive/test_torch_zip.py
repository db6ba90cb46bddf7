from __future__ import annotations

from inspector.remap.zip_layout import Record, storage_name, torch_records

STORAGES = [Record(storage_name(str(number)), 4, 4, bytes(4)) for number in range(2)]
NAMES = ["data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1"]
NAMES += ["version", ".data/serialization_id"]


def records(*, is_in_order_of_use: bool = True) -> dict[str, object]:
    made = torch_records(
        "net",
        b"the object",
        STORAGES,
        byteorder="big",
        serialization_id=b"1" * 40,
        is_in_order_of_use=is_in_order_of_use,
    )
    return {record.name: record.contents for record in made}


def test_records_are_torchs_in_torchs_order() -> None:
    found = records()
    assert list(found) == [f"net/{name}" for name in NAMES]
    assert list(found.values()) == [
        *(b"the object", b"1", b"64", b"big", bytes(4), bytes(4), b"3\n", b"1" * 40)
    ]


def test_nothing_is_promised_of_storages_in_another_order() -> None:
    assert records().keys() - records(is_in_order_of_use=False).keys() == {"net/.format_version"}
