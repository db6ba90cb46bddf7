"""Which class saved an agent of Stable-Baselines3, and so loads it.

That stands nowhere in the file. Its policy and the names of its attributes tell: those are the arguments of
each algorithm (the modules of `stable_baselines3` and `sb3_contrib`).
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint

AGENT = "stable-baselines3"
"""The name of the format."""

_OWN, _CONTRIB = "stable_baselines3", "sb3_contrib"
_POLICY, _ATTRIBUTES = "policy_class", "data"


class Algorithm(NamedTuple):
    """One class: where it is imported from, what its policy begins with, and attributes that only it has."""

    package: str
    name: str
    policy: str
    attributes: tuple[str, ...] = ()


_ALGORITHMS = (
    Algorithm(_CONTRIB, "MaskablePPO", "sb3_contrib.common.maskable."),
    Algorithm(_CONTRIB, "RecurrentPPO", "sb3_contrib.common.recurrent."),
    Algorithm(_CONTRIB, "QRDQN", "sb3_contrib.qrdqn."),
    Algorithm(_CONTRIB, "TQC", "sb3_contrib.tqc."),
    Algorithm(_CONTRIB, "CrossQ", "sb3_contrib.crossq."),
    Algorithm(_CONTRIB, "ARS", "sb3_contrib.ars."),
    Algorithm(_CONTRIB, "TRPO", "", ("cg_max_steps",)),
    Algorithm(_OWN, "DQN", "stable_baselines3.dqn."),
    Algorithm(_OWN, "SAC", "stable_baselines3.sac."),
    Algorithm(_OWN, "TD3", "stable_baselines3.td3."),
    Algorithm(_OWN, "PPO", "", ("n_epochs", "clip_range")),
    Algorithm(_OWN, "DQN", "", ("exploration_fraction",)),
    Algorithm(_OWN, "SAC", "", ("target_entropy",)),
    Algorithm(_OWN, "TD3", "", ("target_policy_noise",)),
    Algorithm(_OWN, "A2C", "", ("gae_lambda",)),
)
"""In the order in which they are asked, the first where none is known by its policy."""


def algorithm_of(checkpoint: Checkpoint) -> Algorithm | None:
    """Return the class that an agent is of; None where nothing tells."""
    rows = [row for row in checkpoint.values if row.keys[:1] == (_ATTRIBUTES,)]
    policy = next((row.text for row in rows if row.keys[1:] == (_POLICY,)), "")
    names = [row.keys[1] for row in rows if len(row.keys) > 1]
    for row in _ALGORITHMS:
        if row.policy and policy.startswith(row.policy):
            return row
        if row.attributes and all(name in names for name in row.attributes):
            return row
    return None


def loader_of(checkpoint: Checkpoint) -> str:
    """Return what loads a file, as code that a path in parentheses follows."""
    if checkpoint.own_loader is not None:
        return checkpoint.own_loader.call
    found = algorithm_of(checkpoint) if format_of(checkpoint.format).is_agent else None
    return format_of(checkpoint.format).loader if found is None else f"{found.name}.load"
