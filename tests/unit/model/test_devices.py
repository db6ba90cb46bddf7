"""Device texts: split, put in order."""

from __future__ import annotations

import pytest

from inspector.model.devices import device_order, is_accelerator, split_device


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("cpu", ("cpu", None)),
        ("cuda:1", ("cuda", 1)),
        ("privateuse1:12", ("privateuse1", 12)),
        ("cuda0", ("cuda0", None)),
        ("", None),
        ("CUDA", None),
        ("cuda:", None),
        ("cuda:1234", None),
        ("cuda:\u0661", None),
        ("cuda:0\n", None),
    ],
)
def test_split(text: str, parts: tuple[str, int | None] | None) -> None:
    assert split_device(text) == parts


def test_order() -> None:
    texts = ["?!", "meta", "cpu", "xpu:0", "cuda:10", "cuda:9", "cuda"]
    assert sorted(texts, key=device_order) == ["cuda", "cuda:9", "cuda:10", "xpu:0", "cpu", "meta", "?!"]


def test_accelerators() -> None:
    assert [is_accelerator(text) for text in ("cuda:0", "?!", "cpu", "meta")] == [True, True, False, False]
