"""The first error of a load, against torch on every file of the corpus that torch can be asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace, Storage, Tensor
from inspector.records import replace
from inspector.target.call import Function, LoadCall, Refusal, plain_call
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import LoadFailure, LoadOutcome, device_failures, first_failure, simulate
from inspector.target.versions import release_of
from tests import corpus
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.work import growth

torch = pytest.importorskip("torch")

FOLDERS = ("devices/", "old/", "legacy/", "zip/")
# torch makes nested tensors of legacy files from memory that it has not read yet: anything may come of it.
UNCERTAIN = {"legacy/nested.pt"}
CASES = [case for case in corpus.cases() if case.name.startswith(FOLDERS) and case.name not in UNCERTAIN]


def simulate_load(made: Checkpoint, target: Profile) -> LoadFailure | None:
    return first_failure(made, target, plain_call(release_of(target.torch_version)))


def said_by_torch(path: Path) -> str | None:
    """What torch says to a file; None if it loads it. What a missing class makes of it tells nothing."""
    try:
        torch.load(path, weights_only=False)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is what is compared
        is_class = "get attribute" in str(error) or "No module named" in str(error)
        return "" if is_class and "UntypedStorage" not in str(error) else f"{type(error).__name__}: {error}"
    return None


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # torch deprecates storages while it loads them
def test_against_torch() -> None:
    for case in CASES:
        failure = simulate_load(open_checkpoint(str(case.path)), CPU_ONLY)
        said = said_by_torch(case.path)
        if said != "":
            ours = None if failure is None else failure.message[:80]
            assert (said is None) == (ours is None), (case.name, said, ours)
            assert said is None or said.startswith(ours or ""), (case.name, said, ours)


def test_the_first_storage_that_fails_is_named() -> None:
    made = checkpoint(storage("0"), storage("1", "cuda:3"), storage("2", "mps"))
    failure = simulate_load(made, CPU_ONLY)
    assert failure is not None
    assert (failure.finding, failure.device, failure.storage) == ("cuda-unavailable", "cuda:3", "1")
    assert (
        simulate_load(
            made,
            Profile(
                id="x",
                label="x",
                accelerators=(("cuda", 4), ("mps", 1)),
            ),
        )
        is None
    )


def test_tensors_sent_while_loading_fail_after_their_storage() -> None:
    sent = {"device": "xla:0", "stride": None, "storage_offset": None}
    made = checkpoint(storage("0"), tensor("w", storage="0", **sent), tensor("n", storage=None, **sent))
    failure = simulate_load(made, CPU_ONLY)
    assert failure is not None
    assert (failure.finding, failure.device, failure.storage) == ("unknown-device", "xla:0", "0")
    only_array = checkpoint(tensor("n", storage=None, **sent))
    assert simulate_load(only_array, CPU_ONLY) is not None
    assert list(device_failures(made, CPU_ONLY)) == ["xla:0"]


def test_generators_fail_last() -> None:
    hidden = HiddenDevice(path="g", device="cuda:0", what=HiddenPlace.GENERATOR)
    plain = HiddenDevice(path="d", device="cuda:0", what=HiddenPlace.DEVICE)
    failure = simulate_load(checkpoint(hidden_devices=(plain, hidden)), CPU_ONLY)
    assert failure is not None
    assert failure.message == "RuntimeError: Cannot get CUDA generator without ATen_cuda library."
    assert simulate_load(checkpoint(hidden_devices=(plain,)), CPU_ONLY) is None


def test_what_torch_says_to_the_file_comes_first() -> None:
    made = checkpoint(storage("0", "cuda:0"), versions=(("version", "11"),))
    failure = simulate_load(made, CPU_ONLY)
    assert failure is not None
    assert failure.finding == "newer-format"


def test_records_that_are_missing_or_short() -> None:
    missing = checkpoint(storage("0", missing=True), versions=(("version", "3"),))
    failure = simulate_load(missing, CPU_ONLY)
    assert failure is not None
    assert (failure.finding, failure.storage) == ("truncated", "0")


def test_a_cut_legacy_file() -> None:
    failure = simulate_load(checkpoint(storage("0", missing=True), format="legacy"), CPU_ONLY)
    assert failure is not None
    assert failure.message == "RuntimeError: unexpected EOF"


def test_tensors_sent_to_a_device_that_is_there_load() -> None:
    sent = tensor("n", device="cuda:0", stride=None, storage_offset=None, storage="0")
    assert (
        simulate_load(checkpoint(storage("0"), sent), Profile(id="x", label="x", accelerators=(("cuda", 1),)))
        is None
    )


# --- calls with arguments -----------------------------------------------------------------------------------

REFUSED = Refusal(finding="needs-allow-list", name="net.Net", storages_before=1)


@table("version", [None, "2.6.0", "1.12.1", "1.0.1"])
def test_the_plain_call_is_one_that_the_target_s_torch_takes(version: str | None) -> None:
    target = Profile(id="x", label="x", torch_version=version)
    assert simulate_load(checkpoint(storage("0"), format="legacy"), target) is None


def test_where_everything_lands() -> None:
    made = checkpoint(storage("0", "cuda:0"), tensor("w", device="cuda:0", storage="0"))
    outcome = simulate(made, CPU_ONLY, LoadCall(map_location="cpu"))
    assert outcome == LoadOutcome(failure=None, weights_only=True, tensors=("cpu",), storages=("cpu",))
    assert outcome.devices == ("cpu",)
    stopped = simulate(made, CPU_ONLY, LoadCall(weights_only=False))
    assert stopped.failure is not None
    assert (stopped.failure.tensor, stopped.weights_only, stopped.devices) == ("w", False, ())


@table(
    ("storages_before", "weights_only", "finding"),
    [
        (0, True, "needs-allow-list"),  # the name is asked for before the tensor
        (1, True, "cuda-unavailable"),  # after it
        (0, False, "cuda-unavailable"),
        (0, None, "needs-allow-list"),
    ],
)
def test_a_refusal_or_a_device_whichever_comes_first(
    storages_before: int, weights_only: bool | None, finding: str
) -> None:
    made = checkpoint(storage("0", "cuda:0"), tensor("w", device="cuda:0", storage="0"))
    refusal = replace(REFUSED, storages_before=storages_before)
    outcome = simulate(made, CPU_ONLY, LoadCall(weights_only=weights_only, refusal=refusal))
    assert outcome.failure is not None
    assert outcome.failure.finding == finding


@pytest.mark.parametrize(("storages_before", "finding"), [(1, "needs-allow-list"), (2, "unknown-device")])
def test_a_refusal_or_a_tensor_that_is_sent_to_its_device(storages_before: int, finding: str) -> None:
    sent = tensor("n", storage=None, device="xla:0", stride=None, storage_offset=None)
    made = checkpoint(storage("0"), tensor("w", storage="0"), sent)
    refusal = replace(REFUSED, storages_before=storages_before)
    failure = simulate(made, CPU_ONLY, LoadCall(weights_only=True, refusal=refusal)).failure
    assert failure is not None
    assert failure.finding == finding


def test_a_refusal_alone() -> None:
    outcome = simulate(checkpoint(storage("0")), CPU_ONLY, LoadCall(refusal=REFUSED))
    assert outcome.failure is not None
    assert "GLOBAL net.Net was not an allowed global" in outcome.failure.message


def test_what_is_known_before_the_file_is_read() -> None:
    outcome = simulate(checkpoint(format="legacy"), CPU_ONLY, LoadCall(mmap=True))
    assert outcome.failure is not None
    assert outcome.failure.finding == "bad-load-option"


def test_a_wrapper_is_made_after_its_parts() -> None:
    made = checkpoint(
        storage("0"),
        storage("1"),
        storage("2", "npu:0"),
        tensor("empty", device="cuda:0"),
        tensor("w", device="cuda:0"),
        tensor("w", "a", storage="0", part_of=1),
        tensor("w", "b", storage="1", part_of=1),
        tensor("c", device="npu:0", storage="2"),
    )
    outcome = simulate(made, CPU_ONLY, LoadCall(map_location=Function()))
    assert outcome.failure is not None
    assert (outcome.failure.finding, outcome.failure.tensor) == ("bad-map-location", "w")


def test_a_tensor_that_cannot_be_made_where_it_lands() -> None:
    made = checkpoint(storage("0"), tensor("q", dtype="qint8", storage="0"))
    outcome = simulate(made, CPU_ONLY, LoadCall(map_location="meta"))
    assert outcome.failure is not None
    assert (outcome.failure.finding, outcome.failure.tensor) == ("bad-map-location", "q")


def test_a_short_record_is_met_only_when_it_is_read() -> None:
    made = checkpoint(storage("0", expected_nbytes=99), versions=(("version", "3"),))
    plain, mapped = (simulate(made, CPU_ONLY, LoadCall(mmap=mmap)).failure for mmap in (False, True))
    assert plain is not None
    assert mapped is None


@table("how", [LoadCall(map_location="cpu"), LoadCall(), LoadCall(map_location=Function())], ids=str)
def test_many_tensors_are_loaded_in_proportion(how: LoadCall) -> None:
    def prepare(tensors: int) -> Callable[[], object]:
        made = checkpoint(*(row for index in range(tensors) for row in _row(index, last=tensors - 1)))
        return lambda: simulate(made, CPU_ONLY, how)

    assert growth(prepare, 500, 2_000) < 1.2


def _row(index: int, *, last: int) -> tuple[Storage, Tensor]:
    device = "cuda:1" if index == last else "cpu"
    return storage(str(index), device), tensor(str(index), device=device, storage=str(index))
