from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.pickled.machine import Place
from inspector.containers.pickled.nested import Nested
from inspector.containers.source import BytesSource
from inspector.errors import ExportError, PlanError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place
from inspector.remap.plan import plan_remap
from inspector.remap.rare import length_edit
from inspector.remap.relabel import mapped_container
from inspector.remap.rules import parse_rule
from inspector.remap.verify import compare_files
from tests.builders.pickles import call, dict_, list_, name, number, op, proto, stream, text, tuple_
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.containers.pickled.test_reader import OPENER, binbytes, storage, tensor

FILES = [*(f"plain_pickle/state_p{protocol}.pkl" for protocol in range(6)), "joblib/arrays.joblib"]


def remapped(source: Path, out: Path, *rules: str) -> bytes:
    plan = plan_remap(open_checkpoint(str(source)), list(map(parse_rule, rules)))
    export_copy(str(source), out, plan, overwrite=True)
    return out.read_bytes()


@pytest.mark.wide
@table("file", FILES)
def test_devices_change_and_nothing_else(file: str, tmp_path: Path) -> None:
    source = CORPUS / file
    whole = source.read_bytes()
    for rules in (["*=cpu"], ["cuda:1=cuda:12"], ["*=cuda:0"], ["path:w@cuda:3"]):
        out = tmp_path / source.name
        data = remapped(source, out, *rules)
        found = compare_files(str(out), str(source), list(map(parse_rule, rules)))
        assert found.differences == ()
        assert found.compared_nbytes > 300
        assert (len(data) < len(whole)) == (rules == ["*=cpu"])
    remapped(source, tmp_path / "there", "cuda:1=cuda:12")
    assert remapped(tmp_path / "there", tmp_path / "back", "cuda:12=cuda:1") == whole
    assert remapped(source, tmp_path / "same", "cuda:7=cpu") == whole


def test_a_longer_copy_has_every_length_mended(tmp_path: Path) -> None:
    for protocol in (3, 4):
        value = {"a": storage(), "b": b"z" * 70_000, "c": storage("8", "cuda:2")}
        plain = pickle.dumps(value, protocol)
        for key in ("7", "8"):
            assert key
        source = tmp_path / "a.pkl"
        source.write_bytes(stream(proto(3), list_(tensor(storage()), tensor(storage("8", "cuda:2")))) + plain)
        data = remapped(source, tmp_path / "b.pkl", "*=cuda:123")
        again = open_checkpoint(str(tmp_path / "b.pkl"))
        assert {row.device for row in again.tensors} == {"cuda:123"}
        assert pickle.loads(data[-len(plain) :]) == value


def test_a_change_that_is_noticed(tmp_path: Path) -> None:
    source = CORPUS / "plain_pickle/state_p4.pkl"
    data = bytearray(remapped(source, tmp_path / "a.pkl", "*=cuda:12"))
    at = data.rindex(b"epoch")
    data[at] ^= 1
    (tmp_path / "a.pkl").write_bytes(data)
    assert compare_files(str(tmp_path / "a.pkl"), str(source)).differences
    other = CORPUS / "plain_pickle/two_dumps.pkl"
    assert any("differ in length" in one for one in compare_files(str(other), str(source)).differences)


def test_a_copy_of_a_packed_file_is_not_packed(tmp_path: Path) -> None:
    source = CORPUS / "plain_pickle/state_p2.pkl"
    packed = tmp_path / "a.pkl.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert remapped(packed, tmp_path / "b.pkl", "*=cuda:12") == remapped(
        source, tmp_path / "c.pkl", "*=cuda:12"
    )


@table("file", FILES)
def test_in_place_where_it_fits(file: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes((CORPUS / file).read_bytes())
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule("*=cpu")])
    if file[-5:] in {"0.pkl", "1.pkl", "2.pkl"}:  # bytes are a text there, in which filling is longer
        with pytest.raises(ExportError, match="everything behind them would move"):
            patch_in_place(str(path), plan)
        return
    patch_in_place(str(path), plan)
    assert {row.device for row in open_checkpoint(str(path)).tensors} == {"cpu", "none"}
    longer = plan_remap(open_checkpoint(str(path)), [parse_rule("*=cuda:123")])
    (tmp_path / "a.pkl.undo").unlink()
    with pytest.raises(ExportError, match="everything behind them would move"):
        patch_in_place(str(path), longer)


def wrapper() -> bytes:
    """A tensor that names its device itself."""
    device = call("torch.device", text("cuda"), number(1))
    args = (
        *(name("torch.Tensor"), name("torch.float32"), tuple_(number(2)), tuple_(number(1)), number(0)),
        *(name("torch.strided"), device, op("NEWFALSE")),
    )
    return call("torch._utils._rebuild_wrapper_subclass", *args)


def test_what_is_not_changed_says_what_to_do(tmp_path: Path) -> None:
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text("0"), text("cuda:1"), number(2))
    object_ = stream(proto(), dict_((text("w"), pid + op("BINPERSID"))))
    archive = build_zip(
        Record(name="a/data.pkl", data=object_),
        Record(name="a/version", data=b"3\n"),
        Record(name="a/data/0", data=bytes(8)),
    )
    path = tmp_path / "a.pkl"
    for value, what in (
        (call(OPENER, binbytes(archive)), "a zip within a pickle is not changed"),
        (list_(wrapper()), "devices outside of storages are not changed"),
    ):
        path.write_bytes(stream(proto(3), value))
        with pytest.raises(PlanError, match=what) as caught:
            remapped(path, tmp_path / "b.pkl", "*=cpu")
        assert "remap -o model.pt" in str(caught.value.remedy)
    path.write_bytes(stream(proto(3), call(OPENER, binbytes(archive))))
    assert compare_files(str(path), str(path)).differences == ()


def test_a_length_of_one_byte_has_its_limit() -> None:
    nested = Nested(0, Place(1, 255, width=1), 255, None, {}, {})
    with pytest.raises(PlanError, match="do not fit"):
        length_edit(BytesSource(b"\xff" * 256, "a.pkl"), nested, 2)


def test_objects_that_are_written_anew_have_the_devices_of_the_plan() -> None:
    path = str(CORPUS / "plain_pickle/state_p4.pkl")
    container = read_container(path)
    plan = plan_remap(open_checkpoint(path), [parse_rule("cuda:1=cuda:3")])
    mapped = mapped_container(container, plan, Progress())
    assert {one.location for one in mapped.storage_ids.values()} == {"cuda:3", "cpu", "none"}
    rows = build_checkpoint(mapped).tensors
    assert [row.device for row in rows][:3] == ["cuda:3", "cpu", "cuda:3"]
