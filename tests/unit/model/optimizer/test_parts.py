"""Optimizers of a part of a model; against Stable-Baselines3 itself in `tests/unit/test_frameworks.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.optimizer import naming
from inspector.model.optimizer.naming import trained_part
from inspector.model.optimizer.parameters import Parameters, Shape
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")

A, B = (4, 4), (4,)
ACTOR = [("actor.w", A), ("actor.b", B)]
CRITIC = [("critic.w", A), ("critic.b", B)]
TARGET = [("critic_target.w", A), ("critic_target.b", B)]


def model(*rows: tuple[str, Shape], is_ordered: bool = True) -> Parameters:
    return Parameters(
        "m", [name for name, _ in rows], [shape for _, shape in rows], ("m",), is_ordered=is_ordered
    )


def part(key: object, shapes: list[Shape | None], *models: Parameters, room: bool = True) -> str | None:
    found = trained_part((key,) if key else (), shapes, models, lambda _: room)  # type: ignore[arg-type]
    return None if found is None else f"{found.where}: {' '.join(found.names)}"


def test_an_optimizer_is_named_after_what_it_trains() -> None:
    whole = model(*ACTOR, *CRITIC, *TARGET)
    for key in ("actor.optimizer.pth", "actor_optim", "actor.Optimizer"):
        assert part(key, [A, B], whole) == "actor of m: actor.w actor.b"
    assert part("actor.optimizer.pth", [A, None], whole) is None  # one shape alone is not enough
    assert part("actor.optimizer.pth", [A, B, B], whole) is None
    assert part("actor.optimizer.pth", [B, A], whole) is None
    assert part("actor.optimizer.pth", [A, B], model(*ACTOR, *CRITIC, is_ordered=False)) is None
    assert part("actor.optimizer.pth", [A, B], model(*ACTOR)) is None
    assert part("actor.optimizer.pth", [A, B], whole, whole) is None  # of which of the two is not known
    assert part("actor.optimizer.pth", [A, B], whole, room=False) is None
    assert part("optimizer", [A, B], model(*ACTOR, *CRITIC)) is None
    assert part(0, [A, B], model(*ACTOR, *CRITIC)) is None
    assert part(None, [A, B], model(*ACTOR, *CRITIC)) is None
    many = [(f"branch{number}.w", A) for number in range(100)]
    assert part("branch0.optim", [A, B], model(*many)) is None


def test_targets_are_not_trained() -> None:
    whole = model(*CRITIC, *TARGET)
    assert part("policy.optimizer", [A, B], whole) == "m without critic_target: critic.w critic.b"
    mixed = model(("target_q.w", A), ("q.w", A), ("q.b", B), ("target_q.b", B))
    assert part("", [A, B], mixed) == "m without target_q: q.w q.b"
    other = model(*CRITIC, ("critic_target.w", A))  # is no copy
    assert part("policy.optimizer", [A, B], other) is None


def test_slots_of_two_networks_get_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nets = torch.nn.ModuleDict({name: torch.nn.Linear(3, 3) for name in ("actor", "critic", "critic_target")})
    made = {}
    for name in ("actor", "critic"):
        optimizer = torch.optim.Adam(nets[name].parameters())
        nets[name](torch.ones(3)).sum().backward()
        optimizer.step()
        made[f"{name}.optimizer"] = optimizer.state_dict()
    whole = {"policy": nets.state_dict(), **made}
    found = saved(tmp_path, whole)
    names = {row.path: row.parameter for row in found.tensors if row.slot == "exp_avg"}
    assert names == {
        f"{name}.optimizer/state/{number}/exp_avg": f"{name}.{kind}"
        for name in ("actor", "critic")
        for number, kind in enumerate(("weight", "bias"))
    }
    assert {one.naming for one in found.optimizers} == {"recipe"}
    assert found.optimizers[0].detail == "Count, order and shapes agree with actor of policy."
    groups = torch.optim.Adam([{"params": [one]} for one in nets["actor"].parameters()])
    nets["actor"](torch.ones(3)).sum().backward()
    groups.step()
    found = saved(tmp_path, {"policy": nets.state_dict(), "actor.optimizer": groups.state_dict()})
    assert {row.parameter for row in found.tensors if row.slot} == {None}
    monkeypatch.setattr(naming, "MOST_COMPARED", 0)
    assert {row.parameter for row in saved(tmp_path, whole).tensors if row.slot} == {None}
