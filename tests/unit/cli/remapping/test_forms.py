from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.report.words import results


def test_the_container_and_the_averaged_weights_can_be_chosen(cli, copy: Path) -> None:
    out = copy.with_name("out.pth")
    assert cli("remap", copy, "-o", out, "--container", "legacy").code == 0
    assert open_checkpoint(str(out)).format == "legacy"
    assert cli("remap", copy, "-o", out, "--force", "--only", "weights", "--ema").code == 0
    averaged = open_checkpoint(str(out))
    assert cli("remap", copy, "-o", out, "--force", "--only", "weights").code == 0
    assert len(averaged.tensors) == 47 != len(open_checkpoint(str(out)).tensors)


def test_what_contradicts_itself_is_refused(cli, copy: Path) -> None:
    out = copy.with_name("out.pth")
    said = {
        ("--ema",): "--ema chooses which of the weights are written, and all are copied",
        ("--cast", "float16"): "only weights can be cast",
        ("--container", "zip", "--format", "safetensors"): "the file name is one for torch.load",
        ("--only", "weights", "--receipt", "r"): "--receipt and --verify compare a copy with its file",
    }
    for options, sentence in said.items():
        answer = cli("remap", copy, "-o", out, *options)
        assert (answer.code, sentence in answer.err) == (2, True), options
    assert "another form is a new file" in cli("remap", copy, "--in-place", "--compact").err
    assert not out.exists()


def test_numbers_that_no_longer_fit_are_counted(cli, copy: Path, monkeypatch) -> None:
    monkeypatch.setattr(results, "overflowed", lambda done: f"{done.overflowed + 3} values became infinite")
    answer = cli("remap", copy, "-o", copy.with_name("out.pth"), "--only", "weights")
    assert "; 3 values became infinite\n" in answer.out
