"""What each step takes, on rows whose sums can be done by hand."""

from __future__ import annotations

import pytest

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.target.call import LoadCall, TagMap
from inspector.target.memory import (
    HOST,
    LOAD_ALONE,
    Room,
    Routine,
    Sizes,
    fits,
    forecast,
    stages_of_rank,
    together,
)
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

GPU = Profile(
    id="cuda:2",
    label="2 GPUs",
    accelerators=(("cuda", 2), ("xpu", 1)),
)
MB = 1_000_000
MIXED = checkpoint(
    storage("0", "cuda:0", 100 * MB),
    storage("1", "cpu", 40 * MB),
    storage("2", "cuda:0", 30 * MB),
    tensor("w", device="cuda:0", storage="0", nbytes=100 * MB),
    tensor("b", device="cpu", storage="1", nbytes=40 * MB, role="buffer"),
    tensor("m", device="cuda:0", storage="2", nbytes=30 * MB, role="optimizer"),
)
COPY = Routine(fills_model=True)
TO_GPU = "cuda:1"


def steps(
    routine: Routine = LOAD_ALONE, found: Checkpoint = MIXED, **how: object
) -> list[tuple[str, dict[str, tuple[int, int]], int]]:
    """The stages in megabytes, without the objects that come with a tensor."""
    stages = stages_of_rank(found, Sizes(found), GPU, LoadCall(**how), routine)
    return [
        (
            stage.name,
            {use.device: (round(use.peak_nbytes / MB), round(use.final_nbytes / MB)) for use in stage.uses},
            round(stage.mapped_nbytes / MB),
        )
        for stage in stages
    ]


def test_a_mapped_file_takes_nothing_until_it_is_read() -> None:
    assert steps(map_location="cpu", mmap=True) == [("load", {HOST: (0, 0)}, 0)]


def test_the_other_byte_order_is_swapped_in_place() -> None:
    big = replace(MIXED, versions=(("byteorder", "big"),))
    assert steps(found=big, map_location="cpu", mmap=True) == [("load", {HOST: (170, 170)}, 0)]


def test_meta_takes_nothing() -> None:
    assert steps(map_location="meta") == [("load", {HOST: (0, 0)}, 0)]
    one_by_one = steps(map_location=TagMap(pairs=(("cuda:0", "meta"),)))
    assert one_by_one == [("load", {HOST: (140, 40)}, 0)]
    assert steps(map_location=TagMap(pairs=(("cuda:0", "meta"),)), mmap=True)[0][2] == 0


def test_a_model_that_is_filled_stands_on_the_host() -> None:
    assert steps(COPY, map_location="cpu") == [
        ("load", {HOST: (170, 170)}, 0),
        ("load_state_dict", {HOST: (310, 310)}, 0),
    ]
    assert steps(COPY, map_location="cpu", mmap=True)[1] == ("load_state_dict", {HOST: (140, 140)}, 140)


def test_moving_a_copy_frees_it() -> None:
    moved = steps(replace(COPY, to=TO_GPU), map_location="cpu")[2]
    assert moved == ("to", {HOST: (310, 170), TO_GPU: (140, 140)}, 0)
    stayed = steps(replace(COPY, to="cpu"), map_location="cpu")[2]
    assert stayed == ("to", {HOST: (310, 310)}, 0)


@pytest.mark.parametrize(("to", "place"), [("cuda", "cuda:1"), ("xpu", "xpu:1")])
def test_a_device_without_a_number_is_the_rank_s_own(to: str, place: str) -> None:
    assert place in steps(replace(COPY, to=to), map_location="cpu", current=1)[2][1]


def test_cuda_gives_memory_in_pieces() -> None:
    small = checkpoint(storage("0", "cuda:0", 1), storage("1", "cuda:0", 513), storage("2", "xpu:0", 513))
    (stage,) = stages_of_rank(small, Sizes(small), GPU, LoadCall(), LOAD_ALONE)
    uses = {use.device: use.final_nbytes for use in stage.uses}
    assert (uses["cuda:0"], uses["xpu:0"]) == (512 + 1024, 513)


def test_tied_weights_are_one_parameter_and_parts_are_none() -> None:
    tied = checkpoint(
        storage("0", "cpu", 100),
        tensor("w", storage="0", nbytes=100),
        tensor("tied", storage="0", nbytes=100),
        tensor("view", storage="0", nbytes=50, storage_offset=0),
        tensor("wrapper", nbytes=7),
        tensor("wrapper", "part", nbytes=7, part_of=3),
        tensor("wrapper", "too", nbytes=7),
    )
    assert Sizes(tied).model["cpu"].total == 100 + 50 + 7 + 7


def test_a_sent_tensor_is_on_its_device_too() -> None:
    sent = checkpoint(tensor("n", device="cuda:1", nbytes=5 * MB, stride=None, storage_offset=None))
    assert steps(found=sent)[0][1]["cuda:1"] == (5, 5)


def test_objects_cost_memory_too() -> None:
    many = checkpoint(*(tensor(str(index), nbytes=0) for index in range(1000)))
    (stage,) = stages_of_rank(many, Sizes(many), GPU, LoadCall(weights_only=True), LOAD_ALONE)
    (use,) = stage.uses
    assert 1_000_000 < use.final_nbytes < use.peak_nbytes < 5_000_000


def test_ranks_add_up_but_for_the_file_s_pages() -> None:
    stages = [
        stages_of_rank(MIXED, Sizes(MIXED), GPU, LoadCall(map_location="cuda", mmap=True, current=rank), COPY)
        for rank in (0, 1)
    ]
    load, fill = map(together, zip(*stages, strict=True))
    alone = stages[0][0]
    assert {use.device for use in load.uses} == {HOST, "cuda:0", "cuda:1"}
    assert load.mapped_nbytes == alone.mapped_nbytes == 170 * MB
    assert fill.uses[0].peak_nbytes == 2 * stages[0][1].uses[0].peak_nbytes


GPUS = Profile(
    id="cuda:2",
    label="2 GPUs",
    accelerators=(("cuda", 2),),
    gpus=(Gpu(device="cuda:0", memory_nbytes=150 * MB), Gpu(device="cuda:1")),
    memory_nbytes=1000 * MB,
)
SAVED = checkpoint(
    storage("0", "cuda:0", 100 * MB), tensor("w", device="cuda:0", storage="0", nbytes=100 * MB)
)
IN_TURN = Routine(fills_model=True, to="cuda")


def test_one_process() -> None:
    said = forecast(SAVED, GPUS, LoadCall())
    assert (said.failure, said.ranks, [stage.name for stage in said.stages]) == (None, 1, ["load"])
    assert {use.device for use in said.uses} == {HOST, "cuda:0"}


def test_all_ranks_load_onto_the_gpu_that_the_file_names() -> None:
    alone, both = (forecast(SAVED, GPUS, LoadCall(), ranks=ranks) for ranks in (1, 2))
    assert {use.device: use.peak_nbytes for use in both.uses} == {
        use.device: 2 * use.peak_nbytes for use in alone.uses
    }


def test_each_rank_has_a_gpu_of_its_own_when_told_so() -> None:
    said = forecast(SAVED, GPUS, LoadCall(map_location="cuda"), ranks=2)
    assert {use.device: use.final_nbytes // MB for use in said.uses[1:]} == {"cuda:0": 100, "cuda:1": 100}


@table(
    ("target", "how", "routine", "ranks", "finding", "device"),
    [
        (CPU_ONLY, LoadCall(), Routine(), 1, "cuda-unavailable", "cuda:0"),
        (CPU_ONLY, LoadCall(map_location="cpu"), IN_TURN, 1, "cuda-unavailable", "cuda:0"),
        (GPUS, LoadCall(map_location="cuda"), Routine(), 3, "cuda-index-out-of-range", "cuda:2"),
    ],
)
def test_what_does_not_load_has_no_forecast(
    target: Profile, how: LoadCall, routine: Routine, ranks: int, finding: str, device: str
) -> None:
    said = forecast(SAVED, target, how, routine, ranks=ranks)
    assert (said.failure.finding, said.failure.device, said.stages) == (finding, device, ())
    assert said.uses == ()


def test_someone_must_load_it() -> None:
    with pytest.raises(ValueError, match="at least one process"):
        forecast(SAVED, GPUS, LoadCall(), ranks=0)


def test_whether_it_fits() -> None:
    said = forecast(SAVED, GPUS, LoadCall(), ranks=2)
    rooms = {room.device: room.fits for room in fits(said, GPUS)}
    assert rooms == {HOST: True, "cuda:0": False}
    assert fits(forecast(SAVED, GPUS, LoadCall(map_location="cuda:1")), GPUS)[1].fits is None
    assert Room(device=HOST, needed_nbytes=5, memory_nbytes=5).fits is True
