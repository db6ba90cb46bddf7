"""The records of a file that `torch.save` writes: their names and order, and the contents of the small ones.

From `_save` in torch's `torch/serialization.py` and `writeEndOfFile` in its
`caffe2/serialize/inline_container.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from inspector.remap.archive.zip_layout import DEFAULT_ALIGNMENT, Record, plain_record

FOLDER = "archive"
"""The folder of all records where the file's own name cannot be used."""


def storage_name(key: str) -> str:
    """Return the name of a storage's record within the folder of all records."""
    return f"data/{key}"


def torch_records(
    folder: str,
    pickle: bytes,
    storages: Iterable[Record],
    *,
    byteorder: str,
    serialization_id: bytes,
    is_in_order_of_use: bool = True,
) -> Iterator[Record]:
    """Return all records of a file.

    Args:
        folder: The folder that they stand in.
        pickle: The object.
        storages: The storages, named by `storage_name`.
        byteorder: How numbers are stored: `little` or `big`.
        serialization_id: Forty digits; torch reads them for its log alone.
        is_in_order_of_use: Whether the storages come in the order in which the pickle names them. That is
            what `.format_version` promises to those who compute where they lie.
    """
    head = [plain_record("data.pkl", pickle)]
    if is_in_order_of_use:
        head.append(plain_record(".format_version", b"1"))
    head += [
        plain_record(".storage_alignment", str(DEFAULT_ALIGNMENT).encode()),
        plain_record("byteorder", byteorder.encode()),
    ]
    tail = [plain_record("version", b"3\n"), plain_record(".data/serialization_id", serialization_id)]
    return (record._replace(name=f"{folder}/{record.name}") for record in chain(head, storages, tail))
