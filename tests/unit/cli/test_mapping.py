from __future__ import annotations

from pathlib import Path

import pytest

from inspector.cli.display import Display
from inspector.cli.mapping import parse_map, plan_of, rules_of
from inspector.cli.parser import parse
from inspector.model.build import open_checkpoint
from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import Profile
from tests.sweep import table
from tests.unit.remap.samples import CUDA_0, mapping, stream, tensor, text, written, zip_of


@table(
    ("options", "expected"),
    [
        (["--map", "cuda:1=cuda:0"], {"cuda:0", "cpu"}),
        (["--map", "cuda:0=mps", "--map", "cuda:*=xpu:0"], {"mps", "xpu:0", "cpu"}),
        (["--target", "cuda"], {"cuda:0", "cpu"}),
        (["--target", "2xcuda"], {"cuda:0", "cuda:1", "cpu"}),
        (["--target", "mps", "--map", "cuda:1=cpu"], {"mps", "cpu"}),
        (["--map", "path:optimizer/**@cpu"], {"cuda:0", "cuda:1", "cpu"}),
        (["--map", "*=cuda:0"], {"cuda:0", "cpu"}),
        (["--map", "*=cuda:0", "--move-all"], {"cuda:0"}),
    ],
)
def test_the_map_is_followed_then_the_target(options, expected) -> None:
    asked = parse(["remap", "a", *options])
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_of(checkpoint, asked, *parse_map(asked))
    every = enumerate(checkpoint.tensors)
    assert {plan.tensors.get(index, tensor.device) for index, tensor in every} == expected


def test_devices_outside_of_tensors_follow_where_that_is_asked(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cpu")))), {"0": bytes(16)}))
    checkpoint = open_checkpoint(str(path))
    for options, expected in (
        (["--hidden-devices"], {0: "cpu"}),
        (["--hidden-devices", "--target", "mps"], {0: "mps"}),
        (["--hidden-devices", "--target", "cuda"], {}),
        (["--target", "cpu"], {}),
    ):
        asked = parse(["remap", str(path), *options])
        assert plan_of(checkpoint, asked, *parse_map(asked)).hidden == expected, options


def test_this_machine_is_asked_for_its_devices(monkeypatch) -> None:
    profile = Profile(id="this", label="this machine", accelerators=(("cuda", 1),))
    monkeypatch.setattr(profile_file, "probe_this_machine", lambda progress, python=None: profile)
    asked = parse(["remap", "a", "--target", "this"])
    asked.display = Display()
    said = rules_of(open_checkpoint(str(demo_path())), asked, *parse_map(asked))
    assert {rule.to for rule in said} == {"cuda:0"}


@table(
    ("options", "code", "said"),
    [
        (["--map", "nonsense"], 2, "the rule 'nonsense' is not understood"),
        (["--map", "cuda:0=cpu:0"], 2, "torch refuses the device 'cpu:0'"),
        (["--map", "cuda:0=moon"], 2, "'moon' is not a device to map to"),
        (["--map", "path:x"], 2, "names no destination"),
        (["--target", "moon"], 2, "unknown target 'moon'"),
    ],
)
def test_wrong_rules_are_told_before_any_file_is_read(cli, tmp_path, options, code, said) -> None:
    answer = cli("remap", tmp_path / "missing", "-o", tmp_path / "out", *options)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.wide
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("cuda0=cpu", "did you mean cuda:0=cpu? the file has cuda:0, cuda:1, cpu"),
        ("xpu:7=cpu", "the file has cuda:0, cuda:1, cpu; '*' stands for all of them"),
        ("path:nowhere/**@cpu", "no tensor of the file has this path: path:nowhere/**@cpu"),
        ("role:scheduler@cpu", "no tensor of the file has this role"),
        ("dtype:float64@cpu", "no tensor of the file has this dtype"),
    ],
)
def test_a_rule_that_matches_nothing_writes_nothing(cli, copy, rule, said) -> None:
    before, out = copy.read_bytes(), copy.with_name("out.pth")
    for options in (["-o", out], ["--in-place"], ["--dry-run"]):
        answer = cli("remap", copy, "--map", "cuda:*=cpu", "--map", rule, *options)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
    assert copy.read_bytes() == before
    assert not out.exists()
