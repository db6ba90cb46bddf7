"""Messages about devices, tied to the tensors that were saved there."""

from __future__ import annotations

from inspector.model.findings import Fix
from tests.unit.diagnose.explaining import asking, explained, on

UNAVAILABLE = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"
INDEX = "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1"
TAG = "don't know how to restore data location of torch.FloatStorage (tagged with {})"


def test_tensors_of_the_kind_are_named_and_mapped_to_the_target() -> None:
    made = on(("a", "cuda:0"), ("b", "cuda:1"), ("c", "cpu"))
    found = explained(UNAVAILABLE, made, "cpu", id_="device-unavailable")
    assert found.paths == ("a", "b")
    assert found.here.endswith("The target (CPU only) has no such device.")
    assert found.fix == Fix(rule="cuda:*=cpu")
    there = explained(UNAVAILABLE, made, "mps", id_="device-unavailable")
    assert there.fix == Fix(rule="cuda:*=mps")
    assert "no such device" not in there.here
    assert explained(UNAVAILABLE, made, id_="device-unavailable").fix == Fix(rule="cuda:*=cpu")


def test_a_file_without_the_kind_is_not_to_blame() -> None:
    found = explained(UNAVAILABLE, on(("a", "cpu")), "cpu", id_="device-unavailable")
    assert (found.fits, found.fix, found.paths) == ("no", None, ())
    assert "(they are on cpu)" in found.here
    empty = explained(UNAVAILABLE, on(), "cpu", id_="device-unavailable")
    assert "they are on" not in empty.here


def test_numbers() -> None:
    found = explained(INDEX, on(("a", "cuda:0"), ("b", "cuda:1")), "cuda", id_="device-index")
    assert (found.fits, found.paths) == ("yes", ("b",))
    assert "Others are on cuda:0: map all" in found.here
    assert found.fix == Fix(rule="cuda:*=cuda:0")
    alone = explained(INDEX, on(("b", "cuda:1")), "cuda", id_="device-index")
    assert (alone.fits, alone.fix) == ("yes", Fix(rule="cuda:1=cuda:0"))
    other = explained(INDEX, on(("a", "cuda:7")), "cuda", id_="device-index")
    assert (other.fits, other.fix) == ("no", None)
    assert "they are on cuda:7" in other.here
    assert explained(INDEX, on(("a", "cpu")), "cuda", id_="device-index").fits == "no"


def test_tags() -> None:
    found = explained(TAG.format("npu:0"), on(("a", "npu:0")), "cpu", id_="device-tag-unknown")
    assert (found.fits, found.paths, found.fix) == ("yes", ("a",), Fix(rule="npu:0=cpu"))
    other = explained(TAG.format("cpu:0"), on(("a", "cpu")), "cpu", id_="device-tag-unknown")
    assert other.fits == "no"
    cut = "RuntimeError: don't know how to restore data location of torch.FloatStorage"
    found = explained(cut, on(("a", "cuda:0")), "cpu", id_="device-tag-unknown")
    assert (found.fits, found.fix) == ("yes", Fix(rule="cuda:0=cpu"))
    assert explained(cut, on(("a", "cpu")), "cpu", id_="device-tag-unknown").fits == "no"


def test_hostile_names_are_escaped() -> None:
    evil = "\u202eodd"
    found = explained(TAG.format("npu:0"), on(("a", evil), ("b", "npu:0")), "cpu", id_="device-tag-unknown")
    assert found.fits == "yes"
    found = explained(UNAVAILABLE, on(("a", evil)), "cpu", id_="device-unavailable")
    assert r"they are on \u202eodd" in found.here


def test_a_build_without_a_device_asks_only_for_that_device() -> None:
    text = "AssertionError: Torch not compiled with {} enabled"
    made = on(("a", "cuda:0"))
    assert explained(text.format("XPU"), made, id_="torch-without-device").fits == "no"
    assert explained(text.format("CUDA"), made, id_="torch-without-device").fits == "yes"
    linked = "RuntimeError: PyTorch is not linked with support for mps devices"
    found = explained(linked, made, id_="torch-without-device")
    assert (found.fits, "which line asks for the device" in found.advice) == ("no", True)


def test_a_file_with_devices_that_are_not_listed_is_not_acquitted() -> None:
    made = on(("a", "cpu"), globals=asking("torch.storage._load_from_bytes").globals)
    found = explained(UNAVAILABLE, made, "cpu", id_="device-unavailable")
    assert (found.fits, "Tensors are hidden in pickles" in found.here) == ("unknown", True)
