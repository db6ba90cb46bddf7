from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import ExportError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import archive_mapped
from inspector.remap.rules import Rule
from inspector.remap.verify import compare_files
from tests.builders.pickles import tuple_
from tests.builders.scripts import net, script, weight
from tests.builders.zips import Record

STORAGES = ("data/0", "data/1", "data/2", "constants/0")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def written(data: bytes, name: str = "net.pt") -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return written


def archive(*more: Record, location: str = "cuda:0") -> bytes:
    """An archive with tensors in both pickles; the first storage of each has the same key in its pickle."""
    return script(net(location), *more, constants=tuple_(weight("0", location)), storages=STORAGES)


def devices(path: Path) -> dict[str, str]:
    return {row.path: row.device for row in open_checkpoint(str(path)).tensors}


def test_each_pickle_goes_its_way(write: Callable[..., str], tmp_path: Path) -> None:
    path, out = write(archive()), tmp_path / "copy.pt"
    for rules, places in (
        ([Rule(device="*", to="cpu")], ("cpu", "cpu")),
        ([Rule(device="*", to="cuda:1")], ("cuda:1", "cuda:1")),
        ([Rule(device="*", to="privateuseone:1")], ("privateuseone:1", "privateuseone:1")),
        ([Rule(path="constants.pkl/**", to="cpu")], ("cuda:0", "cpu")),
        ([Rule(path="weight", to="cpu"), Rule(path="child/**", to="cpu")], ("cpu", "cuda:0")),
    ):
        plan = plan_remap(open_checkpoint(path), rules)
        export_copy(path, out, plan, overwrite=True, verify="full")
        assert (devices(out)["weight"], devices(out)["constants.pkl/0"]) == places, rules
        assert not compare_files(str(out), path).differences, rules


def test_in_place_and_back(write: Callable[..., str]) -> None:
    data = archive()
    path = write(data)
    patch_in_place(path, plan_remap(open_checkpoint(path), [Rule(device="*", to="cpu")]))
    assert set(devices(Path(path)).values()) == {"cpu"}
    undo_patch(path)
    assert Path(path).read_bytes() == data
    with pytest.raises(ExportError, match="several pickles hold them"):
        patch_in_place(path, plan_remap(open_checkpoint(path), [Rule(device="*", to="privateuseone:0")]))
    only = Rule(path="constants.pkl/**", to="privateuseone:0")
    assert patch_in_place(path, plan_remap(open_checkpoint(path), [only])).appended
    assert devices(Path(path))["constants.pkl/0"] == "privateuseone:0"


def test_nothing_to_change_is_a_copy(write: Callable[..., str], tmp_path: Path) -> None:
    path, out = write(archive(location="cpu")), tmp_path / "copy.pt"
    export_copy(path, out, plan_remap(open_checkpoint(path), [Rule(device="*", to="cpu")]))
    assert out.read_bytes() == Path(path).read_bytes()


def test_records_of_one_name_are_refused(write: Callable[..., str], tmp_path: Path) -> None:
    path = write(archive(Record(name="net/CONSTANTS.pkl", data=b"\x80\x02).")))
    plan = plan_remap(open_checkpoint(path), [Rule(device="*", to="cpu")])
    with pytest.raises(ExportError, match="several records are named"):
        export_copy(path, tmp_path / "copy.pt", plan)


def test_a_changed_record_shows(write: Callable[..., str]) -> None:
    extra = Record(name="net/extra/a", data=b"one")
    one, other = write(archive(extra)), write(archive(Record(name="net/extra/a", data=b"two")), "other.pt")
    assert compare_files(other, one).differences


def test_container_has_the_devices_of_a_plan() -> None:
    container = read_container(BytesSource(archive(), "net.pt"))
    plan = plan_remap(build_checkpoint(container), [Rule(path="constants.pkl/**", to="cpu")])
    mapped = archive_mapped(container, plan, Progress())
    places = {key: one.location for key, one in mapped.storage_ids.items()}
    assert places == {"0": "cuda:0", "1": "cuda:0", "2": "cuda:0", "constants/0": "cpu"}
