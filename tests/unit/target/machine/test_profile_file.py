"""Profiles of machines: what the probe writes is read again, and nothing else does harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import CheckpointError, ContainerError
from inspector.report.machine import profile_document
from inspector.target.evidence import Evidence, System, TorchDevice, TorchFound
from inspector.target.profile import Gpu
from inspector.target.profile_file import MARK, build_profile, is_profile, parse_evidence, read_profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.target.spoiling import PROFILES, encoded, spoiled, values


def test_evidence_is_written_as_it_is_read() -> None:
    for path in PROFILES:
        evidence = parse_evidence(path.read_bytes())
        again = profile_document(evidence)
        assert parse_evidence(encoded(again)) == evidence, path.stem
        assert again == json.loads(path.read_bytes()), path.stem


def test_the_least_document_is_one_of_a_machine_nothing_is_known_of() -> None:
    evidence = parse_evidence(encoded({MARK: 1, "of_a_later_version": [{}]}))
    assert evidence == Evidence()
    assert build_profile(evidence, id="x", name="x").devices == ("cpu",)


@table("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_shells_write(encoding: str) -> None:
    assert parse_evidence(encoded({MARK: 1, "nvcc": "12.1"}, encoding)).nvcc == "12.1"


def test_a_greeting_before_the_document_is_passed_over() -> None:
    document = encoded({MARK: 1, "nvcc": "12.1"})
    assert parse_evidence(b"Welcome!\n  {not json\n" + document + b"\n").nvcc == "12.1"
    assert parse_evidence(json.dumps({MARK: 1, "nvcc": "1"}, indent=4).encode()).nvcc == "1"


@table(
    ("data", "said"),
    [
        (b"", "it is no JSON"),
        (b"\xff\xfe\x00", "it is no JSON"),
        (b"\x80abc", "it is no JSON"),
        (b"[" * 200_000, "it is no JSON"),
        (b"9" * 5000, "it is no JSON"),
        (b"{}", f"it lacks {MARK}"),
        (b"[]", "an object is wanted"),
        (encoded({MARK: 2}), "is of version 2, and this program reads up to 1"),
        (encoded({MARK: 0}), "is of version 0"),
        (encoded({MARK: "1"}), "a whole number is wanted"),
        (encoded({MARK: 1, "torch": {"cuda_devices": [{}, {"capability": 8}]}}), "two numbers are wanted"),
    ],
)
def test_what_is_no_profile_says_so(data: bytes, said: str) -> None:
    with pytest.raises(ContainerError) as refused:
        parse_evidence(data)
    assert said.replace("are wanted", "is wanted") in str(refused.value)
    assert refused.value.remedy


def test_the_place_of_damage_is_named_with_the_file(tmp_path) -> None:
    path = tmp_path / "far.json"
    path.write_bytes(encoded({MARK: 1, "torch": {"cuda_devices": [{}, {"capability": 8}]}}))
    with pytest.raises(ContainerError) as refused:
        read_profile(str(path))
    assert refused.value.where == f"{path}, torch.cuda_devices[1].capability"
    path.write_bytes(b"hello")
    with pytest.raises(ContainerError, match="it is no JSON") as refused:
        read_profile(str(path))
    assert refused.value.where == str(path)


def test_profiles_are_told_from_other_files(tmp_path) -> None:
    path = tmp_path / "file"
    assert not is_profile(str(path))
    assert not is_profile(str(tmp_path))
    path.write_bytes(b'{"weight_map": {}}')
    assert not is_profile(str(path))
    for encoding in ("utf-8", "utf-16"):
        path.write_bytes(encoded({MARK: 1}, encoding))
        assert is_profile(str(path))
    assert all(is_profile(str(profile)) for profile in PROFILES)


def test_a_file_of_any_size_is_not_read_in(tmp_path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(ContainerError, match="it is too large"):
        read_profile(str(path))


def test_a_machine_is_named_by_its_file_and_its_gpus(tmp_path) -> None:
    torch = TorchFound(
        state="imported",
        version="2.5.1+cu124",
        cuda_available=True,
        cuda_count=2,
        cuda_devices=(
            TorchDevice(name="NVIDIA L4", memory_nbytes=24 << 30, capability=(8, 9)),
            TorchDevice(),
        ),
        xpu_devices=(TorchDevice(name="Arc"),),
        mps_available=True,
    )
    evidence = Evidence(torch=torch, system=System(memory_nbytes=64 << 30))
    path = tmp_path / "clu\u202ester.json"
    path.write_bytes(encoded(profile_document(evidence)))
    profile = parse_target(str(path))
    assert profile.label == "clu\\u202ester (2 CUDA GPUs, 1 Intel GPU, Apple GPU)"
    assert profile.devices == ("cuda:0", "cuda:1", "mps", "xpu:0", "cpu")
    assert (profile.id, profile.torch_version, profile.memory_nbytes) == (str(path), "2.5.1+cu124", 64 << 30)
    assert profile.gpus == (
        Gpu(device="cuda:0", name="NVIDIA L4", memory_nbytes=24 << 30, capability=(8, 9)),
        Gpu(device="cuda:1"),
        Gpu(device="xpu:0", name="Arc"),
        Gpu(device="mps", name="Apple GPU", memory_nbytes=64 << 30),
    )
    assert profile.evidence == evidence


@table(
    ("torch", "label"),
    [
        (TorchFound(state="imported"), "m (CPU only)"),
        (TorchFound(state="imported", cuda_available=True, cuda_count=1), "m (1 CUDA GPU)"),
        (TorchFound(state="imported", cuda_available=True, cuda_count=1, hip="6.0"), "m (1 AMD GPU)"),
        (TorchFound(state="imported", cuda_available=True, cuda_count=2, hip="6.0"), "m (2 AMD GPUs)"),
        (TorchFound(state="imported", cuda_available=False, cuda_count=1), "m (CPU only)"),
        (TorchFound(state="imported", cuda_available=True, cuda_count=-4), "m (CPU only)"),
        (TorchFound(state="imported", cuda_available=True, cuda_count=10**9), "m (1,024 CUDA GPUs)"),
        (TorchFound(state="imported", xpu_devices=(TorchDevice(),) * 2), "m (2 Intel GPUs)"),
        (TorchFound(state="missing"), "m (torch is not installed)"),
        (TorchFound(state="failed"), "m (torch does not start)"),
        (TorchFound(state="crashed"), "m (torch does not start)"),
    ],
)
def test_labels(torch: TorchFound, label: str) -> None:
    assert build_profile(Evidence(torch=torch), id="x", name="m").label == label


@pytest.mark.wide
@given(data=st.binary(max_size=200) | values.map(encoded) | spoiled())
def test_nothing_but_a_checkpoint_error_escapes(data: bytes) -> None:
    try:
        profile = build_profile(parse_evidence(data), id="x", name="x")
    except CheckpointError:
        return
    assert all(part.isprintable() for part in profile.evidence.torch.cuda_messages)
    assert len(profile.devices) < 5000
