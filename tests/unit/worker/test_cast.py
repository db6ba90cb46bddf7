"""Casting in the worker, which runs as a child process and may import torch."""

from __future__ import annotations

import io
import runpy
import struct
import sys
from types import SimpleNamespace

import pytest
import torch

from inspector.worker.cast import cast_chunk, serve

pytestmark = pytest.mark.torch


def test_elements_are_rounded_as_torch_does() -> None:
    values = [1.0, 0.1, 65520.0, float("inf"), float("nan"), -1e30]
    overflowed, data = cast_chunk(bytearray(struct.pack("<6f", *values)), torch.float32, torch.float16)
    assert overflowed == 2
    assert data == torch.tensor(values).half().numpy().tobytes()


def test_chunks_are_served_until_the_input_ends(monkeypatch) -> None:
    chunk = struct.pack("<2f", 1.0, 3e38)
    inward = io.BytesIO((struct.pack("<Q", len(chunk)) + chunk) * 2)
    outward = io.BytesIO()
    serve(inward, outward, torch.float32, torch.bfloat16)
    reply = struct.pack("<2Q", 0, 4) + struct.pack("<2H", 0x3F80, 0x7F62)
    assert outward.getvalue() == reply * 2


def test_it_speaks_over_the_standard_streams(monkeypatch) -> None:
    chunk = struct.pack("<f", 1.0)
    said = io.BytesIO()
    monkeypatch.setattr(sys, "argv", ["cast", "float32", "float16"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(struct.pack("<Q", 4) + chunk)))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=said))
    threads = torch.get_num_threads()
    try:
        monkeypatch.delitem(sys.modules, "inspector.worker.cast")
        runpy.run_module("inspector.worker.cast", run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    assert said.getvalue() == struct.pack("<2Q", 0, 2) + struct.pack("<H", 0x3C00)
