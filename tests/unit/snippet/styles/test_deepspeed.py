"""The style `deepspeed`, as text; `test_table_torch.py` runs it."""

from __future__ import annotations

from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from tests.unit.snippet.rows import checkpoint, optimizer, tensor, value


def deepspeed(*rows: object, path: str = "best.pth", **options: object) -> str:
    return render(checkpoint(*rows, **options), style="deepspeed", target=CPU_ONLY, path=path)


def test_model_is_filled_before_the_engine_is_made() -> None:
    text = deepspeed(tensor("net", "w"), optimizers=(optimizer("opt"),))
    order = [
        "import deepspeed\nimport torch\n",
        "torch.load(",
        "net.load_state_dict(",
        "engine, optimizer, _, ",
    ]
    assert sorted(order, key=text.index) == order
    assert text.endswith(
        "# DeepSpeed's optimizers take no other state: engine.save_checkpoint saves theirs.\n"
    )
    assert "take no other" not in deepspeed(tensor("net", "w"))


def test_several_models_have_an_engine_each() -> None:
    text = deepspeed(tensor("a", "w"), tensor("b", "v"))
    assert "a_engine, optimizer, " in text
    assert "b_engine, optimizer, " in text


def test_files_of_its_own_are_loaded_by_folder_and_tag() -> None:
    own = {"values": (value("ds_version", type="str"),)}
    for path, call in (
        ("run/global_step10/mp_rank_00_model_states.pt", '("run", tag="global_step10")'),
        ("C:\\run\\step10\\mp_rank_00_model_states.pt", '("C:/run", tag="step10")'),
        ("step10/mp_rank_00_model_states.pt", '(".", tag="step10")'),
        ("mp_rank_00_model_states.pt", '(".")'),
    ):
        text = deepspeed(tensor("module", "l.weight"), path=path, **own)
        assert f"engine.load_checkpoint{call}\n" in text
        assert "torch" not in text
