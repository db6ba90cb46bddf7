"""`show --json` against what torch itself says of 155 genuine files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from tests.corpus import CORPUS, Case, agrees, cases, disagreement
from tests.sweep import table

EVERY = cases()


@pytest.mark.wide
@table("case", EVERY)
def test_document_agrees_with_the_oracle(case: Case, cli: Callable[..., Any]) -> None:
    before = contents(case)
    answer = cli("show", "--json", case.path)
    document = json.loads(answer.out)
    assert disagreement(case, case.oracle(), document) is None
    assert answer.code == (3 if "error" in document else 0)
    assert document["path"] == str(case.path)
    assert contents(case) == before


def contents(case: Case) -> list[bytes]:
    """The bytes of a file, or of all files of a folder."""
    return [file.read_bytes() for file in sorted(case.path.rglob("*") if case.path.is_dir() else [case.path])]


@pytest.mark.wide
def test_all_files_at_once_are_one_document_a_line(cli: Callable[..., Any]) -> None:
    answer = cli("show", "--json", *(case.path for case in EVERY))
    documents = [json.loads(line) for line in answer.out.splitlines()]
    assert [document["path"] for document in documents] == [str(case.path) for case in EVERY]
    assert answer.code == 3


def features(case: Case) -> set[tuple[object, ...]]:
    """What a file has that a reader could stumble over."""
    found: set[tuple[object, ...]] = {(case.container,), (case.torch_loads, case.weights_only)}
    try:
        checkpoint = open_checkpoint(str(case.path))
    except CheckpointError as error:
        return {*found, (case.container, error.what.partition("(")[0])}
    tensors = checkpoint.tensors
    per_container = {
        checkpoint.needs.protocol,
        min(len({tensor.device for tensor in tensors}), 3),
        *checkpoint.needs.opcodes,
        *(use.name for use in checkpoint.globals),
        *((tensor.layout, tensor.storage is None, tensor.problem is None) for tensor in tensors),
        *(tensor.role for tensor in tensors),
    }
    found |= {(case.container, feature) for feature in per_container}
    return found | {(tensor.device.partition(":")[0], tensor.dtype) for tensor in tensors}


@pytest.mark.wide
def test_whatever_occurs_in_the_corpus_occurs_in_a_varied_file() -> None:
    everything = {case.name: features(case) for case in EVERY}
    covered = set().union(*(everything[case.name] for case in EVERY if case.is_varied))
    assert {name: found - covered for name, found in everything.items() if found - covered} == {}


def test_index_lists_every_file() -> None:
    listed = {CORPUS / "index.json"}
    for case in EVERY:
        listed |= {CORPUS / case.oracle_name, *(case.path.rglob("*") if case.path.is_dir() else [case.path])}
    assert {file for file in CORPUS.rglob("*") if file.is_file()} == listed
    assert len(EVERY) == 157


# ------------------------------------------------------------------------------- the comparison itself

CASE = Case(name="zip/a.pt", container="zip", torch_loads=True, weights_only=True, oracle_name="")
ORACLE = {
    "tensors": [
        {"path": ["a", 0], "dtype": "float32", "shape": [2], "stride": [1], "offset": 0, "device": "cpu"},
        {"path": ["b"], "kind": "sparse_coo", "dtype": "float32", "shape": [9], "device": "cuda:0"},
        {"path": None},
    ],
    "storages": {"0": {"nbytes": 8}, "1": {}},
}
DOCUMENT = {
    "tensors": [
        {
            "keys": ["a", "0"],
            "dtype": "float32",
            "shape": [2],
            "stride": [1],
            "storage_offset": 0,
            "device": "cpu",
        },
        {"keys": ["b"], "dtype": "float32", "shape": [3], "device": "cuda:0"},
        {"keys": ["b"], "dtype": "again", "shape": [3], "device": "cuda:0"},
    ],
    "storages": [{"key": 0, "nbytes": 8}],
}


def changed(**paths: object) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    for path, value in paths.items():
        index, field = path.split("_", 1)
        document["tensors"][int(index[1:])][field] = value
    return document


def test_comparison_accepts_the_truth() -> None:
    assert agrees(CASE, ORACLE, DOCUMENT)
    assert agrees(CASE, {"tensors": []}, {"tensors": []})


@table(
    ("document", "problem"),
    [
        (changed(t0_dtype="float16"), "dtype is 'float16'"),
        (changed(t0_shape=[3]), "shape is"),
        (changed(t0_stride=[2]), "stride is"),
        (changed(t0_storage_offset=1), "storage_offset is"),
        (changed(t0_device="cuda:0"), "device is"),
        (changed(t1_device="cpu"), "device is"),
        (changed(t0_keys=["c"]), "is not listed"),
        ({**DOCUMENT, "tensors": DOCUMENT["tensors"][::-1]}, "the order"),
        ({**DOCUMENT, "storages": [{"key": "0", "nbytes": 9}]}, "storage sizes"),
        ({"error": {"message": "no"}}, "refused: no"),
    ],
)
def test_comparison_finds_what_is_wrong(document: dict[str, Any], problem: str) -> None:
    assert problem in (disagreement(CASE, ORACLE, document) or "")


def test_invalid_file_must_be_refused_or_reported() -> None:
    invalid = Case(name="x", container="invalid", torch_loads=None, weights_only=None, oracle_name="")
    assert not agrees(invalid, {}, {"tensors": [], "findings": []})
    assert agrees(invalid, {}, {"tensors": [], "findings": [{}]})
    assert agrees(invalid, {}, {"error": {}})
