from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.records import replace
from tests.unit.diagnose.script.following import NET, check, loaded_as, machine


def test_optimizers() -> None:
    check("optimizers")


def test_nothing_is_claimed_of_a_state_that_is_not_read_as_one() -> None:
    text = NET + (
        "opt = optim.Adam(model.parameters())\n"
        'opt.load_state_dict(torch.load("train_cuda.pth", map_location="cpu")["optimizer"])\n'
        "model.cuda()\nopt.step()\n"
    )
    outcomes = [
        answer_script(text, "a.py", loaded_as("train_cuda.pth", **changes), machine("cuda")).kind
        for changes in ({}, {"optimizers": ()})
    ]
    assert outcomes == ["optimizer-left-behind", ""]


IMPORTED = """import torch
from torch import optim
from lib import N
n = N()
opt = optim.AdamW({})
opt.load_state_dict(torch.load("train_cuda.pth", map_location="cpu")["optimizer"])
"""
"""A model of a class that is not known, and so is not how many parameters it has."""


def test_how_many_groups_there_are_is_known_without_the_class() -> None:
    (saved,) = loaded_as("train_cuda.pth").optimizers

    def asked(params: str, *groups: int) -> ScriptAnswer:
        file = loaded_as("train_cuda.pth", optimizers=(replace(saved, groups=groups),))
        return answer_script(IMPORTED.format(params), "a.py", file, machine("cpu"))

    found = asked("n.parameters()", 2, 2)
    assert (found.kind, found.line) == ("optimizer-groups", 6)
    assert found.message == "ValueError: loaded state dict has a different number of parameter groups"
    assert "holds 1 group of parameters, the file's 4 parameters in 2 groups" in found.why
    one, two = '{"params": n.a.parameters()}', '{"params": n.b.parameters()}'
    assert [asked(params, 2, 2).kind for params in (f"[{one}, {two}]", f"[{one}]")] == [
        "",
        "optimizer-groups",
    ]
    # Of what may hold any number of groups, or any number of parameters, nothing is said.
    unknown = ("what(n)", "list(n.parameters())", "[*what(n)]", f"[{one}, *what(n)]")
    assert [asked(params, 2, 2).kind for params in unknown] == [""] * 4
    assert asked("n.parameters()", 7).kind == ""
