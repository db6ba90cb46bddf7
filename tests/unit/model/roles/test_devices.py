"""Device texts: split and put in order."""

from __future__ import annotations

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.roles.devices import (
    DEVICE_TYPES,
    device_order,
    is_accelerator,
    is_destination,
    split_device,
)
from tests.sweep import table


@table(
    ("text", "parts"),
    [
        ("cpu", ("cpu", None)),
        ("cuda:0", ("cuda", 0)),
        ("cuda:127", ("cuda", 127)),
        ("privateuseone:1", ("privateuseone", 1)),
        ("my_device2", ("my_device2", None)),
        ("", None),
        ("cuda:", None),
        ("cuda:x", None),
        ("cuda:1234", None),
        ("cuda:\u0663", None),
        ("CUDA:0", None),
        ("cuda:0\n", None),
        (" cuda", None),
    ],
)
def test_parts(text: str, parts: tuple[str, int | None] | None) -> None:
    assert split_device(text) == parts


def test_order() -> None:
    texts = ["?", "meta", "cpu", "xpu:0", "cuda:10", "cuda:2", "mps", "cuda"]
    assert sorted(texts, key=device_order) == [
        "cuda",
        "cuda:2",
        "cuda:10",
        "mps",
        "xpu:0",
        "cpu",
        "meta",
        "?",
    ]


def test_accelerators() -> None:
    assert [text for text in ("cpu", "meta", "cuda:0", "mps", "odd!") if is_accelerator(text)] == [
        "cuda:0",
        "mps",
        "odd!",
    ]
    assert {kind for kind in DEVICE_TYPES if not is_accelerator(kind)} == {"cpu", "meta"}


def test_no_device_is_none_of_them_and_comes_last() -> None:
    assert NO_DEVICE not in DEVICE_TYPES
    assert not is_accelerator(NO_DEVICE)
    assert not is_destination(NO_DEVICE)
    assert max(("cpu", NO_DEVICE, "odd!", "meta"), key=device_order) == NO_DEVICE


def test_destinations() -> None:
    texts = ("cpu", "cpu:0", "mps", "mps:0", "meta", "cuda", "cuda:1", "gpu:0", "odd!", "")
    assert [text for text in texts if is_destination(text)] == ["cpu", "mps", "cuda", "cuda:1"]
