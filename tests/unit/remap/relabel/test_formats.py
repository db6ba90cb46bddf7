from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.model.build import build_checkpoint
from inspector.progress import Progress
from inspector.remap.plan import plan_remap
from inspector.remap.relabel.formats import mapped_container
from inspector.remap.rules import parse_rule
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

OBJECT = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}


@pytest.mark.parametrize("make", [zip_of, legacy_of, tar_of])
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
