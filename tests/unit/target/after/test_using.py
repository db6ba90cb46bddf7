"""What fails when tensors that are not together are used."""

from __future__ import annotations

from inspector.target.after_load import (
    At,
    Complaint,
    mixing_failure,
    parallel_failure,
    rng_failure,
    step_failure,
)

CPU, GPU, OTHER, META = At("cpu"), At("cuda:0"), At("cuda:1"), At("meta")


def test_mixing() -> None:
    assert not mixing_failure([])
    assert not mixing_failure([GPU, GPU])
    assert mixing_failure([GPU, CPU]) == Complaint.SAME_DEVICE
    assert mixing_failure([CPU, META]) == Complaint.NOT_EXPECTED


def test_a_number_on_the_cpu_may_meet_any_device() -> None:
    assert not mixing_failure([GPU, At("cpu", "int64", is_number=True)])
    assert mixing_failure([CPU, At("cuda:0", "int64", is_number=True)]) == Complaint.SAME_DEVICE


def test_parallel() -> None:
    assert not parallel_failure([GPU], "cuda:0")
    assert parallel_failure([GPU, OTHER], "cuda:0") == Complaint.FIRST_DEVICE


def test_rng() -> None:
    assert not rng_failure(At("cpu", "uint8"))
    assert rng_failure(At("cuda:0", "uint8")) == Complaint.BYTE_TENSOR
    assert rng_failure(At("cpu", "float32")) == Complaint.BYTE_TENSOR


def test_step_of_one_tensor_after_the_other() -> None:
    counter = At("cuda:1", is_number=True)
    assert step_failure(CPU, {"exp_avg": GPU}) == Complaint.SAME_DEVICE
    assert not step_failure(CPU, {"exp_avg": CPU, "step": counter})
    assert step_failure(GPU, {"exp_avg": CPU}, foreach=False) == Complaint.SAME_DEVICE


def test_step_of_all_tensors_at_once() -> None:
    assert step_failure(GPU, {"exp_avg": OTHER}) is Complaint.FOREACH
    assert not step_failure(GPU, {"exp_avg": GPU, "step": CPU})
    assert not step_failure(GPU, {"exp_avg": GPU, "step": GPU})
    assert step_failure(GPU, {"exp_avg": GPU, "step": OTHER}) is Complaint.FOREACH


def test_slots_on_the_cpu_pass_for_counters_until_they_are_used() -> None:
    assert step_failure(GPU, {"exp_avg": CPU}) is Complaint.SAME_DEVICE
    assert step_failure(GPU, {"exp_avg": At("cpu", "bfloat16")}) is Complaint.FOREACH


def test_numbers_that_are_only_read_may_be_anywhere() -> None:
    assert not step_failure(CPU, {"mu_product": At("cuda:0", is_number=True), "exp_avg": CPU})


def test_capturable_wants_its_counters_on_a_gpu() -> None:
    assert step_failure(CPU, {"step": CPU}, capturable=True) == Complaint.CAPTURABLE
    assert step_failure(GPU, {"step": CPU}, capturable=True) == Complaint.CAPTURABLE
    assert not step_failure(GPU, {"step": GPU}, capturable=True)
    assert not step_failure(CPU, {"momentum_buffer": CPU}, capturable=True)
