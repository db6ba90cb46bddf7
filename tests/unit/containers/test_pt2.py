from __future__ import annotations

import json

import pytest

from inspector.containers.container import Container
from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.pt2 import (
    LOAD_ALL,
    LOAD_COMPILED,
    LOAD_NAMED,
    devices_in_graph,
    parse_json,
    parse_payloads,
)
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import sum_extents
from inspector.errors import CheckpointError, ContainerError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.agents import loader_of
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenPlace
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.words.verdicts import load_verdict
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY, ROCM
from inspector.target.simulate import Judged, judge_load
from tests.builders.exports import config, exported, graph, meta, payload, saved
from tests.builders.exports import config as listed
from tests.builders.pickles import call, dict_, op, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS, evil
from tests.builders.zips import Record, build_zip
from tests.unit.containers.verdicts import judged_otherwise, kinds, refused_otherwise

PLAIN = {
    "data__weights__weight_0": WEIGHTS,
    "data__weights__model_weights_config.json": config(
        w=payload("weight_0", 4, device="cuda", index=0), view=payload("weight_0", 2, is_param=False)
    ),
    "data__constants__tensor_0": WEIGHTS,
    "data__constants__model_constants_config.json": config(k=payload("tensor_0", 4)),
    "models__model.json": graph("cuda"),
    "data__sample_inputs__model.pt": saved(),
}


WEIGHTS_LIST = "data__weights__model_weights_config.json"
UNSAMPLED = {name: data for name, data in PLAIN.items() if "sample" not in name}
OPAQUE = payload("opaque_obj_0", pickled=True)
UNKNOWN = {"path_name": "weight_0", "tensor_meta": None}


def with_weights(**rows: object) -> bytes:
    """The plain archive with another list of weights."""
    return exported(**{**PLAIN, WEIGHTS_LIST: config(**rows)})


def container(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Container:
    return read_container(BytesSource(data, "m.pt2"), limits)


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(container(data))


def old(*more: Record, root: bytes | None = None, constants: bytes | None = None) -> bytes:
    return build_zip(
        Record(name="version", data=b"8.2"),
        Record(name="serialized_exported_program.json", data=graph("cuda")),
        Record(name="serialized_state_dict.pt", data=saved(root)),
        Record(name="serialized_constants.pt", data=saved() if constants is None else constants),
        Record(name="serialized_example_inputs.pt", data=saved(tensor(storage("0", numel=4), 4))),
        *more,
    )


def test_weights_constants_and_sample_inputs_are_listed() -> None:
    found = opened(exported(**PLAIN))
    assert [(row.path, row.role, row.device, row.storage) for row in found.tensors] == [
        ("w", "parameter", "cuda:0", "data/weights/weight_0"),
        ("view", "buffer", "cuda:0", "data/weights/weight_0"),
        ("data/constants/k", "other", "cpu", "data/constants/tensor_0"),
        ("data/sample_inputs/x", "other", "cpu", "data/sample_inputs/model.pt:0"),
    ]
    assert (found.format, found.notes, found.is_program) == ("pt2", (), True)
    assert not any(row.missing or row.expected_nbytes for row in found.storages)
    (hidden,) = found.hidden_devices
    assert (hidden.device, hidden.what) == ("cuda:0", HiddenPlace.CODE)
    assert hidden.path == "models/model.json: zeros_0 = torch.ops.aten.zeros.default"


def test_bytes_are_where_the_records_are() -> None:
    source = BytesSource(exported(**PLAIN), "m.pt2")
    extents = read_extents(source, Limits(), Progress())
    assert (len(extents.whole), extents.lost) == (3, {})
    assert sum_extents(source, extents.whole, Progress()).faults == {}
    for extent in extents.whole.values():
        assert source.read(extent.offset, extent.nbytes) == WEIGHTS
    extent = format_of("pt2").finder(source)("data/weights/weight_0")
    assert extent is not None
    assert extent.crc


def test_several_models_stand_below_their_names() -> None:
    rows = config(w=payload("weight_0", 4))
    found = opened(
        exported(
            data__weights__weight_0=WEIGHTS,
            **{f"data__weights__{name}_weights_config.json": rows for name in "ab"},
            **{f"models__{name}.json": graph() for name in "ab"},
        )
    )
    assert [row.path for row in found.tensors] == ["a/w", "b/w"]


COMPILED_FOR = {"AOTI_DEVICE_KEY": "cuda", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64\n\x1b[0m"}
METADATA = json.dumps(COMPILED_FOR).encode()


def compiled(*names: str, programs: str = "") -> bytes:
    """An archive of what AOTInductor made of models, with exported programs of one letter each."""
    return exported(
        *(Record(name=f"m/data/aotinductor/{name}/w.wrapper.so", data=b"\x7fELF") for name in names),
        *(Record(name=f"m/data/aotinductor/{name}/w.wrapper_metadata.json", data=METADATA) for name in names),
        **{f"models__{name}.json": graph() for name in programs.split()},
    )


@pytest.mark.parametrize(
    ("data", "call", "names"),
    [
        (exported(**PLAIN), "torch.export.load", None),
        (compiled("model"), LOAD_COMPILED, ("model",)),
        (compiled("a", "b"), LOAD_NAMED, ("a", "b")),
        (compiled("b", "model"), LOAD_COMPILED, ("b", "model")),
        (compiled(programs="a b"), LOAD_ALL, ("a", "b")),
        (compiled(programs="a"), LOAD_ALL, ("a",)),  # `torch.export.load` asks for the program "model" alone
        (compiled(programs="model a"), LOAD_ALL, ("model", "a")),
        (compiled("model", programs="model"), "torch.export.load", ("model",)),
        (compiled("model", programs="a"), LOAD_ALL, ("a",)),
    ],
)
def test_loader_is_told_by_what_the_archive_holds(
    data: bytes, call: str, names: tuple[str, ...] | None
) -> None:
    found = opened(data)
    own = found.own_loader
    assert (loader_of(found), None if own is None else own.names) == (call, names)
    archive = judge(found).archive
    assert archive is not None
    assert archive.runs.startswith(call)
    assert ("machine code" in archive.words) == (call in {LOAD_COMPILED, LOAD_NAMED})


def test_machine_code_loads_only_where_it_fits() -> None:
    found = opened(compiled("model"))
    assert found.own_loader is not None
    assert found.own_loader.made_for == "linux x86_64\\u000a\\u001b[0m"
    failure = judge_load(found, CPU_ONLY).failure
    assert failure is not None
    assert (failure.finding, failure.device) == ("cuda-unavailable", "cuda")
    assert judge_load(found, ROCM).failure is None
    gpu = Judged(checkpoint=found, target=ROCM, load=judge_load(found, ROCM))
    assert "if its machine code fits, which was compiled for linux x86_64" in load_verdict(gpu, (), "it").why


def test_archive_of_no_program_is_refused() -> None:
    assert opened(exported(data__weights__weight_0=WEIGHTS)).refusal.startswith("RuntimeError: We ran into")
    assert opened(exported(extra__notes=b"x")).refusal == "KeyError: 'model'"


def test_archives_of_torch_2_8_hold_files_of_torch_save() -> None:
    found = opened(
        exported(
            **{
                "models__model.json": graph(),
                "data__weights__model.pt": saved(),
                "data__constants__model.pt": saved(),
            }
        )
    )
    assert [row.path for row in found.tensors] == ["x", "data/constants/x"]
    assert [row.storage for row in found.tensors] == ["data/weights/model.pt:0", "data/constants/model.pt:0"]


def test_archives_before_torch_2_8() -> None:
    found = opened(old())
    assert [(row.path, row.storage) for row in found.tensors] == [
        ("x", "serialized_state_dict.pt:0"),
        ("serialized_constants.pt/x", "serialized_constants.pt:0"),
        ("serialized_example_inputs.pt", "serialized_example_inputs.pt:0"),
    ]
    assert (found.refusal, found.versions, len(found.hidden_devices)) == ("", (), 1)
    assert len(opened(old(constants=b"")).tensors) == 2
    weight = call(
        "torch._utils._rebuild_parameter", tensor(storage("0", numel=4), 4), op("NEWTRUE"), call("a.B")
    )
    both = dict_((text("w"), weight), (text("b"), tensor(storage("0", numel=4), 4)), (text("n"), text("x")))
    roles = {row.path: row.role for row in opened(old(root=both)).tensors}
    assert (roles["w"], roles["b"], roles["serialized_constants.pt/x"]) == ("parameter", "buffer", "other")
    assert not any(row.missing for row in found.storages)


def test_large_values_are_found_in_the_pickle_that_they_are_of() -> None:
    big = "b" * 40
    root = dict_((text("x"), tensor(storage("0", numel=4), 4)), (text("big"), text(big)))
    data = exported(**{"models__model.json": graph(), "data__weights__model.pt": saved(root)})
    found = container(data, replace(DEFAULT_LIMITS, text_nbytes=20))
    assert big.encode() in found.data


def test_sizes_that_do_not_fit_are_told() -> None:
    rows = config(
        long=payload("weight_0", 100),
        odd=payload("weight_1", 1),
        gone=payload("weight_2", 3),
        none=payload("weight_3", 0),
    )
    found = opened(
        exported(
            **{
                "models__model.json": graph(),
                "data__weights__model_weights_config.json": rows,
                "data__weights__weight_0": WEIGHTS,
                "data__weights__weight_1": b"12345",
                "data__weights__weight_3": b"",
            }
        )
    )
    problems = {row.path: row.problem for row in found.tensors}
    assert problems["long"]
    assert {row.key: row.missing for row in found.storages}["data/weights/weight_2"]
    assert not problems["none"]
    assert NoteKind.LOST_BYTES in kinds(found)


# --- hostile ------------------------------------------------------------------------------------------------
HOSTILE: dict[str, tuple[bytes, str, NoteKind | None]] = {
    "payload in the sample inputs": (
        exported(**{**PLAIN, "data__sample_inputs__model.pt": saved(evil())}),
        "dangerous",
        None,
    ),
    "payload in sample inputs that are no zip": (
        exported(**{**PLAIN, "data__sample_inputs__model.pt": stream(proto(), evil())}),
        "dangerous",
        NoteKind.NOT_LISTED,
    ),
    "payload in a pickled weight": (
        exported(
            **{
                "models__model.json": graph(),
                "data__weights__weight_0": saved(evil()),
                "data__weights__model_weights_config.json": config(w=payload("weight_0", 4, pickled=True)),
            }
        ),
        "dangerous",
        None,
    ),
    "payload in an object beside the constants": (
        exported(
            **{
                **PLAIN,
                "data__constants__opaque_obj_0": stream(proto(), evil()),
                "data__constants__model_constants_config.json": config(k=OPAQUE),
            }
        ),
        "dangerous",
        NoteKind.NOT_LISTED,
    ),
    "payload in the files of the older generation": (old(root=evil()), "dangerous", None),
    "machine code": (
        exported(Record(name="m/data/aotinductor/model/a.so"), **PLAIN),
        "runs-code",
        NoteKind.MACHINE_CODE,
    ),
    "nothing but machine code": (
        build_zip(
            *(Record(name=f"m/data/aotinductor/model/{number}.so") for number in range(5)),
            Record(name="m/version", data=b"6"),
        ),
        "runs-code",
        NoteKind.MACHINE_CODE,
    ),
    "a graph that is no JSON": (
        exported(**{**PLAIN, "models__model.json": b"["}),
        "runs-code",
        NoteKind.UNREAD_CODE,
    ),
    "weights of unknown types": (
        with_weights(w=UNKNOWN),
        "runs-code",
        NoteKind.NOT_LISTED,
    ),
    "a name that climbs out": (
        with_weights(w=payload("../../../etc/passwd", 4)),
        "runs-code",
        NoteKind.LOST_BYTES,
    ),
    "strides beyond all bounds": (
        with_weights(w=payload("gone", 1 << 40, 1 << 40)),
        "runs-code",
        NoteKind.LOST_BYTES,
    ),
    "packed sample inputs": (
        exported(Record(name="m/data/sample_inputs/model.pt", data=saved(), method=8), **UNSAMPLED),
        "runs-code",
        NoteKind.NOT_LISTED,
    ),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    "a list of weights that is none": (
        exported(**{**PLAIN, "data__weights__model_weights_config.json": b"{}"}),
        "the list of weights cannot be read",
    ),
    "weights nested a million times": (
        exported(**{**PLAIN, "data__weights__model_weights_config.json": b"[" * 1_000_000}),
        "the JSON in the archive cannot be read",
    ),
    "sample inputs that break off": (
        exported(**{**PLAIN, "data__sample_inputs__model.pt": saved(b"(")}),
        "the pickle",
    ),
}


def test_hostile_files_are_never_judged_better_than_they_are() -> None:
    assert judged_otherwise(HOSTILE, opened) == {}


def test_hostile_files_are_refused_in_one_sentence() -> None:
    assert refused_otherwise(REFUSED, opened) == {}


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.containers.joined._MOST_FILES", 0)
    with pytest.raises(CheckpointError, match="more than 0 files"):
        opened(exported(**PLAIN))
    with pytest.raises(CheckpointError, match="more than 0 storages"):
        container(exported(**PLAIN), replace(DEFAULT_LIMITS, storages=0))


def test_archive_that_is_cut_off_keeps_what_is_before_the_cut() -> None:
    data = exported(**PLAIN)
    source = BytesSource(data[: data.index(b"m/data/sample_inputs")], "m.pt2")
    extents = read_extents(source, Limits(), Progress())
    found = build_checkpoint(extents.container)
    assert [row.path for row in found.tensors] == ["w", "view", "data/constants/k"]
    assert (extents.lost, len(extents.whole)) == ({}, 2)
    assert found.refusal.startswith("RuntimeError: PytorchStreamReader failed reading zip archive")
    for end in (data.index(b"m/data/weights/model"), data.index(b'"config"')):
        with pytest.raises(CheckpointError, match="cut off"):
            opened(data[:end])


def test_no_storage_is_taken_for_one_of_a_file_in_the_archive() -> None:
    colon = {"data__weights__model.pt:0": WEIGHTS, WEIGHTS_LIST: config(w=payload("model.pt:0", 4))}
    with pytest.raises(CheckpointError, match="a tensor of the archive is named like a storage"):
        container(exported(**{**PLAIN, **colon}))
    twice = {
        "data__weights__a": saved(tensor(storage("b:0", numel=4), 4), "b:0"),
        "data__weights__a:b": saved(),
        WEIGHTS_LIST: config(x=payload("a", pickled=True), y=payload("a:b", pickled=True)),
    }
    with pytest.raises(CheckpointError, match="a storage of one file in the archive is named like one"):
        container(exported(**{**PLAIN, **twice}))


def test_one_file_in_the_archive_may_be_named_twice() -> None:
    rows = config(x=payload("a", pickled=True), y=payload("a", pickled=True))
    found = container(exported(**{**PLAIN, "data__weights__a": saved(), WEIGHTS_LIST: rows}))
    assert "data/weights/a:0" in found.storage_ids


def test_what_is_no_plain_tensor_has_no_description() -> None:
    odd = [
        {"dtype": 0},
        {"dtype": "7"},
        {"layout": 1},
        {"sizes": [{"as_expr": "s0"}]},
        {"sizes": [{"as_int": -1}]},
        {"sizes": [{"as_int": 1 << 70}]},
        {"sizes": [{"as_int": 1}] * 100},
        {"sizes": None},
        {"strides": []},
        {"storage_offset": {"as_int": -1}},
        {"storage_offset": None},
        {"device": {"type": "\x1b[31m"}},
        {"device": None},
    ]
    rows = [{"path_name": "r", "tensor_meta": {**meta(2), **one}} for one in odd]
    found = [parse_payloads(listed(w=row), "x")[0].meta for row in rows]
    assert found == [None] * len(odd)
    assert parse_payloads(listed(w={"path_name": "r"}), "x")[0].meta is None


def test_devices_in_graphs_are_told_with_their_nodes() -> None:
    assert list(devices_in_graph(json.loads(graph("cuda", "cpu")))) == [
        ("cuda:0", "zeros_0 = torch.ops.aten.zeros.default"),
        ("cpu:0", "zeros_1 = torch.ops.aten.zeros.default"),
    ]
    for broken in (None, [], {"graph_module": {"graph": {"nodes": 3}}}):
        assert list(devices_in_graph(broken)) == []
    assert list(devices_in_graph({"graph_module": {"graph": {"nodes": [{"inputs": 1}, 2]}}})) == []


def test_what_is_not_read_is_said() -> None:
    for data in (b"", b"{", b"[" * 100_000, b"\xff", b"1" * 5000):
        with pytest.raises(ContainerError, match="the JSON in the archive cannot be read"):
            parse_json(data, "x")
    with pytest.raises(ContainerError, match="the list of weights cannot be read"):
        parse_payloads(b"{}", "x")
    with pytest.raises(ContainerError, match="a weight has no record") as caught:
        parse_payloads(listed(w={"path_name": 3}), "x")
    assert caught.value.where == "x: w"
