"""Shapes that do not fit, compared with those of a file."""

from __future__ import annotations

from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor

GROUPS = (
    "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 2, 2] to have 3 "
    "channels"
)


def test_the_weight_that_the_message_names() -> None:
    made = checkpoint(tensor("conv.weight", shape=(64, 3, 7, 7)))
    found = explained(GROUPS, made, id_="input-shape")
    assert (found.fits, found.paths) == ("unknown", ("conv.weight",))
    assert explained(GROUPS, on(("a", "cpu")), id_="input-shape").fits == "no"
    loose = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 2x2)"
    assert "the input does not fit" in explained(loose, on(("a", "cpu")), id_="input-shape").here
    plane = "RuntimeError: Given groups=1, weight of size [3, 7], expected input"
    turned = checkpoint(tensor("a", shape=(7, 3)), tensor("b", shape=(3, 7)))
    assert explained(plane, turned, id_="input-shape").count == 2
