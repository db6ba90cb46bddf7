"""How well pasted errors are answered: `python -m tests.errors_measure [PART ...] [--list]`.

The library of `tests/data/errors/` has error texts as people pasted them, each with a label made from how its
thread was resolved, not from what this program says. Every text is explained once without a file, and once
with each small file that its label names; what all of these answers say together is judged.

unknown  The text is not recognized.
wrong    The answer is about something else: its row is one that the label forbids, or neither the row nor the
         title is one that the label names and another kind of trouble claims the row. Or something that the
         label forbids stands in it. Or it blames a file that cannot be the cause, or acquits the one that is.
partly   It is about the right thing, but what helps is missing from it, or it points to another finding, or
         it does not commit itself on a file where the text decides, or does not say what of it is meant.
right    Everything else; nothing less counts.

A kind that is nobody's here (`not-ours`) is right when it is not recognized. `--list` shows what is amiss,
text by text. Of `held` only counts are printed, so that nobody tunes a recognizer to a text. `fresh` was
drawn and labelled when the recognizers stood: what it gave the first time is the honest figure; since then it
may be looked at. The numbered ones are later draws, each from when they had been mended with those before.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import UNRECOGNIZED, Explanation
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.target.wish import parse_target
from tests.corpus import CORPUS
from tests.unit.report.rows import checkpoint, storage, tensor

FOLDER = Path(__file__).parent / "data" / "errors"
HALVES = ("open", "held")
DRAWS = ("fresh", "fresh2", "fresh3", "fresh4", "fresh5", "fresh6", "fresh7")
PARTS = (*HALVES, *DRAWS)
Mark = Literal["right", "partly", "wrong", "unknown"]
MARKS: tuple[Mark, ...] = ("right", "partly", "wrong", "unknown")
NOT_OURS = "not-ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is true of a text; the lists are of regular expressions, but for ids and findings.

    Attributes:
        ids: Rows that speak of it.
        not_ids: Rows that would be wrong.
        about: One of these stands in the title (or the cause) of an answer about it.
        advice: Each of these stands in a right answer.
        never: None of these stands in it.
        finding: The findings that may be pointed to; any where it is empty.
        not_finding: Findings that may not.
        target: The machine that the person sits at.
        fits: What may be said of each file.
        here: What has to be said of each file, where it is not another one that is to blame.
    """

    ids: Sequence[str] = ()
    not_ids: Sequence[str] = ()
    about: Sequence[str] = ()
    advice: Sequence[str] = ()
    never: Sequence[str] = ()
    finding: Sequence[str] = ()
    not_finding: Sequence[str] = ()
    target: str = "cuda"
    fits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    here: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text of the library.

    Attributes:
        source: Its thread.
        text: The text.
        kind: What it is, a row of library_kinds.toml.
        why: How the thread was resolved.
        label: What is true of its kind, and of it alone.
        torch: The torch that said it, where that is known.
    """

    source: str
    text: str
    kind: str
    why: str
    label: Label
    torch: str = ""


# --- the library --------------------------------------------------------------------------------------------


@cache
def kinds() -> dict[str, dict[str, object]]:
    return tomllib.loads((FOLDER / "library_kinds.toml").read_text(encoding="utf-8"))


def half_of(text: str) -> str:
    return HALVES[int(sha256(text.strip().encode()).hexdigest()[:8], 16) % 2]


def texts(half: str) -> Iterator[Text]:
    """Read one part of the library; what a text says itself counts instead of what its kind says."""
    rows = tomllib.loads((FOLDER / f"library_{half}.toml").read_text(encoding="utf-8"))["text"]
    for row in rows:
        about = {name: row.pop(name) for name in list(row) if name in Label.__slots__}
        yield Text(**row, label=Label(**{**kinds()[row["kind"]], **about}))


@cache
def claimed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, row in kinds().items():
        for id_ in row.get("ids", ()):
            found.setdefault(id_, set()).add(kind)
    return found


# --- the files ----------------------------------------------------------------------------------------------


@cache
def file(name: str) -> Checkpoint:
    """Return a small file of the kind that labels name."""
    if name == "double":
        return checkpoint(storage("0"), tensor("fc.weight", dtype="float64", storage="0", nbytes=32))
    places = {
        "cpu": "zip/state_dict.pt",
        "train": "zip/train.pt",
        "cuda": "devices/legacy_train_cuda_step_cpu.pt",
        "eight": "devices/zip_mixed8.pt",
        "module": "zip/module_custom.pt",
    }
    return open_checkpoint(str(CORPUS / places[name]))


# --- the rule -----------------------------------------------------------------------------------------------


def judge(text: Text) -> tuple[Mark, str]:
    """Judge what the program says of a text, and say why."""
    label, target = text.label, parse_target(text.label.target)
    alone = explain_error(text.text, None, target)
    if alone.id == UNRECOGNIZED:
        return ("right", "") if text.kind == NOT_OURS else ("unknown", "")
    files = dict.fromkeys((*label.fits, *label.here))
    tied = {name: explain_error(text.text, file(name), target) for name in files}
    if wrong := [*_wrong(text, alone), *_wrong_fits(label, tied)]:
        return "wrong", "; ".join(wrong)
    if partly := [*_missing(label, alone), *_unsure(label, tied)]:
        return "partly", "; ".join(partly)
    return "right", ""


def _wrong(text: Text, answer: Explanation) -> Iterator[str]:
    label = text.label
    others = claimed().get(answer.id, set()) - {text.kind}
    is_about = _any(label.about, answer.title) or (not others and _any(label.about, answer.cause))
    if answer.id in label.not_ids or (answer.id not in label.ids and not is_about):
        yield f"it is answered as {answer.id}"
    said = _said(answer)
    yield from (f"it says {pattern!r}" for pattern in label.never if _any([pattern], said))
    if answer.finding in label.not_finding:
        yield f"it points to {answer.finding}"


def _wrong_fits(label: Label, tied: Mapping[str, Explanation]) -> Iterator[str]:
    """Yield the files that are blamed or acquitted wrongly."""
    for name, answer in tied.items():
        if answer.fits not in (*label.fits.get(name, ("yes", "no")), "unknown"):
            yield f"{name}: it says {answer.fits}"
        yield from (f"{name}: {pattern!r}" for pattern in label.never if _any([pattern], _said(answer)))


def _missing(label: Label, answer: Explanation) -> Iterator[str]:
    said = _said(answer)
    yield from (f"nothing of {pattern!r}" for pattern in label.advice if not _any([pattern], said))
    if label.finding and answer.finding not in label.finding:
        yield f"it points to {answer.finding or 'no finding'}"


def _unsure(label: Label, tied: Mapping[str, Explanation]) -> Iterator[str]:
    """Yield the files on which the answer does not commit itself though it could."""
    for name, answer in tied.items():
        if name in label.fits and answer.fits not in label.fits[name]:
            yield f"{name}: it does not know"
        for pattern in label.here.get(name, ()):
            if not _any([pattern], f"{answer.title} {answer.here}"):
                yield f"{name}: nothing of {pattern!r} about this file"


def _said(answer: Explanation) -> str:
    return f"{answer.title}\n{answer.cause}\n{answer.here}\n{answer.advice}"


def _any(patterns: Sequence[str], said: str) -> bool:
    return any(re.search(pattern, said, re.IGNORECASE) for pattern in patterns)


# --- the table ----------------------------------------------------------------------------------------------


def measure(half: str) -> dict[str, Counter[Mark]]:
    table: dict[str, Counter[Mark]] = {}
    for text in texts(half):
        table.setdefault(text.kind, Counter())[judge(text)[0]] += 1
    return table


def total(table: Mapping[str, Counter[Mark]]) -> Counter[Mark]:
    return sum(table.values(), Counter())


def lines_of(half: str) -> Iterator[str]:
    table = measure(half)
    yield f"{half:28}" + "".join(f"{mark:>9}" for mark in MARKS)
    for kind, marks in [*sorted(table.items()), ("all", total(table))]:
        yield f"  {kind:26}" + "".join(f"{marks[mark] or '':>9}" for mark in MARKS)


def amiss(half: str) -> Iterator[str]:
    """Yield each text that is not answered rightly, and why."""
    for text in texts(half):
        mark, why = judge(text)
        if mark != "right":
            last = text.text.strip().splitlines()[-1][:160]
            yield f"\n{mark}: {text.kind}: {text.source}\n  {why}\n  {last}\n  (label: {text.why})"


def main(*arguments: str) -> None:
    for half in [name for name in arguments if name in PARTS] or PARTS:
        rows = [*lines_of(half), *(amiss(half) if half != "held" and "--list" in arguments else ())]
        sys.stdout.write("\n".join([*rows, ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
