"""`inspector.verify`: whether a copy is what it was to become."""

from __future__ import annotations

from typing import Any

from inspector.library import answers
from inspector.library.opened import telling_what_runs
from inspector.library.sources import CheckpointLike, Map, Path, machine_of, opened_of, path_of, rules_of
from inspector.library.telling import Told, told
from inspector.records import dataclass
from inspector.remap.plan import rules_for
from inspector.remap.verify import compare_files
from inspector.report.documents import verify_document
from inspector.report.words.results import as_lines, compared
from inspector.target.wish import parse_wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What comparing a copy with its original found. It is true where nothing is wrong.

    Attributes:
        same: Whether both hold the same tensors, values and bytes, on the devices that were planned.
        differences: What is not as it should be, a sentence each, at most twenty.
        tensors: How many tensors the original has.
        compared_nbytes: How many bytes were compared one by one.
    """

    same: bool
    differences: tuple[str, ...]
    tensors: int
    compared_nbytes: int
    _document: dict[str, Any]
    _text: str

    def __bool__(self) -> bool:
        """Return whether nothing is wrong."""
        return self.same

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def verify(  # noqa: PLR0913 - the command line's options
    output: CheckpointLike,
    against: CheckpointLike,
    *,
    map: Map = (),  # noqa: A002 - the command line's word
    target: str | None = None,
    python: Path | None = None,
    move_all: bool = False,
    hidden_devices: bool = False,
    progress: Told = None,
) -> Verified:
    """Compare a copy with the file that it was made from: tensors, values, devices and bytes.

    Args:
        output: The copy.
        against: The file that it was made from.
        map: The map that it was made by; without one and without a target, any devices are accepted.
        target: The machine that it was made for.
        python: The Python whose torch `this` means.
        move_all: Whether state that torch keeps on the CPU was to move as well.
        hidden_devices: Whether devices outside of tensors were to change as well.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        PlanError: A rule or the target is wrong.
        CheckpointError: One of the files cannot be read.
    """
    said = rules_of(map)
    wish = None if target is None else parse_wish(target)
    with told(progress) as steps, telling_what_runs():
        rules = None
        if said or wish is not None:
            machine = None if wish is None else lambda: machine_of(wish, python)
            rules = rules_for(opened_of(path_of(against), steps).facts, said, machine, hidden=hidden_devices)
        found = compare_files(
            path_of(output), path_of(against), rules, move_all=move_all, hidden=hidden_devices, progress=steps
        )
    return Verified(
        same=found.is_same,
        differences=found.differences,
        tensors=found.tensors,
        compared_nbytes=found.compared_nbytes,
        _document=verify_document(path_of(output), path_of(against), found),
        _text="\n".join(as_lines(compared(found, planned=rules is not None))),
    )
