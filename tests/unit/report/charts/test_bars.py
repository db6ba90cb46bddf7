from __future__ import annotations

from inspector.report.charts.bars import Bar, Chart, device_chart, dtype_chart, role_chart, waste_chart
from inspector.report.colors import NEUTRAL
from tests.unit.report.rows import checkpoint, storage, tensor

ROWS = checkpoint(
    tensor("a", storage="0"),
    tensor("b", storage="1", dtype="int64", role="buffer"),
    tensor("c", storage="2", role="buffer"),
    storage("0", "cuda:0", 3000),
    storage("1", "cpu", 20),
    storage("2", "cuda:0", 0),
)


def bars(chart: Chart) -> list[tuple[str, str, list[tuple[str, int, int]]]]:
    return [
        (bar.label, bar.text, [(piece.label, piece.color, piece.nbytes) for piece in bar.segments])
        for bar in chart.bars
    ]


def test_devices_before_and_after_a_map() -> None:
    chart = device_chart(ROWS, {"0": "cpu"}, {"cuda:0": 0, "cpu": NEUTRAL})
    assert chart.title == "Memory by device"
    assert bars(chart) == [
        ("As saved", "3.0 KB", [("cuda:0", 0, 3000), ("cpu", NEUTRAL, 20)]),
        ("After the map", "3.0 KB", [("cpu", NEUTRAL, 3020)]),
    ]


def test_roles_in_their_order_one_bar_each() -> None:
    assert bars(role_chart(ROWS)) == [
        ("parameter", "3.0 KB", [("parameter", NEUTRAL, 3000)]),
        ("buffer", "20 B", [("buffer", NEUTRAL, 20)]),
    ]


def test_dtypes_the_largest_first() -> None:
    assert [label for label, _, _ in bars(dtype_chart(ROWS))] == ["float32", "int64"]


def test_the_last_of_too_many_are_added_up() -> None:
    many = [tensor(str(index), storage=str(index), dtype=f"float{index}") for index in range(12)]
    stored = [storage(str(index), f"odd{index:02}", 100 - index) for index in range(12)]
    chart = dtype_chart(checkpoint(*many, *stored))
    assert [bar.label for bar in chart.bars][-2:] == ["float8", "others"]
    assert len(chart.bars) == 10
    assert chart.bars[-1].segments[0].nbytes == 91 + 90 + 89
    crowd = [storage(str(index), f"cuda:{index}", 1) for index in range(100)]
    before = device_chart(checkpoint(*crowd), {}, {}).bars[0]
    assert len(before.segments) == 64
    assert before.segments[-1].label == "others"
    assert sum(segment.nbytes for segment in before.segments) == 100


def test_a_device_is_named_harmless() -> None:
    chart = device_chart(checkpoint(storage("0", "a\nb", 5)), {}, {})
    assert chart.bars[0].segments[0].label == r"a\u000ab"


def test_a_checkpoint_without_bytes_has_empty_bars() -> None:
    assert bars(device_chart(checkpoint(), {}, {})) == [("As saved", "0 B", [])]
    assert role_chart(checkpoint()).bars == dtype_chart(checkpoint()).bars == ()


def test_a_second_bar_is_there_where_something_is_mapped() -> None:
    for moved, labels in (
        ({}, ["As saved"]),
        ({"0": "cuda:0"}, ["As saved"]),
        ({"0": "cpu"}, ["As saved", "After the map"]),
    ):
        assert [bar.label for bar in device_chart(ROWS, moved, {}).bars] == labels


def test_a_part_is_found_by_its_search() -> None:
    file = checkpoint(
        tensor("a", storage="0", device="cuda:0"),
        tensor("b", storage="1", device="cuda:1"),
        tensor("c", storage="2", device="cuda:1"),
        storage("0", "cuda:0", 10),
        storage("1", "cuda:1", 10),
        storage("2", "cuda:1", 10),
    )

    def queries(moved: dict[str, str]) -> list[list[str]]:
        return [[part.query for part in bar.segments] for bar in device_chart(file, moved, {}).bars]

    saved = ["device:cuda:0", "device:cuda:1"]
    assert queries({}) == [saved]
    assert queries({"0": "cpu"}) == [saved, ["device:cuda:1", "device:cuda:0"]]
    # What comes from two devices, or is not all of one, has no search.
    assert queries({"0": "cpu", "1": "cpu"}) == [saved, ["", ""]]
    assert role_chart(file).bars[0].segments[0].query == "role:parameter"
    assert dtype_chart(file).bars[0].segments[0].query == "dtype:float32"


def test_what_no_tensor_views_is_counted_too() -> None:
    file = checkpoint(tensor("a", storage="0"), storage("0", nbytes=60), storage("1", nbytes=40))
    for chart in (role_chart(file), dtype_chart(file)):
        assert sum(bar.nbytes for bar in chart.bars) == 100
        assert (chart.bars[-1].label, chart.bars[-1].segments[0].query) == ("in no tensor", "")


def test_waste_is_shown_where_there_is_some() -> None:
    file = checkpoint(tensor("a", storage="0"), storage("0", nbytes=1000, viewed_nbytes=100))
    chart = waste_chart(file)
    assert bars(chart) == [
        (
            "Storages",
            "900 B of 1.0 KB are viewed by no tensor",
            [("viewed by tensors", 0, 100), ("viewed by none", 2, 900)],
        )
    ]
    assert waste_chart(ROWS) is None
    assert waste_chart(checkpoint()) is None


def test_what_there_is_no_room_for() -> None:
    bar = Bar(label="", segments=(), text="", capacity_nbytes=5)
    assert (bar.nbytes, bar.excess_nbytes) == (0, 0)
    assert Bar(label="", segments=(), text="").excess_nbytes == 0


def test_what_is_not_there_is_no_waste() -> None:
    file = checkpoint(storage("0", "cpu", 3000), storage("1", "cpu", 1000, missing=True, viewed_nbytes=0))
    assert waste_chart(file) is None
