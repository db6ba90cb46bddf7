from __future__ import annotations

import json

from inspector.report.schemas import schema_names


def test_schemas_are_listed_and_printed(cli) -> None:
    listed = cli("schema")
    assert listed.code == 0
    assert tuple(listed.out.split()) == schema_names()
    for name in schema_names():
        assert json.loads(cli("schema", name).out)["title"] == f"{name} --json"


def test_a_command_without_documents_is_wrong_usage(cli) -> None:
    answer = cli("schema", "desktop")
    assert (answer.code, answer.out) == (2, "")
    assert "no schema describes 'desktop'" in answer.err
