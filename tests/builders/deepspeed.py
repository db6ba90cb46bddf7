"""Folders of DeepSpeed made by hand: vectors of ranks, and what the model's file says of them."""

from __future__ import annotations

import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.builders.dcp import saved_zip, size
from tests.builders.pickles import dict_, list_, number, proto, storage, stream, tensor, text

Shapes = Mapping[str, Sequence[int]]


def mapping(**items: bytes) -> bytes:
    return dict_(*((text(key), value) for key, value in items.items()))


def shapes(group: Shapes) -> bytes:
    return dict_(*((text(name), size(*sizes)) for name, sizes in group.items()))


def vector(key: str, values: Sequence[float], location: str = "cpu") -> bytes:
    return tensor(storage(key, numel=len(values), location=location), len(values))


def model_file(groups: Sequence[Shapes], storages: Mapping[str, bytes] | None = None, **more: bytes) -> bytes:
    root = mapping(param_shapes=list_(*map(shapes, groups)), **{"module": dict_(), **more})
    return saved_zip(stream(proto(), root), storages)


def optim_file(
    vectors: Sequence[Sequence[float]],
    *,
    stage: int = 2,
    ranks: int = 2,
    location: str = "cpu",
    shortened: int = 0,
    **more: bytes,
) -> bytes:
    """The file of one rank: its vectors, and a slot of the optimizer that has their negatives."""
    data = {str(number): list(values) for number, values in enumerate(vectors)}
    weights = list_(*(vector(key, values, location) for key, values in data.items()))
    negatives = {
        f"s{key}": [-one for one in values[: len(values) - shortened]] for key, values in data.items()
    }
    states = [
        (number(index), mapping(exp_avg=vector(key, values, location)))
        for index, (key, values) in enumerate(negatives.items())
    ]
    groups = list_(*(mapping(lr=number(1), params=list_(number(at))) for at in range(len(data))))
    base = mapping(state=dict_(*states), param_groups=groups)
    names = (
        ("fp32_flat_groups", "optimizer_state_dict")
        if stage == 3
        else ("single_partition_of_fp32_groups", "base_optimizer_state")
    )
    state = {names[0]: weights, names[1]: base, "partition_count": number(ranks), "zero_stage": number(stage)}
    root = mapping(optimizer_state_dict=mapping(**{**state, **more}), version=number(1))
    files = {key: array.array("f", values).tobytes() for key, values in {**data, **negatives}.items()}
    return saved_zip(stream(proto(), root), files)


def write(folder: Path, files: Mapping[str, bytes], tag: str = "global_step1") -> Path:
    (folder / tag).mkdir(parents=True)
    (folder / "latest").write_text(tag)
    for name, data in files.items():
        (folder / tag / name).write_bytes(data)
    return folder


def zero2(**changed: bytes) -> dict[str, bytes]:
    """ZeRO 2 of two ranks: `a` of 2 x 2 and `b` of 3, of which the first rank has one element."""
    return {
        "mp_rank_00_model_states.pt": model_file([{"a": (2, 2), "b": (3,)}]),
        "zero_pp_rank_0_mp_rank_00_optim_states.pt": optim_file([[0, 1, 2, 3, 4]]),
        "zero_pp_rank_1_mp_rank_00_optim_states.pt": optim_file([[5, 6, 0]]),
        **changed,
    }
