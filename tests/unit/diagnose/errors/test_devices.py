"""Messages about devices, tied to the tensors that were saved there."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
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


def test_where_no_map_location_can_be_given() -> None:
    load = '  File "/v/site-packages/torch/{}.py", line 2, in {}\n    x\n'
    nested = load.format("storage", "_load_from_bytes") + load.format("serialization", "load")
    for text in (UNAVAILABLE, INDEX):
        found = explain_error(f"{nested}RuntimeError: {text}", None)
        assert "no map_location reaches it" in found.cause
        assert "torch.storage._load_from_bytes = lambda" in found.advice
    script = explain_error(f"{load.format('jit/_serialization', 'load')}RuntimeError: {UNAVAILABLE}", None)
    assert "torch.jit.load(path, map_location='cpu')" in script.advice
    assert "map_location" in explain_error(INDEX, None).advice


def test_the_warning_above_says_why() -> None:
    warning = "x.py:1: UserWarning: The NVIDIA driver on your system is too old (found 11040).\n"
    found = explain_error(f"{warning}RuntimeError: {UNAVAILABLE}", None)
    assert "the NVIDIA driver is too old for this build of torch" in found.cause


def test_a_build_without_a_device_asks_only_for_that_device() -> None:
    text = "AssertionError: Torch not compiled with {} enabled"
    made = on(("a", "cuda:0"))
    assert explained(text.format("XPU"), made, id_="torch-without-device").fits == "no"
    assert explained(text.format("CUDA"), made, id_="torch-without-device").fits == "yes"
    linked = "RuntimeError: PyTorch is not linked with support for mps devices"
    found = explained(linked, made, id_="torch-without-device")
    assert (found.fits, "which line asks for the device" in found.advice) == ("no", True)


def test_a_gpu_is_called_cuda() -> None:
    assert "--device cuda:0" in explain_error(TAG.format("gpu"), None).advice
    assert "--device" not in explain_error(TAG.format("npu:0"), None).advice


def test_drivers_that_are_too_old() -> None:
    old = "AssertionError: The NVIDIA driver on your system is too old{}."
    assert "CUDA 11.4 at most" in explain_error(old.format(" (found version 11040)"), None).cause
    assert "see what nvidia-smi shows" in explain_error(old.format(""), None).cause
    for text in (
        old.format(""),
        "RuntimeError: cuda runtime error (35) : CUDA driver",
    ):
        found = explain_error(text, None)
        assert "older than this build" in found.title
        assert "a build of torch for an older CUDA" in found.advice
    none = explain_error("RuntimeError: Found no NVIDIA driver on your system.", None)
    assert "finds no working NVIDIA driver" in none.title


def test_a_file_with_devices_that_are_not_listed_is_not_acquitted() -> None:
    made = on(("a", "cpu"), globals=asking("torch.storage._load_from_bytes").globals)
    found = explained(UNAVAILABLE, made, "cpu", id_="device-unavailable")
    assert (found.fits, "Tensors are hidden in pickles" in found.here) == ("unknown", True)
