from __future__ import annotations

import ast
from pathlib import Path

import pytest

from inspector.errors import CheckpointError, ExportError, UnsupportedFormatError
from inspector.model.build import open_checkpoint
from inspector.session.present.failure import failure_page, open_failure_page
from inspector.session.screen import FailurePage
from inspector.target.profile import CPU_ONLY
from tests.builders.pickles import call, proto, stream, text

CORPUS = Path(__file__).parents[3] / "data" / "corpus"


def test_an_error_has_a_page_with_nothing_invisible_on_it() -> None:
    error = ExportError("no\nroom", where="a\u202eb", remedy="make some")
    assert failure_page(error, "No copy") == FailurePage(
        title="No copy", what=r"no\u000aroom", where=r"a\u202eb", remedy="make some"
    )
    bare = failure_page(ExportError("no room"), "No copy")
    assert (bare.where, bare.remedy) == ("", "")


def test_an_error_that_nobody_foresaw_is_said_as_such() -> None:
    page = failure_page(KeyError("x"), "This file cannot be opened")
    assert page.what == "unexpected KeyError: 'x'"
    assert page.remedy == "please report this with the file's kind and size"


def test_a_file_that_only_its_own_loader_reads_comes_with_code() -> None:
    error = UnsupportedFormatError("this is a plain pickle", form="pickle")
    page = open_failure_page(error, "a.pkl", CPU_ONLY)
    assert "CPUUnpickler(file)" in page.code
    ast.parse(page.code)
    assert page.title == "This file cannot be opened"


def test_a_note_is_no_title() -> None:
    error = UnsupportedFormatError("this is a TorchScript archive", form="torchscript")
    error.devices = ("cpu",)
    page = open_failure_page(error, "a.pt", CPU_ONLY)
    assert page.title == "This file cannot be opened"


def test_what_is_no_checkpoint_comes_without_code(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_text("hello")
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(path))
    page = open_failure_page(caught.value, str(path), CPU_ONLY)
    assert (page.title, page.code) == ("This is not a checkpoint", "")
    assert open_failure_page(KeyError("x"), str(path), CPU_ONLY).code == ""


def test_what_loading_runs_stands_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(stream(proto(), call("posix.system", text("id")))[:-1])
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(path))
    page = open_failure_page(caught.value, str(path), CPU_ONLY)
    assert page.title == "Dangerous: loading it can run commands"
    assert 'it calls posix.system("id")' in page.runs
    assert page.code == ""
    assert page.remedy == "do not load it with any program"
