from __future__ import annotations

from pathlib import Path


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
