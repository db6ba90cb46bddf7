from __future__ import annotations

from inspector.containers.deepspeed import StatesFile, states_files, tags_of


def test_files_of_states_are_told_by_their_names() -> None:
    names = [
        "zero_pp_rank_10_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt",
        "mp_rank_01_model_states.pt",
        "zero_pp_rank_0_mp_rank_00optim_states.pt",
        "x_mp_rank_01_model_states.pt",
        "mp_rank_01_model_states.pt.bak",
        "layer_00-model_states.pt",
    ]
    found = [
        StatesFile(names[2], "model", 1, -1),
        StatesFile(names[3], "optim", 0, 0),
        StatesFile(names[1], "optim", 0, 2),
        StatesFile(names[0], "optim", 0, 10),
    ]
    assert states_files(names, "") == found
    below = [f"step/{name}" for name in names]
    assert states_files(below, "step") == [file._replace(name=f"step/{file.name}") for file in found]
    assert states_files(below, "other") == states_files(below, "") == []


def test_tags_are_in_the_order_of_their_numbers() -> None:
    names = [f"{tag}/mp_rank_00_model_states.pt" for tag in ("step10", "step9", "best", "a/b")]
    assert tags_of(names) == ["best", "step9", "step10"]
    assert tags_of(["mp_rank_00_model_states.pt", "x/y.pt"]) == [""]
