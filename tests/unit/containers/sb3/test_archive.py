from __future__ import annotations

import json
import struct

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import StorageReader, sum_extents
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenPlace
from inspector.progress import Progress
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders.agents import agent, attributes, optimizer, parameters, pickled
from tests.builders.exports import saved
from tests.builders.pickles import call, name, number, op, proto, stream, text
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
