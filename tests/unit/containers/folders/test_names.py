from __future__ import annotations

from inspector.containers.megatron import Megatron
from inspector.safety.names import judge_global


def test_none_of_them_can_do_harm() -> None:
    assert {judge_global(name) for name in Megatron.own_names} <= {"tensor", "allowed", "unknown"}
