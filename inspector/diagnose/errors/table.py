"""The table of messages, `errors.toml`: a row for each, through all its wordings since torch 1.0.

Within one error the first row that knows it counts, so what is more particular stands further up. A row names
functions by module and name: those that tie it to a file (`tie_`), that say what one text tells (`say_`), or
whether the row speaks of it at all (`when_`). `here` stands for a tie to no file, `<<name>>` in a pattern for
a part that several share.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from inspector.diagnose.errors import code, devices, files, frameworks, machine, names, running, weights_only
from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code
from inspector.model.findings import Fix
from inspector.model.roles.devices import DEVICE_TYPES

_MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (code, devices, files, frameworks, machine, names, running, weights_only)
}
_FUNCTIONS = ("tie", "say", "when", "finding_of", "findings")
_PART = re.compile(r"<<(\w+)>>")
_HERE = {
    "code": "Nothing in this file decides it: it is about the code.",
    "machine": "Nothing in this file brings it about: it is about the machine and its packages.",
}


def read_table() -> tuple[ErrorKind, ...]:
    """Read the table."""
    table = tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))
    parts = {**table["parts"], "device": rf"(?:{'|'.join(DEVICE_TYPES)})(?::\d{{1,3}})?", "new": machine.NEW}
    return tuple(_kind(row, parts) for row in table["kind"])


def _kind(row: dict[str, Any], parts: dict[str, str]) -> ErrorKind:
    row["pattern"] = _PART.sub(lambda match: parts[match[1]], row["pattern"])
    for key in _FUNCTIONS:
        if isinstance(row.get(key), str):
            module, _, name = row[key].partition(".")
            row[key] = getattr(_MODULES[module], name)
    if "here" in row:
        here = row.pop("here")
        row["tie"] = about_code(_HERE.get(here, here))
    if "fix" in row:
        fix = row["fix"]
        row["fix"] = Fix(**(fix | {"option": tuple(fix["option"])} if "option" in fix else fix))
    return ErrorKind(**row)
