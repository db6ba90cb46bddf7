"""How many parameters a model has: the numbers in its tensors of that role, each run of shared bytes once."""

from __future__ import annotations

from math import prod

from inspector.model.checkpoint import Checkpoint
from inspector.report.outline.shared import MOST_BITS, shared_runs


def count_parameters(checkpoint: Checkpoint) -> int:
    """Count the parameters of all models in a file; what is tied counts once, as in the sums of the tree."""
    tensors = checkpoint.tensors
    counts = {
        index: prod(tensor.shape) if tensor.nbytes.bit_length() <= MOST_BITS else tensor.nbytes
        for index, tensor in enumerate(tensors)
        if tensor.role == "parameter" and tensor.part_of is None
    }
    total = sum(counts.values())
    for run in shared_runs(checkpoint):
        for index in [index for index in run.tensors if counts.get(index)][1:]:
            total -= round(counts[index] * (run.nbytes / tensors[index].nbytes))
    return total
