from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import CheckpointError, ContainerError
from inspector.progress import Progress
from inspector.report.machine import profile_document
from inspector.target import profile_file
from inspector.target.evidence import Evidence, System, TorchDevice, TorchFound
from inspector.target.profile import Gpu
from inspector.target.profile_file import (
    MARK,
    build_profile,
    is_profile,
    parse_evidence,
    probe_this_machine,
    read_profile,
)
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.target.spoiling import PROFILES, encoded, spoiled, values


@table(
    ("place", "wrong"),
    [
        ("nvidia.smi.driver", [1, True, [], {}]),
        ("system.wsl", ["true", 1, 0.0, []]),
        ("torch.cuda_count", ["1", True, 1.0, 1 << 63, []]),
        ("system.memory_nbytes", [-1, "1"]),
        ("torch.messages", ["a", ["a"] * 257, {}]),
        ("torch.messages[0]", [["a", 1][1:]]),
        ("nvidia.smi", ["a", [], 1]),
        ("torch.cuda_devices", ["a", [{}] * 257, {}]),
        ("torch.cuda_devices[0]", [[1]]),
        ("packages", [{str(key): [] for key in range(257)}]),
        ("environment.A", [1]),
        (
            "torch.cuda_devices[1].capability",
            ["8.6", [8], [8, 6, 0], [8, "6"], [8, True], [8, -6], [8, 1000], {}],
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_with_its_place(place: str, wrong: list[object]) -> None:
    for value in wrong:
        if place.endswith("capability"):
            document: object = {"torch": {"cuda_devices": [{}, {"capability": value}]}}
        else:
            document = value
            for step in reversed(place.removesuffix("[0]").split(".")):
                document = {step: document}
        with pytest.raises(ContainerError, match="this machine profile is damaged") as refused:
            parse_evidence(encoded({MARK: 1, **document}))
        assert refused.value.where == place
        assert refused.value.remedy


def test_texts_come_out_harmless() -> None:
    document = {"nvcc": "a\n b\x1b[31m\u202e" + "x" * 9000, "toolkits": ["\ud800"]}
    found = parse_evidence(encoded({MARK: 1, **document}))
    assert found.nvcc.startswith("a b\\u001b[31m\\u202exx")
    assert (len(found.nvcc), found.toolkits) == (4000, ("\\ud800",))
    with pytest.raises(ContainerError) as refused:
        parse_evidence(encoded({MARK: 1, "environment": {"\u202e" * 90: 1}}))
    assert refused.value.where is not None
    assert refused.value.where.isprintable()
    assert len(refused.value.where) == len("environment.") + 40


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


def answer(**torch: object) -> str:
    return json.dumps({MARK: 1, "torch": {"state": "imported", "version": "2.13.0+cpu", **torch}})


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let the probe be another script."""

    def say(code: str) -> None:
        script = tmp_path / "script.py"
        script.write_text(f"def answer(head, blocks):\n    {code}\n", encoding="utf-8")
        monkeypatch.setattr(profile_file, "worker_script", lambda _name: script)

    return say


@pytest.mark.wide
@table("said", ["", "no json", "[]", "null", "{}", answer(cuda_count="many")])
def test_what_is_no_answer_is_an_error(say: Callable[[str], None], said: str) -> None:
    say(f"yield {{}}, {said.encode()!r}")
    with pytest.raises(CheckpointError, match="torch gave no answer about this machine"):
        probe_this_machine(Progress())


def test_a_worker_that_fails_is_an_error(say: Callable[[str], None]) -> None:
    say("raise SystemExit")
    with pytest.raises(CheckpointError, match="no answer"):
        probe_this_machine(Progress())


def test_the_answer_is_a_profile(say: Callable[[str], None]) -> None:
    said = answer(cuda_available=True, cuda_count=3)
    say(f"yield {{}}, {said.encode()!r}")
    profile = probe_this_machine(Progress())
    assert (profile.id, profile.label, profile.count("cuda")) == ("this", "this machine (3 CUDA GPUs)", 3)
    assert profile.torch_version == "2.13.0+cpu"


def test_a_machine_without_torch_is_a_machine(say: Callable[[str], None]) -> None:
    said = answer(state="missing", version=None)
    say(f"yield {{}}, {said.encode()!r}")
    profile = probe_this_machine(Progress())
    assert (profile.label, profile.devices) == ("this machine (torch is not installed)", ("cpu",))


@pytest.mark.wide
@pytest.mark.torch
@pytest.mark.slow
def test_torch_itself_is_asked() -> None:
    torch = pytest.importorskip("torch")
    profile = probe_this_machine(Progress())
    assert profile.torch_version == torch.__version__
    assert profile.evidence.torch.state == "imported"
    assert (profile.memory_nbytes or 0) > 1 << 28
    assert profile.count("cuda") == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
