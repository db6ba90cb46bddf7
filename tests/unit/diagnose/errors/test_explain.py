"""Error messages as people paste them: recognized through every kind of noise, and nothing else is."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from inspector.diagnose.errors import explain
from inspector.diagnose.errors.explain import ERROR_KINDS, explain_error
from inspector.diagnose.errors.explanation import UNRECOGNIZED
from inspector.diagnose.errors.paste import MOST_CHARS
from inspector.model.build import open_checkpoint
from inspector.model.findings import Fix
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.sweep import put_through
from tests.unit.diagnose.messages import messages
from tests.unit.report.rows import is_harmless

MESSAGES = messages()
DEMO = open_checkpoint(str(demo_path()))
PLAIN = open_checkpoint(str(CORPUS / "zip" / "state_dict.pt"))


OPTIONS = {("mmap", "True"), ("mmap", "False"), ("map_location", "'cpu'")}
STYLES = {"plain", "resume", "module", "distributed"}


def can_be_applied(fix: Fix) -> bool:
    """Whether the window could do it: the rule can be read, the option or style is known."""
    if fix.kind == "rule":
        return bool(parse_rule(fix.rule))
    return fix.style in STYLES or fix.option in OPTIONS


def test_real_messages_are_recognized() -> None:
    for place, message in enumerate(MESSAGES):
        found = explain_error(message.text, None)
        assert (found.id, found.finding) == (message.id, message.finding), place
        assert found.quoted, place
        assert found.fits == "unknown", place
        assert "Open the file" in found.here, place


@pytest.mark.wide
def test_every_message_can_be_tied_to_every_file() -> None:
    for message, checkpoint in product(MESSAGES, (DEMO, PLAIN)):
        found = explain_error(message.text, checkpoint, CPU_ONLY)
        assert found.id == message.id
        assert found.here.endswith((".", "'")), message.id
        assert found.fix is None or (found.fits != "no" and can_be_applied(found.fix)), message.id
        assert found.count >= len(found.paths), message.id
        for text in (found.title, found.quoted, found.cause, found.here, found.advice):
            assert is_harmless(text), message.id


def test_messages_are_of_real_threads_and_of_all_versions() -> None:
    threads = {message.source for message in MESSAGES if message.source.startswith("https://github.com/")}
    assert len(threads) >= 60
    versions = {message.torch.split(".")[0] for message in MESSAGES if message.torch}
    assert versions == {"0", "1", "2"}
    assert len({message.text for message in MESSAGES}) == len(MESSAGES)


def test_every_row_has_a_message_and_a_name_of_its_own() -> None:
    ids = [kind.id for kind in ERROR_KINDS]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {message.id for message in MESSAGES}
    for kind in ERROR_KINDS:
        assert kind.title
        assert kind.cause.endswith((".", ".)"))
        assert kind.advice.endswith((".", ".)"))
        assert not re.search(r"\\[A-Z]", kind.pattern)  # small letters mean both, and \\S is not \\s


# --- noise --------------------------------------------------------------------------------------------------


def colored(text: str) -> str:
    return "\x1b[0;31m" + text.replace(" ", "\x1b[0m \x1b[38;5;9m", 5) + "\x1b]0;title\x07\x1b[0m"


def boxed(text: str) -> str:
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, 60) or [""]]
    return "\n".join(f"\u2502 {line:<60} \u2502" for line in lines)


def quoted(text: str) -> str:
    return text.replace("'", "\u2019").replace('"', "\u201c")


def in_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("'", "&#39;")


def of_rank(text: str) -> str:
    return "\n".join(f"[rank3]: {line}" for line in text.splitlines())


def of_ray(text: str) -> str:
    return "\n".join(f"(RayTrainWorker pid=4242, ip=10.0.0.7) {line}" for line in text.splitlines())


def logged(text: str) -> str:
    return "\n".join(f"2024-05-01 10:00:00,123 - root - ERROR - {line}" for line in text.splitlines())


def broken(text: str) -> str:
    """As a terminal of 79 columns breaks lines, also within words."""
    return "\n".join(line[at : at + 79] for line in text.splitlines() for at in range(0, len(line) or 1, 79))


NOISE: dict[str, Callable[[str], str]] = {
    "colors": colored,
    "box": boxed,
    "quotes": quoted,
    "html": in_html,
    "rank": of_rank,
    "ray": of_ray,
    "log": logged,
    "broken lines": broken,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "small letters": str.lower,
    "spaces": lambda text: text.replace(" ", "\u00a0\u200b ").replace("\n", "\n\n\t"),
    "mail": lambda text: "\n".join(f"> > {line}" for line in text.splitlines()),
    "between": lambda text: f"Hi! I get this, please help:\n\n{text}\n\nThanks. torch 2.1, Windows 11.",
    "repr": lambda text: text.replace("\n", "\\n"),
}


BREAKS_FRAMES = {"box", "broken lines", "small letters"}
OF_FRAMES = {
    "rng-count",
    "not-a-pickle",
    "optimizer-other",
    "optimizer-state-missing",
    "module-attribute",
    "optimizer-index",
    "lightning-hparams",
}


@pytest.mark.wide
def test_noise_does_not_matter() -> None:
    missed = [
        (noise, message.id, found)
        for noise, message in product(NOISE, MESSAGES)
        if (noise not in BREAKS_FRAMES or message.id not in OF_FRAMES)
        and (found := explain_error(NOISE[noise](message.text), None).id) != message.id
    ]
    assert missed == []


def test_the_error_that_ended_the_program_counts() -> None:
    first = "RuntimeError: Storage device not recognized: mps"
    second = "AttributeError: 'collections.OrderedDict' object has no attribute 'eval'"
    between = "\n\nDuring handling of the above exception, another one occurred:\n\nTraceback (most ...):\n"
    found = explain_error(first + between + second, None)
    assert found.id == "dict-for-model"
    assert found.also == ("This build of torch has no such device",)


def test_an_unknown_error_at_the_end_is_not_passed_over() -> None:
    first = "RuntimeError: Storage device not recognized: mps"
    between = "\n\nDuring handling of the above exception, another one occurred:\n\nTraceback (most ...):\n"
    found = explain_error(f"{first}{between}ZeroDivisionError: division by zero", None)
    assert found.id == "device-not-recognized"
    assert found.also == ("last of all, and not recognized: ZeroDivisionError: division by zero",)
    assert explain_error(f"{first}{between}SystemExit: 1", None).also == ()
    assert explain_error(first, None).also == ()
    assert explain_error(f"it says: {first[14:]}\nZeroDivisionError: x", None).also == ()


def test_an_error_that_only_repeats_another_does_not_count() -> None:
    first = "_pickle.UnpicklingError: invalid load key, 'v'."
    second = (
        "OSError: Unable to load weights from pytorch checkpoint file for 'a.bin' at 'a.bin'. If you tried "
        "to load a PyTorch model from a TF 2.0 checkpoint, please set from_tf=True."
    )
    for between in ("\n\nDuring handling of the above exception, ...\n\n", "\n  something else\n"):
        found = explain_error(first + between + second, None)
        assert (found.id, found.finding) == ("load-key", "lfs-pointer")
        assert found.also == ("transformers could not load the weights",)
    loose = explain_error(f"it says invalid load key, 'v'.\n{second}", None)
    assert loose.id == "load-key"
    assert explain_error(second, None).id == "transformers-wrapper"


def test_source_lines_around_an_error_do_not_count() -> None:
    text = (
        "    778     if magic_number != MAGIC_NUMBER:\n"
        '    779         raise RuntimeError("Invalid magic number; corrupt file?")\n\n'
        "EOFError: Ran out of input"
    )
    assert explain_error(text, None).id == "empty-file"
    assert explain_error(text.partition("EOFError")[0], None).id == "magic-number"


# --- what is not known --------------------------------------------------------------------------------------


def test_unknown_text_is_answered_with_what_is_known_of_the_file() -> None:
    found = explain_error("Help!", DEMO, CPU_ONLY)
    assert (found.id, found.finding) == (UNRECOGNIZED, "cuda-unavailable")
    assert found.here.startswith("Known about this file: ")
    assert found.paths
    assert found.fix is not None


# --- what tries to stall us ---------------------------------------------------------------------------------

ATTACKS = (
    "Attempting to deserialize object on a ",
    "Attempting to deserialize object on CUDA device 11111",
    "don't know how to restore data location of torch.",
    "size mismatch for a.b: copying a param with shape torch.Size([1, 1, ",
    "size mismatch for " + "a" * 290,
    'Missing key(s) in state_dict: "a", ',
    'Unexpected key(s) in state_dict: "module.a", ',
    "while copying the parameter named 'a', whose dimensions in the model are torch.Size([",
    "received an invalid combination of arguments - got (",
    "Input type (torch.",
    "expected object of type torch.",
    "Unsupported global: GLOBAL a.",
    "Trying to load unsupported GLOBAL a.",
    "Can't get attribute 'a' on <module 'a.",
    "No module named 'a.",
    "PytorchStreamReader failed reading a ",
    "KeyError: 'a",
    "Error.Error.Error.",
    "aError: ",
    "\x1b[31;",
    "\x1b]0;",
    "[1;2;3;4;",
    "(pid=1",
    "2024-05-01 10:00:00 a.a.a.",
    "'Conv2d' object has no attribute '",
    "is on cpu, but expected ",
    "\u2502 \u2502 ",
    "\\n",
    "&amp;",
    "<<<<<>>>>>",
    " ",
    "\n",
)


@pytest.mark.wide
def test_no_text_makes_the_search_run_away() -> None:
    """A pattern that tries each way to split such a text would not end within the time limit of a test."""

    def ends(piece: str) -> None:
        text = (piece * (MOST_CHARS // len(piece) + 1))[:MOST_CHARS]
        assert explain_error(text, PLAIN).cause

    put_through(ends, ATTACKS, repr, every=3)


def test_huge_texts_are_cut_in_the_middle() -> None:
    error = "RuntimeError: unexpected EOF, expected 9 more bytes. The file might be corrupted."
    filler = "some output of the training script\n" * 100_000
    assert explain_error(filler + error, None).id == "unexpected-eof"
    assert explain_error(error + "\n" + filler, None).id == "unexpected-eof"
    assert explain_error(filler + error + "\n" + filler, None).id == UNRECOGNIZED


@pytest.mark.wide
def test_random_text_is_answered() -> None:
    rng = random.Random(7)
    alphabet = "".join(message.text for message in MESSAGES) + "\x00\x1b\ud800\u202e\U0001f600"
    for _ in range(200):
        text = "".join(rng.choices(alphabet, k=rng.randrange(400)))
        found = explain_error(text, PLAIN, CPU_ONLY)
        for part in (found.quoted, found.here, found.cause):
            assert is_harmless(part)
            part.encode()


def test_of_many_long_errors_the_last_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compared with every pattern, twice: 50 of 16 KB took a second."""
    asked = []
    first_match = explain._first_match

    def counting(text: str, *rest: Any) -> Any:
        asked.append(len(text))
        return first_match(text, *rest)

    monkeypatch.setattr(explain, "_first_match", counting)
    long = [f"RuntimeError: {'the x ' * 1000}" for _ in range(60)]
    found = explain_error("\n".join([*long, "RuntimeError: CUDA out of memory."]), None)
    assert found.id != UNRECOGNIZED
    assert sum(asked) <= 65_536 + 16_384 + 65_537
    asked.clear()
    assert explain_error("\n".join(long), None).id == UNRECOGNIZED
    assert sum(asked) <= 65_536 + 16_384 + 65_537
    assert len(asked) > 5
