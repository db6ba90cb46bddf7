"""Where tensors land, on rows; the corpus and torch are asked in tests/torch/test_simulation_table.py."""

from __future__ import annotations

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.obstacles import Obstacle, ObstacleKind
from inspector.target.call import BAD_MAP, Function, LoadCall, MapLocation, TagMap, TorchDevice, WrongType
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import Landed, Landing, is_sent, is_wrapper
from tests.sweep import table
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


def test_without_a_map_all_is_where_it_was() -> None:
    assert landed(GPUS) == [row.device for row in ROWS.tensors]


def test_one_place_for_all_but_what_has_no_data() -> None:
    assert landed(GPUS, map_location="cuda", current=1) == [*["cuda:1"] * 6, "meta"]
    assert landed(GPUS, map_location=TorchDevice(text="cpu")) == [*["cpu"] * 6, "meta"]


def test_a_legacy_file_s_own_devices_are_not_mapped() -> None:
    assert landed(GPUS, "legacy", map_location="cpu") == [
        *("cpu", "cuda:0", "cpu", "cuda:0", "cuda:0", "cpu", "meta")
    ]


def test_a_dictionary_is_asked_for_what_each_kind_names() -> None:
    pairs = (("cuda:1", "cpu"), ("cuda:0", "cuda:1"), (TorchDevice(text="cuda:0"), "cpu"))
    assert landed(GPUS, map_location=TagMap(pairs=pairs)) == [
        *("cpu", "cpu", "cpu", "cuda:1", "cuda:1", "cpu", "meta")
    ]


def test_storages() -> None:
    assert Landing("zip", GPUS, LoadCall()).of_storages(ROWS) == ("cuda:1", "cpu")
    assert Landing("zip", CPU_ONLY, LoadCall(map_location=Function())).of_storages(ROWS) == ("cpu", "cpu")


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
    assert landing.reads_records
    assert not landing.meets(SIZE)
    assert landing.meets(MISSING)


def test_kinds_of_rows() -> None:
    assert [is_wrapper(row) for row in ROWS.tensors] == [False, True, *[False] * 5]
    assert [is_sent(row) for row in ROWS.tensors] == [*[False] * 3, True, True, False, False]


def test_what_has_no_device_goes_where_the_loader_is_told() -> None:
    def landed(place: MapLocation) -> Landed:
        return Landing("safetensors", CPU_ONLY, LoadCall(map_location=place)).of_tag(NO_DEVICE)

    assert landed(None) == landed("cpu") == landed(WrongType(name="int")) == ("cpu", None)
    assert landed(TorchDevice(text="meta")) == ("", (BAD_MAP, "SafetensorError: device meta is invalid"))
    device, failure = landed("cuda:1")
    assert device == ""
    assert failure is not None
    assert failure[0] == "cuda-unavailable"
