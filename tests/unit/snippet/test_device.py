"""The device that code computes on."""

from __future__ import annotations

import pytest

from inspector.records import replace
from inspector.snippet.device import choose_device, fixed_device, questions
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.snippet.rows import THIS


@table(
    ("target", "dtype", "code"),
    [
        (CPU_ONLY, "float32", '"cpu"'),
        (parse_target("2xcuda"), "float64", '"cuda:0"'),
        (parse_target("2xcuda:1"), "float64", '"cuda:1"'),
        (parse_target("2xcuda@cpu"), "float64", '"cpu"'),
        (parse_target("mps:0"), "float64", '"cpu"'),
        (replace(THIS, wanted="cuda:3"), "float32", '"cuda:3"'),
        (parse_target("xpu"), "float64", '"xpu:0"'),
        (parse_target("mps"), "float32", '"mps"'),
        (parse_target("mps"), "float64", '"cpu"'),
    ],
)
def test_known_machine(target: Profile, dtype: str, code: str) -> None:
    device = choose_device(target, {"int64", dtype})
    assert (device.code, device.choice) == (code, ())
    assert device.is_cpu == (code == '"cpu"')


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_machine_where_the_code_runs(dtype: str) -> None:
    device = choose_device(THIS, {dtype})
    assert device.code == "device"
    assert not device.is_cpu
    assert ("mps" in "\n".join(device.choice)) == (dtype == "float32")
    compile("\n".join(device.choice), "choice", "exec")


def test_move() -> None:
    assert fixed_device("cuda:1").move("model") == ('model.to("cuda:1")',)
    assert fixed_device("cpu").move("model") == ()
    assert fixed_device('"); evil("').code == "'\"); evil(\"'"


@table(
    ("version", "asked"),
    [
        (None, ["torch.cuda.is", "torch.backends.mps.is", 'hasattr(torch, "xpu") and torch.xpu.is']),
        ("2.3.0", ["torch.cuda.is", "torch.backends.mps.is", "torch.xpu.is"]),
        ("2.2.2", ["torch.cuda.is", "torch.backends.mps.is"]),
        ("1.11.0", ["torch.cuda.is"]),
    ],
)
def test_torch_is_only_asked_what_it_knows(version: str | None, asked: list[str]) -> None:
    found = [question for _, question in questions(replace(THIS, torch_version=version))]
    assert [question.removesuffix("_available()") for question in found] == asked
    lines = choose_device(replace(THIS, torch_version=version)).choice
    assert sum("is_available" in line for line in lines) == len(asked)
