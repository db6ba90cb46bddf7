"""What was done with a file, in words: the parts of one sentence, which both programs put together.

The command line joins them behind the name of the file; the window makes a line of each (`as_lines`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.containers.formats import format_of
from inspector.report.page import Block, Page, Result, page_of
from inspector.rescue.journal import Call, Journal, Place, Why
from inspector.rescue.mending import Mending, MendingKind, Need
from inspector.safety.verdict import judge
from inspector.safety.words import shouted, verdict_words, words_of
from inspector.units import cut_text, escape_text, format_count, format_nbytes, format_shape, unescaped_path

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.export import Export
    from inspector.remap.forms import FormExport, FormPreview, LeftOut
    from inspector.remap.in_place import Patched
    from inspector.remap.recover import FileCheck, Lost, Recovery
    from inspector.remap.torch_check import TorchCheck
    from inspector.remap.verify import Comparison


# What became of several files, in one line.

_WORDS: dict[str, dict[int, tuple[str, str]]] = {
    "check": {
        0: ("loads and is safe", "load and are safe"),
        1: ("does not load or is not safe", "do not load or are not safe"),
    },
    "script": {
        0: ("is safe and works with the script", "are safe and work with the script"),
        1: ("does not work or is not safe", "do not work or are not safe"),
    },
    "stats": {0: ("has its figures above", "have their figures above")},
    "scan": {0: ("is sound", "are sound"), 1: ("is not sound", "are not sound")},
    "verify": {0: ("is as it should be", "are as they should be"), 1: ("differs", "differ")},
    "remap": {
        0: ("was written", "were written"),
        1: ("was written without all of the model", "were written without all of the model"),
    },
    "undo": {0: ("is as it was before", "are as they were before")},
    "dry-run": {0: ("can be written", "can be written")},
    "snippet": {0: ("has its code above", "have their code above")},
}
_FAILED = {
    2: ("was refused", "were refused"),
    3: ("could not be read", "could not be read"),
    4: ("could not be written", "could not be written"),
}


def summary(command: str, codes: Mapping[int, int]) -> str:
    """Return how many files ended with which exit code of a command, the good ones first."""
    words = _WORDS[command] | _FAILED
    parts = [f"{count:,} {words[code][count != 1]}" for code, count in sorted(codes.items())]
    return f"{format_count(sum(codes.values()), 'file')}: {', '.join(parts)}"


# What `run` says at the end: which line needed another device, where its storages went, what mends it.

_MOST_CHARS = 120
_MOST_FILES = 3

NO_HOOK = (
    "no Python that reads PYTHONPATH was started, so no load was mapped; name the Python of the program: "
    "run -- python SCRIPT"
)
NO_TORCH = "the command never imported torch, so there was nothing to map"
UNMAPPED = "no storage was mapped, though the program loads from devices that are not here"
NOTHING = "no load needed another device: the command works without this"
FAILED = "no load needed another device, and the command {ended}: what stopped it is no device of a load"

WHY: dict[Why, str] = {
    "missing": "",
    "target": "by --target",
    "rule": "by --map",
    "no-rule": "not here, and no rule of --map covers it; --target this maps what is missing",
    "no-destination": "what --map names is not here",
    "function": "its map_location asked for a device that is not here",
}
"""What stands behind the devices of a call."""

MENDINGS: dict[MendingKind, str] = {
    "line": "write",
    "argument": "give that call",
    "before": "put before it, once",
    "file": "that code is not yours, so change the file (remap --in-place --undo takes it back)",
}


def format_journal(journal: Journal, needs: tuple[Need, ...], code: int) -> str:
    """Return the report of a run, for stderr; of one that failed it is not said that it works."""
    lines = [_summary(journal, needs, code)]
    for need in needs:
        lines += _need(need)
    lines += [
        f"  the hook failed, and left the load to torch: {escape_text(text)}" for text in journal.failures
    ]
    return "".join(f"{line}\n" for line in lines)


def _summary(journal: Journal, needs: tuple[Need, ...], code: int) -> str:
    if not needs:
        ended = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        told = FAILED.format(ended=ended) if code else NOTHING
        return NO_HOOK if not journal.processes else told if journal.with_torch else NO_TORCH
    mapped = [move for need in needs for move in need.moves if move.to is not None]
    if not mapped:
        return UNMAPPED
    storages = sum(move.storages for move in mapped)
    were = "storage was" if storages == 1 else "storages were"
    lines = format_count(len(needs), "line")
    processes = f"; {journal.with_torch:,} processes imported torch" if journal.with_torch > 1 else ""
    return f"{storages:,} {were} put on another device, in {lines}{processes}"


def _need(need: Need) -> Iterator[str]:
    yield f"  {_place(need.site)}{_reached(need)}{_files(need.files)}"
    for move in need.moves:
        yield f"      {_move(move)}"
    if need.mending is not None:
        yield from _mending(need.mending)


def _place(place: Place | None) -> str:
    return "in code of Python itself" if place is None else f"{_shown(place.file)}:{place.line}"


def _reached(need: Need) -> str:
    return "" if need.own is None or need.own == need.site else f", called at {_place(need.own)}"


def _shown(path: str) -> str:
    """Return a path as short as it can be: one below the working directory without that."""
    below = path.removeprefix(os.path.join(os.getcwd(), ""))  # noqa: PTH109, PTH118 - of texts, not of files
    return escape_text(cut_text(below, _MOST_CHARS))


def _files(files: tuple[str, ...]) -> str:
    if not files:
        return ""
    more = len(files) - _MOST_FILES
    named = ", ".join(_shown(file) for file in files[:_MOST_FILES])
    return f"  ({named}{f' and {more} more' if more > 0 else ''})"


def _move(move: Call) -> str:
    to = "left as it was" if move.to is None else escape_text(move.to)
    sizes = f", {format_nbytes(move.nbytes)}" if move.nbytes else ""
    why = WHY[move.why]
    reason = f" ({why})" if why else ""
    return f"{escape_text(move.saved)} -> {to}: {format_count(move.storages, 'storage')}{sizes}{reason}"


def _mending(mending: Mending) -> Iterator[str]:
    yield f"      => {MENDINGS[mending.kind]}:"
    for line in mending.code.split("\n"):
        yield f"           {escape_text(line)}"


NOTHING_TO_CHANGE = "nothing to change"
NO_DEVICE_CHANGED = "no device changed"
_SMALL = "torch"
_CHECKED = "reopened and compared: same objects, devices as planned"
_IN_PLACE = "written bytes read again, those of tensors not compared"
_RESULT_MOST_CHARS, _MOST_TIED = 120, 4


def as_lines(parts: Iterable[str]) -> list[str]:
    """Return each part as a sentence of its own; torch keeps its small letter."""
    return [
        f"{part[:1] if part.startswith(_SMALL) else part[:1].upper()}{part[1:].rstrip('.')}."
        for part in parts
    ]


def result_page(name: str, parts: Iterable[str], more: Iterable[Block] = ()) -> Page:
    """Return the parts as one sentence about a file, and what stands below it."""
    return page_of([Result(name, tuple(parts)), *more])


# --- a copy, a change in place ------------------------------------------------------------------------------


def copied(done: Export) -> list[str]:
    """Return what a copy holds, and how it was checked."""
    is_moved = done.moved_tensors or done.moved_hidden
    relabeled = f"{_tensors(done.moved_tensors)} relabeled" if is_moved else NO_DEVICE_CHANGED
    parts = [f"{format_nbytes(done.nbytes)} written", relabeled, *_hidden(done)]
    if done.kept_tensors:
        parts.append(f"{_tensors(done.kept_tensors)} kept on the CPU by design")
    if done.verified:
        parts.append(_CHECKED)
    if done.copied_nbytes and (done.verified or done.compared_nbytes):
        parts.append(_bytes_compared(done))
    if done.torch is not None and done.torch.verdict == "equal":
        parts.append(_loaded(done.torch))
    return parts


def _bytes_compared(done: Export) -> str:
    if done.compared_nbytes == done.copied_nbytes:
        return "every copied byte compared with the original"
    if not done.compared_nbytes:
        return "the copied bytes were not compared"
    compared, copied = format_nbytes(done.compared_nbytes), format_nbytes(done.copied_nbytes)
    return f"{compared} of {copied} copied were compared with the original"


def _hidden(done: Export | Patched) -> list[str]:
    count = done.moved_hidden
    return [f"{format_count(count, 'device')} outside of tensors changed"] if count else []


def _loaded(found: TorchCheck) -> str:
    words = f"torch {escape_text(found.torch)} loads it, and the tensors are equal"
    return f"{words} (on the CPU: this machine has no {', '.join(found.missing)})" if found.missing else words


def unchecked_by_torch(done: Export) -> str:
    """Return what keeps torch from vouching for a copy though that was asked for; empty where it does."""
    if done.torch is None or done.torch.verdict == "equal":
        return ""
    said = "does not load the copy as planned" if done.torch.is_bad else "did not check the copy"
    return f"torch {said}: {escape_text(done.torch.detail)}"


def patched(done: Patched, record: str) -> list[str]:
    """Return what was changed in the file itself, and until when that can be undone."""
    if done.record is None:
        return [NOTHING_TO_CHANGE]
    return [
        f"{_tensors(done.moved_tensors)} relabeled in the file itself",
        *_hidden(done),
        f"{format_nbytes(done.written_nbytes)} written",
        *([_CHECKED, _IN_PLACE] if done.verified else []),
        f"can be undone as long as {escape_text(record)} exists",
    ]


def still_refused(checkpoint: Checkpoint) -> str:
    """Return why torch.load refuses a copy as it does its file; empty where it refuses neither."""
    safety = judge(checkpoint)
    is_torch_s = format_of(checkpoint.format).torch_loads and not safety.loader and safety.archive is None
    if safety.weights_only or safety.is_unsure or not is_torch_s:
        return ""
    return f"torch.load still refuses it by default. {shouted(verdict_words(safety))}"


def undone(nbytes: int) -> str:
    """Return that a change in place was taken back."""
    return f"restored to what it was before the change, {format_nbytes(nbytes)}"


# --- another form -------------------------------------------------------------------------------------------


def converted(done: FormExport) -> list[str]:
    """Return what an export in another form holds, and how it was checked."""
    parts = form_contents(done, done.format)
    if done.verified:
        values = " and all other values" if done.compared_values else ""
        parts.append(f"reopened and compared: names, types and shapes of the tensors{values} as planned")
        parts.append("of their bytes only the ends of what was copied")
    return parts


def overflowed(done: FormExport) -> str:
    """Return how many numbers a cast made infinite; empty for none."""
    return f"{format_count(done.overflowed, 'value')} became infinite in the cast" if done.overflowed else ""


def form_contents(made: FormExport | FormPreview, form: str) -> list[str]:
    """Return what is in a file of this format, or would be."""
    return [f"{sizes(made)}, {_tensors(made.tensors)} as {form}", *form_changes(made)]


def sizes(made: FormExport | FormPreview) -> str:
    """Return the size of a file in another form, and that of the original."""
    return f"{format_nbytes(made.nbytes)} of the original's {format_nbytes(made.source_nbytes)}"


def form_changes(made: FormExport | FormPreview) -> list[str]:
    """Return what a form makes of the names."""
    parts = []
    if made.model:
        parts.append(f"taken from {_short(made.model)}")
    if made.prefix:
        parts.append(f"prefix {_short(made.prefix)} removed from every name")
    if made.tied:
        names = ", ".join(_short(name) for name, _ in made.tied[:_MOST_TIED])
        more = " and more" if len(made.tied) > _MOST_TIED else ""
        parts.append(f"tied weights written once, {names}{more} in the metadata only")
    return parts


def left_out_total(rows: Sequence[LeftOut]) -> str:
    """Return how much an export does not hold; empty for nothing."""
    tensors, values = sum(row.tensors for row in rows), sum(not row.tensors for row in rows)
    parts = [f"{_tensors(tensors)}, {format_nbytes(sum(row.nbytes for row in rows))}"] if tensors else []
    if values:
        parts.append(f"{values:,} {'entry' if values == 1 else 'entries'} without tensors")
    return f"leaves out {', and '.join(parts)}" if parts else ""


def left_out(rows: Sequence[LeftOut], most: int) -> list[str]:
    """Return what an export does not hold, one entry each, and how many more there are."""
    parts = [
        f"left out: {_short(unescaped_path(row.path)) or 'around it'}: {_why(row)}" for row in rows[:most]
    ]
    if len(rows) > most:
        nbytes = format_nbytes(sum(row.nbytes for row in rows[most:]))
        parts.append(f"left out: {len(rows) - most:,} more, {nbytes}")
    return parts


def _why(row: LeftOut) -> str:
    amount = f" ({_tensors(row.tensors)}, {format_nbytes(row.nbytes)})" if row.tensors else ""
    return f"{escape_text(row.why)}{amount}"


# --- a damaged file -----------------------------------------------------------------------------------------


def recovered(done: Recovery) -> list[str]:
    """Return what was saved of a damaged file, how it was checked, and how sure that is."""
    every = _tensors(done.tensors + len(done.lost))
    saved = every if done.is_cut and not done.lost else f"{done.tensors:,} of {every}"
    return [
        f"{saved} saved, {format_nbytes(done.storage_nbytes)}",
        "reopened and compared: names, types and shapes of the tensors and all other values",
        _checksums(done),
    ]


def _checksums(done: Recovery) -> str:
    if not done.unchecked:
        return "every saved tensor matches the checksum in the file"
    if done.unchecked == done.storages:
        return "the file has no checksums, so changed bytes inside a tensor would go unnoticed"
    return f"{done.unchecked:,} of {format_count(done.storages, 'storage')} have no checksum to compare"


def recovered_safety(done: Recovery) -> str:
    """Return what loading the new file runs; empty where it holds weights only."""
    return "" if done.verdict == "weights-only" else shouted(words_of(done.verdict))


def lost(done: Recovery) -> str:
    """Return how much of a damaged file is lost."""
    if not done.lost:
        return "what stood behind them is lost, and unknown" if done.is_cut else "no tensors lost"
    return (
        f"{_tensors(len(done.lost))} lost, {format_nbytes(done.lost_nbytes)}: "
        "removed from dicts, replaced by None in lists and tuples"
    )


def lost_row(row: Lost) -> str:
    """Return one lost tensor, and why it is lost."""
    shape = f"{format_shape(row.shape)} {row.dtype}, {format_nbytes(row.nbytes)}"
    return f"{escape_text(unescaped_path(row.path))}  {shape}: {row.why}"


# --- comparing and checking ---------------------------------------------------------------------------------


def compared(found: Comparison, *, planned: bool) -> list[str]:
    """Return that a copy is one, with what differs as planned; or each difference."""
    if not found.is_same:
        return list(map(escape_text, found.differences))
    return [
        "devices as planned" if planned else "the same but for devices" if _moved(found) else "the same",
        f"{_tensors(found.tensors)}, all other values, {format_nbytes(found.compared_nbytes)} compared",
        *(
            f"{_tensors(count)} moved from {escape_text(there)} to {here}"
            for there, here, count in found.moves
        ),
        *(
            [f"{format_count(found.moved_hidden, 'device')} outside of tensors changed"]
            if found.moved_hidden
            else []
        ),
    ]


def _moved(found: Comparison) -> bool:
    return bool(found.moves or found.moved_hidden)


def checked(found: FileCheck, most: int) -> list[str]:
    """Return what reading every byte of a file showed."""
    parts = [f"{format_nbytes(found.nbytes)} read, {format_count(found.checked, 'checksum')} compared"]
    if found.unchecked:
        amount = format_count(found.unchecked, "record")
        parts.append(f"{amount} without a checksum: only the length was checked")
    if found.is_intact:
        parts.append("no damage found")
    parts += [f"damaged: {escape_text(row.path)}: {row.why}" for row in found.lost[:most]]
    if len(found.lost) > most:
        parts.append(f"and {len(found.lost) - most:,} more tensors")
    return parts + [f"damaged: record {record.name}: {record.why}" for record in found.records[:most]]


def _tensors(count: int) -> str:
    return format_count(count, "tensor")


def _short(text: str) -> str:
    return escape_text(cut_text(text, _RESULT_MOST_CHARS))
