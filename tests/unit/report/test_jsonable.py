"""The documents of `--json`: every field of the contract, its type, and nothing that cannot be written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.containers.container import Part
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError, ContainerError, NotACheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.findings import Fix, finding
from inspector.records import replace
from inspector.report.jsonable import Document, error_document, finding_document, fix_document, write_show
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY
from tests.builders.pickles import dict_, list_, name, new, number, op, text, tuple_
from tests.corpus import Case, cases
from tests.documents import show_document
from tests.schemas import check_lines
from tests.sweep import table
from tests.unit.model.making import by_hand, call, numbers, pairs, storage, view
from tests.unit.report.rows import checkpoint
from tests.unit.report.rows import storage as stored


def written(checkpoint: Checkpoint) -> Any:
    safety = judge(checkpoint)
    return show_document(checkpoint, safety, diagnose(checkpoint, safety, CPU_ONLY), open_seconds=0.1234567)


def check(document: Document) -> None:
    """Whether the parts of a document agree."""
    keys = {row["key"] for row in document["storages"]}
    for tensor in document["tensors"]:
        assert tensor["storage"] is None or tensor["storage"] in keys
        assert tensor["stride"] is None or len(tensor["stride"]) == len(tensor["shape"])
        assert (tensor["layout"] == "storage") <= (len(tensor["shape"]) == 1)
        assert (tensor["slot"] is not None) <= (tensor["role"] == "optimizer")
        assert (tensor["parameter"] is not None) <= (tensor["slot"] is not None)
    for what, rows in (("tensors", document["tensors"]), ("storages", document["storages"])):
        assert sum(row[what] for row in document["devices"]) == len(rows)
    nbytes = sum(row["nbytes"] for row in document["storages"])
    assert sum(row["nbytes"] for row in document["devices"]) == nbytes
    assert all(len(value["text"]) <= 200 for value in document["values"])
    assert all(value["text"].isprintable() for value in document["values"])


def check_case(case: Case) -> None:
    try:
        checkpoint = open_checkpoint(str(case.path))
    except CheckpointError as error:
        check_lines("show", json.dumps(error_document(str(case.path), error)))
        return
    document = written(checkpoint)
    check(document)
    assert document["path"] == str(case.path)
    assert document["open_seconds"] == 0.123457


@pytest.mark.wide
def test_corpus_keeps_the_contract() -> None:
    wrong = {}
    for case in cases():
        try:
            check_case(case)
        except AssertionError as error:
            wrong[case.name] = error
    assert wrong == {}


HUGE = op("LONG1", b"\xff" + b"\x7f" * 255)
HOSTILE: dict[str, bytes] = {
    "huge integers": list_(HUGE, dict_((HUGE, HUGE)), call("a.B", HUGE)),
    "huge geometry": view(offset=HUGE, size=tuple_(HUGE), stride=tuple_(HUGE)),
    "huge storage": view(storage(numel=(1 << 63) - 1)),
    "stretched": view(size=numbers((1 << 63) - 1), stride=numbers(0)),
    "surrogates": pairs(**{"\ud800": text("\udfff")}),
    "surrogate keys of tensors": dict_((text("\ud800"), view(storage("\udc00", device="\ud8ff")))),
    "names": list_(name("a.b\u202e"), call("c.\x1b[31m")),
    "device with a huge index": call("torch.device", text("cuda"), HUGE),
    "quotes": pairs(**{'a"b\\c': text('"\\')}),
    "keys of every kind": dict_(
        (number(-5), view(storage("0"))),
        (op("NONE"), view(storage("1"))),
        (op("NEWTRUE"), view(storage("2"))),
        (numbers(1, 2), view(storage("3"))),
        (HUGE, view(storage("4"))),
    ),
    "not a number": list_(op("BINFLOAT", b"\x7f\xf8" + bytes(6)), op("BINFLOAT", b"\x7f\xf0" + bytes(6))),
    "truth values for sizes": view(size=tuple_(op("NEWTRUE")), stride=tuple_(op("NEWTRUE"))),
}


@table("what", HOSTILE)
def test_hostile_values_can_always_be_written(what: str) -> None:
    check(written(by_hand(HOSTILE[what])))


def test_keys_are_strings_and_integers() -> None:
    document = written(by_hand(HOSTILE["keys of every kind"]))
    keys = [tensor["keys"] for tensor in document["tensors"]]
    assert keys[:4] == [[-5], ["None"], ["True"], ["(1, 2)"]]
    assert isinstance(keys[4][0], str)


def test_names_to_allow_and_verdicts_stand_beside_their_names() -> None:
    checkpoint = by_hand(list_(new("mine.Net"), name("torch.FloatStorage"), name("collections.OrderedDict")))
    document = written(checkpoint)
    assert document["globals"] == [
        {"name": "mine.Net", "count": 1, "verdict": "unknown"},
        {"name": "torch.FloatStorage", "count": 1, "verdict": "tensor"},
        {"name": "collections.OrderedDict", "count": 1, "verdict": "allowed"},
    ]
    assert document["safety"] == {
        "verdict": "needs-allow-list",
        "weights_only": False,
        "globals_to_allow": ["mine.Net"],
    }


def test_verdicts_must_be_those_of_the_names() -> None:
    checkpoint = by_hand(number(1))
    safety = judge(checkpoint)
    other = replace(checkpoint, globals=(GlobalUse(name="a.b", count=1),))
    with pytest.raises(ValueError, match="shorter"):
        show_document(other, safety, (), open_seconds=0.0)


def test_errors_say_what_and_where() -> None:
    document = error_document("a.pt", NotACheckpointError("it is a page", where="byte 0", remedy="fetch it"))
    check_lines("show", json.dumps(document))
    assert document["error"] == {"kind": "not-a-checkpoint", "message": "it is a page", "where": "byte 0"}
    assert error_document("a.pt", ContainerError("short"))["error"]["where"] is None


def test_findings_carry_their_fix() -> None:
    plain = finding("id", "note", "title", "detail", ["a"])
    fixed = finding_document(replace(plain, fix=Fix(rule="*=cpu")))
    assert fixed["fix"] == {"kind": "rule", "map": "*=cpu"}
    option = Fix(option=("map_location", "'cpu'"))
    assert fix_document(option) == {"kind": "option", "option": "map_location", "value": "'cpu'"}
    assert fix_document(Fix(style="resume")) == {"kind": "style", "style": "resume"}


@pytest.mark.wide
def test_many_rows_are_written_in_pieces() -> None:
    checkpoint = by_hand(list_(*(view() for _ in range(9000))))
    pieces = list(write_show(checkpoint, judge(checkpoint), (), open_seconds=0.0))
    assert max(len(piece) for piece in pieces) < 0.5 * sum(len(piece) for piece in pieces)
    assert len(json.loads("".join(pieces))["tensors"]) == 9000


def test_several_files_are_listed_and_each_storage_says_which_it_is_in() -> None:
    parts = (Part("a/one.bin", 3), Part("a/two.bin", 4))
    made = checkpoint(stored("0:0", part="a/one.bin"), stored("1:0", part="a/two.bin"), parts=parts)
    document = written(made)
    assert document["parts"] == [{"path": "a/one.bin", "nbytes": 3}, {"path": "a/two.bin", "nbytes": 4}]
    assert [one["part"] for one in document["storages"]] == [0, 1]
    plain = written(checkpoint(stored("0")))
    assert "parts" not in plain
    assert "part" not in plain["storages"][0]
