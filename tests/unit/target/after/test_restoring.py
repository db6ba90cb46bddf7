"""The steps by which code restores a part; tests/torch holds them against torch."""

from __future__ import annotations

from inspector.target.after_load import At, Complaint, Way, load_module, load_slot, move_module

CPU, GPU, META = At("cpu"), At("cuda:0"), At("meta")


def test_copying_keeps_the_places_of_the_model() -> None:
    own = (At("cuda:0", "float16"), CPU)
    assert load_module(own, (At("cuda:1", "float32"), GPU)).places == own


def test_assigning_takes_the_places_of_the_file() -> None:
    saved = (At("cuda:1", "float64"), CPU)
    done = load_module((GPU, META), saved, Way.ASSIGN)
    assert done.places == saved
    assert not done.error
    assert not done.warning


def test_copying_and_the_meta_device() -> None:
    assert load_module((META,), (CPU,)).warning == Complaint.NO_OP
    assert load_module((META,), (META,)) == ((META,), None, None)
    assert load_module((CPU,), (META,)).error == Complaint.NO_DATA


def test_moving() -> None:
    assert move_module((CPU, At("cuda:1", "int64")), "cuda:0").places == (GPU, At("cuda:0", "int64"))
    assert move_module((META,), "cpu").error == Complaint.NO_DATA
    assert move_module((META, CPU), "meta").places == (META, META)


def test_slots_follow_their_parameter() -> None:
    half = At("cuda:0", "bfloat16")
    assert load_slot("exp_avg", CPU, half, on_device=False) == half
    assert load_slot("state1", At("cpu", "uint8"), GPU, on_device=False) == GPU
    whole = At("cuda:0", "complex64")
    assert load_slot("exp_avg", CPU, whole, on_device=False) == At("cuda:0", "float32")


def test_counters_stay_unless_they_belong_on_the_device() -> None:
    step = At("cuda:1", "float64", is_number=True)
    assert load_slot("step", step, GPU, on_device=False) == step
    assert load_slot("inner/step", step, GPU, on_device=False) == step
    assert load_slot("step", step, GPU, on_device=True) == At("cuda:0", "float32", is_number=True)
