from __future__ import annotations

from inspector.report.charts.bars import flows_of
from inspector.report.charts.forecast import memory_of, room_chart, room_text
from inspector.report.colors import NEUTRAL
from inspector.target.profile import Gpu, Profile
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage

FILE = checkpoint(storage("0", "cuda:0", 700), storage("1", "cuda:1", 100), storage("2", "cpu", 20))
TARGET = Profile(
    id="this",
    label="2 GPUs",
    accelerators=(("cuda", 2),),
    gpus=(Gpu(device="cuda:0", memory_nbytes=500), Gpu(device="cuda:1")),
    memory_nbytes=1000,
)


def test_each_device_has_its_track() -> None:
    chart = room_chart(flows_of(FILE, {}), TARGET, {"cuda:0": 0, "cuda:1": 1, "cpu": NEUTRAL})
    assert chart.title == "In the memory of 2 GPUs"
    assert [(bar.label, bar.nbytes, bar.capacity_nbytes, bar.excess_nbytes) for bar in chart.bars] == [
        ("cuda:0", 700, 500, 200),
        ("cpu", 20, 1000, 0),  # how much cuda:1 has is not known
    ]
    assert [bar.text for bar in chart.bars] == ["700 B of 500 B: 200 B too much", "20 B of 1.0 KB"]
    assert [bar.segments[0].query for bar in chart.bars] == ["device:cuda:0", "device:cpu"]
    moved = room_chart(flows_of(FILE, {"0": "cuda:1", "1": "cpu"}), TARGET, {})
    assert moved.title == "In the memory of 2 GPUs, as saved and after the map"
    assert [(bar.label, bar.nbytes, bar.excess_nbytes, bar.segments[0].query) for bar in moved.bars] == [
        ("cuda:0, as saved", 700, 200, "device:cuda:0"),
        ("cpu, as saved", 20, 0, "device:cpu"),
        ("cpu", 120, 0, ""),
    ]
    assert {bar.segments[0].label for bar in moved.bars} == {"cuda:0", "cpu"}
    swapped = room_chart(flows_of(checkpoint(storage("0", "cuda:1", 700)), {"0": "cuda:0"}), TARGET, {})
    assert swapped.title == "After the map, in the memory of 2 GPUs"
    gone = room_chart(flows_of(FILE, {"0": "cuda:1", "2": "cuda:1"}), TARGET, {})
    assert gone is None  # how much there is of where all goes is not known


def test_without_any_memory_known_there_is_no_chart() -> None:
    assert room_chart(flows_of(FILE, {}), parse_target("8xcuda"), {}) is None
    assert room_chart(flows_of(checkpoint(), {}), TARGET, {}) is None
    assert memory_of(parse_target("cuda@24gb")) == {"cuda:0": 24 * 10**9, "cpu": None}
    assert room_text(5, 5) == "5 B of 5 B"


def test_a_tag_without_a_number_is_the_first_device() -> None:
    file = checkpoint(storage("0", "cuda", 400), storage("1", "cuda:0", 300))
    (bar,) = room_chart(flows_of(file, {}), TARGET, {"cuda": 3}).bars
    assert (bar.label, bar.nbytes, bar.excess_nbytes) == ("cuda:0", 700, 200)
    assert (bar.segments[0].color, bar.segments[0].query) == (3, "")
