from __future__ import annotations

import argparse
import json
from pathlib import Path

from inspector.cli import remapping
from inspector.cli.display import Display
from inspector.cli.remapping import Answer, give, output_name
from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.report.page import lines_of, page_of
from tests.builders.pickles import state_dict, storage, tensor
from tests.builders.zips import Record, build_zip

TWO = (("a", "0"), ("b", "1"))
DONE = Answer(page=page_of(lines_of(["a line"])), document={"schema": 1})


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
        document={},
        code=1,
        failure=ExportError("torch did not check it"),
    )
    assert give(failed, options()) == 4
    out, err = capsys.readouterr()
    assert out == "written\n"
    assert err == "checkpoint-inspector: error: torch did not check it\n"
    assert give(Answer(page=page_of(), document={}, code=1), options()) == 1


def test_the_container_and_the_averaged_weights_can_be_chosen(cli, copy: Path) -> None:
    out = copy.with_name("out.pth")
    assert cli("export", copy, "-o", out, "--container", "legacy", "--format", "same").code == 0
    assert open_checkpoint(str(out)).format == "legacy"
    assert cli("export", copy, "-o", out, "--force", "--ema").code == 0
    averaged = open_checkpoint(str(out))
    assert cli("export", copy, "-o", out, "--force").code == 0
    assert len(averaged.tensors) == 47 != len(open_checkpoint(str(out)).tensors)


def test_numbers_that_no_longer_fit_are_counted(cli, copy: Path, monkeypatch) -> None:
    monkeypatch.setattr(remapping, "overflowed", lambda done: f"{done.overflowed + 3} values became infinite")
    answer = cli("export", copy, "-o", copy.with_name("out.pth"))
    assert "; 3 values became infinite\n" in answer.out


def test_what_must_not_be_written_is_refused_before_the_plan(cli, copy: Path) -> None:
    there = copy.with_name("there.pth")
    there.write_bytes(b"x")
    wrong = ("--map", "cuda:9=cpu")  # matches nothing, which only the plan finds
    said = {
        ("-o", there): 4,
        ("-o", copy): 4,
        ("-o", copy.with_name("a.pth"), "--receipt", there): 4,
        ("-o", copy.with_name("a.pth"), "--receipt", copy.with_name("a.pth")): 4,
        ("-o", there, "--dry-run"): 2,
        ("-o", there, "--force"): 2,
        ("--in-place",): 2,
    }
    got = {options: cli("remap", copy, *wrong, *options).code for options in said}
    assert got == said


def test_a_copy_for_a_card_that_is_too_small_is_written_and_remarked_on(cli, tmp_path: Path) -> None:
    numel = 300_000
    tensors = {name: tensor(storage(key, location=f"cuda:{key}", numel=numel), numel) for name, key in TWO}
    records = {f"x/data/{key}": bytes(4 * numel) for _, key in TWO}
    records = {"x/data.pkl": state_dict(**tensors), **records, "x/version": b"3"}
    path, out = tmp_path / "large.pth", tmp_path / "out.pth"
    path.write_bytes(build_zip(*(Record(name=name, data=data) for name, data in records.items())))

    def said(target: str, *more: object) -> list[str]:
        found = cli("remap", path, "--target", target, *more)
        assert found.code == 0
        return [line for line in found.err.splitlines() if "too much" in line]

    plain = ("-o", out, "--force", "--no-verify")
    too_small = "cuda:0, which has 2.0 MB: 4"
    for more in (plain, (*plain, "--dry-run")):
        assert said("cuda@3mb", *more) == []
        assert said("2xcuda@2mb", *more) == []
        assert said("cpu", *more) == []
        (line,) = said("cuda@2mb", *more)
        assert line.startswith(f"checkpoint-inspector: {path}: Loading takes 2.4 MB of {too_small}")
        assert "What fits: " in line
    assert out.exists()
    assert said("cuda@2mb", *plain, "--only", "weights") == []  # another form: its size is another
    (line,) = said("cuda@2mb", "--in-place")
    assert too_small in line
