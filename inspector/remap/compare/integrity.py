"""Whether the bytes of a file are those that were saved: all are read, and the checksums of a zip compared.

torch.load compares none, so a file that lost a few bytes on its way loads, and has wrong numbers. Only zips
have checksums (and not those saved with `set_crc32_options(False)`); of others it is known that they are as
long as they should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inspector.containers.collector import collector_paused
from inspector.containers.container import Extent
from inspector.containers.extents import Extents, Sums, read_extents, sum_extents
from inspector.containers.opening import open_path
from inspector.limits import Limits
from inspector.model.findings import Finding, finding
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.recover.values import PATIENT, Lost, list_rows
from inspector.units import cut_text, escape_text, format_count

_MOST_NAME_CHARS = 80


class DamagedRecord(NamedTuple):
    """A record of a zip that holds no tensor, and is damaged.

    Attributes:
        name: Its name, fit to be shown.
        why: What is wrong with it, in a few words.
    """

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """What reading all of a file showed.

    Attributes:
        path: The file.
        nbytes: How many bytes of storages and records were read.
        checked: How many of those have the checksum that the file tells.
        unchecked: How many are as long as they should be, while the file tells no checksum.
        lost: The tensors that are not whole, in the order of the file.
        records: Damaged records that hold no tensor.
        findings: The same as findings: `truncated` and `bad-crc`.
    """

    path: str
    nbytes: int
    checked: int
    unchecked: int
    lost: tuple[Lost, ...]
    records: tuple[DamagedRecord, ...]
    findings: tuple[Finding, ...]

    @property
    def is_intact(self) -> bool:
        """Whether nothing is wrong, as far as that can be told."""
        return not self.lost and not self.records


def check_file(path: str, progress: Progress | None = None, limits: Limits = PATIENT) -> FileCheck:
    """Read all of a checkpoint and say which tensors are damaged."""
    progress = progress or Progress()
    with open_path(path, limits) as source, collector_paused():
        extents = read_extents(source, limits.started(), progress)
        sums = sum_extents(source, extents.whole, progress)
        others = sum_extents(source, extents.records, progress)
        rows = list_rows(extents.container, extents.lost | sums.faults, limits, progress)
    damaged = tuple(DamagedRecord(_shown(name), why) for name, why in others.faults.items())
    return FileCheck(
        path=path,
        nbytes=_nbytes(extents.whole, sums) + _nbytes(extents.records, others),
        checked=_checked(extents.whole, sums) + _checked(extents.records, others),
        unchecked=len(sums.unchecked) + len(others.unchecked),
        lost=rows.lost,
        records=damaged,
        findings=tuple(_findings(extents, sums.faults, rows.lost, damaged)),
    )


def _nbytes(extents: Mapping[str, Extent], sums: Sums) -> int:
    return sum(extents[key].nbytes for key in sums.crcs)


def _checked(extents: Mapping[str, Extent], sums: Sums) -> int:
    return sum(key not in sums.unchecked and extents[key].nbytes > 0 for key in sums.crcs)


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_NAME_CHARS))


def _findings(
    extents: Extents, faults: Mapping[str, str], lost: tuple[Lost, ...], records: tuple[DamagedRecord, ...]
) -> list[Finding]:
    missing, wrong = set(extents.lost.values()), set(faults.values())
    found = []
    gone = [row.path for row in lost if row.why in missing]
    if gone:
        found.append(
            finding(
                "truncated",
                "error",
                f"The bytes of {format_count(len(gone), 'tensor')} are not whole",
                "torch.load stops at the first of them. Fetch or copy the file again; where that cannot be, "
                "save what is left.",
                gone,
            )
        )
    changed = [row.path for row in lost if row.why in wrong]
    if changed or records:
        what = format_count(len(changed), "tensor") if changed else format_count(len(records), "record")
        found.append(
            finding(
                "bad-crc",
                "warning",
                f"The checksum of {what} is wrong",
                "Bytes of the file were changed or lost after it was saved. torch.load does not look, and "
                "gives wrong numbers. Fetch or copy the file again; where that cannot be, save what is left.",
                changed,
            )
        )
    return found
