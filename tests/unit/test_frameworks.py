"""What the program says of the files that real frameworks wrote, against the objects that were saved."""

from __future__ import annotations

import pytest

from tests.corpus import Case, disagreement
from tests.frameworks.cases import FILES, claims, document, every, measure_names
from tests.sweep import table

EVERY = every()


def test_there_are_files_of_ten_frameworks() -> None:
    assert len(EVERY) >= 80
    assert len({case.folder for case in EVERY}) == 10
    listed = {FILES / "index.json", FILES / "versions.json"}
    listed |= {path for case in EVERY for path in (case.path, FILES / case.oracle_name)}
    beside = {path for path in FILES.rglob("*") if path.is_file() and path.suffix == ".json"}
    assert {path for path in FILES.rglob("*") if path.is_file()} - beside <= listed


@pytest.mark.wide
@table("case", EVERY)
def test_document_agrees_with_the_oracle(case: Case) -> None:
    assert disagreement(case, case.oracle(), document(case.path)) is None


@pytest.mark.wide
def test_no_slot_has_a_wrong_name() -> None:
    measured = measure_names(EVERY)
    assert measured.wrong == []
    assert measured.total.total() > 2_000
    assert measured.total["right"] >= 0.99 * measured.total.total()


@table("case", EVERY)
def test_roles_are_what_the_live_objects_say(case: Case) -> None:
    wrong = {
        row["path"]: (tensor["role"], row["role"])
        for tensor, row in claims(case)
        if row is not None and "role" in tensor and row["role"] != tensor["role"]
    }
    assert wrong == {}
