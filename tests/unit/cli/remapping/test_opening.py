from __future__ import annotations

from pathlib import Path

from tests.builders.pickles import state_dict, storage, tensor
from tests.builders.zips import Record, build_zip

TWO = (("a", "0"), ("b", "1"))


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
