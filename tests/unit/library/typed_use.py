"""What a program that uses the library looks like to a type checker: `mypy` reads this file, too.

It is never run. A line that mypy takes for something else than is said here fails the check.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import inspector
from inspector import Checkpoint, CheckpointError, Tensor, diff, remap, snippet


def use(path: Path) -> None:
    """Use every function."""
    try:
        checkpoint = inspector.open(path)
    except CheckpointError as error:
        assert_type(error.remedy, str | None)
        return
    assert_type(checkpoint, Checkpoint)
    assert_type(checkpoint["a/b"], Tensor)
    assert_type(checkpoint.get("a/b"), Tensor | None)
    assert_type([tensor.shape for tensor in checkpoint.tensors], list[tuple[int, ...]])
    assert_type([total.nbytes for total in checkpoint.devices], list[int])
    assert_type({path: tensor.dtype for path, tensor in checkpoint.items()}, dict[str, str])
    assert_type(checkpoint.json(), str)
    assert_type(bool(inspector.check(checkpoint, target="cpu")), bool)
    assert_type(inspector.remap(checkpoint, "out.pth", map={"cuda:*": "cpu"}), inspector.Remapped)
    assert_type(remap("in.pth", Path("out.pth"), map=["cuda:1=cuda:0", "*=cpu"]).output, Path | None)
    assert_type(snippet(path), str)
    assert_type(diff("a.pth", checkpoint).equal, bool)
    assert_type(inspector.stats(path, "a/b"), tuple[inspector.Statistics, ...])
    assert_type(inspector.scan(checkpoint, progress=print).odd["a/b"], tuple[str, ...])
    assert_type(checkpoint["a/b"].stats().mean, float | None)
    assert_type(inspector.verify("out.pth", path).same, bool)
    assert_type(inspector.undo(path).nbytes, int)
    assert_type(inspector.undo(path).to_dict(), dict[str, Any])
    assert_type(inspector.remap(path, in_place=True).record, Path | None)
    assert_type(inspector.check(path, script="train.py").script, inspector.ScriptAnswer | None)
    assert_type(inspector.open(path, progress=lambda step: step.unit), Checkpoint)
    assert_type(inspector.run(["python", path], map="*=cpu").loads, tuple[inspector.Load, ...])
    assert_type(inspector.recover(path, "out.pth").lost, tuple[str, ...])
    assert_type([finding.id for finding in checkpoint.findings], list[str])


def read(path: Path) -> None:
    """Read numbers in every way."""
    with inspector.open(b"", progress=print) as checkpoint:
        assert_type(checkpoint, Checkpoint)
    assert_type(inspector.open(path.open("rb")), Checkpoint)
    tensor = checkpoint["a/b"]
    assert_type((len(tensor), tensor.numel), tuple[int, int])
    assert_type(tensor.numpy(), NDArray[Any])
    assert_type(np.asarray(tensor), NDArray[Any])
    assert_type(tensor.torch().shape, torch.Size)
    assert_type(checkpoint.state_dict("model"), dict[str, Any])
