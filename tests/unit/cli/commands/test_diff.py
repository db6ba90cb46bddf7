from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main
from inspector.diff import compare
from inspector.errors import CancelledError
from tests.builders.states import T, save_zip


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [save_zip(tmp_path / f"{number}.pt", {"w": T([1.0, number]), "n": 1}) for number in (2.0, 3.0)]


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_numbers_are_asked_for_in_three_ways(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for options, code in ((["--values"], 1), (["--atol", "2"], 0)):
        assert main(["diff", *files, "--json", *options]) == code
        assert document(capsys)["compared"] == "numbers"
    for options in (["--compare", "equal", "--values"], ["--compare", "facts", "--rtol", "1"]):
        assert main(["diff", *files, *options]) == 2
        assert "compares no numbers" in capsys.readouterr().err
    for text in ("x", "-1", "nan", "inf"):
        with pytest.raises(SystemExit) as caught:
            main(["diff", *files, f"--rtol={text}"])
        assert caught.value.code == 2
        assert "is not a tolerance" in capsys.readouterr().err


def test_a_filter_narrows_what_is_compared(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files, "--filter", "n", "--json"]) == 0
    capsys.readouterr()
    assert main(["diff", *files, "--filter", "w", "--json", "--all"]) == 1
    assert [row["path"] for row in document(capsys)["changed"]] == ["w"]
    assert main(["diff", *files, "--filter", '""', "--json"]) == 1  # nothing is asked for
    assert [row["path"] for row in document(capsys)["changed"]] == ["w"]


def test_what_cannot_be_read_or_was_stopped(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = f"{files[0]}.missing"
    assert main(["diff", files[0], missing]) == 3
    written = capsys.readouterr()
    assert written.out == ""
    assert missing in written.err
    assert main(["diff", files[0], missing, "--json"]) == 3
    assert document(capsys)["error"]["kind"] == "container"

    def stopped(*_: object) -> None:
        raise CancelledError

    monkeypatch.setattr(compare, "compare_paths", stopped)
    assert main(["diff", *files]) == 130


def test_a_series_is_a_table(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--series", *files, files[0]]) == 0
    assert capsys.readouterr().out.startswith("3 checkpoints\n")
    assert main(["diff", "--series", "--json", str(Path(files[0]).parent)]) == 0
    assert document(capsys)["tensors"][0]["to_first"] == [None, 1.0]
    pattern = str(Path(files[0]).with_name("*.pt"))
    assert main(["diff", "--series", "--json", pattern]) == 0
    assert document(capsys)["series"] == sorted(map(str, Path(files[0]).parent.glob("*.pt")))
    for given in (files[:1], [*files, files[0]]):
        assert main(["diff", *given]) == 2
        assert "two checkpoints are compared" in capsys.readouterr().err
    assert main(["diff", "--series", files[0]]) == 2
    assert "a series takes two checkpoints or more" in capsys.readouterr().err
    assert main(["diff", "--series", f"{files[0]}.gone"]) == 3


def test_a_series_goes_on_past_a_file_that_cannot_be_read(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.pt"
    page.write_text("<!DOCTYPE html>")
    assert main(["diff", "--series", "--json", files[0], str(page), files[1]]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [row["path"] for row in found["unread"]] == [str(page)]
    assert found["total"]["norm"][1] is None
    assert main(["diff", "--series", files[0], str(page)]) == 3
    assert "web page" in capsys.readouterr().err


def test_a_series_takes_a_filter_and_refuses_what_it_has_no_use_for(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [save_zip(tmp_path / f"m{n}.pt", {"w": T([1.0, n]), "v": T([2.0])}) for n in (1.0, 2.0)]
    assert main(["diff", "--series", "--json", *more, "--filter", "v"]) == 0
    assert [row["path"] for row in document(capsys)["tensors"]] == ["v"]
    assert main(["diff", "--series", *files, "--filter", "nowhere"]) == 2
    assert "has no such row" in capsys.readouterr().err
    for option in ("--values", "--all", "--each", "--only-differences", "--rtol=0", "--compare=facts"):
        assert main(["diff", "--series", *files, option]) == 2
        assert f"--series takes no {option.partition('=')[0]}" in capsys.readouterr().err


def test_numbers_need_numpy_and_nothing_is_read_without(cli, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    for words in (("--values",), ("--rtol", "1"), ("--series",)):
        answer = cli("diff", "missing-a", "missing-b", *words)
        assert (answer.code, answer.out) == (4, ""), words
        assert "this needs NumPy" in answer.err
    assert cli("diff", "missing-a", "missing-b").code == 3
