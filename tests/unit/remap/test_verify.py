from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import ContainerError
from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place
from inspector.remap.plan import plan_remap
from inspector.remap.rules import Rule, parse_rule
from inspector.remap.verify import compare_files
from tests.corpus import Case, cases
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

OBJECT = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}
MAKERS = {"zip": zip_of, "legacy": legacy_of, "tar": tar_of}
CASES = [case for case in cases() if case.container in {"zip", "legacy", "gzip(legacy)", "tar"}][::4]


def rules(*texts: str) -> list[Rule]:
    return [parse_rule(rule) for rule in texts]


def copied(path: Path, *texts: str) -> Path:
    to = path.with_name("copy.pt")
    export_copy(str(path), to, plan_remap(open_checkpoint(str(path)), rules(*texts)), overwrite=True)
    return to


@pytest.mark.wide
@table("case", CASES, ids=lambda case: case.name)
def test_copies_of_genuine_files_are_the_same(case: Case, tmp_path: Path) -> None:
    path = written(tmp_path, case.path.read_bytes(), case.path.name)
    for rule in ("*=cpu", "*=cuda:11"):
        found = compare_files(str(copied(path, rule)), str(path), rules(rule))
        assert found.differences == ()
        assert found.compared_nbytes > 0
        assert {here for _, here, _ in found.moves} <= {rule.removeprefix("*=")}


@table("make", MAKERS.values(), ids=MAKERS)
def test_devices_must_be_those_of_the_rules_where_there_are_any(tmp_path: Path, make) -> None:
    path = written(tmp_path, make(OBJECT, STORAGES))
    copy = str(copied(path, "cuda:1=cpu"))
    found = compare_files(copy, str(path))
    assert found.is_same
    assert found.moves == (("cuda:1", "cpu", 1),)
    assert found.tensors == 2
    assert found.compared_nbytes >= 2 * NBYTES
    assert compare_files(copy, str(path), rules("cuda:1=cpu")).is_same
    assert compare_files(copy, str(path), rules("*=cpu")).differences[0] == "a is not as planned."


def test_a_file_changed_in_place_is_compared_too(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    other = written(tmp_path, zip_of(OBJECT, STORAGES), "other.pt")
    patch_in_place(str(other), plan_remap(open_checkpoint(str(other)), rules("*=cuda:11")))
    assert compare_files(str(other), str(path), rules("*=cuda:11")).is_same


@table("make", MAKERS.values(), ids=MAKERS)
@table("number", [0, NBYTES - 1])
def test_one_byte_that_differs_is_found(tmp_path: Path, make, number: int) -> None:
    data = make(OBJECT, STORAGES)
    path = written(tmp_path, data)
    at = data.index(STORAGES["1"]) + number
    broken = data[:at] + b"\xff" + data[at + 1 :]
    copy = written(tmp_path, broken, "copy.pt")
    found = compare_files(str(copy), str(path))
    assert not found.is_same
    assert found.differences[0].startswith("The contents differ from byte ")


@table(
    ("other", "said"),
    [
        (legacy_of(OBJECT, STORAGES), "One is a zip file, the other a legacy file."),
        (zip_of(OBJECT, {**STORAGES, "2": b"x"}), "The records of the two archives differ in name"),
        (zip_of(stream(mapping(a=tensor(text("cuda:0")))), STORAGES), "b is missing from the copy."),
        (
            zip_of(stream(mapping(a=tensor(text("cpu")), c=tensor(text("cpu"), "1"))), STORAGES),
            "b is missing",
        ),
    ],
)
def test_what_is_something_else_is_said(tmp_path: Path, other: bytes, said: str) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    found = compare_files(str(written(tmp_path, other, "copy.pt")), str(path))
    assert any(line.startswith(said) for line in found.differences)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    with pytest.raises(ContainerError):
        compare_files(str(tmp_path / "none"), str(path))
