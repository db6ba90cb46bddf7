"""The verdict on whole files, against what torch says to every file of the corpus."""

from __future__ import annotations

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety, Verb
from inspector.model.obstacles import find_obstacle
from inspector.records import replace
from inspector.safety.verdict import judge
from tests import corpus
from tests.sweep import table
from tests.unit.report.rows import BLANK

FOLDERS = ("devices/", "old/", "legacy/", "zip/")
CASES = [case for case in corpus.cases() if case.name.startswith(FOLDERS) and case.weights_only is not None]


@pytest.mark.wide
@table("case", CASES, ids=lambda case: case.name)
def test_agrees_with_torch(case: corpus.Case) -> None:
    """Where torch can read the file at all; what it recorded of gzip and lost records is about the file."""
    checkpoint = open_checkpoint(str(case.path))
    if case.weights_only:
        assert judge(checkpoint).weights_only
    elif judge(checkpoint).weights_only:
        assert find_obstacle(checkpoint) is not None


def made(
    *names: str,
    uses: tuple[tuple[str, str], ...] = (),
    notes: tuple[Note, ...] = (),
    odd: tuple[str, ...] = (),
) -> Checkpoint:
    return replace(
        BLANK,
        globals=tuple(GlobalUse(name=name, count=1) for name in names),
        safety=Safety(opcodes=("STOP",), protocol=2, oddities=odd, unread=(), uses=uses, constructed=names),
        notes=notes,
    )


@table(
    ("checkpoint", "verdict"),
    [
        (made("collections.OrderedDict"), "weights-only"),
        (made("m.Net"), "needs-allow-list"),
        (made("m.Net", uses=(("m.Net", Verb.APPEND),)), "runs-code"),
        (made("os.system"), "dangerous"),
        (made("os.system", "m.Net"), "dangerous"),
        (made(odd=("odd (byte 3)",)), "runs-code"),
        (
            made(notes=(Note(NoteKind.SHARED_NAME),)),
            "runs-code",
        ),
        (made("builtins.getattr"), "dangerous"),
        (made("builtins.getattr", uses=(("", Verb.GETATTR),)), "dangerous"),
        (made("builtins.getattr", uses=(("os.system", Verb.GETATTR),)), "dangerous"),
        (made("builtins.getattr", uses=(("m.Color.RED", Verb.GETATTR),)), "runs-code"),
    ],
)
def test_verdict(checkpoint: Checkpoint, verdict: str) -> None:
    found = judge(checkpoint)
    assert found.verdict == verdict
    assert found.weights_only == (verdict == "weights-only")
    assert bool(found.to_allow) == (verdict == "needs-allow-list")
    assert bool(found.reasons) == (verdict != "weights-only")


def test_names_are_listed_but_not_without_end() -> None:
    found = judge(made(*(f"m.C{number}" for number in range(20))))
    assert len(found.to_allow) == 20
    assert "and 12 more" in found.reasons[0]
