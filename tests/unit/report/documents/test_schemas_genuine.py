"""Documents of genuine and of hostile files, each as its schema has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from inspector.diagnose.run import diagnose
from inspector.diff.compare import Wish, compare_paths
from inspector.diff.series import compare_series
from inspector.doctor.examine import examine
from inspector.errors import CheckpointError, ValuesError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.report.checking import Check, check_document
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.series import series_document
from inspector.report.jsonable import error_document, write_show
from inspector.report.machine import machine_document
from inspector.report.values import scan_document, statistics_document
from inspector.resources import demo_path
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_target
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from inspector.values.statistics import scan_checkpoint
from tests.corpus import CORPUS, cases, varied
from tests.hostile.cases import CASES
from tests.schemas import check_lines
from tests.sweep import IS_SWEEP

DATA = Path(__file__).parents[3] / "data"
NUMBERS = ("zip/new_dtypes.pt", "zip/sparse.pt", "zip/quantized.pt", "zip/nested.pt", "zip/math_bits.pt")
pytestmark = pytest.mark.wide


def documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of `show` and `check` about a file."""
    try:
        checkpoint = open_checkpoint(str(path), beside=True)
    except CheckpointError as error:
        yield "show", json.dumps(error_document(str(path), error))
        return
    safety = judge(checkpoint)
    findings = diagnose(checkpoint, safety)
    yield "show", "".join(write_show(checkpoint, safety, findings, open_seconds=0.5))
    load = judge_load(checkpoint, CPU_ONLY)
    found = diagnose(checkpoint, load.safety, CPU_ONLY)
    check = Check(checkpoint=checkpoint, target=CPU_ONLY, load=load, findings=found, explanation=None)
    yield "check", json.dumps(check_document(check))


def complaints(given: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    """Return what is wrong with documents; those of SWEEP may be many, so no assertion ends it."""
    found = []
    for command, text in given:
        try:
            check_lines(command, text)
        except AssertionError as error:
            found.append(str(error))
    return found


def test_documents_of_genuine_files() -> None:
    frameworks = cases(root=DATA / "frameworks")
    step = 1 if IS_SWEEP else 3
    paths = [case.path for case in (*varied()[::step], *frameworks[:: 2 * step])]
    assert {str(path): found for path in paths if (found := complaints(documents(path)))} == {}


def test_documents_of_hostile_files(tmp_path: Path) -> None:
    wrong = {}
    for case in CASES if IS_SWEEP else CASES[::7]:
        path = tmp_path / "x.pth"
        path.write_bytes(case.build())
        wrong[str(case)] = complaints(documents(path))
    assert {name: found for name, found in wrong.items() if found} == {}


def test_documents_of_comparisons() -> None:
    demo, shards = str(demo_path()), str(CORPUS / "hf_sharded")
    wrong = {}
    for a, b, mode in (
        (demo, demo, "equal"),
        (demo, str(CORPUS / "zip" / "train.pt"), "numbers"),
        (shards, str(CORPUS / "safetensors" / "all.safetensors"), "numbers"),
        (str(CORPUS / "zip" / "nested.pt"), str(CORPUS / "legacy" / "nested.pt"), "equal"),
    ):
        text = json.dumps(diff_document(compare_paths(a, b, Wish(mode=mode))))
        wrong[a, b] = complaints([("diff", text)])
    series = series_document(compare_series((demo, demo, demo), Progress()))
    wrong["series"] = complaints([("diff", json.dumps(series))])
    assert {name: found for name, found in wrong.items() if found} == {}


def test_documents_of_numbers() -> None:
    """All element types, sparse and quantized ones, and tensors without numbers."""
    wrong = {}
    with ValueReader() as reader:
        for name in NUMBERS:
            checkpoint = open_checkpoint(str(CORPUS / name))
            scan = scan_checkpoint(checkpoint, reader, Progress())
            wrong[name] = complaints([("stats", json.dumps(scan_document(checkpoint, scan, ())))])
            for row in range(min(len(checkpoint.tensors), 40)):
                with suppress(ValuesError):
                    found = reader.statistics(Requests(checkpoint), row, Progress())
                    text = json.dumps(statistics_document(checkpoint, row, found))
                    wrong[name] += complaints([("stats", text)])
    assert {name: found for name, found in wrong.items() if found} == {}


def test_documents_of_machines() -> None:
    wrong = {}
    for path in sorted((DATA / "profiles").glob("*.json")):
        profile = parse_target(str(path))
        text = json.dumps(machine_document(profile, examine(profile)))
        wrong[path.name] = complaints([("target", text)])
    wrong["preset"] = complaints([("target", json.dumps(machine_document(parse_target("2xcuda@24gb"), ())))])
    assert {name: found for name, found in wrong.items() if found} == {}
