from __future__ import annotations

from inspector.containers.container import Container
from inspector.containers.extents import read_extents
from inspector.containers.source import BytesSource
from inspector.containers.table.archives import ARCHIVE_FORMATS
from inspector.containers.zip.records import ZIP_KINDS
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.safety.verdict import ARCHIVES
from tests.builders.agents import agent
from tests.builders.exports import config, exported, graph, packaged, payload
from tests.builders.pickles import dict_, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS, script

SAMPLES = {
    "torchscript": (script(), "0"),
    "pt2": (
        exported(
            **{
                "models__m.json": graph(),
                "data__weights__weight_0": WEIGHTS,
                "data__weights__m_weights_config.json": config(w=payload("weight_0", 4)),
            }
        ),
        "data/weights/weight_0",
    ),
    "package": (
        packaged(sd=stream(proto(), dict_((text("w"), tensor(storage(0, numel=4), 4))))),
        "0",
    ),
    "stable-baselines3": (agent(), "policy.pth:0"),
}


def test_each_row_reads_its_sample_and_finds_its_bytes() -> None:
    assert list(SAMPLES) == [row.name for row in ARCHIVE_FORMATS]
    for row in ARCHIVE_FORMATS:
        data, key = SAMPLES[row.name]
        assert row.read is not None
        container = row.read(BytesSource(data, "x"), Limits(), Progress())
        assert isinstance(container, Container)
        assert (container.format, key in container.stored) == (row.name, True)
        extent = row.storage_extents(BytesSource(data, "x"))(key)
        assert extent is not None
        assert extent == read_extents(BytesSource(data, "x"), Limits(), Progress()).whole[key]


def test_each_row_is_told_by_its_records_and_judged_as_an_archive() -> None:
    names = {row.name for row in ARCHIVE_FORMATS}
    assert names <= {kind.name for kind in ZIP_KINDS}
    judged = {row.name: row.loader for row in ARCHIVE_FORMATS if not row.unchecked}
    assert judged == {name: row.loader for name, row in ARCHIVES.items()}
    assert names - set(judged) == {"stable-baselines3"}  # whatever it names is run
