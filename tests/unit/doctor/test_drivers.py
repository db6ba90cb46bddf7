from __future__ import annotations

import pytest

from inspector.doctor.drivers import (
    compiled_for,
    cuda_version,
    driver_suffices,
    highest_cuda,
    is_newest_known,
    oldest_driver,
    parse_version,
    runs_code,
)
from tests.sweep import table

Version = tuple[int, int]


@table(
    ("text", "numbers"),
    [
        ("535.183.01", (535, 183, 1)),
        ("2.6.0+cu124", (2, 6, 0)),
        ("1.13.0.dev20220525", (1, 13, 0)),
        ("10.16", (10, 16)),
        ("", ()),
        (None, ()),
        ("x", ()),
        ("\u0663.1", ()),
        ("9" * 5000, ()),
    ],
)
def test_versions_begin_with_numbers(text: str | None, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


@table(
    ("text", "version"), [("12.4", (12, 4)), ("11", (11, 0)), ("12.4.1", (12, 4)), ("", None), (None, None)]
)
def test_cuda_versions_are_two_numbers(text: str | None, version: Version | None) -> None:
    assert cuda_version(text) == version


@table(
    ("cuda", "linux", "windows"),
    [
        ((10, 1), "418.39", "418.96"),
        ((10, 2), "440.33", "441.22"),
        ((11, 8), "450.80.02", "452.39"),
        ((12, 8), "525.60.13", "528.33"),
        ((13, 2), "580", "580"),
        ((14, 0), None, None),
        ((8, 0), None, None),
    ],
)
def test_every_cuda_has_an_oldest_driver(cuda: Version, linux: str | None, windows: str | None) -> None:
    assert oldest_driver(cuda, windows=False) == linux
    assert oldest_driver(cuda, windows=True) == windows


def test_a_driver_suffices_for_its_major_version() -> None:
    assert driver_suffices("525.60.13", (12, 8), windows=False) is True
    assert driver_suffices("525.60.12", (12, 8), windows=False) is False
    assert driver_suffices("528.24", (12, 1), windows=True) is False
    assert driver_suffices("999", (14, 0), windows=False) is None
    assert driver_suffices("unknown", (12, 0), windows=False) is None


@table(
    ("driver", "cuda"),
    [
        ("470.223.02", (11, 4)),
        ("472.50", (11, 4)),
        ("535.183.01", (12, 2)),
        ("566.36", (12, 7)),
        ("576.02", (12, 9)),
        ("580.65.06", (13, 0)),
        ("390.157", (9, 1)),
        ("999.1", (13, 1)),
        ("100.1", None),
        ("unknown", None),
    ],
)
def test_the_highest_cuda_of_a_driver(driver: str, cuda: Version | None) -> None:
    assert highest_cuda(driver) == cuda


def test_a_driver_of_the_last_known_branch_may_support_more() -> None:
    assert [is_newest_known(driver) for driver in ("580.65.06", "590.44.01", "999", "")] == [
        False,
        True,
        True,
        False,
    ]


@table(
    ("capability", "architectures", "runs"),
    [
        ((8, 6), ("sm_80",), True),
        ((8, 0), ("sm_86",), False),
        ((9, 0), ("sm_80", "sm_86"), False),
        ((12, 0), ("sm_90", "compute_90"), True),
        ((8, 9), ("compute_90",), False),
        ((9, 0), ("sm_90a",), True),
        ((9, 1), ("sm_90a",), False),
        ((10, 3), ("sm_100f",), True),
        ((12, 0), ("compute_100f",), False),
        ((12, 1), ("sm_120",), True),
        ((6, 1), ("sm_60", "compute_37"), True),
        ((3, 7), ("gfx1030", "sm_", "compute_x", "sm_99999"), False),
    ],
)
def test_which_code_runs_where(capability: Version, architectures: tuple[str, ...], runs: bool) -> None:
    assert runs_code(capability, architectures) is runs


@pytest.mark.torch
def test_which_code_runs_where_agrees_with_torch() -> None:
    """torch 2.13 has a table of the same, for all chips that NVIDIA made so far."""
    cuda = pytest.importorskip("torch.cuda")
    table = getattr(cuda, "DEVICE_REQUIREMENT", None)
    if table is None:
        pytest.skip("this torch has no table of compute capabilities")
    compared = 0
    for compiled in table:
        for device in table:
            expected = device in table[compiled]
            assert runs_code(divmod(device, 10), (f"sm_{compiled}",)) is expected, (device, compiled)
            compared += 1
    assert compared > 100


def test_which_gpus_a_build_was_compiled_for() -> None:
    assert compiled_for(("sm_90", "sm_75", "compute_120")) == ((7, 5), (9, 0), (12, 0))
    assert compiled_for(("gfx1030",)) == ()
    assert compiled_for(()) == ()
