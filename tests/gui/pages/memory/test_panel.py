from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolTip

from inspector.gui.pages.memory.bars import BarsView, describe
from inspector.gui.pages.memory.bars_paint import BarsPainter, byte_step
from inspector.gui.pages.memory.card import ChartCard
from inspector.gui.pages.memory.panel import MemoryPanel
from inspector.gui.pages.memory.tables import ShareBar, is_ranking, needs_legend
from inspector.records import replace
from inspector.session.screen import Bar, Chart, Segment
from tests.gui import fakes
from tests.gui.looking import button, said

SCREEN = replace(fakes.ready_screen(), forecast=None)
ROOM = Chart(
    title="In the memory of a card",
    bars=(
        Bar(
            label="cuda:0",
            segments=(Segment(label="cuda:0", color=0, nbytes=892, query="device:cuda:0"),),
            text="892 B of 300 B: 592 B too much",
            capacity_nbytes=300,
        ),
        Bar(
            label="cuda:1",
            segments=(Segment(label="cuda:1", color=1, nbytes=100, query="device:cuda:1"),),
            text="100 B of 1.0 KB",
            capacity_nbytes=1000,
        ),
    ),
)
DEVICES = frozenset({"cuda:0", "cuda:1", "cpu"})


@pytest.fixture
def panel(qtbot, theme) -> MemoryPanel:
    panel = MemoryPanel(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 700)
    panel.show_screen(SCREEN)
    panel.show()
    return panel


@pytest.fixture
def view(qtbot, theme) -> BarsView:
    view = BarsView(theme)
    qtbot.addWidget(view)
    view.setFixedWidth(401)
    view.show_chart(ROOM, DEVICES)
    view.show()
    qtbot.waitExposed(view)
    return view


def colors_in(widget) -> set[str]:
    image = widget.grab().toImage()
    return {
        image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)
    }


def bars_of(panel: MemoryPanel) -> list[BarsView]:
    return [view for view in panel.findChildren(BarsView) if not view.isHidden()]


def test_figures_stand_beside_the_bars(panel):
    words = said(panel)
    for text in ("Memory by device", "As saved", "cuda:0", "112 MB", "optimizer state", "66%", "<1%"):
        assert text in words


def test_bars_have_the_colors_of_their_devices(panel, theme):
    (view,) = bars_of(panel)
    assert "cuda:0 112 MB" in view.accessibleDescription()
    assert {theme.tokens.device(0).name(), theme.tokens.device(1).name()} <= colors_in(view)


def test_the_page_needs_neither_numpy_nor_pyqtgraph():
    code = (
        "import sys, inspector.gui.pages.memory.panel, inspector.gui.pages.memory.map_panel;"
        "print(sorted({'numpy', 'pyqtgraph'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_map_moves_the_same_bars(panel):
    (view,) = bars_of(panel)
    charts = fakes._charts(SCREEN.tree, {"cuda:0": "cuda:1", "cpu": "cuda:1"})
    panel.show_screen(replace(SCREEN, charts=charts))
    assert bars_of(panel) == [view]
    assert "After the map: cuda:1 464 MB" in view.accessibleDescription()


def test_bars_follow_the_theme(panel, theme):
    light = theme.tokens.device(0).name()
    theme.set_mode("dark")
    found = colors_in(bars_of(panel)[0])
    assert theme.tokens.device(0).name() in found
    assert light not in found


def test_a_chart_becomes_a_ranking_and_back(panel):
    panel.show_screen(replace(SCREEN, charts=SCREEN.charts[::-1]))
    assert len(bars_of(panel)) == 1
    panel.show_screen(SCREEN)
    assert len(bars_of(panel)) == 1


def test_nothing_is_said_to_be_nothing(panel):
    panel.show_screen(replace(SCREEN, charts=()))
    assert "Nothing takes memory" in said(panel)


def test_the_forecast_stands_below_the_room(panel):
    charts = (SCREEN.charts[0], ROOM, SCREEN.charts[1])
    panel.show_screen(replace(SCREEN, charts=charts, forecast=fakes.forecast_page()))
    titles = [panel.cards.itemAt(place).widget()._title.text() for place in range(4)]
    assert titles[1:3] == [ROOM.title, fakes.forecast_page().chart.title]


# ------------------------------------------------------------------ a click filters


def test_a_click_asks_for_a_search(view, qtbot):
    asked = []
    view.query_wanted.connect(asked.append)
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.painted().places[1].area.center().toPoint())
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert asked == ["device:cuda:1"]


def test_a_second_click_ends_the_search(panel):
    asked = []
    panel.query_wanted.connect(asked.append)
    for query in ("", "device:cuda:1"):
        panel.show_screen(replace(SCREEN, charts=(ROOM,), query=query))
        bars_of(panel)[0].query_wanted.emit("device:cuda:1")
    assert asked == ["device:cuda:1", ""]


def test_the_keys_choose_a_part(view):
    asked = []
    view.query_wanted.connect(asked.append)
    view.setFocus()
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Return, Qt.Key.Key_Right, Qt.Key.Key_Space, Qt.Key.Key_Right):
        QTest.keyClick(view, key)
    assert asked == ["device:cuda:0", "device:cuda:1"]
    assert view.accessibleDescription().startswith("cuda:1: 100 B, 100.0%")
    view.grab()
    QTest.keyClick(view, Qt.Key.Key_A)


def test_without_anything_to_find_the_keys_pass_by(view):
    view.show_chart(Chart(title="T", bars=(Bar(label="a", segments=(), text=""),)), DEVICES)
    assert view.focusPolicy() == Qt.FocusPolicy.NoFocus
    QTest.keyClick(view, Qt.Key.Key_Right)
    view.grab()


def test_a_name_in_a_ranking_is_a_button(panel):
    part = Segment(label="parameter", color=-1, nbytes=5, query="role:parameter")
    chart = Chart(title="R", bars=(Bar(label="parameter", segments=(part,), text="5 B"),))
    panel.show_screen(replace(SCREEN, charts=(chart,)))
    asked = []
    panel.query_wanted.connect(asked.append)
    button(panel, "parameter").click()
    assert asked == ["role:parameter"]


def test_what_is_selected_is_outlined(view, theme, panel):
    bare = view.grab().toImage()
    view.show_marks(("device:cuda:1",))
    marked = view.grab().toImage()
    area = view.painted().places[1].area
    assert bare != marked
    assert marked.pixelColor(area.topLeft().toPoint() + QPoint(2, -1)).name() == theme.tokens.colors["text"]
    first = view.painted().places[0].area.toAlignedRect()
    assert bare.copy(first) == marked.copy(first)
    part = Segment(label="parameter", color=-1, nbytes=5, query="role:parameter")
    chart = Chart(title="R", bars=(Bar(label="parameter", segments=(part,), text="5 B"),))
    for marks in ((), ("role:parameter",)):
        panel.show_screen(replace(SCREEN, charts=(chart,), marks=marks))
        share = panel.findChild(ShareBar)
        assert ("selected" in share.accessibleName()) is bool(marks)
        share.grab()


# ------------------------------------------------------------------ room


def test_what_does_not_fit_is_red_and_hatched_behind_the_limit(view, theme):
    image = view.grab().toImage()
    area = view.painted().places[0].area
    limit = round(area.left() + 400 * 300 / 892)
    tokens = theme.tokens
    assert image.pixelColor(limit - 40, round(area.top()) + 4).name() == tokens.device(0).name()
    beyond = {image.pixelColor(x, round(area.center().y())).name() for x in range(limit + 10, limit + 60)}
    assert tokens.colors["bad_fill"] in beyond
    assert len(beyond) > 1  # hatched: not by its color alone
    assert image.pixelColor(limit, round(area.top()) - 2).name() == tokens.colors["text"]
    assert tokens.device(0).name() not in beyond


def test_what_fits_leaves_the_track_free(view, theme):
    image = view.grab().toImage()
    area = view.painted().places[1].area
    assert area.width() == pytest.approx(400 * 0.1, abs=1)
    free = image.pixelColor(round(area.right()) + 30, round(area.center().y()))
    assert free.name() == theme.tokens.colors["neutral_soft"]
    assert theme.tokens.colors["bad_fill"] not in {
        image.pixelColor(x, round(area.center().y())).name() for x in range(400)
    }


def test_no_axis_counts_for_bars_with_tracks(view, theme):
    assert view.painted().height == 2 * 56
    assert BarsPainter(SCREEN.charts[0], 400, theme.tokens, view.font()).height == 2 * 56 + 24


def test_a_part_says_what_it_is_under_the_pointer(view):
    place = view.painted().places[0].area.center().toPoint()
    view.event(QHelpEvent(QEvent.Type.ToolTip, place, view.mapToGlobal(place)))
    assert "cuda:0: 892 B, 100.0% (892 bytes), room for 300 B: 592 B too much" in QToolTip.text()
    assert "Click to search for device:cuda:0" in QToolTip.text()
    view.event(QHelpEvent(QEvent.Type.ToolTip, QPoint(1, 1), QPoint(1, 1)))


def test_the_pointer_shows_what_can_be_clicked(view):
    def shape_at(x: float, y: float) -> Qt.CursorShape:
        none = Qt.MouseButton.NoButton
        place = QPointF(x, y)
        view.mouseMoveEvent(
            QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, Qt.KeyboardModifier.NoModifier)
        )
        return view.cursor().shape()

    center = view.painted().places[0].area.center()
    assert shape_at(center.x(), center.y()) == Qt.CursorShape.PointingHandCursor
    assert shape_at(3, 3) == Qt.CursorShape.ArrowCursor


# ------------------------------------------------------------------ parts of a chart


def test_ticks_are_round_and_few():
    for total, ticks, step in ((1000, 4, 500), (999, 4, 500), (718_000, 5, 200_000), (3, 5, 1), (0, 5, 1)):
        assert byte_step(total, ticks) == step, (total, ticks)


def test_a_chart_in_words():
    chart = Chart(title="T", bars=(Bar(label="As saved", segments=(), text=""),))
    assert describe(chart) == "As saved: nothing"
    assert not is_ranking(chart)
    assert describe(ROOM) == (
        "cuda:0: cuda:0 892 B, room for 300 B: 592 B too much; cuda:1: cuda:1 100 B, room for 1.0 KB"
    )
    assert not is_ranking(ROOM)
    assert not needs_legend(ROOM)


def test_the_smallest_parts_are_seen(theme, qapp):
    parts = tuple(Segment(label=f"p{n}", color=n, nbytes=size) for n, size in enumerate((10**12, 1, 0, 1)))
    painter = BarsPainter(
        Chart(title="", bars=(Bar(label="", segments=parts, text=""),)), 300, theme.tokens, qapp.font()
    )
    assert [place.part.label for place in painter.places] == ["p0", "p1", "p3"]
    assert min(place.area.width() for place in painter.places) > 1.9
    assert painter.places[-1].area.right() == pytest.approx(299.5)


def test_a_share_is_painted_in_proportion(qtbot, theme):
    bar = ShareBar(theme, 0.5)
    qtbot.addWidget(bar)
    bar.resize(200, 10)
    image = bar.grab().toImage()
    assert image.pixelColor(50, 5).name() == theme.tokens.shade(0).name()
    assert image.pixelColor(150, 5).name() == theme.tokens.colors["neutral_soft"]


def test_an_empty_card_has_no_table(qtbot, theme):
    card = ChartCard(theme)
    qtbot.addWidget(card)
    theme.set_mode("dark")
    assert said(card) == [""]


def test_what_memories_leave_stands_in_a_table(qtbot, theme):
    card = ChartCard(theme)
    qtbot.addWidget(card)
    card.show_chart(ROOM, DEVICES)
    words = said(card)
    table = words[words.index("Bytes") :]
    assert table[:3] == ["Bytes", "Memory", "Left"]
    assert table[3:] == ["cuda:0", "892 B", "300 B", "\u2212592 B", "cuda:1", "100 B", "1.0 KB", "900 B"]


def test_many_bars_have_no_column_each(panel):
    part = Segment(label="stays", color=0, nbytes=5), Segment(label="while loading", color=2, nbytes=5)
    bars = tuple(Bar(label=f"cuda:{n}", segments=part, text=f"{n} B") for n in range(16))
    panel.show_screen(replace(SCREEN, charts=(Chart(title="T", bars=bars),)))
    assert panel.findChild(ChartCard).minimumSizeHint().width() < 300
    assert "while loading" in said(panel)
