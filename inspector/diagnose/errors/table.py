"""The table of messages, `errors.toml`: a row for each, through all its wordings since torch 1.0.

Within one error the first row that knows it counts, so what is more particular stands further up. What is
computed is named by module and function: a tie to a file (`tie_`), and facts about a text that its conditions
and sentences use. `<<name>>` stands in a pattern for a part that several share, in a sentence for a fact.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from inspector.diagnose.errors import code, devices, files, frameworks, machine, names, running, weights_only
from inspector.diagnose.errors.explanation import Condition, ErrorKind, Saying, Tie
from inspector.diagnose.errors.ties import about_code, by_finding, of_format
from inspector.model.findings import Fix
from inspector.model.roles.devices import DEVICE_TYPES

_MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (code, devices, files, frameworks, machine, names, running, weights_only)
}
_FUNCTIONS = ("tie", "facts", "findings")
_PART = re.compile(r"<<(\w+)>>")
_HERE = {
    "code": "Nothing in this file decides it: it is about the code.",
    "machine": "Nothing in this file brings it about: it is about the machine and its packages.",
}
_TABLE = tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))
LOOKUPS: dict[str, dict[str, str]] = _TABLE["lookups"]
_PARTS = {
    **_TABLE["parts"],
    "device": rf"(?:{'|'.join(DEVICE_TYPES)})(?::\d{{1,3}})?",
    "new": "|".join(name for name in LOOKUPS["since"] if name not in {"compile", "mps"}),
}


def read_table() -> tuple[ErrorKind, ...]:
    """Read the table."""
    sayings = {row["id"]: row["say"] for row in _TABLE["kind"] if isinstance(row.get("say"), list)}
    return tuple(_kind(row, sayings) for row in _TABLE["kind"])


def _kind(row: dict[str, Any], sayings: dict[str, list[dict[str, Any]]]) -> ErrorKind:
    """Make a row; `say` may name another one that says the same."""
    given = {key: _function(value) if key in _FUNCTIONS else value for key, value in row.items()}
    say = given.get("say", [])
    given["say"] = tuple(_saying(one) for one in (sayings[say] if isinstance(say, str) else say))
    given["when"] = _conditions(given.get("when", []))
    given["pattern"] = _filled(given["pattern"])
    if "here" in given:
        given["tie"] = _tie(given.pop("here"), given.pop("blames", []), given.pop("in_full", False))
    if "of_format" in given:
        given["tie"] = of_format(given.pop("of_format"))
    if "fix" in given:
        fix = given["fix"]
        given["fix"] = Fix(**(fix | {"option": tuple(fix["option"])} if "option" in fix else fix))
    return ErrorKind(**given)


def _function(value: Any) -> Any:  # noqa: ANN401 - a table, or what is named in it
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(".")
    return getattr(_MODULES[module], name)


def _tie(here: str, blames: list[str], in_full: bool) -> Tie:  # noqa: FBT001 - a key of the table
    here = _HERE.get(here, here)
    return by_finding(*blames, no=here, in_full=in_full) if blames else about_code(here)


def _saying(row: dict[str, Any]) -> Saying:
    given = {key: _function(value) if key == "tie" else value for key, value in row.items() if key != "if"}
    conditions = row.get("if", {})
    return Saying(
        conditions=_conditions(conditions if isinstance(conditions, list) else [conditions]), **given
    )


def _conditions(rows: list[dict[str, str]]) -> tuple[Condition, ...]:
    return tuple({name: _filled(pattern) for name, pattern in row.items()} for row in rows)


def _filled(pattern: str) -> str:
    return _PART.sub(lambda match: _PARTS[match[1]], pattern)
