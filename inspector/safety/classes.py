"""Names that are not on torch's list and whose objects a checkpoint may bring all the same.

`classes.json` is kept by hand: each row has the reason why it is harmless and the source where that was read.
`torch_classes.json` is written by `packaging/make_classes.py`. Names are whole: nothing is told by how a name
begins, so that `torch.nn.modules.linear.torch.load` is not taken for a class of torch's.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

Uses = Literal["call", "new"]
"""`call`: harmless whatever the file calls it with. `new`: harmless as long as the file does no more than
make an object of it (NEWOBJ, BUILD) or mention it."""


@cache
def known_classes() -> dict[str, Uses]:
    """Read the tables that come with the program: how each name may be used."""
    found: dict[str, Uses] = dict.fromkeys(read_table("torch_classes.json")["names"], "new")
    for row in read_table("classes.json"):
        found |= dict.fromkeys(row["names"], row["uses"])
    return found


def read_table(file: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return one of the tables beside this module."""
    return json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
