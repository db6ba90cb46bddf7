"""A fixed copy, made in the window by keys alone, loads where the original does not."""

from __future__ import annotations

from pathlib import Path

import pytest


def tensors_in(value, torch):
    """Walk to all tensors of a checkpoint."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, torch)


@pytest.mark.torch
def test_a_copy_is_exported_and_loads_without_map_location(screen, program, checkpoint):
    torch = pytest.importorskip("torch")
    original = checkpoint.read_bytes()
    window = program.open(checkpoint)
    dialog = screen.open_dialog(window, "ctrl+e")

    def copies() -> list[Path]:
        return [path for path in checkpoint.parent.glob("*.pth") if path != checkpoint]

    [copy] = screen.press_until("Return", copies, "the copy")  # Export, to the place that is proposed
    screen.press_until("Return", lambda: dialog not in screen.all_windows(), "the dialog to close")
    assert sorted(checkpoint.parent.iterdir()) == sorted([checkpoint, copy])
    assert checkpoint.read_bytes() == original
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
            torch.load(checkpoint)
    tensors = list(tensors_in(torch.load(copy), torch))
    assert tensors
    assert {tensor.device.type for tensor in tensors} == {"cpu"}
