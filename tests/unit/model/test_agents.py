from __future__ import annotations

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.model.agents import algorithm_of, loader_of
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from tests.builders.agents import agent, attributes, pickled
from tests.builders.pickles import name
from tests.corpus import CORPUS
from tests.frameworks.cases import FILES
from tests.sweep import table


def opened(policy: str = "", **values: object) -> Checkpoint:
    own = {"policy_class": pickled(name(policy))} if policy else {}
    data = agent(data=attributes(**own, **values))
    return build_checkpoint(read_container(BytesSource(data, "a.zip")))


@table(
    ("file", "loader"),
    [("ppo_cartpole", "PPO"), ("a2c_cartpole", "A2C"), ("dqn", "DQN"), ("sac_pendulum", "SAC")],
)
def test_genuine_agents_are_told(file: str, loader: str) -> None:
    found = open_checkpoint(str(FILES / f"sb3/{file}.zip"))
    assert loader_of(found) == f"{loader}.load"


def test_class_is_told_by_policy_then_by_attributes() -> None:
    common = "stable_baselines3.common.policies.ActorCriticPolicy"
    for wanted, found in (
        (
            "sb3_contrib.MaskablePPO",
            opened("sb3_contrib.common.maskable.policies.X", n_epochs=1, clip_range=1),
        ),
        ("sb3_contrib.QRDQN", opened("sb3_contrib.qrdqn.policies.QRDQNPolicy", exploration_fraction=1)),
        ("sb3_contrib.TRPO", opened(common, cg_max_steps=1, gae_lambda=1)),
        ("stable_baselines3.TD3", opened("stable_baselines3.td3.policies.TD3Policy")),
        ("stable_baselines3.PPO", opened(common, n_epochs=4, clip_range=1, gae_lambda=1)),
        ("stable_baselines3.A2C", opened("mine.Policy", gae_lambda=1)),
        ("stable_baselines3.SAC", opened("mine.Policy", target_entropy=1)),
        ("", opened("mine.Policy")),
        ("", opened(nested={"gae_lambda": 1})),
    ):
        algorithm = algorithm_of(found)
        assert wanted == ("" if algorithm is None else f"{algorithm.package}.{algorithm.name}")


def test_other_formats_have_the_loader_of_their_row() -> None:
    assert loader_of(open_checkpoint(str(CORPUS / "plain_pickle/state_p4.pkl"))) == "pickle.load"
    assert loader_of(opened()) == "BaseAlgorithm.load"
