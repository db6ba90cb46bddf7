from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.container import CodeDevice
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import sum_extents
from inspector.containers.torchscript import TorchScript
from inspector.errors import CheckpointError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenPlace
from inspector.progress import Progress
from inspector.safety.verdict import judge
from tests.builders.pickles import dict_, list_, new, proto, stream, text, tuple_
from tests.builders.scripts import CODE, WEIGHTS, evil, net, script, weight
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS
from tests.unit.containers.verdicts import judged_otherwise, kinds, refused_otherwise

CONSTANTS = tuple_(weight("0", "cuda:1"))


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(read_container(BytesSource(data, "net.pt")))


def test_what_is_in_it_has_the_names_of_its_state_dict() -> None:
    found = opened(script(constants=CONSTANTS, storages=("data/0", "data/1", "data/2", "constants/0")))
    assert (found.format, found.is_program, found.notes) == ("torchscript", True, ())
    assert [(row.keys, row.role, row.device, row.storage) for row in found.tensors] == [
        (("weight",), "parameter", "cpu", "0"),
        (("mean",), "buffer", "cpu", "1"),
        (("kept",), "other", "cpu", "2"),
        (("child", "b"), "parameter", "cpu", "0"),
        (("constants.pkl", 0), "other", "cuda:1", "constants/0"),
    ]
    assert [(one.path, one.device, one.what) for one in found.hidden_devices] == [
        ("code/__torch__.py:6", "cuda:0", HiddenPlace.CODE)
    ]
    assert not any(row.missing for row in found.storages)


def test_genuine_file() -> None:
    container = read_container(str(CORPUS / "torchscript/conv.pt"))
    assert [one.name for one in container.pickles] == ["conv/data.pkl", "conv/constants.pkl"]
    assert [one.name for one in container.programs] == ["data.pkl", "constants.pkl"]
    assert container.code_devices == ()
    found = open_checkpoint(str(CORPUS / "torchscript/conv.pt"))
    assert [(row.path, row.role) for row in found.tensors] == [
        ("0/weight", "parameter"),
        ("0/bias", "parameter"),
    ]


def test_bytes_are_found_also_where_they_are_packed() -> None:
    data = script(
        None,
        Record(name="net/constants/0", data=WEIGHTS, method=8),
        constants=CONSTANTS,
        storages=("data/0", "data/1"),
    )
    source = BytesSource(data, "net.pt")
    found = read_extents(source, Limits(), Progress())
    assert set(found.whole) == {"0", "1", "constants/0"}
    assert found.lost == {"2": "its bytes are not in the file"}
    assert sum_extents(source, found.whole, Progress()).faults == {}
    find = TorchScript().finder(source)
    extent = find("constants/0")
    assert extent is not None
    assert (extent.method, extent.nbytes, find("2")) == (8, 16, None)


def test_root_that_is_no_module() -> None:
    found = opened(script(tuple_(weight("0"), weight("1"))))
    assert [row.path for row in found.tensors] == ["data.pkl/0", "data.pkl/1"]


def test_code_that_cannot_be_read_leaves_roles_to_names() -> None:
    data = build_zip(
        Record(name="net/data.pkl", data=stream(proto(), net())),
        Record(name="net/code/__torch__.py", data=CODE.encode(), method=99),
        Record(name="net/constants.pkl", data=stream(proto(), tuple_())),
        Record(name="net/version", data=b"3"),
    )
    found = opened(data)
    assert NoteKind.UNREAD_CODE in kinds(found)
    assert found.hidden_devices == ()
    assert [row.path for row in found.tensors] == ["weight", "mean", "kept", "child/b"]


# --- hostile ------------------------------------------------------------------------------------------------

DEEP = b"]" * 3000 + b"a" * 2999
SETSTATE = CODE + '  def __setstate__(self, x):\n    torch.save(x, "/tmp/x")\n'

HOSTILE: dict[str, tuple[bytes, str, NoteKind | None]] = {
    "payload in data.pkl": (script(evil()), "dangerous", None),
    "payload in constants.pkl": (script(constants=evil()), "dangerous", None),
    "payload in an extra file": (
        script(None, Record(name="net/extra/a.pkl", data=stream(evil()))),
        "dangerous",
        None,
    ),
    "payload that breaks off in an extra file": (
        script(None, Record(name="net/extra/a.pkl", data=stream(evil())[:-1])),
        "dangerous",
        None,
    ),
    "payload in a second data.pkl": (
        script(None, Record(name="net/DATA.pkl", data=stream(evil()))),
        "dangerous",
        NoteKind.SHARED_NAME,
    ),
    "code that writes files while it is loaded": (script(code=SETSTATE), "dangerous", NoteKind.FILE_ACCESS),
    "code that runs while it is loaded": (
        script(code=SETSTATE.replace("torch.save", "torch.add")),
        "runs-code",
        NoteKind.RUNS_AT_LOAD,
    ),
    "no code at all": (script(code=""), "runs-code", None),
    "a wrong checksum": (
        script(None, Record(name="net/x", data=b"")).replace(b"weight", b"WEIGHT", 1),
        "runs-code",
        NoteKind.WRONG_CHECKSUM,
    ),
    "a pickle that is packed and longer than it says": (
        build_zip(
            Record(name="net/constants.pkl", data=stream(proto(), tuple_())),
            Record(name="net/data.pkl", data=stream(proto(), net()) + b"x", nbytes=len(net()) + 3, method=8),
            Record(name="net/version", data=b"3"),
        ),
        "runs-code",
        NoteKind.DAMAGED_RECORD,
    ),
    "storages that are missing": (script(storages=()), "runs-code", NoteKind.LOST_BYTES),
    "a list nested deeply": (script(new("__torch__.Net", (text("a"), DEEP))), "runs-code", NoteKind.TOO_DEEP),
    "keys that are not texts": (
        script(dict_((list_(), weight("0")), (tuple_(), tuple_(weight("1"))))),
        "runs-code",
        None,
    ),
    "a huge record": (
        script(None, Record(name="net/extra/a.pkl", data=b"x", nbytes=1 << 31, method=8)),
        "runs-code",
        None,
    ),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    "keys of one pickle that pass for the other's": (
        script(weight("constants/0")),
        "a storage of data.pkl is named like one of constants.pkl",
    ),
    "no data.pkl": (
        build_zip(
            Record(name="net/constants.pkl", data=b"\x80\x02)."), Record(name="net/version", data=b"3")
        ),
        "the TorchScript archive has no data.pkl",
    ),
    "the first generation": (
        build_zip(Record(name="net/model.json", data=b"{}"), Record(name="net/version", data=b"1")),
        "a TorchScript archive of the first generation",
    ),
    "a pickle that breaks off": (script(b"(" * 9), "the pickle"),
    "an encrypted pickle": (
        build_zip(
            Record(name="net/constants.pkl", data=b"\x80\x02)."),
            Record(name="net/data.pkl", data=b"N.", flags=1),
        ),
        "a zip record is encrypted",
    ),
}


def test_hostile_files_are_never_judged_better_than_they_are() -> None:
    assert judged_otherwise(HOSTILE, opened) == {}


def test_hostile_files_are_refused_in_one_sentence() -> None:
    assert refused_otherwise(REFUSED, opened) == {}


def test_payload_of_a_refused_file_is_told(write: Callable[..., str]) -> None:
    data = build_zip(Record(name="net/data.pkl", data=stream(evil())), Record(name="net/model.json"))
    assert judge(open_checkpoint(write(data))).verdict == "dangerous"  # torch.load would take it for its own
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(write(script(evil(), constants=b"(" * 9)))
    assert [use.dotted for one in caught.value.programs for use in one.stream.globals][:1] == ["os.system"]


def test_code_devices_are_plain_facts() -> None:
    assert read_container(BytesSource(script(), "net.pt")).code_devices == (
        CodeDevice("cuda:0", "code/__torch__.py:6"),
    )


def test_archive_that_is_cut_off_keeps_what_is_before_the_cut() -> None:
    data = script(constants=CONSTANTS, storages=("constants/0", "data/0", "data/1", "data/2"))
    for end, paths in (
        (data.index(b"PK\x01\x02"), ["weight", "mean", "kept", "child/b", "constants.pkl/0"]),
        (data.index(b"net/constants.pkl") - 30, ["weight", "mean", "kept", "child/b"]),
    ):
        source = BytesSource(data[:end], "net.pt")
        extents = read_extents(source, Limits(), Progress())
        found = build_checkpoint(extents.container)
        assert (found.format, NoteKind.NO_DIRECTORY in kinds(found)) == ("torchscript", True)
        assert [row.path for row in found.tensors] == paths
        assert (extents.lost, len(extents.whole)) == ({}, len(paths) - 1)
        assert found.refusal.startswith("RuntimeError: PytorchStreamReader failed reading zip archive")
    with pytest.raises(CheckpointError, match="cut off"):
        opened(data[: data.index(b"net/data.pkl")])


def test_tensors_in_attributes_are_no_weights() -> None:
    held = dict_((text("a"), weight("1")), (text("b"), weight("2")))
    found = opened(script(new("__torch__.Net", (text("weight"), weight("0")), (text("held"), held))))
    assert [row.role for row in found.tensors] == ["parameter", "other", "other"]
