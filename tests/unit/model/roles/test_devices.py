"""Device texts: split and put in order."""

from __future__ import annotations

import pytest

from inspector.model.roles.devices import KNOWN_TYPES, device_order, is_accelerator, split_device


@pytest.mark.parametrize(
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
    assert all(is_accelerator(kind) for kind in KNOWN_TYPES if kind not in {"cpu", "meta"})


@pytest.mark.torch
def test_known_types_are_those_that_torch_parses() -> None:
    torch = pytest.importorskip("torch")
    own = {"npu", "mlu", "musa"}  # names that plug-ins give to privateuseone
    for kind in set(KNOWN_TYPES) - own:
        assert torch.device(kind).type == kind
    for kind in own:
        with pytest.raises(RuntimeError):
            torch.device(kind)
