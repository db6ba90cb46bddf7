"""Zips of Stable-Baselines3: parameters, optimizers and variables, each saved by torch within."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, describe, members

SMALL = {"net_arch": [8, 8]}


def keep(out: Out, model: Any, name: str) -> None:
    path = out.scratch / f"{name}.zip"
    model.save(path)
    truths = {"policy.pth": Truth().model(model.policy), "pytorch_variables.pth": Truth().role("other")}
    names, tensors = model._get_torch_save_params()
    for name_of in names:
        if "optimizer" not in name_of:
            continue
        owner: Any = model
        for step in name_of.split("."):
            owner = getattr(owner, step)
        holder = getattr(model, name_of.split(".")[0])
        truth = Truth().role("optimizer")  # that of a bare variable has nothing to name
        is_module = isinstance(holder, torch.nn.Module)  # the policy, or a part of it: policy.pth has both
        truths[f"{name_of}.pth"] = truth.optimizer(owner, model.policy) if is_module else truth
    del tensors
    rows = []
    for record, content in members(path).items():
        if record.endswith(".pth"):
            part = out.scratch / Path(record).name
            part.write_bytes(content)
            torch.load(io.BytesIO(content), weights_only=False)
            found = describe(part, truths.get(record, Truth()), "zip")
            rows += [{**row, "path": [record, *row["path"]]} for row in found["tensors"]]
    facts = {"container": "sb3", "torch_loads": False, "torch_loads_weights_only": False, "tensors": rows}
    out.say(path, f"{name}.zip", {**facts, "oracle_source": "torch.load of each record"})


@maker("sb3/on_policy")
def on_policy(out: Out) -> None:
    world = gymnasium.make("CartPole-v1")
    keep(
        out, PPO("MlpPolicy", world, n_steps=16, batch_size=16, policy_kwargs=SMALL).learn(16), "ppo_cartpole"
    )
    keep(out, A2C("MlpPolicy", world, policy_kwargs=SMALL).learn(10), "a2c_cartpole")
    keep(
        out, DQN("MlpPolicy", world, learning_starts=2, policy_kwargs=SMALL, buffer_size=50).learn(20), "dqn"
    )


@maker("sb3/off_policy")
def off_policy(out: Out) -> None:
    world = gymnasium.make("Pendulum-v1")
    options = {"learning_starts": 2, "policy_kwargs": SMALL, "buffer_size": 50}
    keep(out, SAC("MlpPolicy", world, **options).learn(6), "sac_pendulum")
