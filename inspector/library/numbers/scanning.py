"""`inspector.scan`: what is odd about the numbers of a whole file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.diagnose.findings.values import is_sound, value_findings
from inspector.library import answers
from inspector.library.sources import CheckpointLike, opened_of
from inspector.library.telling import Told, told
from inspector.model.findings import Finding
from inspector.records import dataclass
from inspector.report.values import scan_document, scan_text
from inspector.values.asking import ValueReader, require_numpy
from inspector.values.statistics import scan_checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What reading all numbers of a file showed. It is true where it is sound.

    Attributes:
        sound: Whether all tensors could be read, and none holds NaN or infinities; best scores may.
        odd: What is odd, by the path of the tensor: `nan`, `inf`, `huge`, `zero`, `constant`, `dead-rows`.
        unread: Why a tensor could not be read, by its path.
        findings: The same in groups, worst first, each with what it means.
        tensors: How many tensors were read.
        nbytes: How many bytes that were.
    """

    sound: bool
    odd: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, str]
    findings: tuple[Finding, ...]
    tensors: int
    nbytes: int
    _document: dict[str, Any]
    _text: str

    def __bool__(self) -> bool:
        """Return whether it is sound."""
        return self.sound

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def scan(source: CheckpointLike, *, progress: Told = None) -> Scan:
    """Read all tensors of a file, and list what is odd about them: NaN, infinities, huge numbers, zeros.

    Args:
        source: A path, or an open checkpoint.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        ExportError: This Python has no NumPy.
        CheckpointError: The file cannot be read, or changed since it was opened.
    """
    require_numpy()
    with told(progress) as steps, ValueReader() as reader:
        opened = opened_of(source, steps)
        found = scan_checkpoint(opened.located, reader, steps)
    findings = value_findings(opened.facts, found)
    document = scan_document(opened.facts, found, findings)
    return Scan(
        sound=is_sound(found, findings),
        odd={one["path"]: tuple(one["what"]) for one in document["odd"]},
        unread={one["path"]: one["why"] for one in document["unread"]},
        findings=findings,
        tensors=document["scanned"],
        nbytes=found.nbytes,
        _document=document,
        _text=scan_text(opened.facts, found),
    )
