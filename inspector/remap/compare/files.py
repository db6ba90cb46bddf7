"""Whether one file is a copy of another but for its devices: everything it says, and every byte it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.containers.folders.folder import Folder
from inspector.containers.folders.paths import open_path
from inspector.containers.formats import refuse_step
from inspector.containers.source import Source
from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.compare.folders import compare_folders
from inspector.remap.compare.same_bytes import (
    Span,
    archive_spans,
    find_difference,
    legacy_spans,
    tar_spans,
    total_nbytes,
    whole_spans,
    zip_spans,
)
from inspector.remap.compare.verify import compare_with_plan
from inspector.remap.hidden import with_hidden
from inspector.remap.plan import Plan, device_texts, plan_remap, without_nowhere
from inspector.remap.rules import Rule, Rules


def _pickled_spans(source: Source, copy: Source, progress: Progress) -> list[Span]:
    """Pair everything of two plain pickles but the places of devices, and lengths that depend on those.

    Raises:
        CheckpointError: One of them cannot be read, or the other bytes differ in length.
    """
    from inspector.remap.pickled.edits import fixed_runs  # noqa: PLC0415 - plain pickles are rare

    one, other = fixed_runs(source, progress), fixed_runs(copy, progress)
    if [end - start for start, end in one] != [end - start for start, end in other]:
        raise ExportError("the files differ in length outside of their devices")
    return [Span(first[0], second[0], first[1] - first[0]) for first, second in zip(one, other, strict=True)]


_PAIRS = {
    "legacy": legacy_spans,
    "tar": tar_spans,
    "zip": zip_spans,
    "torchscript": archive_spans("data.pkl", "constants.pkl"),
    "package": archive_spans(".pkl"),
    "pickle": _pickled_spans,
    "joblib": _pickled_spans,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came out of comparing a copy with its original.

    Attributes:
        differences: What is not as it should be, a sentence each, at most twenty; nothing if all is.
        tensors: How many tensors the original has.
        moves: The devices that differ, as (there, here, how many tensors).
        compared_nbytes: How many bytes were compared one by one.
    """

    differences: tuple[str, ...]
    tensors: int
    moves: tuple[tuple[str, str, int], ...]
    compared_nbytes: int

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but devices, and those as planned where a plan was given."""
        return not self.differences


def compare_files(
    copy: str,
    original: str,
    rules: Sequence[Rule] | None = None,
    *,
    move_all: bool = False,
    hidden: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a copy with the file that it was made from.

    Args:
        copy: The copy.
        original: The file it was made from.
        rules: What devices were to become; None accepts whatever the copy has.
        move_all: Whether state that torch keeps on the CPU was to move as well.
        hidden: Whether devices outside of tensors were to change as well.
        progress: Told of the stages and bytes, asked for cancellation.

    Raises:
        CheckpointError: One of the files cannot be read.
        PlanError: The rules contradict each other.
        CancelledError: The work was cancelled.
    """
    progress = progress or Progress()
    before = open_checkpoint(original, progress=progress)
    refuse_step(before.format, "verify", original)
    after = open_checkpoint(copy, progress=progress)
    plan = _observed(before, after) if rules is None else plan_remap(before, rules, move_all=move_all)
    if rules is not None and before.format == after.format:
        plan = without_nowhere(before, plan)
    if hidden and rules is not None:
        plan = with_hidden(before, plan)
    differences = list(compare_with_plan(before, after, plan))
    found, nbytes = _compare_bytes(before, after, progress)
    pairs = zip(before.tensors, after.tensors, strict=False)
    moves = Counter((one.device, other.device) for one, other in pairs if one.device != other.device)
    return Comparison(
        differences=(*differences, *found),
        tensors=len(before.tensors),
        moves=tuple((there, here, count) for (there, here), count in moves.items()),
        compared_nbytes=nbytes,
    )


def _observed(before: Checkpoint, after: Checkpoint) -> Plan:
    """Return the plan that makes the one's devices out of the other's, whatever they are."""
    tensors = enumerate(zip(before.tensors, after.tensors, strict=False))
    storages = {row.key: row.device for row in after.storages}
    return Plan(
        rules=Rules(),
        tensors={index: other.device for index, (one, other) in tensors if one.device != other.device},
        storages={row.key: storages[row.key] for row in before.storages if row.key in storages},
        kept=(),
        held=frozenset(),
        texts=device_texts(before),
        hidden=_moved(before.hidden_devices, after.hidden_devices),
    )


def _moved(before: Sequence[HiddenDevice], after: Sequence[HiddenDevice]) -> dict[int, str]:
    """Return the devices outside of tensors that differ, in those places where both have one."""
    pairs = enumerate(zip(before, after, strict=False))
    return {index: other.device for index, (one, other) in pairs if one.device != other.device}


def _compare_bytes(before: Checkpoint, after: Checkpoint, progress: Progress) -> tuple[list[str], int]:
    """Compare all bytes but those of the pickles; return the differences and how many were compared."""
    if before.format != after.format:
        return [f"One is a {before.format} file, the other a {after.format} file."], 0
    with open_path(before.path) as source, open_path(after.path) as copy:
        if isinstance(source, Folder) and isinstance(copy, Folder):
            return compare_folders(source, copy, progress)
        try:
            pair = _PAIRS.get(before.format, whole_spans)
            spans: list[Span] = pair(source, copy, progress)
        except ExportError as error:
            return [f"{error.what[0].upper()}{error.what[1:]}."], 0
        progress.start("comparing bytes", total_nbytes(spans))
        difference = find_difference(source.read, copy.read, spans, progress)
    if difference is not None:
        return [f"The contents differ from byte {difference.copy_offset:,} of the copy on."], progress.done
    return [], total_nbytes(spans)
