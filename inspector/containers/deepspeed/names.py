"""What DeepSpeed calls its files, and the classes that its files name and that hold nothing but data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

OWN_NAMES = frozenset(
    {
        "deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler",
        "deepspeed.runtime.fp16.loss_scaler.LossScaler",
        "deepspeed.runtime.zero.config.ZeroStageEnum",
        "deepspeed.utils.tensor_fragment.fragment_address",
    }
)
"""The dotted names of these classes."""

LATEST = "latest"
_STATES = re.compile(
    r"(?:(?:bf16_|fp16_)?zero_pp_rank_(?P<dp>[0-9]{1,6})_)?mp_rank_(?P<mp>[0-9]{1,6})_?"
    r"(?P<kind>model|optim)_states\.pt"
)


class StatesFile(NamedTuple):
    """One file of states.

    Attributes:
        name: Its name in the folder.
        kind: `model` or `optim`.
        mp: The rank among those that divide the model (tensor parallel).
        dp: The rank among those that divide the data; -1 for a file of them all.
    """

    name: str
    kind: str
    mp: int
    dp: int


def states_files(names: Iterable[str], tag: str) -> list[StatesFile]:
    """Return the files of states below a tag, in the order of their ranks."""
    prefix = f"{tag}/" if tag else ""
    found = []
    for name in names:
        match = _STATES.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
        if match is not None:
            dp = match["dp"]
            found.append(StatesFile(name, match["kind"], int(match["mp"]), -1 if dp is None else int(dp)))
    return sorted(found, key=lambda file: (file.kind, file.mp, file.dp))


def tags_of(names: Iterable[str]) -> list[str]:
    """Return the subfolders with files of states; an empty tag for the folder itself."""
    tags = {name.rpartition("/")[0] for name in names if _STATES.fullmatch(name.rpartition("/")[2])}
    return sorted((tag for tag in tags if tag.count("/") == 0), key=_natural)


def _natural(tag: str) -> tuple[str, int]:
    digits = tag[len(tag.rstrip("0123456789")) :][:18]
    return tag.rstrip("0123456789"), int(digits or 0)
