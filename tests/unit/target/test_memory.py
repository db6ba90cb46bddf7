from __future__ import annotations

import pytest

from inspector.target.call import LoadCall
from inspector.target.memory import HOST, Forecast, Room, Routine, Stage, Use, fits, forecast
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

MB = 1_000_000
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


def test_peaks_and_finals_over_all_stages() -> None:
    said = forecast(SAVED, GPUS, LoadCall(map_location="cpu"), IN_TURN)
    host, gpu = said.uses
    assert [stage.name for stage in said.stages] == ["load", "load_state_dict", "to"]
    assert (host.peak_nbytes // MB, host.final_nbytes // MB) == (200, 100)
    assert (gpu.device, gpu.peak_nbytes // MB) == ("cuda:0", 100)


def test_a_peak_may_be_on_a_device_that_is_empty_at_the_end() -> None:
    early = Stage(name="load", uses=(Use(device="xpu:0", peak_nbytes=5, final_nbytes=0),), mapped_nbytes=0)
    late = Stage(name="to", uses=(), mapped_nbytes=0)
    said = Forecast(failure=None, ranks=1, stages=(early, late))
    assert said.uses == (Use(device="xpu:0", peak_nbytes=5, final_nbytes=0),)


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
    assert said.failure is not None
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
