from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsSceneHoverEvent

from inspector.gui.pages.memory.bars import BarItem, ByteAxis, ChartView, byte_step, describe, ink_on
from inspector.gui.pages.memory.panel import MemoryPanel
from inspector.gui.pages.memory.tables import ShareBar, is_ranking
from inspector.records import replace
from inspector.session.screen import Bar, Chart, Segment
from tests.gui import fakes
from tests.gui.looking import said

SCREEN = replace(fakes.ready_screen(), forecast=None)


@pytest.fixture
def panel(qtbot, theme) -> MemoryPanel:
    panel = MemoryPanel(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 700)
    panel.show_screen(SCREEN)
    panel.show()
    return panel


def colors_in(widget) -> set[str]:
    image = widget.grab().toImage()
    return {
        image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)
    }


def test_figures_stand_before_the_bars_are_drawn(panel):
    assert not panel.is_drawn
    words = said(panel)
    for text in ("Memory by device", "As saved", "cuda:0", "112 MB", "optimizer state", "66%", "<1%"):
        assert text in words


def test_bars_are_drawn_when_the_drawing_is_there(panel, qtbot, theme):
    qtbot.waitUntil(lambda: panel.is_drawn)
    views = panel.findChildren(ChartView)
    assert len(views) == 1
    assert "cuda:0 112 MB" in views[0].accessibleDescription()
    qtbot.waitUntil(lambda: theme.tokens.device(0).name() in colors_in(views[0]))
    assert theme.tokens.device(1).name() in colors_in(views[0])


def test_another_map_moves_the_same_bars(panel, qtbot, theme):
    qtbot.waitUntil(lambda: panel.is_drawn)
    view = panel.findChild(ChartView)
    tree = SCREEN.tree
    panel.show_screen(replace(SCREEN, charts=fakes._charts(tree, {"cuda:0": "cuda:1", "cpu": "cuda:1"})))
    assert panel.findChild(ChartView) is view
    assert "After the map: cuda:1 464 MB" in view.accessibleDescription()


def test_bars_follow_the_theme(panel, qtbot, theme):
    qtbot.waitUntil(lambda: panel.is_drawn)
    light = theme.tokens.device(0).name()
    theme.set_mode("dark")
    view = panel.findChild(ChartView)
    qtbot.waitUntil(lambda: theme.tokens.device(0).name() in colors_in(view))
    assert light not in colors_in(view)


def test_a_chart_becomes_a_ranking_and_back(panel, qtbot):
    qtbot.waitUntil(lambda: panel.is_drawn)

    def shown() -> int:
        return sum(view.isVisible() for view in panel.findChildren(ChartView))

    panel.show_screen(replace(SCREEN, charts=SCREEN.charts[::-1]))
    qtbot.waitUntil(lambda: shown() == 1)
    panel.show_screen(SCREEN)
    qtbot.waitUntil(lambda: shown() == 1)


def test_nothing_is_said_to_be_nothing(panel):
    panel.show_screen(replace(SCREEN, charts=()))
    assert "No tensors" in said(panel)
    assert panel.is_drawn


def test_the_page_can_go_while_the_drawing_is_fetched(qtbot, theme):
    panel = MemoryPanel(theme)
    panel.show_screen(SCREEN)
    panel.show()
    qtbot.wait(40)
    panel.close()
    panel.deleteLater()
    qtbot.wait(60)


# ------------------------------------------------------------------ parts of a chart


@pytest.mark.parametrize(
    ("total", "ticks", "step"), [(1000, 4, 500), (999, 4, 500), (718_000, 5, 200_000), (3, 5, 1), (0, 5, 1)]
)
def test_ticks_are_round_and_few(total, ticks, step):
    assert byte_step(total, ticks) == step


def test_the_axis_counts_bytes(qapp):
    axis = ByteAxis("bottom")
    ((step, places),) = axis.tickValues(0, 464e6, 450)
    assert places == [0, step, 2 * step, 3 * step, 4 * step]
    assert axis.tickStrings([0, 5e8, 1e9], 1, 1) == ["0", "500 MB", "1 GB"]


def test_ink_is_readable_on_every_device(theme):
    assert ink_on(QColor("#ffffff")).name() == "#10131a"
    assert ink_on(QColor("#000000")).name() == "#ffffff"


def test_a_piece_says_what_it_is_under_the_pointer(qapp, theme):
    bar = Bar(
        label="As saved",
        segments=(
            Segment(label="cuda:0", color=0, nbytes=750),
            Segment(label="<b>cpu", color=-1, nbytes=250),
        ),
        text="1 KB",
    )
    item = BarItem(bar, lambda part: theme.tokens.device(part.color), qapp.font())
    event = QGraphicsSceneHoverEvent()
    event.setPos(QPointF(100, 0))
    item.hoverMoveEvent(event)
    assert "cuda:0: 750 B, 75.0%" in item.toolTip()
    event.setPos(QPointF(900, 0))
    item.hoverMoveEvent(event)
    assert "&lt;b&gt;cpu" in item.toolTip()


def test_a_chart_in_words():
    chart = Chart(title="T", bars=(Bar(label="As saved", segments=(), text=""),))
    assert describe(chart) == "As saved: nothing"
    assert not is_ranking(chart)


def test_a_share_is_painted_in_proportion(qtbot, theme):
    bar = ShareBar(theme, 0.5)
    qtbot.addWidget(bar)
    bar.resize(200, 10)
    image = bar.grab().toImage()
    assert image.pixelColor(50, 5) == theme.tokens.shade(0)
    assert image.pixelColor(150, 5) == theme.tokens.color("neutral_soft")


def test_wide_wheel_turns_scroll_the_page(panel, qtbot):
    qtbot.waitUntil(lambda: panel.is_drawn)

    class Turn:
        ignored = False

        def ignore(self) -> None:
            self.ignored = True

    turn = Turn()
    panel.findChild(ChartView).wheelEvent(turn)
    assert turn.ignored
