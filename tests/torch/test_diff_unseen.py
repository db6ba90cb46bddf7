"""What no row shows: tensors that are keys, storages alone, records beside the tensors."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.diff.compare import Wish, compare_paths
from inspector.diff.records import Diff
from inspector.remap.verify import compare_files
from tests.corpus import CORPUS
from tests.sweep import table

ONE, TWO = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))


def compared(tmp_path: Path, one: Any, other: Any, mode: str = "equal") -> Diff:
    for name, value in (("a.pt", one), ("b.pt", other)):
        torch.save(value, tmp_path / name)
    return compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), Wish(mode=mode))


@table(
    "make",
    [
        lambda key: {key: 1},
        lambda key: {(key, 1): 1},
        lambda key: {frozenset([key]): 1},
        lambda key: {((key,), "deep"): 1},
    ],
)
def test_dictionaries_keyed_by_other_tensors_differ(make: Any, tmp_path: Path) -> None:
    assert not compared(tmp_path, make(ONE), make(TWO)).is_equal
    assert compared(tmp_path, make(ONE), make(ONE)).is_equal
    assert compared(tmp_path, make(ONE), make(TWO), mode="none").verdicts  # then no bytes are read


def test_two_keys_that_changed_places_differ(tmp_path: Path) -> None:
    found = compared(tmp_path, {"x": {ONE: 1}, "y": {TWO: 1}}, {"x": {TWO: 1}, "y": {ONE: 1}})
    assert [change.b for change in found.containers] == ["dict (other keys)", "dict (other keys)"]
    assert found.records == ()


class Odd:
    """An object that keeps a storage where no row looks: in the middle of a key."""

    def __init__(self, data: bytes) -> None:
        self.held = {(torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage(), 1): 2}


def test_storages_without_a_row_are_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, Odd(b"abcd"), Odd(b"abce"))
    assert not found.is_equal
    assert compared(tmp_path, Odd(b"abcd"), Odd(b"abcd")).is_equal


def test_the_rest_of_a_storage_is_compared_where_it_is_as_large(tmp_path: Path) -> None:
    base, other = torch.arange(100.0), torch.arange(100.0)
    other[50] = 7
    found = compared(tmp_path, {"t": base[:10]}, {"t": other[:10]})
    assert [change.name for change in found.records] == ["bytes of storage 0 that no tensor shows"]
    found = compared(tmp_path, {"t": base[:10]}, {"t": base[:10].clone()})
    assert found.is_equal
    assert "bytes of storage 0 that no tensor shows (400 B here, 40 B there)" in found.uncompared


def test_a_parameter_of_a_nested_tensor_is_another_class(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    found = compared(tmp_path, {"n": nn.Parameter(nested)}, {"n": nested})
    assert "class" in found.tensors[0].what


def repacked(path: Path, to: Path, name: str, data: bytes) -> str:
    """An archive with one record replaced, or added."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        folder = old.namelist()[0].partition("/")[0]
        for entry in old.infolist():
            if entry.filename != f"{folder}/{name}":
                new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry))
        new.writestr(zipfile.ZipInfo(f"{folder}/{name}"), data)
    return str(to)


@table("file", ["torchscript/conv.pt", "export/model.pt2", "package/pkg.pt", "zip/train.pt"])
@table("name", ["extra/config.bin", "lib/other.so", "resource.bin"])
def test_other_records_of_any_name_are_compared(file: str, name: str, tmp_path: Path) -> None:
    one, same, other = (
        repacked(CORPUS / file, tmp_path / f"{number}.pt2", name, data)
        for number, data in enumerate((b"\x7fELF one", b"\x7fELF one", b"\x7fELF two"))
    )
    assert compare_paths(one, same, Wish()).is_equal
    found = compare_paths(one, other, Wish())
    assert [(change.name, change.what) for change in found.records] == [(name, "changed")]
    assert not compare_files(other, one).is_same
    found = compare_paths(str(CORPUS / file), one, Wish())
    assert [(change.name, change.what) for change in found.records] == [(name, "added")]


def test_storages_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    torch.save({"t": torch.arange(100.0)[:10]}, tmp_path / "little.pt")
    big = repacked(tmp_path / "little.pt", tmp_path / "big.pt", "byteorder", b"big")
    found = compare_paths(big, str(tmp_path / "little.pt"), Wish())
    assert found.uncompared == ("storages that no tensor shows whole (2)",)


@pytest.mark.parametrize("where", ["data", "directory"])
def test_damage_of_one_side_is_no_equal(where: str, tmp_path: Path) -> None:
    """Another record that is damaged in one file alone, in a way that no value shows."""
    buffer = io.BytesIO()
    torch.save({"t": torch.ones(2)}, buffer)
    data = bytearray(buffer.getvalue())
    (tmp_path / "a.pt").write_bytes(data)
    at = data.index(b"archive/version") - 30 if where == "data" else data.rindex(b"archive/version") - 12
    data[at] ^= 0x41
    (tmp_path / "b.pt").write_bytes(data)
    found = compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), Wish())
    assert found.uncompared or not found.is_equal
