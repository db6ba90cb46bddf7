"""The hostile files, group by group, each with what the program must say of it.

The groups are numbered as in docs/security.md. `says` names fields of the answer of `running.opened`; a text
is a pattern, looked for in the field or in any item of it. No file here is larger than a few megabytes: those
with millions of things stand in `crowds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.hostile import archives, names, streams, tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One hostile file: how it is built, and what the program must say of it."""

    group: int
    name: str
    build: Callable[[], bytes]
    says: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.group}-{self.name.replace(' ', '-')}"


CASES: tuple[Case, ...] = tuple(
    Case(group=group, name=name, build=build, says=says)
    for table in (streams.CASES, archives.CASES, tensors.CASES, names.CASES)
    for group, rows in table.items()
    for name, (build, says) in rows.items()
)

ELSEWHERE: dict[int, str] = {
    26: "tests/unit/snippet/test_literals.py",
    27: "tests/hostile/test_no_files.py",
    28: "tests/unit/remap/test_export.py",
}
"""The groups that are about something else than a file's bytes, and where their tests stand."""
