"""Texts of the restricted unpickler; those of the installed torch are compared with torch itself."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest

from inspector.target.call import CUT, Refusal, behind_message, refusal_message, short_message
from inspector.target.versions import NEWEST
from tests.builders import pickles
from tests.sweep import table

UNKNOWN = Refusal(finding="needs-allow-list", name="argparse.Namespace")
BLOCKED = Refusal(finding="dangerous-global", name="os.getcwd")
OPCODE = Refusal(finding="runs-code", opcode=pickle.POP[0])
IMPORTED = Refusal(finding="needs-allow-list", name="torch.distributed.tensor.DTensor")
STREAMS = {
    "unknown": (UNKNOWN, pickles.name("argparse.Namespace")),
    "blocked": (BLOCKED, pickles.name("os.getcwd")),
    "opcode": (OPCODE, pickles.number(1) + pickles.number(2) + pickle.POP),
}


@pytest.mark.torch
@pytest.mark.parametrize("what", STREAMS)
def test_the_words_are_torchs(what: str) -> None:
    torch = pytest.importorskip("torch")
    refusal, stream = STREAMS[what]
    genuine, made = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.zeros(2)}, genuine)
    with zipfile.ZipFile(genuine) as before, zipfile.ZipFile(made, "w") as after:
        for name in before.namelist():
            is_pickle = name.endswith("data.pkl")
            after.writestr(name, pickles.proto(2) + stream + b"." if is_pickle else before.read(name))
    made.seek(0)
    with pytest.raises(pickle.UnpicklingError) as raised:
        torch.load(made, weights_only=True)
    assert refusal_message(refusal, NEWEST) == f"UnpicklingError: {raised.value}"


@table(
    ("release", "refusal", "words"),
    [
        ((2, 3), UNKNOWN, "WeightsUnpickler error: Unsupported class argparse.Namespace"),
        ((2, 0), OPCODE, "WeightsUnpickler error: Unsupported operand 48"),
        ((2, 4), UNKNOWN, "have two options \n\t(1) Re-running `torch.load`"),
        ((2, 4), UNKNOWN, "`torch.serialization.add_safe_globals([Namespace])` to allowlist this global"),
        ((2, 4), BLOCKED, "Unsupported global: GLOBAL os.getcwd was not an allowed global by default."),
        ((2, 4), OPCODE, "trusted source.\n Please file an issue with the following"),
        ((2, 5), BLOCKED, "Trying to load unsupported GLOBAL os.getcwd whose module os is blocked."),
        ((2, 5), UNKNOWN, "two options, \033[1mdo those steps only if you trust"),
        ((2, 6), UNKNOWN, "In PyTorch 2.6, we changed the default value"),
        ((2, 6), UNKNOWN, "`torch.serialization.safe_globals([Namespace])` context manager"),
        ((2, 7), UNKNOWN, "`torch.serialization.safe_globals([argparse.Namespace])` context manager"),
        ((2, 7), OPCODE, "WeightsUnpickler error: Unsupported operand 48\n\nCheck the documentation"),
        ((2, 5), IMPORTED, "Unsupported global: GLOBAL torch.distributed.tensor.DTensor was not"),
        (
            (2, 6),
            IMPORTED,
            "failed. ``torch.distributed.tensor`` must be imported to load DTensors\n In",
        ),
        ((2, 9), OPCODE, "WeightsUnpickler error: \n\nUnsupported operand 48\n\nCheck the documentation"),
    ],
)
def test_words_of_other_releases(release: tuple[int, int], refusal: Refusal, words: str) -> None:
    message = refusal_message(refusal, release)
    assert message.startswith("UnpicklingError: Weights only load failed. ")
    assert words in message


@table("release", [(2, 0), (2, 4), (2, 6), NEWEST])
def test_without_a_reason_only_the_beginning_is_said(release: tuple[int, int]) -> None:
    beginning = refusal_message(Refusal(finding="runs-code"), release)
    assert refusal_message(OPCODE, release).startswith(beginning)
    assert "\n\nCheck" not in beginning


@table(
    ("refusal", "release", "said"),
    [
        (
            UNKNOWN,
            (2, 13),
            "Unsupported global: GLOBAL argparse.Namespace was not an allowed global by default.",
        ),
        (UNKNOWN, (2, 3), "Unsupported class argparse.Namespace"),
        (BLOCKED, (2, 13), "Trying to load unsupported GLOBAL os.getcwd whose module os is blocked."),
        (OPCODE, (2, 13), "Unsupported operand 48"),
        (OPCODE, (2, 4), "Unsupported operand 48"),
    ],
)
def test_a_refusal_in_short_is_its_first_sentence_and_the_reason(
    refusal: Refusal, release: tuple[int, int], said: str
) -> None:
    shown = short_message(refusal_message(refusal, release))
    assert shown.removesuffix(f" {CUT}") == f"UnpicklingError: Weights only load failed. {CUT} {said}"


@table(
    ("message", "shown"),
    [
        ("EOFError: Ran out of input", "EOFError: Ran out of input"),
        ("RuntimeError: no.", "RuntimeError: no."),
        ("RuntimeError: no. Try this.", f"RuntimeError: no. {CUT}"),
        ("RuntimeError: a\nb. c", f"RuntimeError: a b. {CUT}"),
    ],
)
def test_other_messages_in_short(message: str, shown: str) -> None:
    assert short_message(message) == shown
    for quoted in (message, shown):
        assert behind_message(f"It fails with: {quoted} Do that.", message) == "Do that."
    assert behind_message("Do that.", message) == "Do that."


def test_a_long_message_is_cut() -> None:
    assert len(short_message(f"RuntimeError: {'x' * 1000}")) <= 240
