from __future__ import annotations

from inspector.records import replace
from inspector.session.device_map import Pairs, map_devices
from inspector.session.document import Document
from inspector.session.present.compose import forecast_page
from inspector.session.screen import ForecastPage, Loading
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import document_of, saved_on

DOCUMENT = saved_on("cuda:0", "cuda:1")


def page(target: str, ranks: int = 1, *, mmap: bool = False, **fields: object) -> ForecastPage:
    found = forecast(saved_on("cuda:0", "cuda:1", **fields), target, Loading(ranks=ranks, mmap=mmap))
    assert found is not None
    return found


def forecast(document: Document, target: str, loading: Loading, chosen: Pairs = ()) -> ForecastPage | None:
    profile = parse_target(target)
    load = judge_load(document.checkpoint, profile)
    return forecast_page(document, profile, load, map_devices(document, profile, chosen), loading)


def labels(found: ForecastPage) -> list[str]:
    assert found.chart is not None
    return [bar.label for bar in found.chart.bars]


def test_it_loads_as_the_device_map_says() -> None:
    assert labels(page("cpu")) == ["CPU memory"]
    assert labels(page("2xcuda")) == ["CPU memory", "cuda:0", "cuda:1"]
    assert labels(page("mps")) == ["CPU memory", "mps"]


def test_each_process_has_a_gpu_of_its_own_for_its_model() -> None:
    found = page("4xcuda", ranks=4)
    assert labels(found) == ["CPU memory", "cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert found.chart is not None
    assert "model.to" in found.chart.title


def test_one_process_moves_its_model_to_the_wanted_gpu() -> None:
    assert labels(page("4xcuda:2")) == ["CPU memory", "cuda:2"]
    assert labels(page("4xcuda")) == ["CPU memory", "cuda:0", "cuda:1"]
    assert set(labels(page("4xcuda:2", ranks=2))) == {"CPU memory", "cuda:0", "cuda:1", "cuda:2"}


def test_more_processes_than_gpus_fail() -> None:
    found = page("2xcuda", ranks=3)
    assert found.chart is None
    assert found.is_tight


def test_only_a_zip_can_be_mapped() -> None:
    assert page("cpu", mmap=True).loading.mmap
    legacy = page("cpu", mmap=True, format="legacy")
    assert not legacy.loading.mmap
    assert not legacy.can_map


def test_compressed_records_are_not_mapped() -> None:
    plain = DOCUMENT.checkpoint
    storages = tuple(row._replace(file_offset=None) for row in plain.storages)
    packed = forecast(document_of(replace(plain, storages=storages)), "cpu", Loading(mmap=True))
    assert packed is not None
    assert not packed.can_map  # torch would read noise, and say nothing
    assert not packed.loading.mmap


def test_nothing_stored_needs_no_forecast() -> None:
    assert forecast(saved_on("meta"), "cpu", Loading()) is None


def test_optimizer_state_that_moves_later_is_said_not_to_be_counted() -> None:
    rows = [
        tensor("w", device="cuda:0", storage="0"),
        tensor("m", device="cpu", storage="1", role="optimizer"),
        tensor("step", device="cpu", storage="2", role="optimizer", on_cpu_by_design=True),
        storage("0", "cuda:0", 1000),
        storage("1", "cpu", 2000),
        storage("2", "cpu", 4),
    ]
    document = document_of(checkpoint(*rows))

    def notes(target: str, **chosen: str) -> tuple[str, ...]:
        return forecast(document, target, Loading(), tuple(chosen.items())).notes

    assert notes("cuda") == ("Not counted: optimizer.load_state_dict puts 2.0 KB on cuda as well.",)
    assert notes("cuda", cpu="cuda:0") == ()  # it is there already
    assert notes("cpu") == ()
