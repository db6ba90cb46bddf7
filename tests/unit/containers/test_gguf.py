from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.containers.container import Container
from inspector.containers.element_types import GGML_TYPES, NOT_DEQUANTIZED
from inspector.containers.gguf import Gguf, open_gguf
from inspector.containers.packed import open_source
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import StorageReader
from inspector.diff.content import elements_of
from inspector.errors import ContainerError, PlanError
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.values import Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, *items: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + b"".join(items)


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


def gguf(
    tensors: tuple[bytes, ...] = (),
    pairs: tuple[bytes, ...] = (),
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    data: bytes = b"",
) -> bytes:
    counts = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def read(data: bytes, **limits: int) -> Container:
    return Gguf().read(BytesSource(data, "a.gguf"), Limits(**limits), Progress())


def metadata(container: Container) -> dict[Value, Value]:
    assert isinstance(container.root, Dict)
    found = container.root.pairs[0][1]
    assert isinstance(found, Dict)
    return dict(found.pairs)


@pytest.mark.parametrize("file", ["small", "big"])
def test_bytes_of_a_genuine_file(file: str) -> None:
    path = str(CORPUS / f"gguf/{file}.gguf")
    with open_source(path) as source:
        container, extents = open_gguf(source, Limits(), Progress())
        reader = StorageReader(container, source)
        assert struct.unpack("<64f", reader.read("0", 0, 256)) == tuple(map(float, range(64)))
        assert struct.unpack("<3e", reader.read("2", 0, 6)) == (1.0, 1.0, 1.0)
        assert bool(extents) == (file == "big")
        assert Gguf().finder(source)("1") is None
    rows = open_checkpoint(path).tensors
    assert [(row.dtype, row.shape, row.nbytes, row.problem) for row in rows] == [
        ("float32", (2, 32), 256, None),
        ("q8_0", (4, 64), 272, None),
        ("float16", (3,), 6, None),
    ]


def test_values_of_every_type() -> None:
    pairs = (
        pair(b"u8", 0, b"\7"),
        pair(b"yes", 7, b"\1"),
        pair(b"half", 6, struct.pack("<f", 0.5)),
        pair(b"word", 8, text(b"abc")),
        pair(b"few", 9, array(5, 2, struct.pack("<2i", -1, 2))),
        pair(b"many", 9, array(5, 100, bytes(400))),
        pair(b"tokens", 9, array(8, 30, *[text(b"t")] * 30)),
        pair(b"nested", 9, array(9, 26, *[array(0, 1, b"\5")] * 26)),
        pair(b"long", 8, text(b"x" * (1 << 21))),
        pair(b"last", 12, struct.pack("<d", 2.5)),
    )
    found = metadata(read(gguf((), pairs, version=2)))
    assert [found[key] for key in ("u8", "yes", "half", "word", "few", "last")] == [
        7,
        True,
        0.5,
        "abc",
        [-1, 2],
        2.5,
    ]
    assert found["many"] == [0] * 24 + ["... 76 more"]
    assert found["tokens"] == ["t"] * 24 + ["... 6 more"]
    assert found["nested"] == [[5]] * 24 + ["... 2 more"]
    assert found["long"] == "x" * 24 + "... (2,097,152 bytes)"


def test_alignment_of_the_file_s_own() -> None:
    pairs = (pair(b"general.alignment", 4, struct.pack("<I", 8)),)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + pairs[0] + tensor(b"w", (2,))
    data = head + bytes(-len(head) % 8) + bytes(8)
    assert read(data).stored["0"].offset == len(data) - 8


ENDS = "the file ends in the middle of its description"
HOSTILE = {
    "an old version": (gguf(version=1), "this is a GGUF model of version 1, and versions 2 and 3 are read"),
    "a version of the future": (
        gguf(version=9),
        "this is a GGUF model of version 9, and versions 2 and 3 are read",
    ),
    "an end in the header": (b"GGUF\3\0\0\0", ENDS),
    "a billion pairs": (gguf(counts=(0, 1 << 60)), ENDS),
    "a billion tensors": (gguf(counts=(1 << 60, 0)), "the file has more than 400,000 tensors"),
    "more tensors than there are": (gguf((tensor(b"w", (1,)),), counts=(9, 0)), ENDS),
    "a key as long as the disk": (gguf((), (struct.pack("<Q", 1 << 62) + b"key",)), ENDS),
    "an array as long as the disk": (gguf((), (pair(b"k", 9, array(4, 1 << 61)),)), ENDS),
    "strings without end": (gguf((), (pair(b"k", 9, array(8, 1 << 61)),)), ENDS),
    "a value of no type": (
        gguf((), (pair(b"k", 77, b""),)),
        "a value of the metadata has the type 77, which is none of GGUF",
    ),
    "arrays in arrays": (
        gguf((), (pair(b"k", 9, array(9, 1, array(9, 1, array(9, 1, array(9, 1, array(9, 1)))))),)),
        "a value of the metadata has the type 9, which is none of GGUF",
    ),
    "a million dimensions": (
        gguf((text(b"w") + struct.pack("<I", 1 << 20),)),
        "a tensor has 1,048,576 dimensions",
    ),
    "more elements than there are numbers": (
        gguf((tensor(b"w", (1 << 62, 1 << 62)),)),
        "a tensor has more elements than can be counted",
    ),
}


def test_hostile_files_end_in_a_sentence() -> None:
    said = {}
    for what, (data, _) in HOSTILE.items():
        with pytest.raises(ContainerError) as caught:
            read(data)
        said[what] = caught.value.what
    assert said == {what: wanted for what, (*_, wanted) in HOSTILE.items()}


def test_types_of_the_future_are_listed_and_loaded_by_nobody(tmp_path: Path) -> None:
    # two of a type that nobody knows, around a plain one, and one that lies beyond the end
    names = (
        tensor(b"a", (32,), 99, 0),
        tensor(b"b", (8,), 0, 64),
        tensor(b"c", (64,), 99, 96),
        tensor(b"d", (64,), 99, 1 << 50),
    )
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(names, data=bytes(100)))
    checkpoint = open_checkpoint(str(path))
    rows = [(row.dtype, row.shape, row.nbytes) for row in checkpoint.tensors]
    unknown = "ggml_type_99", (64,)
    assert rows == [
        ("ggml_type_99", (32,), 64),
        ("float32", (8,), 32),
        (*unknown, 4),
        (*unknown, 0),
    ]
    assert elements_of(checkpoint.tensors[0]).view.shape == (64,)
    assert checkpoint.refusal == "ValueError: 99 is not a valid GGMLQuantizationType"
    with pytest.raises(PlanError, match="no code loads this file"):
        render(checkpoint, style=None, target=CPU_ONLY)


def test_types_are_those_of_gguf() -> None:
    gguf = pytest.importorskip("gguf", reason="its enumeration is compared where it is installed")
    sizes = {
        kind.value: (kind.name.lower(), gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType
    }
    plain = {"f32": "float32", "f16": "float16", "f64": "float64", "bf16": "bfloat16"}
    plain |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
    theirs = {number: (plain.get(name, name), *size) for number, (name, size) in sizes.items()}
    theirs[9] = ("q8_1", 32, 36)  # two halves and 32 bytes in ggml-common.h; gguf counts two floats
    assert {number: tuple(row) for number, row in GGML_TYPES.items()} == theirs
    undone = {kind.name.lower() for kind in gguf.GGMLQuantizationType if not _is_dequantized(gguf, kind)}
    assert undone - set(plain) == NOT_DEQUANTIZED


def _is_dequantized(gguf: Any, kind: Any) -> bool:
    nbytes = gguf.GGML_QUANT_SIZES[kind][1]
    try:
        gguf.dequantize(np.zeros((1, nbytes * 8), np.uint8), kind)
    except NotImplementedError:  # it names the type, and has no formula for it
        return False
    return True


def test_tensors_whose_bytes_are_elsewhere_are_missing(tmp_path: Path) -> None:
    names = (tensor(b"a", (2,), 0, 0), tensor(b"b", (2,), 0, 1 << 62), tensor(b"\x1b]0;x\7", (256,), 12, 32))
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(names, data=bytes(8)))
    checkpoint = open_checkpoint(str(path))
    assert [row.missing for row in checkpoint.storages] == [False, True, True]
    assert "\x1b" not in checkpoint.tensors[2].path
    assert isinstance(dict(read(path.read_bytes()).root.pairs)["tensors"].pairs[0][1], StoredTensor)  # type: ignore[union-attr]  # a Dict
