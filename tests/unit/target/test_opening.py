"""What torch says before it reads a pickle, of the installed release and of others."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.target.call import Function, LoadCall, MapLocation, Refusal, TagMap, TorchDevice, WrongType
from inspector.target.opening import OTHER_LOADER, can_map, opening_failure
from inspector.target.profile import CPU_ONLY, Profile
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage

ZIP = checkpoint(versions=(("version", "3"),))
LEGACY = checkpoint(format="legacy")
SCRIPT = checkpoint(format="torchscript", versions=(("version", "3"),))
CONV = CORPUS / "torchscript" / "conv.pt"
CUDA = Profile(id="cuda:1", label="1 GPU", accelerators=(("cuda", 1),))
CALLABLE = Function()


def target(version: str) -> Profile:
    return Profile(id="x", label="x", torch_version=version)


def said(found: tuple[str, str] | None) -> str:
    return found[1]


@table(
    ("version", "words"),
    [
        ("1.0.1", "RuntimeError: best.pth is a zip archive (did you mean to use torch.jit.load()?)"),
        ("1.3.1", "RuntimeError: best.pth is a zip archive (did you mean to use torch.jit.load()?)"),
        ("1.4.0", "Attempted to read a PyTorch file with version 3, but the maximum supported version for"),
        ("1.5.1", "reading is 2. Your PyTorch installation may be too old."),
    ],
)
def test_a_zip_is_too_new_for_an_old_torch(version: str, words: str) -> None:
    failure = opening_failure(ZIP, target(version), LoadCall())
    assert words in said(failure)
    assert failure[0] == "newer-format"
    assert opening_failure(LEGACY, target(version), LoadCall()) is None


@table("version", ["2", "1", "", "odd"])
def test_old_archives_load_in_old_torch(version: str) -> None:
    found = checkpoint(versions=(("version", version),))
    failure = opening_failure(found, target("1.5.1"), LoadCall())
    assert failure is None or "maximum" not in failure[1]


@table(
    ("version", "how", "message"),
    [
        ("1.12.1", LoadCall(weights_only=True), "'weights_only' is an invalid keyword argument for "),
        ("1.12.1", LoadCall(weights_only=False), "'weights_only' is an invalid keyword argument for "),
        ("2.0.1", LoadCall(mmap=True), "'mmap' is an invalid keyword argument for "),
    ],
)
@table(("found", "callee"), [(ZIP, "Unpickler()"), (LEGACY, "load()")])
def test_arguments_that_are_younger_than_torch(
    version: str, how: LoadCall, message: str, found, callee: str
) -> None:
    assert said(opening_failure(found, target(version), how)) == f"TypeError: {message}{callee}"


@table(
    ("version", "message"),
    [
        (
            "2.13.0",
            (
                "RuntimeError: mmap can only be used with files saved with `torch.save(best.pth, "
                "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this option "
                "in order to use mmap."
            ),
        ),
        ("2.1.2", "RuntimeError: ('mmap can only be used with files saved with ', '`torch.save(_use"),
    ],
)
def test_a_legacy_file_cannot_be_mapped(version: str, message: str) -> None:
    assert said(opening_failure(LEGACY, target(version), LoadCall(mmap=True))).startswith(message)


def test_a_compressed_file() -> None:
    found = open_checkpoint(str(CORPUS / "legacy" / "gzipped.pt.gz"))
    plain = LoadCall(weights_only=False)
    assert said(opening_failure(found, CPU_ONLY, plain)) == "UnpicklingError: invalid load key, '\\x1f'."
    assert "Unsupported operand 31" in said(opening_failure(found, CPU_ONLY, LoadCall()))


# --- TorchScript, which the program does not open yet, so that rows stand for it ---------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("given", "map_location"),
    [
        (None, None),
        ("cpu", "cpu"),
        ("meta", "meta"),
        ("cuda:0", "cuda:0"),
        ("xpu", "xpu"),
        ("mps", "mps"),
        ("nonsense", "nonsense"),
        ({}, TagMap(pairs=())),
        (b"cpu", WrongType(name="bytes")),
        (len, WrongType(name="builtin_function_or_method")),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")  # torch deprecates TorchScript while it loads it
def test_scripts(given: object, map_location: MapLocation) -> None:
    torch = pytest.importorskip("torch")
    ours = opening_failure(SCRIPT, CPU_ONLY, LoadCall(map_location=map_location, weights_only=False))
    try:
        torch.load(CONV, map_location=given, weights_only=False)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is what is compared
        theirs = f"{type(error).__name__}: {error}"
    else:
        assert ours is None
        return
    assert theirs.startswith(said(ours))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_scripts_are_more_than_weights() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="TorchScript") as raised:
        torch.load(CONV)
    failure = opening_failure(SCRIPT, CPU_ONLY, LoadCall())
    assert failure == ("runs-code", f"RuntimeError: {raised.value}")


def test_scripts_elsewhere() -> None:
    how = LoadCall(map_location=TorchDevice(text="cuda:0"), weights_only=False)
    assert opening_failure(SCRIPT, CUDA, how) is None


# --- safetensors --------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("given", "map_location"),
    [
        (None, None),
        ("cpu", "cpu"),
        ({}, TagMap(pairs=())),
        (lambda storage, tag: storage, CALLABLE),
        (3, WrongType(name="int")),
    ],
    ids=["None", "text", "dict", "function", "int"],
)
def test_safetensors(given: object, map_location: MapLocation) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    found = replace(checkpoint(format="safetensors"), path="all.safetensors")
    ours = opening_failure(found, CPU_ONLY, LoadCall(map_location=map_location))
    try:
        torch.load(CORPUS / "safetensors" / "all.safetensors", map_location=given)
    except RuntimeError as error:
        assert ours[1] == f"RuntimeError: {error}"  # noqa: PT017 - it may also load
    else:
        assert ours is None


def test_safetensors_are_taken_for_a_pickle_where_the_name_says_nothing_or_torch_is_older() -> None:
    named = replace(checkpoint(format="safetensors"), path="a.safetensors")
    other = replace(named, path="a.bin")
    older = replace(CPU_ONLY, torch_version="2.12.0")
    for found, target, how, message in (
        (other, CPU_ONLY, LoadCall(), "UnpicklingError: Weights only load failed. In PyTorch 2.6"),
        (named, older, LoadCall(), "UnpicklingError: Weights only load failed. In PyTorch 2.6"),
        (other, CPU_ONLY, LoadCall(weights_only=False), "UnpicklingError: invalid load key"),
    ):
        failure = opening_failure(found, target, how)
        assert failure[0] == OTHER_LOADER
        assert failure[1].startswith(message)
        assert opening_failure(found, target, replace(how, by_loader=True)) is None
    refused = replace(named, refusal="SafetensorError: no")
    for how in (LoadCall(), LoadCall(by_loader=True)):
        assert opening_failure(refused, CPU_ONLY, how) == ("torch-refuses", "SafetensorError: no")


def test_the_container_comes_before_the_arguments(tmp_path: Path) -> None:
    path = tmp_path / "bad.pt"
    with zipfile.ZipFile(CORPUS / "zip" / "tied.pt") as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            after.writestr(name, b"11\n" if name.endswith("/version") else before.read(name))
    failure = opening_failure(open_checkpoint(str(path)), CPU_ONLY, LoadCall(mmap=True))
    assert failure[0] == "newer-format"


def test_only_what_lies_open_in_the_file_can_be_mapped() -> None:
    packed, lost = storage("0", file_offset=None), storage("1", file_offset=None, missing=True)
    assert can_map(checkpoint(storage("0"), lost, storage("2", nbytes=0, file_offset=None)), (2, 1))
    assert not can_map(checkpoint(packed), (2, 13))
    assert not can_map(checkpoint(storage("0")), (2, 0))
    assert not can_map(checkpoint(storage("0"), format="legacy"), (2, 13))


def test_archives_for_other_loaders() -> None:
    for form in ("pt2", "package"):
        archive = checkpoint(format=form, versions=((".data/version", "6"),))
        assert "failed locating file data.pkl" in said(opening_failure(archive, CPU_ONLY, LoadCall()))
        assert opening_failure(archive, CPU_ONLY, LoadCall(by_loader=True)) is None
        assert "did you mean to use torch.jit.load" in said(
            opening_failure(archive, target("1.3"), LoadCall())
        )
        before = checkpoint(format=form)
        assert "not in a subdirectory" in said(opening_failure(before, CPU_ONLY, LoadCall()))


def test_plain_pickles() -> None:
    for form in ("pickle", "joblib"):
        plain = checkpoint(format=form)
        assert opening_failure(plain, CPU_ONLY, LoadCall(by_loader=True)) is None
        rows = (
            (LoadCall(), "RuntimeError: Invalid magic number; corrupt file?"),
            (LoadCall(mmap=True), "RuntimeError: mmap can only be used with files saved with `torch.save("),
            (LoadCall(refusal=Refusal(finding="x", name="m.f")), "UnpicklingError: Weights only load failed"),
            (
                LoadCall(refusal=Refusal(finding="x", name="m.f"), weights_only=False),
                "RuntimeError: Invalid magic number; corrupt file?",
            ),
        )
        for how, words in rows:
            failure = opening_failure(plain, CPU_ONLY, how)
            assert said(failure).startswith(words), how
            assert failure[0] == OTHER_LOADER, how


def test_agents_have_no_folder_for_their_records() -> None:
    found = checkpoint(format="stable-baselines3", versions=(("stable_baselines3", "2.3.2"),))
    assert "not in a subdirectory" in said(opening_failure(found, CPU_ONLY, LoadCall()))
    assert opening_failure(found, CPU_ONLY, LoadCall(by_loader=True)) is None
    assert "did you mean to use torch.jit.load" in said(opening_failure(found, target("1.3"), LoadCall()))


def test_arrays_of_numpy() -> None:
    array = checkpoint(format="npy")
    assert "invalid load key" in said(opening_failure(array, target("1.12"), LoadCall()))
    assert "Weights only load failed" in said(opening_failure(array, CPU_ONLY, LoadCall()))
    assert "mmap can only be used" in said(opening_failure(array, CPU_ONLY, LoadCall(mmap=True)))
    assert "not in a subdirectory" in said(opening_failure(checkpoint(format="npz"), CPU_ONLY, LoadCall()))
    assert opening_failure(array, CPU_ONLY, LoadCall(by_loader=True)) is None
