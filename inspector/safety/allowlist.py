"""What `torch.load(weights_only=True)` imports by default and which opcodes it knows, release by release.

`packaging/make_allowlist.py` writes the lists from torch itself; the release they speak for is part of every
verdict. `allowlist.json` holds the one that is asked first, `allowlists.json` how others differ from it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from inspector.records import dataclass
from inspector.safety.classes import read_table

Release = tuple[int, ...]
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,2}")
_TAKES_NAMES: Release = (2, 4)
_IS_DEFAULT = (2, 6)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The default list of one torch version.

    Attributes:
        opcodes: The names of the opcodes that it knows; any other ends the load.
    """

    torch_version: str
    names: frozenset[str]
    opcodes: frozenset[str]

    @property
    def takes_names(self) -> bool:
        """Whether names can be added: `torch.serialization.add_safe_globals` came with torch 2.4."""
        return _release(self.torch_version) >= _TAKES_NAMES

    @property
    def is_default(self) -> bool:
        """Whether that torch asks its list unless it is told not to: since torch 2.6."""
        return _release(self.torch_version) >= _IS_DEFAULT


@cache
def default_allow_list() -> AllowList:
    """Read the list that comes with the program."""
    document = read_table("allowlist.json")
    return AllowList(document["torch"], frozenset(document["globals"]), frozenset(document["opcodes"]))


@cache
def allow_list(torch_version: str | None) -> AllowList:
    """Return the list of a torch version, or that of the newest one before it that is known.

    Args:
        torch_version: Such as `2.6.0+cu124`; None, or what is no version, for the one that comes first.
    """
    known = default_allow_list()
    match = None if torch_version is None else _VERSION.match(torch_version)
    if match is None:
        return known
    rows: list[dict[str, Any]] = read_table("allowlists.json")["others"]
    rows.append({"torch": known.torch_version})
    rows.sort(key=lambda row: _release(row["torch"]))
    wanted = _release(match[0])
    # 2.6 means any release of 2.6: the latest of those that are known.
    older = [row for row in rows if _release(row["torch"])[: len(wanted)] <= wanted]
    row = older[-1] if older else rows[0]
    return AllowList(
        torch_version=row["torch"],
        names=known.names - {*row.get("without", ())} | {*row.get("with", ())},
        opcodes=known.opcodes - {*row.get("without_opcodes", ())} | {*row.get("with_opcodes", ())},
    )


def _release(version: str) -> Release:
    return tuple(int(part) for part in version.split("."))
