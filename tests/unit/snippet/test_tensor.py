from __future__ import annotations

import ast

import pytest

from inspector.records import replace
from inspector.report.details import python_expression
from inspector.safety.verdict import judge
from inspector.snippet.tensor import Wanted, tensor_code, why_no_code
from inspector.target.profile import CPU_ONLY
from tests.unit.snippet.rows import checkpoint, tensor


def wanted(row, *, part: str = "", **fields: object) -> Wanted:
    file = replace(checkpoint(row), path="best.pth", **fields)
    return Wanted(checkpoint=file, tensor=row, expression=python_expression(row), part=part)


def why(one: Wanted) -> str:
    return why_no_code(one, judge(one.checkpoint))


def test_one_tensor_is_taken_out_of_what_torch_loads() -> None:
    one = wanted(tensor("model", "a.weight", device="cuda:3"))
    assert why(one) == ""
    code = tensor_code(one, CPU_ONLY)
    assert 'checkpoint = torch.load(\n    "best.pth",\n    map_location="cpu",\n' in code
    assert code.endswith("\n\ntensor = checkpoint['model']['a.weight']\n")


def test_a_file_that_is_one_tensor_is_loaded_as_it() -> None:
    code = tensor_code(wanted(tensor(), root="tensor"), CPU_ONLY)
    assert 'tensor = torch.load(\n    "best.pth",\n' in code
    assert "checkpoint" not in code


@pytest.mark.parametrize(
    ("form", "part", "file"),
    [("safetensors", "", "best.pth"), ("sharded", "/b/x-1.safetensors", "/b/x-1.safetensors")],
)
def test_safetensors_reads_that_tensor_alone(form: str, part: str, file: str) -> None:
    one = wanted(tensor('a"\n'), format=form, part=part)
    assert why(one) == ""
    code = tensor_code(one, CPU_ONLY)
    assert f'with safe_open("{file}", framework="pt") as file:' in code
    ast.parse(code)
    assert code.endswith("    tensor = file.get_tensor('a\"\\n')\n")


def test_no_code_where_it_would_not_reach_the_tensor_or_do_harm() -> None:
    plain = tensor("a")
    assert "part of another" in why(wanted(plain._replace(part_of=0)))
    assert why(replace(wanted(plain), damage="its bytes are missing")) == "its bytes are missing"
    assert why(wanted(plain._replace(layout="storage"))) == "it is a bare storage"
    assert "no single tensor" in why(wanted(plain, format="gguf"))
    assert "no single tensor" in why(wanted(plain, format="sharded", part="/b/x.bin"))
    assert "is an object" in why(replace(wanted(plain), expression=""))
    harmful = replace(judge(wanted(plain).checkpoint), verdict="unknown")
    assert "not safe" in why_no_code(wanted(plain), harmful)
