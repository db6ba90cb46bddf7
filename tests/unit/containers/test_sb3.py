from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.sb3 import TWICE, Attributes, Files, StableBaselines3, read_attributes
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader, StorageReader, sum_extents
from inspector.errors import CheckpointError, ContainerError, NotACheckpointError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenPlace
from inspector.pickles.values import Call, Dict, Global
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders import legacy
from tests.builders.agents import agent, attributes, optimizer, parameters, pickled
from tests.builders.exports import saved
from tests.builders.pickles import (
    call,
    dict_,
    legacy_storage,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
)
from tests.builders.scripts import WEIGHTS, evil
from tests.builders.zips import Record, build_zip
from tests.frameworks.cases import FILES

PPO = FILES / "sb3/ppo_cartpole.zip"
EVIL = pickled(evil())


def container(data: bytes) -> Container:
    return read_container(BytesSource(data, "a.zip"))


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(container(data))


def kinds(found: Checkpoint | Container) -> set[NoteKind]:
    return {note.kind for note in found.notes}


def test_each_file_is_a_branch_and_its_slots_have_names() -> None:
    found = opened(agent(policy__pth=parameters("cuda:0"), policy__optimizer__pth=optimizer("cuda:0")))
    assert [(row.path, row.role, row.device, row.parameter) for row in found.tensors] == [
        ("policy.pth/pi.weight", "parameter", "cuda:0", None),
        ("policy.pth/pi.bias", "parameter", "cuda:0", None),
        ("policy.optimizer.pth/state/0/exp_avg", "optimizer", "cuda:0", "pi.weight"),
        ("policy.optimizer.pth/state/1/exp_avg", "optimizer", "cuda:0", "pi.bias"),
    ]
    assert (found.format, found.notes) == ("stable-baselines3", ())
    assert found.versions == (
        ("stable_baselines3", "2.3.2"),
        ("Python", "3.11.2"),
        ("PyTorch", "2.3.0+cu121"),
    )
    values = {row.path: row.text for row in found.values}
    assert values["data/gamma"] == "0.9"


def test_stored_devices_decide_nothing_and_hidden_ones_are_shown() -> None:
    device = pickled(call("torch.device", text("cuda"), number(1)))
    data = agent(policy__pth=parameters("cuda:0"), data=attributes(device=device, place="cuda:1"))
    found = opened(data)
    assert [(row.path, row.device, row.what) for row in found.hidden_devices] == [
        ("data/device", "cuda:1", HiddenPlace.DEVICE)
    ]
    load = judge_load(found, parse_wish("cpu").machine)
    assert (load.loads, load.loader, load.is_safe) == (True, "BaseAlgorithm.load", False)


def test_verdict_is_never_better_than_what_the_loader_runs() -> None:
    dangerous = {
        "an attribute": agent(data=attributes(x=EVIL)),
        "the parameters": agent(policy__pth=saved(evil())),
        "a file that nobody asked for": agent(Record(name="x/y.pth", data=saved(evil()))),
        "the first of two records": agent(Record(name="data", data=attributes()), data=attributes(x=EVIL)),
        "the second of two records": agent(Record(name="data", data=attributes(x=EVIL))),
        "the first of two files": agent(
            Record(name="policy.pth", data=parameters()), policy__pth=saved(evil())
        ),
        "compressed": agent(method=8, data=attributes(x=EVIL)),
        "a pickle in the place of a file": agent(policy__optimizer__pth=stream(proto(), evil())),
        "an attribute of a broken archive": agent(data=attributes(x=EVIL), policy__optimizer__pth=b"PK"),
        "one of several of a name": agent(data=attributes(x=EVIL)[:-1] + b', "x": 1}'),
        "behind what is no Base64": agent(data=attributes(x={":serialized:": "A"}, y=EVIL)),
        "behind JSON that is too deep": agent(data=attributes(x=json.loads("[" * 150 + "]" * 150), y=EVIL)),
    }
    for what, data in dangerous.items():
        found = opened(data)
        assert (what, judge(found).verdict) == (what, "dangerous")
    harmless = judge(opened(agent()))
    assert (harmless.verdict, harmless.weights_only) == ("runs-code", False)
    code = call("cloudpickle.cloudpickle._make_function", op("NONE"))
    assert judge(opened(agent(data=attributes(lr_schedule=pickled(code))))).verdict == "dangerous"


def test_programs_of_a_refused_archive_are_kept() -> None:
    data = agent(
        data=attributes(x=EVIL), policy__pth=b"x", policy__optimizer__pth=b"y", pytorch_variables__pth=b"z"
    )
    with pytest.raises(CheckpointError) as caught:
        container(data)
    names = [use.dotted for program in caught.value.programs for use in program.stream.globals]
    assert "os.system" in names


def test_what_cannot_be_read_is_told() -> None:
    for records, kind, words in (
        ({"data": b"{"}, NoteKind.UNREAD_PART, "data: it cannot be read: the file is no valid JSON."),
        (
            {"policy__optimizer__pth": b"nothing"},
            NoteKind.UNREAD_PART,
            "policy.optimizer.pth: it cannot be read: this is a text file that begins with 'nothing'.",
        ),
        (
            {"data": attributes(**{f"x{one}": {":serialized:": 1} for one in range(5)})},
            NoteKind.UNREAD_VALUES,
            "5 pickled attributes cannot be read and not judged. data: x0, x1, x2 and 2 more.",
        ),
        (
            {"data": attributes(x={":serialized:": 1})},
            NoteKind.UNREAD_VALUES,
            "1 pickled attribute cannot be read and not judged. data: x.",
        ),
    ):
        found = opened(agent(**records))
        assert words in [note.sentence for note in found.notes if note.kind is kind]
        assert bool(found.refusal) == (kind is NoteKind.UNREAD_PART)
        assert judge(found).verdict == "unknown"
    assert NoteKind.SHARED_NAME in kinds(opened(agent(Record(name="data", data=b"{"))))


def test_attributes_and_texts_may_be_missing() -> None:
    found = opened(agent(data=None))
    assert (len(found.tensors), found.values[-1].path) == (4, "pytorch_variables.pth")
    for text_record in (Record(name="system_info.txt", data=b"\xff\x1b[2J- Python:\n"), None):
        data = build_zip(
            Record(name="policy.pth", data=parameters()),
            Record(name="_stable_baselines3_version", data=b"1" * 100_000),
            *(() if text_record is None else (text_record,)),
        )
        assert opened(data).versions == ()


def test_storages_are_found_stored_and_compressed() -> None:
    for method in (0, 8):
        source = BytesSource(agent(method=method), "a.zip")
        found = read_container(source)
        reader = StorageReader(found, source)
        keys = [key for key in found.storage_ids if "policy.pth" in key]
        assert keys == ["policy.pth:0", "policy.pth:1"]
        for key in keys:
            assert (reader.is_packed(key), reader.read(key, 4, 8)) == (bool(method), WEIGHTS[4:12])
        extents = read_extents(source, DEFAULT_LIMITS, Progress())
        assert (set(extents.whole), extents.lost) == (set(found.storage_ids), {})
        assert "data" in extents.records
        assert "policy.pth" not in extents.records
        assert sum_extents(source, extents.whole | extents.records, Progress()).faults == {}


def test_lost_bytes_are_told_once() -> None:
    body = saved(None, "9")  # its storage 0 is not there
    source = BytesSource(agent(policy__pth=body), "a.zip")
    found = read_container(source)
    assert [note.kind for note in found.notes].count(NoteKind.LOST_BYTES) == 1
    extents = read_extents(source, DEFAULT_LIMITS, Progress())
    assert extents.lost == {"policy.pth:0": "its bytes are not in the file"}


def test_big_endian_numbers_are_told() -> None:
    inner = build_zip(
        Record(name="a/data.pkl", data=stream(proto(), op("NONE"))),
        Record(name="a/byteorder", data=b"big"),
        Record(name="a/version", data=b"3"),
    )
    found = opened(agent(policy__pth=inner, policy__optimizer__pth=None, pytorch_variables__pth=None))
    assert ("byteorder", "big") in found.versions


def test_cut_archive_is_read_as_far_as_it_goes() -> None:
    data = PPO.read_bytes()
    found = opened(data[: int(len(data) * 0.8)])
    assert (found.format, len(found.tensors)) == ("stable-baselines3", 48)
    assert 0 < sum(row.missing for row in found.storages) < 36
    # Python's zipfile takes the end of policy.pth for that of the archive.
    assert found.refusal == "AssertionError: No data found in the saved file"
    first = build_zip(
        Record(name="policy.pth", data=parameters().replace(b"PK\x05\x06", b"....")),
        Record(name="data", data=bytes(500)),
    )
    refusal = opened(first[:-400]).refusal
    assert refusal == "ValueError: Error: the file a.zip wasn't a zip-file"
    with pytest.raises(CheckpointError):
        container(data[:9_000])  # not even the parameters are there


def test_records_that_lie_are_one_sentence() -> None:
    """Each is a hostile archive: none may crash, and none may be opened as something better."""
    far = agent()
    bomb = Record(name="policy.pth", data=bytes(1 << 20), method=8, nbytes=100)
    cases = {
        "a bomb": build_zip(bomb, Record(name="data", data=attributes())),
        "encrypted": build_zip(
            Record(name="policy.pth", data=parameters(), flags=1), Record(name="data", data=attributes())
        ),
        "packed in an unknown way": build_zip(
            Record(name="policy.pth", data=parameters(), method=12), Record(name="data", data=attributes())
        ),
        "two sizes": build_zip(
            Record(name="policy.pth", data=parameters(), nbytes=9, stored_nbytes=9),
            Record(name="data", data=attributes()),
        ),
        "an agent within an agent": build_zip(
            Record(name="policy.pth", data=agent()), Record(name="data", data=attributes())
        ),
        "no file at all": build_zip(
            Record(name="_stable_baselines3_version", data=b"2"), Record(name="data")
        ),
        "a header elsewhere": far.replace(struct.pack("<4s", b"PK\x03\x04"), b"PK\x09\x09"),
        "an empty file": agent(policy__pth=b"", policy__optimizer__pth=b"", pytorch_variables__pth=b""),
        "TorchScript": build_zip(
            Record(
                name="policy.pth",
                data=build_zip(
                    Record(name="a/data.pkl", data=stream(proto(), name("__torch__.Net"))),
                    Record(name="a/constants.pkl", data=stream(proto(), op("EMPTY_TUPLE"))),
                    Record(name="a/version", data=b"3"),
                ),
            ),
            Record(name="data", data=attributes()),
        ),
        "JSON of a million values": agent(
            data=b"[" + b"0," * 200_000 + b"0]",
            policy__pth=b"",
            policy__optimizer__pth=b"",
            pytorch_variables__pth=b"",
        ),
    }
    for what, data in cases.items():
        said, found = "", None
        try:
            found = opened(data)
        except CheckpointError as error:
            said = str(error)
        assert said or found is not None, what
        if found is not None:
            assert judge(found).verdict in {"runs-code", "dangerous"}, what
            assert found.refusal or not found.tensors, what


def opened_attributes(data: bytes | dict[str, Any]) -> tuple[Attributes, BytesSource]:
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    source = BytesSource(build_zip(Record(name="data", data=data)), "a.zip")
    archive = StableBaselines3().opened(source)
    (entry,) = archive.records.directory.entries
    return read_attributes(archive, entry, Files(archive)), source


def globals_of(source: BytesSource) -> set[str]:
    return {use.dotted for program in source.programs.all() for use in program.stream.globals}


def is_whole(source: BytesSource) -> bool:
    return all(program.is_whole for program in source.programs.all())


def test_json_is_values_and_pickles_are_read_inert() -> None:
    found, source = opened_attributes(
        {"a": 1, "b": [None, {"c": 2.5}], "d": "text", "e": True, "f": pickled(name("torch.optim.adam.Adam"))}
    )
    values = dict(found.root.pairs)
    assert (values["a"], values["d"], values["e"], found.unread) == (1, "text", True, ())
    inner = values["b"]
    assert isinstance(inner, list)
    assert inner[0] is None
    assert isinstance(inner[1], Dict)
    assert isinstance(values["f"], Global)
    assert globals_of(source) == {"torch.optim.adam.Adam"}
    assert is_whole(source)


def test_base64_is_read_as_python_reads_it() -> None:
    packed = base64.b64encode(stream(proto(), evil())).decode()
    for spelled in (packed, "\n".join(packed), f"!{packed}\0", packed + "===="):
        found, source = opened_attributes({"x": {":serialized:": spelled}})
        assert isinstance(found.root.pairs[0][1], Call)
        assert "os.system" in globals_of(source)


def test_of_several_members_of_one_name_the_last_counts_and_all_are_read() -> None:
    def packed(dotted: str) -> str:
        return base64.b64encode(stream(proto(), call(dotted))).decode()

    inside = f'{{":serialized:": "{packed("a.b")}", ":serialized:": "{packed("c.d")}"}}'
    found, source = opened_attributes(
        f'{{"x": {inside}, "x": 3, "y": {{":serialized:": 1, ":type:": 2}}}}'.encode()
    )
    assert globals_of(source) == {"c.d"}
    assert [key for key, _ in found.root.pairs] == ["x", "x"]
    assert found.unread == ("y",)


def test_what_cannot_be_unpickled_is_told() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    broken = {
        "no_text": {":serialized:": 5},
        "no_base64": {":serialized:": "A"},
        "no_ascii": {":serialized:": "\udc80"},
        "cut": {":serialized:": base64.b64encode(stream(proto(), evil())[:-1]).decode()},
        "outside": pickled(storage("0")),
        "deep": deep,
        "\x1b[2J": {":serialized:": None},
        "fine": {":serialized": "A"},
    }
    for key, value in broken.items():
        found, source = opened_attributes({"before": pickled(op("NONE")), key: value})
        if key == "fine":
            assert found.unread == ()
            continue
        assert len(found.unread) == 1
        assert "\x1b" not in found.unread[0]
        assert [name for name, _ in found.root.pairs] == ["before"]
        assert not is_whole(source)


def test_records_that_are_no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, words in ((b"[1]", "holds no object"), (b"{", "no valid JSON"), (b"\xff", "no valid JSON")):
        with pytest.raises(ContainerError, match=words):
            opened_attributes(data)
    monkeypatch.setattr("inspector.containers.sb3._MOST_PICKLES", 1)
    with pytest.raises(ContainerError, match="more than 1 pickled attributes"):
        opened_attributes({"a": pickled(op("NONE")), "b": pickled(evil())})
    monkeypatch.setattr("inspector.containers.sb3._MOST_NBYTES", 10)
    with pytest.raises(ContainerError, match="larger than 10 bytes"):
        opened_attributes({"a": text("x" * 20).decode("latin-1")})


LEGACY = legacy.checkpoint(
    stream(proto(), dict_((text("x"), tensor(legacy_storage("7", numel=4), 4)))), ("7", 4, WEIGHTS)
)


class Made:
    """A zip with these records, and the files that were read of it."""

    def __init__(self, *records: Record, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = BytesSource(build_zip(*records), "a.zip")
        archive = StableBaselines3().opened(self.source, limits)
        self.entries = archive.records.directory.entries
        self.files = Files(archive)

    def read(self, number: int = 0) -> object:
        return self.files.read(self.entries[number].name, self.entries[number])


def inner_zip(method: int = 0, **more: object) -> bytes:
    return build_zip(
        Record(name="a/data.pkl", data=stream(proto(), tensor(storage("0", numel=4), 4)), method=method),
        Record(name="a/data/0", data=WEIGHTS, method=method),
        Record(name="a/version", data=b"3"),
        *(Record(name=f"a/{name}", data=data) for name, data in more.items() if isinstance(data, bytes)),
    )


def test_files_of_both_formats_are_read_stored_or_compressed() -> None:
    for data, key, nbytes in ((parameters("cuda:1"), "p.pth:1", 16), (LEGACY, "p.pth:7", 16)):
        for method in (0, 8):
            made = Made(Record(name="before", data=b"12"), Record(name="p.pth", data=data, method=method))
            root = made.read(1)
            assert isinstance(root, Dict)
            files = made.files
            assert [one.prefix for one in files.pickles] == ["p.pth:"]
            assert (files.storage_ids[key].key, files.stored[key].nbytes) == (key, nbytes)
            assert (files.stored[key].offset is None) == bool(method)
            found = files.extents()
            assert (found.lost, found.names, set(found.whole)) == ({}, {"p.pth"}, set(files.storage_ids))
            assert b"".join(ExtentReader(made.source).contents(found.whole[key])) == WEIGHTS
            if not method:
                offset = files.stored[key].offset or 0
                assert made.source.read(offset, nbytes) == WEIGHTS
            sums = sum_extents(made.source, found.whole | found.records, Progress())
            assert sums.faults == {}
            programs = [program.name for program in made.source.programs.all()]
            assert programs == ["p.pth"]


def test_records_of_the_inner_files_are_checked_too() -> None:
    made = Made(Record(name="p.pth", data=inner_zip()))
    made.read()
    assert set(made.files.extents().records) == {"p.pth:a/data.pkl", "p.pth:a/version"}


def test_what_is_compressed_twice_is_not_read() -> None:
    made = Made(Record(name="p.pth", data=inner_zip(8), method=8))
    made.read()
    extent = made.files.extents().whole["p.pth:0"]
    assert extent.method == TWICE
    once = Made(Record(name="p.pth", data=inner_zip(8)))
    once.read()
    found = once.files.extents().whole["p.pth:0"]
    assert b"".join(ExtentReader(once.source).contents(found)) == WEIGHTS


def test_lost_storages_are_told() -> None:
    body = dict_((text("x"), tensor(storage("9", numel=4), 4)))
    made = Made(
        Record(
            name="p.pth",
            data=build_zip(
                Record(name="a/data.pkl", data=stream(proto(), body)), Record(name="a/version", data=b"99")
            ),
        )
    )
    made.read()
    assert made.files.extents().lost == {"p.pth:9": "its bytes are not in the file"}
    assert NoteKind.LOST_BYTES not in {note.kind for note in made.files.notes}  # the whole says so
    made = Made(Record(name="p.pth", data=inner_zip()[:-30]))
    made.read()
    assert {note.part for note in made.files.notes} == {"p.pth"}
    assert made.files.refusal.startswith("RuntimeError: PytorchStreamReader failed")


def test_what_torch_refuses_of_a_storage_is_kept() -> None:
    broken = build_zip(
        Record(name="a/data.pkl", data=stream(proto(), tensor(storage("0", numel=4), 4))),
        Record(name="a/data/0", data=WEIGHTS, method=12),
        Record(name="a/version", data=b"3"),
    )
    made = Made(Record(name="p.pth", data=broken))
    made.read()
    assert list(made.files.refused) == ["p.pth:0"]


def test_what_is_no_file_of_torch_is_read_for_what_it_runs() -> None:
    for data in (stream(proto(), evil()), build_zip(Record(name="x.pkl", data=stream(proto(), evil())))):
        made = Made(Record(name="p.pth", data=data))
        with pytest.raises(CheckpointError):
            made.read()
        names = [use.dotted for one in made.source.programs.all() for use in one.stream.globals]
        assert "os.system" in names
    made = Made(Record(name="p.pth", data=b"nothing at all"))
    with pytest.raises(CheckpointError):
        made.read()
    archive = build_zip(Record(name="data", data=b"{}"), Record(name="_stable_baselines3_version", data=b"2"))
    made = Made(Record(name="p.pth", data=archive))
    with pytest.raises(NotACheckpointError, match=r"this is no file of torch\.save: p\.pth"):
        made.read()


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(DEFAULT_LIMITS, storages=1)
    made = Made(Record(name="p.pth", data=inner_zip()), Record(name="q.pth", data=inner_zip()), limits=few)
    made.read()
    with pytest.raises(ContainerError, match="more than 1 storages"):
        made.read(1)
    monkeypatch.setattr("inspector.containers.joined._MOST_FILES", 1)
    made = Made(Record(name="p.pth", data=inner_zip()), Record(name="q.pth", data=inner_zip()))
    made.read()
    with pytest.raises(ContainerError, match=r"more than 1 files of torch\.save"):
        made.read(1)


def test_files_of_two_byte_orders_are_not_one_checkpoint() -> None:
    orders = (b"big", b"little")
    made = Made(*(Record(name=f"{order!r}.pth", data=inner_zip(byteorder=order)) for order in orders))
    made.read()
    assert made.files.byteorder == "big"
    with pytest.raises(ContainerError, match="in another order"):
        made.read(1)


def test_large_values_find_themselves_in_the_data_of_all() -> None:
    limits = replace(DEFAULT_LIMITS, text_nbytes=10)
    long = dict_((text("k"), text("x" * 40)))
    data = build_zip(
        Record(name="a/data.pkl", data=stream(proto(), long)), Record(name="a/version", data=b"3")
    )
    made = Made(Record(name="p.pth", data=data), Record(name="q.pth", data=data), limits=limits)
    blobs = []
    for index in (0, 1):
        root = made.read(index)
        assert isinstance(root, Dict)
        blobs.append(root.pairs[0][1])
    assert [made.files.large[blob.offset : blob.offset + blob.nbytes] for blob in blobs] == [b"x" * 40] * 2  # type: ignore[union-attr]
