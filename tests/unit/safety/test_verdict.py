"""The verdict on whole files, against the corpus and torch."""

from __future__ import annotations

import enum
import warnings
from pathlib import Path

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety, Verb
from inspector.records import replace
from inspector.safety.verdict import judge
from tests.builders.pickles import list_, name, new, op, text, tuple_
from tests.corpus import CORPUS, Case, cases
from tests.sweep import table
from tests.unit.model.making import by_hand, call, pairs, saved
from tests.unit.report.rows import BLANK

FOLDERS = {"zip", "legacy", "devices", "old"}
# Nested tensors in the legacy format: torch reads sizes that are not there yet, and fails by chance.
BY_CHANCE = {"legacy/nested.pt"}


LOADABLE = [case for case in cases() if case.torch_loads]


@pytest.mark.wide
@table("case", LOADABLE, ids=lambda case: ascii(case.name))
def test_verdict_is_the_one_of_the_index(case: Case) -> None:
    if case.weights_only is not None:
        assert judge(open_checkpoint(str(case.path))).weights_only == case.weights_only


@pytest.mark.wide
@pytest.mark.torch
@table(
    "case",
    [case for case in LOADABLE if case.folder in FOLDERS and case.name not in BY_CHANCE],
    ids=lambda case: ascii(case.name),
)
def test_verdict_is_torchs(case: Case) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.load(case.path, map_location="cpu", weights_only=True)
            accepted = True
        except Exception:  # noqa: BLE001 - whatever it is, the answer is no
            accepted = False
    assert judge(open_checkpoint(str(case.path))).weights_only == accepted


def test_hostile_files_are_dangerous() -> None:
    for file in ("os_system.pt", "os_system_legacy.pt"):
        verdict = judge(open_checkpoint(str(CORPUS / "hostile" / file)))
        assert (verdict.verdict, verdict.weights_only, verdict.to_allow) == ("dangerous", False, ())
        assert "dangerous" in verdict.globals
        assert "can run anything" in verdict.reasons[0]


def test_unknown_names_are_listed_in_their_present_spelling() -> None:
    verdict = judge(by_hand(list_(new("mine.Config"), name("__builtin__.slice"), name("builtins.slice"))))
    assert verdict.verdict == "needs-allow-list"
    assert verdict.to_allow == ("mine.Config", "builtins.slice")
    assert verdict.reasons == (
        "It imports names that are not on torch's allowlist: mine.Config, builtins.slice.",
    )
    assert verdict.packages == ("mine",)


@table(
    "made",
    [
        op("SHORT_BINUNICODE", b"\1x"),
        text("x") + op("EMPTY_TUPLE") + op("REDUCE"),
        text("x") + op("BINPERSID"),
        list_() + pairs() + op("BUILD"),
    ],
)
def test_what_no_list_can_mend_runs_code(made: bytes) -> None:
    verdict = judge(by_hand(made))
    assert (verdict.verdict, verdict.to_allow, verdict.weights_only) == ("runs-code", (), False)
    assert verdict.reasons


def test_state_of_what_was_imported_is_dangerous() -> None:
    verdict = judge(by_hand(name("torch.FloatStorage") + pairs() + op("BUILD")))
    assert verdict.verdict == "dangerous"
    assert "the state of the name torch.FloatStorage is set" in verdict.reasons[0]


def test_danger_is_worst() -> None:
    verdict = judge(by_hand(list_(name("posix.system"), op("SHORT_BINUNICODE", b"\1x"), new("mine.X"))))
    assert verdict.verdict == "dangerous"
    assert len(verdict.reasons) == 3


# --- getattr ------------------------------------------------------------------------------------------------


def reaching(attribute: str, owner: str = "mine.Color") -> bytes:
    return call("__builtin__.getattr", name(owner), text(attribute))


def test_getattr_of_an_enumeration_is_no_danger_but_no_weights_either() -> None:
    verdict = judge(by_hand(list_(reaching("RED"))))
    assert verdict.globals == ("unknown", "unknown")
    assert (verdict.verdict, verdict.to_allow) == ("runs-code", ())


@table(
    "made",
    [
        reaching("system", "posix.nt"),
        reaching("os", "torch.serialization"),
        reaching("__globals__"),
        call("__builtin__.getattr", text("x"), text("y")),
        list_(name("__builtin__.getattr")),
        tuple_(reaching("RED"), reaching("os", "torch.serialization")),
        reaching("os", "torch.serialization") + op("POP") + op("NONE"),
        reaching("os", "torch.serialization") + op("NONE"),
        op("MARK") + reaching("os", "torch.serialization") + op("POP_MARK") + op("NONE"),
    ],
)
def test_getattr_of_anything_else_is_dangerous(made: bytes) -> None:
    assert judge(by_hand(made)).verdict == "dangerous"


class Color(enum.Enum):
    RED = 1


@pytest.mark.torch
def test_genuine_enumeration_is_no_danger(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert judge(saved(tmp_path, {"color": Color.RED})).verdict in {"runs-code", "needs-allow-list"}


# --- rows -------------------------------------------------------------------------------------------------


def rows(
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
        (rows("collections.OrderedDict"), "weights-only"),
        (rows("m.Net"), "needs-allow-list"),
        (rows("m.Net", uses=(("m.Net", Verb.APPEND),)), "runs-code"),
        (rows("os.system"), "dangerous"),
        (rows("os.system", "m.Net"), "dangerous"),
        (rows(odd=("odd (byte 3)",)), "runs-code"),
        (
            rows(notes=(Note(NoteKind.SHARED_NAME),)),
            "runs-code",
        ),
        (rows("builtins.getattr"), "dangerous"),
        (rows("builtins.getattr", uses=(("", Verb.GETATTR),)), "dangerous"),
        (rows("builtins.getattr", uses=(("os.system", Verb.GETATTR),)), "dangerous"),
        (rows("builtins.getattr", uses=(("m.Color.RED", Verb.GETATTR),)), "runs-code"),
    ],
)
def test_verdict(checkpoint: Checkpoint, verdict: str) -> None:
    found = judge(checkpoint)
    assert found.verdict == verdict
    assert found.weights_only == (verdict == "weights-only")
    assert bool(found.to_allow) == (verdict == "needs-allow-list")
    assert bool(found.reasons) == (verdict != "weights-only")


def test_names_are_listed_but_not_without_end() -> None:
    found = judge(rows(*(f"m.C{number}" for number in range(20))))
    assert len(found.to_allow) == 20
    assert "and 12 more" in found.reasons[0]
