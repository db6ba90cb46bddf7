"""The names that `torch.load(weights_only=True)` imports by default, as data read from torch itself.

`packaging/make_allowlist.py` writes the list; the torch version it speaks for is part of every verdict.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from inspector.records import dataclass


@dataclass(frozen=True, slots=True)
class AllowList:
    """The default list of one torch version.

    Attributes:
        torch_version: The version it was read from.
        names: The dotted names.
    """

    torch_version: str
    names: frozenset[str]


@cache
def default_allow_list() -> AllowList:
    """Read the list that comes with the program."""
    document = json.loads(Path(__file__).with_name("allowlist.json").read_text(encoding="utf-8"))
    return AllowList(torch_version=document["torch"], names=frozenset(document["globals"]))
