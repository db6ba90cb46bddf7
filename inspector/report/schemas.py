"""The JSON Schemas of the documents that `--json` writes: one for each command, which stands alone.

They describe the documents of this version exactly: in an object of ours every key is described and no other
is allowed, so that a key which nobody wrote down fails a test. They are made from `schemas.toml`.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from inspector.errors import PlanError
from inspector.units import cut_text

_MOST_CHARS = 100
_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "count": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "[]": {"type": "array", "maxItems": 0},
}


def schema_names() -> tuple[str, ...]:
    """Return the commands whose documents have a schema."""
    return tuple(sorted(_table()["commands"]))


def schema_text(command: str) -> str:
    """Return the schema of what a command writes with `--json`, as JSON."""
    names = schema_names()
    if command not in names:
        what = f"no schema describes {cut_text(command, _MOST_CHARS)!r}"
        raise PlanError(what, remedy=f"there is one for {', '.join(names)}")
    row = _table()["commands"][command]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:checkpoint-inspector:schema:1:{command}",
        "title": f"{command} --json",
        "description": row["_"],
        "if": {"required": ["error"], "properties": {"error": {"type": "object"}}},
        "then": _choice(row.get("failures", ["unreadable"])),
        "else": _choice(row.get("answers", [command])),
    }
    schema["$defs"] = _definitions(schema)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("schemas.toml").read_text(encoding="utf-8"))


def _choice(rows: list[str]) -> dict[str, Any]:
    """Return the schema of several documents: `KEY NAME`, `KEY=VALUE NAME`, and `NAME` for all others."""
    condition, _, name = rows[0].rpartition(" ")
    if not condition:
        return {"$ref": f"#/$defs/{name}"}
    key, _, value = condition.partition("=")
    asked = {"required": [key], **({"properties": {key: {"const": value}}} if value else {})}
    return {"if": asked, "then": _choice([name]), "else": _choice(rows[1:])}


def _definitions(schema: object) -> dict[str, Any]:
    """Return all definitions that a schema refers to, those that its definitions refer to included."""
    found: dict[str, Any] = {}
    waiting = _references(schema)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _object(name)
            waiting += _references(found[name])
    return dict(sorted(found.items()))


def _references(node: object) -> list[str]:
    if isinstance(node, list):
        return [name for part in node for name in _references(part)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else []
    return own + _references(list(node.values()))


def _object(name: str) -> dict[str, Any]:
    keys = {key: text for key, text in _keys(name).items() if not key.startswith("_")}
    return {
        "type": "object",
        "description": _table()[name]["_"],
        "properties": {key: _property(text.removeprefix("?")) for key, text in keys.items()},
        "required": [key for key, text in keys.items() if not text.startswith("?")],
        "additionalProperties": False,
    }


def _keys(name: str) -> dict[str, str]:
    row: dict[str, str] = _table()[name]
    return _keys(row["_like"]) | row if "_like" in row else row


def _property(text: str) -> dict[str, Any]:
    kind, _, description = text.partition(" ")
    return _type(kind) | ({"description": description} if description else {})


def _type(text: str) -> dict[str, Any]:
    if text in _TYPES:
        return _TYPES[text]
    if text[0] + text[-1] == "[]":
        return {"type": "array", "items": _type(text[1:-1])}
    if text[0] + text[-1] == "{}":
        return {"type": "object", "additionalProperties": _type(text[1:-1])}
    if "|" in text:
        return _either(text)
    if text.startswith("$"):
        return {"$ref": f"#/$defs/{text[1:]}"}
    return {"const": text.strip("'") if text.startswith("'") else json.loads(text)}


def _either(text: str) -> dict[str, Any]:
    first, _, last = text.rpartition("|")
    if last == "null":
        kind = _type(first)
        return kind | {"type": [kind["type"], last]} if "type" in kind else {"anyOf": [kind, _type(last)]}
    kinds = [_type(part) for part in text.split("|")]
    return {"enum": [kind["const"] for kind in kinds]} if "const" in kinds[0] else {"anyOf": kinds}
