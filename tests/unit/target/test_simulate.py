"""Where tensors land, on rows; the corpus and torch are asked in tests/torch/test_simulation_table.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import (
    Checkpoint,
    GlobalUse,
    HiddenDevice,
    HiddenPlace,
    Safety,
)
from inspector.model.obstacles import Obstacle, ObstacleKind
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import (
    BAD_MAP,
    Function,
    LoadCall,
    MapLocation,
    Refusal,
    TagMap,
    TorchDevice,
    WrongType,
    plain_call,
)
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import (
    DefaultLoad,
    Landed,
    Landing,
    LoadFailure,
    LoadOutcome,
    code_weights_only,
    device_failures,
    first_failure,
    judge_for,
    judge_load,
    rebuild_failure,
    simulate,
)
from inspector.target.versions import release_of
from tests import corpus
from tests.sweep import table
from tests.unit.model.making import saved
from tests.unit.report.rows import checkpoint, storage, tensor

GPUS = Profile(id="cuda:2", label="2 GPUs", accelerators=(("cuda", 2),))
OLD = Profile(id="x", label="x", torch_version="2.9.0")
SENT = {"stride": None, "storage_offset": None}
SIZE = Obstacle(ObstacleKind.RECORD_SIZE, "RuntimeError: record size ...")
MISSING = Obstacle(ObstacleKind.RECORD, "RuntimeError: PytorchStreamReader failed ...")
PLAIN = tensor("plain", device="cuda:1", storage="0")
ROWS = checkpoint(
    storage("0", "cuda:1"),
    storage("1", "cpu"),
    PLAIN,
    tensor("wrapper", device="cuda:0"),
    tensor("wrapper", "part", device="cuda:1", storage="0", part_of=1),
    tensor("sent", device="cuda:0", storage="1", **SENT),
    tensor("array", device="cuda:0", **SENT),
    tensor("sparse", device="cuda:1", layout="sparse_coo", **SENT),
    tensor("described", device="meta"),
)


def landed(target: Profile, form: str = "zip", **how: object) -> list[str]:
    return list(Landing(form, target, LoadCall(**how)).of_tensors(ROWS))


def test_a_legacy_file_s_own_devices_are_not_mapped() -> None:
    assert landed(GPUS, "legacy", map_location="cpu") == [
        *("cpu", "cuda:0", "cpu", "cuda:0", "cuda:0", "cpu", "meta")
    ]


def test_failures_are_given_for_each_place() -> None:
    landing = Landing("zip", CPU_ONLY, LoadCall())
    device, failure = landing.of_tag("cuda:1")
    assert (device, failure and failure[0]) == ("", "cuda-unavailable")
    assert landing.of_tag("cuda:1") is landing.of_tag("cuda:1")  # asked once
    assert landing.of_own("cuda:0", is_wrapper=True) == ("cuda:0", None)  # nothing is allocated for it
    assert landing.of_own("cuda:0", is_wrapper=False)[1] is not None
    wrong = Landing("zip", CPU_ONLY, LoadCall(map_location=WrongType(name="int")))
    assert wrong.of_tag("cpu")[1] == (BAD_MAP, "TypeError: 'int' object is not callable")
    assert wrong.of_own("cpu", is_wrapper=True)[1] is not None


@table(
    ("form", "target", "how", "skips"),
    [
        ("zip", CPU_ONLY, LoadCall(map_location="meta"), True),
        ("zip", CPU_ONLY, LoadCall(map_location=TorchDevice(text="meta:0")), True),
        ("legacy", CPU_ONLY, LoadCall(map_location="meta"), False),
        ("zip", OLD, LoadCall(map_location="meta"), False),
        ("zip", CPU_ONLY, LoadCall(map_location=TagMap(pairs=(("cpu", "meta"),))), False),
    ],
)
def test_what_reads_no_data(form: str, target: Profile, how: LoadCall, skips: bool) -> None:
    landing = Landing(form, target, how)
    assert landing.skips_data is skips
    assert landing.of_tag("cpu") == ("meta", None)
    assert landing.meets(SIZE) is not skips
    assert landing.meets(MISSING)


def test_a_mapped_file_s_records_are_not_measured() -> None:
    landing = Landing("zip", CPU_ONLY, LoadCall(mmap=True))
    assert not landing.meets(SIZE)
    assert landing.meets(MISSING)


def test_what_has_no_device_goes_where_the_loader_is_told() -> None:
    def landed(place: MapLocation) -> Landed:
        return Landing("safetensors", CPU_ONLY, LoadCall(map_location=place)).of_tag(NO_DEVICE)

    assert landed(None) == landed("cpu") == landed(WrongType(name="int")) == ("cpu", None)
    assert landed(TorchDevice(text="meta")) == ("", (BAD_MAP, "SafetensorError: device meta is invalid"))
    device, failure = landed("cuda:1")
    assert device == ""
    assert failure[0] == "cuda-unavailable"


GPU = Profile(id="cuda:1", label="1 GPU", accelerators=(("cuda", 1),))
GENERATOR = HiddenDevice(path="g", device="cpu", what=HiddenPlace.GENERATOR)


def failure_of(found, target: Profile = CPU_ONLY, **how: object):
    return rebuild_failure(found, Landing("zip", target, LoadCall(**how)))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["by tensor", "by channel", "nested", "plain"])
def test_meta_against_torch(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    scales, zeros = torch.ones(2), torch.zeros(2, dtype=torch.int)
    value = {
        "by tensor": lambda: torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8),
        "by channel": lambda: torch.quantize_per_channel(torch.ones(2, 2), scales, zeros, 0, torch.quint8),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "plain": lambda: torch.ones(2),
    }[kind]()
    ours = failure_of(saved(tmp_path, {"a": torch.ones(1), "b": value}), map_location="meta")
    try:
        torch.load(tmp_path / "file.pt", map_location="meta", weights_only=False)
    except NotImplementedError as error:  # torch has no such function for meta: what we foretell
        assert ours[0].path == "b"
        assert ours[1][0] == BAD_MAP
        assert f"NotImplementedError: {error}".startswith(ours[1][1])  # noqa: PT017 - it may also load
    else:
        assert ours is None
        assert kind == "plain"


def test_a_generator_s_state_belongs_on_the_cpu() -> None:
    found = checkpoint(
        tensor("w", storage="0"),
        tensor("g", ".state", 2, storage="1"),
        hidden_devices=(GENERATOR,),
    )
    failure = failure_of(found, GPU, map_location="cuda")
    assert (failure[0].path, failure[1][0]) == ("g/.state/2", "rng-off-cpu")
    assert failure_of(found, GPU) is None
    assert failure_of(found, CPU_ONLY, map_location="cuda") is None  # stopped before, by the storage


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


FOUR = Profile(id="x", label="x", accelerators=(("cuda", 4), ("mps", 1)))
XLA = {"device": "xla:0", "stride": None, "storage_offset": None}
TAGGED = checkpoint(storage("0"), storage("1", "cuda:3"), storage("2", "mps"))
SENT_ON = checkpoint(storage("0"), tensor("w", storage="0", **XLA), tensor("n", storage=None, **XLA))
SENT_THERE = tensor("n", device="cuda:0", stride=None, storage_offset=None, storage="0")
HIDDEN, PLAIN_DEVICE = (
    HiddenDevice(path=path, device="cuda:0", what=what)
    for path, what in (("g", HiddenPlace.GENERATOR), ("d", HiddenPlace.DEVICE))
)


@table(
    ("made", "target", "failure"),
    [
        (TAGGED, CPU_ONLY, ("cuda-unavailable", "cuda:3", "1")),
        (TAGGED, FOUR, None),
        # Tensors that are sent while loading fail after their storage.
        (SENT_ON, CPU_ONLY, ("unknown-device", "xla:0", "0")),
        (checkpoint(tensor("n", storage=None, **XLA)), CPU_ONLY, ("unknown-device", "xla:0", "")),
        (checkpoint(storage("0"), SENT_THERE), FOUR, None),
        # What torch says to the file comes first, generators last.
        (
            checkpoint(storage("0", "cuda:0"), versions=(("version", "11"),)),
            CPU_ONLY,
            ("newer-format", "", ""),
        ),
        (checkpoint(hidden_devices=(PLAIN_DEVICE, HIDDEN)), CPU_ONLY, ("cuda-unavailable", "cuda:0", "")),
        (checkpoint(hidden_devices=(PLAIN_DEVICE,)), CPU_ONLY, None),
        (
            checkpoint(storage("0", missing=True), versions=(("version", "3"),)),
            CPU_ONLY,
            ("truncated", "", "0"),
        ),
        (checkpoint(storage("0", missing=True), format="legacy"), CPU_ONLY, ("truncated", "", "")),
    ],
)
def test_the_first_failure(made: Checkpoint, target: Profile, failure: tuple[str, str, str] | None) -> None:
    found = simulate_load(made, target)
    assert (None if found is None else (found.finding, found.device, found.storage)) == failure


def test_devices_that_fail_are_listed() -> None:
    assert list(device_failures(SENT_ON, CPU_ONLY)) == ["xla:0"]


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
    assert outcome.failure.finding == finding


@pytest.mark.parametrize(("storages_before", "finding"), [(1, "needs-allow-list"), (2, "unknown-device")])
def test_a_refusal_or_a_tensor_that_is_sent_to_its_device(storages_before: int, finding: str) -> None:
    sent = tensor("n", storage=None, device="xla:0", stride=None, storage_offset=None)
    made = checkpoint(storage("0"), tensor("w", storage="0"), sent)
    refusal = replace(REFUSED, storages_before=storages_before)
    failure = simulate(made, CPU_ONLY, LoadCall(weights_only=True, refusal=refusal)).failure
    assert failure.finding == finding


def test_what_is_known_before_the_file_is_read() -> None:
    outcome = simulate(checkpoint(format="legacy"), CPU_ONLY, LoadCall(mmap=True))
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
    assert (outcome.failure.finding, outcome.failure.tensor) == ("bad-map-location", "w")


def test_a_tensor_that_cannot_be_made_where_it_lands() -> None:
    made = checkpoint(storage("0"), tensor("q", dtype="qint8", storage="0"))
    outcome = simulate(made, CPU_ONLY, LoadCall(map_location="meta"))
    assert (outcome.failure.finding, outcome.failure.tensor) == ("bad-map-location", "q")


def test_a_short_record_is_met_only_when_it_is_read() -> None:
    made = checkpoint(storage("0", expected_nbytes=99), versions=(("version", "3"),))
    plain, mapped = (simulate(made, CPU_ONLY, LoadCall(mmap=mmap)).failure for mmap in (False, True))
    assert plain is not None
    assert mapped is None


OTHER_OPCODE = Safety(opcodes=("POP",), protocol=2, oddities=(), unread=())
AMBIGUOUS = (Note(NoteKind.SHARED_NAME),)
ON_GPU = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))


def names(*dotted: str) -> tuple[GlobalUse, ...]:
    return tuple(GlobalUse(name=name, count=1) for name in dotted)


def on(version: str | None) -> Profile:
    return replace(CPU_ONLY, torch_version=version)


def facts(load: DefaultLoad) -> tuple[str, bool, bool, bool | None]:
    return load.way, load.loads, load.is_safe, load.code.weights_only


@table(
    ("made", "version", "expected"),
    [
        (checkpoint(tensor("w")), None, ("as-it-is", True, True, True)),
        (checkpoint(tensor("w")), "2.4", ("as-it-is", True, True, True)),
        (checkpoint(globals=names("m.Net")), None, ("names", False, False, True)),
        (checkpoint(globals=names("m.Net")), "2.4", ("unchecked", True, False, True)),
        (checkpoint(globals=names("m.Net")), "2.3", ("unchecked", True, False, False)),
        (checkpoint(globals=names("m.Net")), "1.12", ("unchecked", True, False, None)),
        (checkpoint(safety=OTHER_OPCODE), "2.6", ("full", False, False, False)),
        (checkpoint(safety=OTHER_OPCODE), "2.4", ("unchecked", True, False, False)),
        (checkpoint(globals=names("os.system")), None, ("never", False, False, True)),
        (checkpoint(globals=names("os.system")), "2.4", ("never", True, False, True)),
        (checkpoint(*ON_GPU), None, ("other", False, True, True)),
        (checkpoint(format="torchscript"), None, ("unchecked", True, False, False)),
        (checkpoint(notes=AMBIGUOUS), None, ("unsure", True, False, True)),
        (checkpoint(notes=AMBIGUOUS), "2.4", ("unsure", True, False, True)),
        (checkpoint(*ON_GPU, notes=AMBIGUOUS), None, ("other", False, False, True)),
        (checkpoint(notes=AMBIGUOUS, globals=names("m.Net")), None, ("full", False, False, False)),
        (checkpoint(globals=names("builtins.set")), "2.4", ("unchecked", True, False, True)),
        (checkpoint(globals=names("builtins.set")), "2.6", ("as-it-is", True, True, True)),
    ],
)
def test_ways(made: Checkpoint, version: str | None, expected: tuple[str, bool, bool, bool | None]) -> None:
    assert facts(judge_load(made, on(version))) == expected


def test_what_stops_the_code_is_asked_apart() -> None:
    load = judge_load(checkpoint(*ON_GPU, globals=names("m.Net")), CPU_ONLY)
    assert load.failure.finding == "needs-allow-list"
    assert load.last_error is load.stop
    assert load.stop.device == "cuda:0"


def test_nothing_else_stops_what_is_only_refused() -> None:
    refused = judge_load(checkpoint(globals=names("m.Net")), CPU_ONLY)
    assert refused.last_error is None
    missing = judge_load(checkpoint(*ON_GPU), CPU_ONLY)
    assert missing.last_error is not None
    script = judge_load(checkpoint(format="torchscript"), CPU_ONLY)
    assert script.last_error is None
    old = judge_load(checkpoint(globals=names("m.Net")), on("2.4"))
    assert old.last_error is None


def test_the_dangerous_is_stopped_by_its_own_refusal() -> None:
    load = judge_load(checkpoint(globals=names("os.system")), CPU_ONLY)
    assert load.stop is load.failure
    assert load.code.refusal is not None


def test_a_verdict_counts_for_its_own_torch_only() -> None:
    made = checkpoint(globals=names("builtins.set"))
    newest = judge(made)
    assert judge_for(made, None, newest) is newest
    assert judge_for(made, on("2.13.0+cu130"), newest) is newest
    assert judge_for(made, on("2.4"), newest).verdict == "needs-allow-list"
    assert judge_for(made, None).verdict == "weights-only"
    assert judge_load(made, CPU_ONLY, newest).safety is newest
    assert code_weights_only(newest)
