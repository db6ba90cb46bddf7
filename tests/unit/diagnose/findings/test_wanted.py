"""What loads, and lands on another device than the one that is wanted."""

from __future__ import annotations

from inspector.model.findings import Fix
from tests.sweep import table
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint, storage, tensor


def on(*devices: str) -> object:
    rows = [storage(str(number), device) for number, device in enumerate(devices)]
    rows += [
        tensor(f"t{number}", device=device, storage=str(number)) for number, device in enumerate(devices)
    ]
    return checkpoint(*rows)


@table(
    ("devices", "target", "title", "rule"),
    [
        (("cuda:0",), "2xcuda:1", "Saved on cuda:0, and cuda:1 is wanted", "cuda:0=cuda:1"),
        (("cuda",), "2xcuda:1", "Saved on cuda, and cuda:1 is wanted", "cuda=cuda:1"),
        (("cuda:0",), "2xcuda@cpu", "Saved on cuda:0, and cpu is wanted", "cuda:0=cpu"),
        (("cuda:0", "cuda:2"), "4xcuda:1", "Saved on cuda:0, cuda:2, and cuda:1 is wanted", "cuda:*=cuda:1"),
        (
            [f"cuda:{index}" for index in range(8)],
            "8xcuda:7",
            "Saved on cuda:0, cuda:1, cuda:2, cuda:3, ..., and cuda:7 is wanted",
            "cuda:*=cuda:7",
        ),
        (("xpu:0",), "2xxpu:1", "Saved on xpu:0, and xpu:1 is wanted", "xpu:0=xpu:1"),
        (("cuda:1",), "2xcuda:1", None, None),
        (("cuda",), "2xcuda:0", None, None),
        (("cuda:0",), "2xcuda", None, None),
        (("cpu", "meta"), "2xcuda:1", None, None),
        (("mps:0",), "mps:0", None, None),
        (("cuda:7", "mps"), "2xcuda:1", None, None),
    ],
)
def test_what_lands_elsewhere(
    devices: tuple[str, ...], target: str, title: str | None, rule: str | None
) -> None:
    found = findings(on(*devices), target).get("not-on-wanted-device")
    assert (found and found.title) == title
    assert (found and found.fix) == (None if rule is None else Fix(rule=rule))


@table(
    ("target", "said"),
    [
        ("2xcuda:1", None),
        ("2xcuda:1@3mb", None),
        ("2xcuda:1@1gb", None),
        ("2xcuda:1@1.5mb", "It would take 2.0 MB there, and cuda:1 has 1.5 MB."),
        ("2xcuda@cpu@1.5mb", None),
    ],
)
def test_what_would_not_fit_on_the_wanted_device_is_not_sent_there(target: str, said: str | None) -> None:
    rows = [storage(str(index), f"cuda:{index}", 10**6) for index in (0, 1)]
    rows += [tensor(f"t{index}", device=f"cuda:{index}", storage=str(index)) for index in (0, 1)]
    made = checkpoint(*rows)
    found = findings(made, target)["not-on-wanted-device"]
    assert found.detail.endswith(said or "Map it there, with map_location or in a copy.")
    assert (found.fix is None) is (said is not None)


def test_without_a_target_nothing_is_wanted() -> None:
    assert "not-on-wanted-device" not in findings(on("cuda:0"), None)


@table(
    ("devices", "target", "rule"),
    [
        (("cuda:0", "cuda:7"), "2xcuda:1", "cuda:*=cuda:1"),
        (("cuda:1", "cuda:7"), "2xcuda:1", "cuda:7=cuda:1"),
        (("cuda:0", "mps"), "2xcuda:1", "*=cuda:1"),
        (("cuda:1", "mps"), "2xcuda:1", "mps=cuda:1"),
        (("cuda:0", "cuda:7"), "2xcuda", "cuda:7=cuda:0"),
    ],
)
def test_what_stops_the_load_is_mapped_along_with_what_lands_elsewhere(
    devices: tuple[str, ...], target: str, rule: str
) -> None:
    found = findings(on(*devices), target)
    stops = found.get("cuda-index-out-of-range") or found["mps-unavailable"]
    assert stops.fix == Fix(rule=rule)


def test_a_storage_without_a_tensor_is_mapped_by_the_argument() -> None:
    found = findings(checkpoint(storage("0", "cuda:7"), tensor("w", storage="0")), "2xcuda:1")
    assert found["cuda-index-out-of-range"].fix == Fix(option=("map_location", "'cpu'"))
