"""The documents of `--json`: field by field as the contract says, whatever a file holds."""

from __future__ import annotations

import json

import pytest

from inspector.diagnose.run import diagnose
from inspector.errors import ContainerError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import ROLES, GlobalUse
from inspector.model.findings import Fix, finding
from inspector.report.jsonable import (
    error_document,
    finding_document,
    fix_document,
    write_show,
)
from inspector.safety.verdict import judge
from tests import corpus
from tests.documents import show_document
from tests.unit.report.rows import checkpoint, storage, tensor, value

FOLDERS = ("devices/", "old/", "legacy/", "zip/", "frameworks/", "dist/")
CASES = [case for case in corpus.cases() if case.name.startswith(FOLDERS)]
TEXT, TEXT_OR_NONE, INT, INT_OR_NONE = str, (str, type(None)), int, (int, type(None))
SIZES = list
FIELDS = {
    "tensors": {
        "path": TEXT,
        "keys": list,
        "device": TEXT,
        "dtype": TEXT,
        "shape": SIZES,
        "stride": (list, type(None)),
        "storage_offset": INT_OR_NONE,
        "layout": TEXT,
        "requires_grad": bool,
        "nbytes": INT,
        "storage": TEXT_OR_NONE,
        "role": TEXT,
        "parameter": TEXT_OR_NONE,
        "slot": TEXT_OR_NONE,
    },
    "storages": {"key": TEXT, "device": TEXT, "dtype": TEXT, "nbytes": INT, "file_offset": INT_OR_NONE},
    "devices": {"device": TEXT, "tensors": INT, "storages": INT, "nbytes": INT},
    "values": {"path": TEXT, "type": TEXT, "text": TEXT},
    "globals": {"name": TEXT, "count": INT, "verdict": TEXT},
    "findings": {
        "id": TEXT,
        "severity": TEXT,
        "title": TEXT,
        "detail": TEXT,
        "paths": list,
        "count": INT,
        "fix": (dict, type(None)),
    },
}
HEAD = {"schema": int, "path": str, "format": str, "file_nbytes": int, "open_seconds": float}


def documents(made: object) -> tuple[dict[str, object], dict[str, object]]:
    """The document, and the same written piece by piece and read again."""
    safety = judge(made)
    findings = diagnose(made, safety)
    whole = show_document(made, safety, findings, open_seconds=0.25)
    pieces = "".join(write_show(made, safety, findings, open_seconds=0.25))
    assert "\n" not in pieces
    return json.loads(json.dumps(whole)), json.loads(pieces)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fields(case: corpus.Case) -> None:
    document, written = documents(open_checkpoint(str(case.path)))
    assert document == written
    assert set(document) == {*HEAD, *FIELDS, "safety", "versions"}
    for name, kind in HEAD.items():
        assert isinstance(document[name], kind)
    for part, fields in FIELDS.items():
        for row in document[part]:
            assert list(row) == list(fields)
            for name, kind in fields.items():
                assert isinstance(row[name], kind), (part, name)
    assert {row["role"] for row in document["tensors"]} <= set(ROLES)
    assert set(document["safety"]) == {"verdict", "weights_only", "globals_to_allow"}
    assert all(isinstance(text, str) for text in document["versions"].values())


def test_hostile_names_and_numbers() -> None:
    made = checkpoint(
        storage("\ud800", "cuda:0\n", file_offset=None),
        tensor(
            "\ud800",
            -5,
            '"\\',
            shape=(1 << 62,),
            stride=None,
            storage_offset=None,
            nbytes=1 << 63,
            storage="\ud800",
        ),
        tensor("a", parameter="\u202e", slot="\x1b", requires_grad=True),
        value("v", text='"quoted"\n'),
        globals=(GlobalUse(name="os.system", count=2),),
        path="a\nb",
    )
    document, written = documents(made)
    assert document == written
    assert written["tensors"][0]["keys"] == ["\ud800", -5, '"\\']
    assert written["globals"] == [{"name": "os.system", "count": 2, "verdict": "dangerous"}]


def test_many_rows_are_written_in_batches() -> None:
    document, written = documents(checkpoint(*(tensor(f"t{number}") for number in range(9000))))
    assert document == written
    assert len(written["tensors"]) == 9000


def test_nothing_at_all() -> None:
    document, written = documents(checkpoint())
    assert document == written
    assert written["tensors"] == []


def test_error() -> None:
    error = ContainerError("it is damaged", where="byte 5", remedy="fetch it again")
    assert error_document("a.pt", error) == {
        "schema": 1,
        "path": "a.pt",
        "error": {"kind": "container", "message": "it is damaged", "where": "byte 5"},
        "safety": None,
        "findings": [],
    }


def test_finding() -> None:
    made = finding("mixed-devices", "warning", "title", "detail", ["a"], fix=Fix(rule="*=cpu"))
    assert finding_document(made)["fix"] == {"kind": "rule", "map": "*=cpu"}
    assert finding_document(finding("byteorder", "note", "t", "d", []))["fix"] is None
    option = Fix(option=("map_location", "'cpu'"))
    assert fix_document(option) == {"kind": "option", "option": "map_location", "value": "'cpu'"}
    assert fix_document(Fix(style="resume")) == {"kind": "style", "style": "resume"}
