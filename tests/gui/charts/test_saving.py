"""Charts in files: whole or not at all, with the numbers that are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QFileDialog, QMessageBox, QToolButton

from inspector.gui.charts import saving
from inspector.gui.charts.saving import Saved, legend, proposed_path, save
from inspector.gui.pages.memory.map_panel import MapPart
from inspector.gui.pages.memory.panel import BarsPart
from inspector.records import replace
from inspector.report.charts.bars import Chart
from inspector.report.charts.tables import charts_csv, map_csv
from tests.gui import fakes
from tests.gui.looking import colors_in
from tests.gui.pages.memory.test_map_panel import FILE, screen_of
from tests.gui.pages.memory.test_panel import ROOM
from tests.unit.report.charts.maps import map_of

SCREEN = fakes.ready_screen()
CHARTS: tuple[Chart, ...] = (SCREEN.charts[0], ROOM, SCREEN.charts[1])


@pytest.fixture
def panel(qtbot, theme, tmp_path) -> BarsPart:
    panel = BarsPart(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 700)
    panel.show_screen(replace(SCREEN, charts=CHARTS, path=str(tmp_path / "best.pth")))
    panel.show()
    return panel


@pytest.fixture
def map_panel(qtbot, theme, tmp_path) -> MapPart:
    panel = MapPart(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 500)
    panel.show_screen(screen_of(map_of(FILE), path=str(tmp_path / "best.pth")))
    panel.show()
    return panel


def rendered(svg: bytes) -> QImage:
    renderer = QSvgRenderer(QByteArray(svg))
    assert renderer.isValid()
    image = QImage(renderer.defaultSize(), QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    return image


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def choose(monkeypatch, path: Path | str) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))


def actions_of(panel, place: int = 0) -> dict:
    buttons = [one for one in panel.findChildren(QToolButton) if one.menu() is not None]
    return {action.text(): action for action in buttons[place].menu().actions()}


def test_a_chart_is_saved_in_three_kinds(panel, theme, monkeypatch, tmp_path):
    for kind in ("svg", "png", "csv"):
        choose(monkeypatch, tmp_path / f"chart.{kind}")
        actions_of(panel, 1)[f"Save as {kind.upper()}\u2026"].trigger()
    assert (tmp_path / "chart.csv").read_bytes().decode() == charts_csv([ROOM])
    wanted = {theme.tokens.device(1).name(), theme.tokens.colors["bad_fill"], theme.tokens.colors["surface"]}
    assert wanted <= colors_in(rendered((tmp_path / "chart.svg").read_bytes()))
    png = QImage(str(tmp_path / "chart.png"))
    svg = (tmp_path / "chart.svg").read_text("utf-8")
    dots = QGuiApplication.primaryScreen().logicalDotsPerInchX()
    width = float(svg.partition('width="')[2].partition("mm")[0]) / 25.4 * dots
    assert width == pytest.approx(png.width() / 2, abs=1)  # both are as large, and so is their text
    assert wanted <= colors_in(png)
    assert png.width() >= 2 * 480
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]


def test_the_whole_page_is_saved(panel, monkeypatch, tmp_path):
    choose(monkeypatch, tmp_path / "page")  # without a suffix, which is added then
    for kind in ("svg", "png", "csv"):
        actions_of(panel)[f"Save whole page as {kind.upper()}\u2026"].trigger()
    forecast = fakes.forecast_page().chart
    assert (tmp_path / "page.csv").read_bytes().decode() == charts_csv([*CHARTS[:2], forecast, CHARTS[2]])
    svg = (tmp_path / "page.svg").read_text("utf-8")
    for chart in (*CHARTS, forecast):
        assert chart.title.split(",")[0] in svg
    assert QImage(str(tmp_path / "page.png")).height() > 2 * 500


def test_the_map_is_saved(map_panel, theme, monkeypatch, tmp_path):
    for kind in ("svg", "png", "csv"):
        choose(monkeypatch, tmp_path / f"map.{kind}")
        actions_of(map_panel)[f"Save as {kind.upper()}\u2026"].trigger()
    view = map_panel.view
    assert (tmp_path / "map.csv").read_bytes().decode() == map_csv(map_of(FILE), view.picture.cells)
    wanted = {theme.tokens.device(0).name(), theme.tokens.device(-1).name()}
    assert wanted <= colors_in(QImage(str(tmp_path / "map.png")))
    assert wanted <= colors_in(rendered((tmp_path / "map.svg").read_bytes()))
    assert "Save whole page as CSV\u2026" not in actions_of(map_panel)


def test_without_a_map_nothing_is_drawn(qtbot, theme):
    panel = MapPart(theme)
    qtbot.addWidget(panel)
    assert panel.saved_map().make("csv") == b""
    panel.view.as_picture().paint(QPainter())


def test_charts_are_copied(panel, map_panel):
    clipboard = QGuiApplication.clipboard()
    actions_of(panel)["Copy figures as CSV"].trigger()
    assert clipboard.text() == charts_csv([CHARTS[0]])
    actions_of(map_panel)["Copy picture"].trigger()
    assert clipboard.image().width() > 500


def test_nobody_who_cancels_writes(panel, monkeypatch, tmp_path):
    choose(monkeypatch, "")
    actions_of(panel)["Save as CSV\u2026"].trigger()
    assert names_in(tmp_path) == []


def test_what_cannot_be_written_leaves_what_was_there(panel, qtbot, monkeypatch, tmp_path):
    source, there = tmp_path / "best.pth", tmp_path / "there.csv"
    source.write_bytes(b"weights")
    there.write_bytes(b"old")

    def make(kind: str) -> bytes:
        raise OSError(28, "No space left on device")

    for saved, path in (
        (Saved(title="T", source=str(source), make=lambda _: b"new"), source),  # never over the checkpoint
        (Saved(title="T", source=str(source), make=make), there),
        (Saved(title="T", source=str(source), make=lambda _: b"new"), tmp_path / "no" / "folder.csv"),
    ):
        assert not save(panel, saved, "csv", str(path))
        box = panel.findChildren(QMessageBox)[-1]
        assert "The chart was not saved" in box.text()
        box.done(0)
    assert (source.read_bytes(), there.read_bytes()) == (b"weights", b"old")

    def fails(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving.os, "write", fails)
    saved = Saved(title="T", source=str(source), make=lambda _: b"new")
    assert not save(panel, saved, "csv", str(there))
    panel.findChildren(QMessageBox)[-1].done(0)
    assert there.read_bytes() == b"old"
    assert names_in(tmp_path) == ["best.pth", "there.csv"]


def test_a_name_is_proposed_beside_the_file():
    saved = Saved(title="After the map, in 1 GPU!", source="/data/run/best.pth", make=lambda _: b"")
    assert proposed_path(saved, "svg") == "/data/run/best.after-the-map-in-1-gpu.svg"


def test_a_legend_goes_on_in_the_next_line(theme, qapp):
    entries = [(theme.tokens.device(number), "a device " * 3) for number in range(6)]
    assert legend(entries, 300, theme.tokens, qapp.font()).height > 40
    assert legend([], 300, theme.tokens, qapp.font()).height == 0
