"""Copies that are not: what verify must see, whether a row shows it or not."""

from __future__ import annotations

import struct
from collections import OrderedDict
from pathlib import Path

import pytest

from inspector.diff import copies
from inspector.diff.copies import compare_copies, compare_objects, name_differences
from inspector.diff.facts.tokens import ExactTokens, Kept
from inspector.errors import ExportError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.remap.compare.planned import compare_devices, compare_files
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import export, in_place
from inspector.remap.relabel.export import export_copy
from inspector.remap.relabel.in_place import patch_in_place
from inspector.remap.rules import parse_rule
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    CUDA_1,
    NBYTES,
    call,
    container_of,
    device,
    get,
    legacy_of,
    mapping,
    name,
    put,
    sent,
    sparse,
    stream,
    tensor,
    text,
    wrapper,
    written,
    zip_of,
)

A, HOST, META = text("cuda:0"), text("cpu"), text("meta")
STORAGES = {"0": bytes(range(NBYTES))}
IDS = list(range(2000))
SWAPPED = [*IDS[:1500], IDS[1501], IDS[1500], *IDS[1502:]]
LONG = "x" * 9000
ODD_CALL = call(name("mine", "Thing"), text("a"))


def spelled(value: object) -> bytes:
    """The instructions of a plain value, as Python writes them."""
    return pickles.dumps(value)


def file_of(*values: bytes, where: bytes = A) -> bytes:
    items = {f"v{number}": value for number, value in enumerate(values)}
    return stream(mapping(t=tensor(where), **items))


LIES = [
    (spelled(IDS), spelled(SWAPPED)),
    (spelled(LONG), spelled(f"{LONG[:5000]}y{LONG[5001:]}")),
    (spelled(LONG.encode()), spelled(f"{LONG[:5000]}y{LONG[5001:]}".encode())),
    (spelled({"a": 1}), spelled(OrderedDict(a=1))),
    (spelled(10**400), spelled(10**400 + 10**20)),
    (spelled([IDS]), spelled((IDS,))),
    (spelled({"a": 1, "b": 2}), spelled({"b": 2, "a": 1})),
    (spelled(1), spelled(True)),
    (spelled(0.0), spelled(-0.0)),
    (b"G" + struct.pack(">Q", 0x7FF8 << 48), b"G" + struct.pack(">Q", 0x7FF9 << 48)),
    (b"](" + b"K\x01" * 9 + b"e", b"](" + b"K\x01" * 8 + b"K\x02e"),
    (b"](" + b"G" + struct.pack(">Q", 0x7FF8 << 48) + b"K\x01" * 9 + b"e", b"](" + b"G" + struct.pack(">Q", 0x7FF9 << 48) + b"K\x01" * 9 + b"e"),
    (spelled({LONG: 1}), spelled({f"{LONG[:5000]}y{LONG[5001:]}": 1})),
    (b"](]" + put(1) + get(1) + b"e", b"](]" + put(1) + b"]e"),  # one list twice, two lists
    (ODD_CALL, call(name("mine", "Thing"), text("b"))),
    (ODD_CALL, call(name("yours", "Thing"), text("a"))),
    (name("mine", "Thing"), name("mine", "Other")),
    (b"U\x01\xff", b"X\x01\x00\x00\x00a"),
    (call(name("torch", "device"), text("x" * 65)), call(name("torch", "device"), text("y" * 65))),
    (call(name("torch", "device"), text("cuda"), b"J\xff\xff\xff\x7f"), call(name("torch", "device"), text("cuda"), b"J\xff\xff\xff\x6f")),
    (b"}" + sparse(tensor(META, "0"), tensor(META, "0")) + b"K\x01s", b"}" + sparse(tensor(META, "0"), tensor(META, "1")) + b"K\x01s"),
    (b"K\x01" + ODD_CALL + b"0", b"K\x01" + call(name("mine", "Worse"), text("a")) + b"0"),  # is dropped again
]


@table("pair", LIES)
@table("make", [zip_of, legacy_of])
def test_what_differs_anywhere_is_no_copy(pair: tuple[bytes, bytes], make, tmp_path: Path) -> None:
    one, other = (written(tmp_path, make(file_of(value), STORAGES), name) for value, name in zip(pair, "ab", strict=True))
    found = compare_files(str(other), str(one))
    assert found.differences
    assert not compare_files(str(one), str(other)).is_same
    assert compare_files(str(one), str(one)).is_same
