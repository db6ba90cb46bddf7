from __future__ import annotations

from pathlib import Path

from inspector.containers.folders.paths import open_path
from inspector.containers.opening import read_container
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.progress import Progress
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import mapped_container
from inspector.remap.rules import parse_rule
from tests.builders.folders import two_shards
from tests.builders.pickles import tuple_
from tests.builders.scripts import net, script, weight
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

OBJECT = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}


@table("make", [zip_of, legacy_of, tar_of])
def test_devices_are_those_of_the_plan_and_nothing_else_changes(tmp_path: Path, make) -> None:
    container = read_container(str(written(tmp_path, make(OBJECT, STORAGES))))
    before = build_checkpoint(container)
    assert mapped_container(container, None, Progress()) is container
    plan = plan_remap(before, [parse_rule("cuda:1=cpu")])
    mapped = mapped_container(container, plan, Progress())
    after = build_checkpoint(mapped)
    assert [row.device for row in after.tensors] == ["cuda:0", "cpu"]
    assert [row._replace(device="") for row in after.tensors] == [
        row._replace(device="") for row in before.tensors
    ]
    assert [one.location for one in mapped.storage_ids.values()] == ["cuda:0", "cpu"]
    assert mapped.stored == container.stored


def test_every_pickle_of_an_archive_has_the_devices_of_the_plan(tmp_path: Path) -> None:
    archive = script(
        net("cuda:0"), constants=tuple_(weight("0", "cuda:0")), storages=("data/0", "constants/0")
    )
    container = read_container(str(written(tmp_path, archive)))
    plan = plan_remap(build_checkpoint(container), [parse_rule("path:constants.pkl/**@cpu")])
    mapped = mapped_container(container, plan, Progress())
    assert {key: one.location for key, one in mapped.storage_ids.items()}["constants/0"] == "cpu"
    assert {one.location for key, one in mapped.storage_ids.items() if key != "constants/0"} == {"cuda:0"}


def test_several_files_have_the_devices_of_the_plan(tmp_path: Path) -> None:
    with open_path(str(two_shards(tmp_path)), DEFAULT_LIMITS) as source:
        container = read_container(source, DEFAULT_LIMITS, Progress())
        checkpoint = build_checkpoint(container)
    assert container.stream is None
    plan = plan_remap(checkpoint, [parse_rule("path:b.*@cpu")])
    after = {
        key: one.location for key, one in mapped_container(container, plan, Progress()).storage_ids.items()
    }
    moved = {row.storage for row in checkpoint.tensors if row.path.startswith("b.")}
    assert after == {key: "cpu" if key in moved else "cuda:0" for key in container.storage_ids}
    assert set(after.values()) == {"cpu", "cuda:0"}
