from __future__ import annotations

from pathlib import Path

CORPUS = Path(__file__).parents[3] / "data" / "corpus"


def test_a_folder_takes_no_option_of_files(cli, tmp_path) -> None:
    for options in (("--receipt", tmp_path / "r"), ("--keep-times",), ("--verify", "torch")):
        answer = cli("remap", CORPUS / "hf_sharded", "-o", tmp_path / "out", *options)
        assert (answer.code, answer.out) == (2, ""), options
        assert "--receipt, --keep-times and --verify torch are for single files" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_change_in_place_takes_no_option_of_copies(cli, copy: Path) -> None:
    before = copy.read_bytes()
    for options in (("--receipt", "r"), ("--keep-times",)):
        answer = cli("remap", copy, "--in-place", *options)
        assert (answer.code, "go with a copy" in answer.err) == (2, True)
    assert "whatever the map" in cli("remap", copy, "--undo", "--map", "*=cpu").err
    assert copy.read_bytes() == before
