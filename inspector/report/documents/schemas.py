"""The JSON Schemas of the documents that `--json` writes: one file for each command, which stands alone.

They describe the documents of this version exactly: in an object of ours every key is described and no other
is allowed, so that a key which nobody wrote down fails a test.
"""

from __future__ import annotations

from inspector.errors import PlanError
from inspector.resources import resource_path
from inspector.units import cut_text

_FOLDER = "schema"
_MOST_CHARS = 100


def schema_names() -> tuple[str, ...]:
    """Return the commands whose documents have a schema."""
    return tuple(sorted(path.stem for path in resource_path(_FOLDER).glob("*.json")))


def schema_text(command: str) -> str:
    """Return the schema of what a command writes with `--json`, as JSON."""
    names = schema_names()
    if command not in names:
        what = f"no schema describes {cut_text(command, _MOST_CHARS)!r}"
        raise PlanError(what, remedy=f"there is one for {', '.join(names)}")
    return resource_path(f"{_FOLDER}/{command}.json").read_text(encoding="utf-8")
