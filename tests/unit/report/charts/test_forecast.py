from __future__ import annotations

from inspector.report.charts.forecast import forecast_report
from inspector.target.memory import HOST, Forecast, Stage, Use
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from inspector.target.simulate import LoadFailure

GPU = Profile(
    id="this",
    label="this machine",
    accelerators=(("cuda", 1),),
    gpus=(Gpu(device="cuda:0", memory_nbytes=1000),),
    memory_nbytes=10_000,
)


def of(*uses: tuple[str, int, int], mapped: int = 0) -> Forecast:
    rows = tuple(Use(device=device, peak_nbytes=peak, final_nbytes=final) for device, peak, final in uses)
    return Forecast(failure=None, ranks=1, stages=(Stage(name="load", uses=rows, mapped_nbytes=mapped),))


def test_a_bar_shows_what_stays_and_what_is_taken_meanwhile() -> None:
    report = forecast_report(of((HOST, 3000, 2000), ("cuda:0", 500, 500)), GPU)
    assert report.chart is not None
    assert report.chart.title == "While loading: torch.load"
    host, gpu = report.chart.bars
    assert (host.label, host.text) == ("CPU memory", "3.0 KB of 10.0 KB")
    parts = [(part.label, part.nbytes) for part in host.segments + gpu.segments]
    assert parts == [("stays", 2000), ("while loading", 1000), ("stays", 500)]
    assert not report.is_tight
    assert report.notes == ()


def test_what_does_not_fit_is_said() -> None:
    report = forecast_report(of((HOST, 1, 1), ("cuda:0", 1001, 0)), GPU)
    assert report.is_tight
    assert report.notes == ("cuda:0 is 1 B too small: at the peak, loading takes 1.0 KB.",)


def test_memory_that_nobody_knows_is_not_compared() -> None:
    report = forecast_report(of((HOST, 1 << 60, 0)), CPU_ONLY)
    assert not report.is_tight
    assert report.chart is not None
    assert " of " not in report.chart.bars[0].text


def test_pages_of_a_mapped_file_are_told_apart() -> None:
    report = forecast_report(of((HOST, 10, 10), mapped=5_000_000), CPU_ONLY)
    assert report.notes[0].startswith("Up to 5.0 MB of the file may")


def test_a_failure_takes_the_place_of_the_bars() -> None:
    failure = LoadFailure(finding="cuda-unavailable", device="cuda:0", storage="0", message="no\u202egpu")
    report = forecast_report(Forecast(failure=failure, ranks=2), CPU_ONLY)
    assert report.chart is None
    assert report.notes == ("It would stop with: no\\u202egpu",)
    assert report.is_tight


def test_too_many_devices_are_counted_and_nothing_is_no_chart() -> None:
    report = forecast_report(of(*((f"cuda:{index}", 1, 1) for index in range(20))), CPU_ONLY)
    assert report.chart is not None
    assert len(report.chart.bars) == 16
    assert report.notes == ("4 more devices are not shown.",)
    assert forecast_report(of((HOST, 0, 0)), CPU_ONLY).chart is None


def test_steps_begin_with_the_loader_of_the_format() -> None:
    for loader, name in (
        ("torch.jit.load", "torch.jit.load"),
        ("a.package.with.a.path.that.no.title.has.room.for.join", "join"),
    ):
        chart = forecast_report(of((HOST, 3, 2)), GPU, loader).chart
        assert chart is not None
        assert chart.title == f"While loading: {name}"
