"""What rows and the steps of a path cost."""

from __future__ import annotations

from inspector.model.tensors.views import TensorFacts
from inspector.model.walk import cost_of_row, excess_of, weight_of_step


def test_a_row_costs_its_names() -> None:
    facts = TensorFacts("cuda:0", "float32", (2, 3), (3, 1))
    assert cost_of_row(facts, None, None) == (0, 0)
    assert cost_of_row(facts, "12", "exp_avg") == (0, 9)
    assert cost_of_row(facts._replace(device="é"), None, None) == (0, 6)


def test_many_sizes_cost_their_numbers() -> None:
    assert cost_of_row(TensorFacts("cpu", "float32", (1,) * 8), None, None) == (0, 0)
    assert cost_of_row(TensorFacts("cpu", "float32", (1,) * 9), None, None) == (9, 180)
    assert cost_of_row(TensorFacts("cpu", "float32", (1,) * 5, (1,) * 5), "k", None) == (10, 201)


def test_a_step_costs_what_its_text_does_not_tell() -> None:
    assert weight_of_step(3) == 8
    assert weight_of_step("weight") == 8
    assert weight_of_step("é") == 8 + 1 + 6
    assert weight_of_step("n" * 600) == 8 + 600 + 512
    assert excess_of(3) == excess_of("n" * 512) == 0
    assert excess_of("n" * 513) == 513
