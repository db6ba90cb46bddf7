from __future__ import annotations

from inspector.diagnose.script.answer import answer_script
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
