"""Variables are plain identifiers, named after keys, and each is given once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.model.checkpoint import Key
from inspector.snippet.request import Names, is_free
from tests.sweep import table


@table(
    "kind, keys, name",
    [
        ("model", (), "model"),
        ("model", ("model",), "model"),
        ("model", ("model_state_dict",), "model"),
        ("model", ("state_dict",), "model"),
        ("model", ("netG",), "netG"),
        ("model", ("netG_state_dict",), "netG"),
        ("model", ("state_dict_G",), "G"),
        ("model", ("target_net",), "target_net"),
        ("model", ("generator", "model"), "generator"),
        ("model", ("models", "D"), "D"),
        ("model", ("models", 0), "model"),
        ("model", ("wsd",), "wsd"),
        ("model", ("1st",), "model_1st"),
        ("model", ("torch",), "torch_model"),
        ("model", ("class",), "class_model"),
        ("model", ("match",), "match_model"),
        ("model", ("__builtins__",), "builtins_model"),
        ("model", ("print",), "print_model"),
        ("model", ("a b/c",), "a_b_c"),
        ("model", ("\u202e",), "model"),
        ("model", ("x" * 200,), "x" * 40),
        ("optimizer", ("optimizer_states", 0), "optimizer"),
        ("optimizer", ("optimizers", "G"), "optimizer_G"),
        ("optimizer", ("opt",), "opt"),
        ("optimizer", ("generator", "optimizer"), "optimizer_generator"),
        ("scheduler", ("lr_schedulers", 0), "lr_scheduler"),
        ("scheduler", ("s",), "scheduler_s"),
        ("scaler", ("amp",), "amp"),
    ],
)
def test_names(kind: str, keys: tuple[Key, ...], name: str) -> None:
    assert Names().give(kind, keys) == name


def test_each_name_is_given_once() -> None:
    names = Names({"netG"})
    assert [names.give("model", ("netG",)) for _ in range(2)] == ["netG_2", "netG_3"]
    assert names.give("model", ("a", "b")) == "b"
    assert names.give("model", ("c", "b")) == "c_b"
    assert names.give("model", ("c", "b")) == "b_2"


@table("name", ["torch", "os", "def", "case", "list", "__import__", "to_cpu"])
def test_what_means_something(name: str) -> None:
    assert not is_free(name)
    assert is_free("netG")


@pytest.mark.wide
@given(
    st.lists(st.text(max_size=12) | st.integers(), max_size=3),
    st.sampled_from(["model", "optimizer", "scaler"]),
)
def test_every_key_gives_a_plain_name(keys: list[str | int], kind: str) -> None:
    names = Names()
    for name in (names.give(kind, tuple(keys)), names.give(kind, tuple(keys))):
        assert name.isascii()
        assert name.isidentifier()
        assert is_free(name)
        assert len(name) < 100
        assert not name.startswith("_")
