from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from inspector.cli.commands import COMMANDS
from inspector.errors import PlanError
from inspector.report import schemas
from inspector.report.schemas import schema_names, schema_text
from tests.schemas import complaint

SCHEMAS: dict[str, Any] = {name: json.loads(schema_text(name)) for name in schema_names()}
OPEN = {"versions", "packages", "environment", "devices"}
"""Objects whose keys come from the file or the machine."""


def objects(node: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema of an object, with the name that it stands under."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "$schema" not in node:
            yield name, node
        for key, value in node.items():
            if key != "if":
                yield from objects(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value, name)


def test_every_command_that_writes_json_has_one() -> None:
    writing = set()
    for name, module in COMMANDS.items():
        parser = argparse.ArgumentParser()
        import_module(module).add_options(parser)
        if any("--json" in action.option_strings for action in parser._actions):
            writing.add(name)
    assert writing == set(schema_names())


@pytest.mark.wide
def test_they_are_schemas_that_stand_alone() -> None:
    for name, schema in SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["$id"] == f"urn:checkpoint-inspector:schema:1:{name}"
        assert schema["title"] == f"{name} --json"
        used = {text.rpartition("/")[2] for text in references(schema)}
        assert used == set(schema["$defs"]), name


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            assert node["$ref"].startswith("#/$defs/")
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_key_is_described_and_no_other_is_allowed() -> None:
    wrong = []
    for name, schema in SCHEMAS.items():
        for key, node in objects(schema):
            if key in OPEN:
                continue
            if node.get("additionalProperties") is not False or "description" not in node:
                wrong.append((name, key))
            wrong += [
                (name, key, one)
                for one, value in node["properties"].items()
                if not value.get("description")
                and not schema["$defs"].get(value.get("$ref", "").rpartition("/")[2], {}).get("description")
            ]
            if not set(node["required"]) <= set(node["properties"]):
                wrong.append((name, key, "requires what it does not have"))
    assert wrong == []


def test_no_definition_is_left_over() -> None:
    used = {name for schema in SCHEMAS.values() for name in schema["$defs"]}
    assert used == {name for name, row in schemas._table().items() if "_" in row}


def test_what_is_not_described_is_found() -> None:
    verified = {
        "schema": 1,
        "path": "a",
        "against": "b",
        "same": True,
        "tensors": 1,
        "compared_nbytes": 2,
        "moves": [{"from": "cuda:0", "to": "cpu", "tensors": 1}],
        "moved_hidden": 0,
        "differences": [],
    }
    assert complaint("verify", verified) == ""
    assert "'more' was unexpected" in complaint("verify", verified | {"more": 1})
    assert "'tensors' is a required" in complaint("verify", {**verified, "moves": [{"from": "a", "to": "b"}]})
    assert "is not of type 'boolean'" in complaint("verify", verified | {"same": 1})
    failed = {"schema": 1, "path": None, "error": {"kind": "plan", "message": "no", "where": None}}
    assert complaint("verify", failed | {"safety": None, "findings": []}) == ""
    assert complaint("verify", failed | {"safety": None, "findings": [], "same": False}) != ""


def test_a_command_without_one_is_told() -> None:
    with pytest.raises(PlanError, match=r"no schema describes '\.\./show'") as found:
        schema_text("../show")
    assert str(found.value.remedy).startswith(f"there is one for {schema_names()[0]}, ")
