"""Documents of `--json` against the schemas that ship with the program."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from inspector.report.schemas import schema_names, schema_text


@cache
def validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(command)))


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def complaint(command: str, document: Any) -> str:
    """Return what is wrong with a document of a command; empty where nothing is."""
    error = best_match(validator(command).iter_errors(document))
    return "" if error is None else f"{error.json_path}: {error.message[:300]}"


def check_lines(command: str, text: str) -> None:
    """Fail if a line of what a command wrote is no document as its schema has it."""
    for line in text.splitlines():
        document = json.loads(line, parse_constant=refuse_constant)
        found = complaint(command, document)
        assert found == "", f"{command} --json: {found}"


def check_answer(arguments: list[str], text: str) -> None:
    """Fail if a command line that asked for JSON got anything else than the schema of its command."""
    if {"--json", "-j"} & {*arguments} and arguments[0] in schema_names():
        check_lines(arguments[0], text)
