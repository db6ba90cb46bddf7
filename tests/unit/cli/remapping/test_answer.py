from __future__ import annotations

import argparse
import json

from inspector.cli.display import Display
from inspector.cli.remapping.opening import Answer, give, output_name
from inspector.errors import ExportError
from inspector.report.page import lines_of, page_of

DONE = Answer(page=page_of(lines_of(["a line"])), document=lambda: {"schema": 1})


def options(**more: object) -> argparse.Namespace:
    return argparse.Namespace(
        **{"json": False, "output": "out.pth", "dry_run": False, "display": Display(), **more}
    )


def test_an_answer_goes_where_the_file_does_not(capsys) -> None:
    assert give(DONE, options()) == 0
    assert capsys.readouterr() == ("a line\n", "")
    assert give(DONE, options(output_name="-")) == 0
    assert capsys.readouterr() == ("", "a line\n")
    assert give(DONE, options(json=True)) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1}
    assert output_name(options()) == "out.pth"
    assert output_name(options(output_name="-")) == "standard output"


def test_what_was_written_and_could_not_be_checked_is_a_failure(capsys) -> None:
    failed = Answer(
        page=page_of(lines_of(["written"])),
        document=dict,
        code=1,
        failure=ExportError("torch did not check it"),
    )
    assert give(failed, options()) == 4
    out, err = capsys.readouterr()
    assert out == "written\n"
    assert err == "checkpoint-inspector: error: torch did not check it\n"
    assert give(Answer(page=page_of(), document=dict, code=1), options()) == 1
