from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inspector.records import replace
from inspector.remap.export import Export
from inspector.remap.forms import Form, FormExport, LeftOut
from inspector.remap.recover import DamagedRecord, FileCheck, Lost, Recovery
from inspector.remap.torch_check import TorchCheck
from inspector.remap.verify import Comparison
from inspector.report.page import plain_text
from inspector.report.words import results
from tests.sweep import table

CHECKED = "reopened and compared: same objects, devices as planned"


def copy(**how: object) -> Export:
    facts = {"nbytes": 2000, "moved_tensors": 1, "kept_tensors": 0, "in_one_piece": True, "verified": False}
    return Export(destination=Path("out"), **(facts | how))


def form(**how: object) -> FormExport:
    facts: dict[str, object] = {
        "destination": Path("out"),
        "form": Form(),
        "format": "zip",
        "model": None,
        "tensors": 1,
        "nbytes": 1000,
        "source_nbytes": 2_000_000,
        "left_out": (),
        "prefix": "",
        "tied": (),
        "overflowed": 0,
        "verified": False,
    }
    return FormExport(**(facts | how))


def recovery(**how: object) -> Recovery:
    facts: dict[str, object] = {
        "destination": Path("x"),
        "nbytes": 1,
        "tensors": 2,
        "storages": 5,
        "storage_nbytes": 1,
        "unchecked": 0,
        "lost": (),
        "verdict": "weights-only",
    }
    return Recovery(**(facts | how))


def checked(**how: object) -> FileCheck:
    facts = {"nbytes": 8, "checked": 1, "unchecked": 0, "lost": (), "records": (), "findings": ()}
    return FileCheck(path="x", **(facts | how))


EQUAL = TorchCheck(verdict="equal", torch="9")
LOST = Lost(
    path="a\x1b", device="cpu", dtype="float32", shape=(2,), nbytes=8, why="its bytes are not in the file"
)


def compared(**how: object) -> list[str]:
    given = {"differences": (), "tensors": 3, "moves": (), "compared_nbytes": 8, **how}
    return results.compared(Comparison(**given), planned=False)


@table(
    ("made", "said"),
    [
        (
            lambda: results.copied(copy(kept_tensors=3, verified=True, copied_nbytes=2, compared_nbytes=1)),
            [
                "2.0 KB written",
                "1 tensor relabeled",
                "3 tensors kept on the CPU by design",
                CHECKED,
                "1 B of 2 B copied were compared with the original",
            ],
        ),
        (
            lambda: results.copied(copy(verified=True, copied_nbytes=2))[2:],
            [CHECKED, "the copied bytes were not compared"],
        ),
        (
            lambda: results.copied(copy(torch=replace(EQUAL, missing=("mps", "xpu:0"))))[2:],
            ["torch 9 loads it, and the tensors are equal (on the CPU: this machine has no mps, xpu:0)"],
        ),
        (lambda: results.copied(copy(moved_tensors=0))[1:], ["no device changed"]),
        (
            lambda: results.converted(
                form(model="a\x1b", prefix="m.", tied=(("a", "b"),) * 2, verified=True)
            )[1:4],
            [
                "taken from a\\u001b",
                "prefix m. removed from every name",
                "tied weights written once, a, a in the metadata only",
            ],
        ),
        (
            lambda: results.recovered(recovery(unchecked=2, lost=(LOST,)))[::2],
            ["2 of 3 tensors saved, 1 B", "2 of 5 storages have no checksum to compare"],
        ),
        (lambda: compared()[:1], ["the same"]),
        (
            lambda: compared(moved_hidden=1, moves=(("a\x1b", "cpu", 2),))[::2],
            ["the same but for devices", "2 tensors moved from a\\u001b to cpu"],
        ),
        (lambda: compared(differences=("a\x1b differs",)), ["a\\u001b differs"]),
        (
            lambda: results.checked(
                checked(unchecked=2, lost=(LOST,) * 3, records=(DamagedRecord("r", "bad"),)), 2
            )[1:],
            [
                "2 records without a checksum: only the length was checked",
                "damaged: a\\u001b: its bytes are not in the file",
                "damaged: a\\u001b: its bytes are not in the file",
                "and 1 more tensors",
                "damaged: record r: bad",
            ],
        ),
    ],
)
def test_parts(made: Callable[[], list[str]], said: list[str]) -> None:
    assert made() == said


@table(
    ("verdict", "said"),
    [
        ("equal", ""),
        ("unchecked", "torch did not check the copy: a\\u001b"),
        ("differs", "torch does not load the copy as planned: a\\u001b"),
    ],
)
def test_check_by_torch_that_was_not_made(verdict: str, said: str) -> None:
    assert results.unchecked_by_torch(copy(torch=TorchCheck(verdict=verdict, detail="a\x1b"))) == said
    assert results.unchecked_by_torch(copy()) == ""


def test_what_is_left_out_is_listed_but_not_without_end() -> None:
    rows = [LeftOut("", "the class", 0, 0), LeftOut("a\x1b", "other", 2, 5000)]
    rows += [LeftOut(str(number), "why", 0, 10) for number in range(30)]
    assert results.left_out(rows, 2) == [
        "left out: around it: the class",
        "left out: a\\u001b: other (2 tensors, 5.0 KB)",
        "left out: 30 more, 300 B",
    ]
    assert results.left_out(rows[:2], 2) == results.left_out(rows, 2)[:2]


def test_lines_and_a_line() -> None:
    assert results.as_lines(["a b", "torch said: no."]) == ["A b.", "torch said: no."]
    assert plain_text(results.result_page("o\nut", ["a", "b"])) == "o\\u000aut: a; b\n"


def test_lost_and_overflowed_are_counted() -> None:
    assert results.overflowed(form()) == ""
    assert results.overflowed(form(overflowed=1)) == "1 value became infinite in the cast"
    assert results.lost(recovery()) == "no tensors lost"
    assert "unknown" in results.lost(recovery(is_cut=True))
    assert results.recovered(recovery(is_cut=True))[0] == "2 tensors saved, 1 B"
    assert results.lost(recovery(lost=(LOST,))).startswith("1 tensor lost, 8 B: ")
    assert results.lost_row(LOST) == "a\\u001b  2 float32, 8 B: its bytes are not in the file"
    assert results.recovered_safety(recovery()) == ""
    assert results.recovered_safety(recovery(verdict="dangerous")).startswith("DANGEROUS")
    assert results.recovered(recovery(is_cut=True, lost=(LOST,)))[0] == "2 of 3 tensors saved, 1 B"
