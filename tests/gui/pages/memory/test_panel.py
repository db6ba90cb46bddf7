from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolTip

from inspector.gui.charts.bars import Bars
from inspector.gui.charts.view import ChartView
from inspector.gui.pages.memory.map_panel import MapPart
from inspector.gui.pages.memory.panel import BarsPart, ChartCard, MemoryPanel
from inspector.records import replace
from inspector.report.charts.bars import Bar, Chart, Segment
from tests.gui import fakes
from tests.gui.looking import area_of, charts_of, colors_in, said, words_in
from tests.unit.report.charts.maps import map_of, sized

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
PARTS = (
    Segment(label="parameter", color=-1, nbytes=5, query="role:parameter"),
    Segment(label="optimizer", color=-1, nbytes=15, query="role:optimizer"),
)
RANKING = Chart(
    title="R",
    bars=tuple(Bar(label=part.label, segments=(part,), text=f"{part.nbytes} B") for part in PARTS),
)
DEVICES = frozenset({"cuda:0", "cuda:1", "cpu"})


@pytest.fixture
def panel(qtbot, theme) -> BarsPart:
    panel = BarsPart(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 700)
    panel.show_screen(SCREEN)
    panel.show()
    return panel


@pytest.fixture
def view(qtbot, theme) -> ChartView:
    view = ChartView(theme)
    qtbot.addWidget(view)
    view.setFixedWidth(404)
    view.show_drawing(Bars(ROOM, DEVICES))
    view.show()
    qtbot.waitExposed(view)
    qtbot.waitUntil(lambda: view.is_drawn)
    return view


def test_figures_stand_beside_the_bars(panel):
    devices, ranking = (view.accessibleDescription() for view in charts_of(panel))
    assert devices.startswith("As saved: cuda:1 352 MB, cuda:0 112 MB, cpu 20.3 KB; After the map: ")
    assert "optimizer state: 308 MB, 66%" in ranking
    assert "<1%" in ranking
    drawn = words_in(charts_of(panel)[0])
    for text in ("As saved", "464 MB", "cuda:0", "112 MB", "\u2013"):
        assert text in drawn


def test_bars_have_the_colors_of_their_devices(panel, theme):
    view = charts_of(panel)[0]
    assert "cuda:0 112 MB" in view.accessibleDescription()
    assert {theme.tokens.device(0).name(), theme.tokens.device(1).name()} <= colors_in(view.grab().toImage())


def test_another_map_moves_the_same_bars(panel):
    view = charts_of(panel)[0]
    charts = fakes._charts(SCREEN.tree, {"cuda:0": "cuda:1", "cpu": "cuda:1"})
    panel.show_screen(replace(SCREEN, charts=charts))
    assert charts_of(panel)[0] is view
    assert "After the map: cuda:1 464 MB" in view.accessibleDescription()


def test_bars_follow_the_theme(panel, theme):
    light = theme.tokens.device(0).name()
    theme.set_mode("dark")
    found = colors_in(charts_of(panel)[0].grab().toImage())
    assert theme.tokens.device(0).name() in found
    assert light not in found


def test_a_chart_becomes_a_ranking_and_back(panel):
    panel.show_screen(replace(SCREEN, charts=SCREEN.charts[::-1]))
    assert [view.accessibleName() for view in charts_of(panel)] == [
        "What the bytes are for",
        "Memory by device",
    ]
    panel.show_screen(SCREEN)
    assert [view.accessibleName() for view in charts_of(panel)] == [
        "Memory by device",
        "What the bytes are for",
    ]


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
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.center_of(1))
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert asked == ["device:cuda:1"]


def test_a_second_click_ends_the_search(panel):
    asked = []
    panel.query_wanted.connect(asked.append)
    for query in ("", "device:cuda:1"):
        panel.show_screen(replace(SCREEN, charts=(ROOM,), query=query))
        charts_of(panel)[0].query_wanted.emit("device:cuda:1")
    assert asked == ["device:cuda:1", ""]


def test_the_keys_choose_a_part(view):
    asked = []
    view.query_wanted.connect(asked.append)
    view.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Return, Qt.Key.Key_Right, Qt.Key.Key_Space, Qt.Key.Key_Right):
        QTest.keyClick(view, key)
    assert asked == ["device:cuda:0", "device:cuda:1"]
    assert view.accessibleName().startswith(f"{ROOM.title}. cuda:1: 100 B, 100.0%")
    QTest.keyClick(view, Qt.Key.Key_A)


def test_without_any_part_the_keys_pass_by(view):
    view.show_drawing(Bars(Chart(title="T", bars=(Bar(label="a", segments=(), text=""),)), DEVICES))
    assert view.focusPolicy() == Qt.FocusPolicy.NoFocus
    QTest.keyClick(view, Qt.Key.Key_Right)
    view.grab()


def test_a_part_of_a_ranking_is_searched_for(panel, qtbot):
    panel.show_screen(replace(SCREEN, charts=(RANKING,)))
    (view,) = charts_of(panel)
    asked = []
    panel.query_wanted.connect(asked.append)
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.center_of(0))
    QTest.keyClick(view, Qt.Key.Key_Down)
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert asked == ["role:parameter", "role:optimizer"]


def test_what_is_selected_is_outlined(view, theme, panel):
    bare = view.grab().toImage()
    view.show_marks(("device:cuda:1",))
    marked = view.grab().toImage()
    assert bare != marked
    ink, area = theme.tokens.colors["text"], area_of(view, 1)
    assert marked.pixelColor(area.center().x(), area.top()).name() == ink
    assert bare.copy(area_of(view, 0)) == marked.copy(area_of(view, 0))
    for marks in ((), ("role:parameter",)):
        panel.show_screen(replace(SCREEN, charts=(RANKING,), marks=marks))
        ranking = charts_of(panel)[0]
        image, place = ranking.grab().toImage(), area_of(ranking, 0)
        assert (image.pixelColor(place.center().x(), place.top()).name() == ink) is bool(marks)


# ------------------------------------------------------------------ room


def test_what_does_not_fit_is_red_and_hatched_behind_the_limit(view, theme):
    image, area = view.grab().toImage(), area_of(view, 0)
    limit = area.left() + round(400 * 300 / 892)
    tokens = theme.tokens
    assert image.pixelColor(limit - 40, area.top() + 4).name() == tokens.device(0).name()
    beyond = {image.pixelColor(x, area.center().y()).name() for x in range(limit + 10, limit + 60)}
    assert tokens.colors["bad_fill"] in beyond
    assert len(beyond) > 1  # hatched: not by its color alone
    assert tokens.colors["text"] in {image.pixelColor(limit + x, area.top() - 2).name() for x in (-1, 0)}
    assert tokens.device(0).name() not in beyond


def test_what_is_missing_is_hatched_and_no_device(view, theme):
    parts = (
        Segment(label="cuda:0", color=0, nbytes=50),
        Segment(label="missing", color=-1, nbytes=50, is_missing=True),
    )
    rank = replace(parts[0], label="float32")
    for bars in (
        Bar(label="As saved", segments=parts, text=""),
        Bar(label="float32", segments=(rank, parts[1]), text=""),
    ):
        view.show_drawing(Bars(Chart(title="", bars=(bars,)), DEVICES))
        image, (here, gone) = view.grab().toImage(), (area_of(view, 0), area_of(view, 1))
        there = {
            image.pixelColor(x, gone.center().y()).name() for x in range(gone.left() + 9, gone.right() - 9)
        }
        color = theme.tokens.device(0) if bars.label == "As saved" else theme.tokens.shade(0)
        assert image.pixelColor(here.left() + 40, here.top() + 4).name() == color.name()
        assert len(there) > 1
        assert color.name() not in there


def test_what_fits_leaves_the_track_free(view, theme):
    image, area = view.grab().toImage(), area_of(view, 1)
    assert area.width() == pytest.approx(400 * 0.1, abs=2)
    free = image.pixelColor(area.right() + 30, area.center().y())
    assert free.name() == theme.tokens.colors["neutral_soft"]
    assert theme.tokens.colors["bad_fill"] not in colors_in(image, area.adjusted(0, 0, 300, 0))


def test_no_axis_counts_for_bars_with_tracks():
    plain = [replace(bar, capacity_nbytes=None, label="all") for bar in ROOM.bars]
    legend = 2 * 22 + 22 + 6  # with a line of titles, and a gap
    assert Bars(ROOM).height == 2 * 56
    assert Bars(replace(ROOM, bars=tuple(plain))).height == 2 * 56 + 24 + legend


def test_a_part_says_what_it_is_under_the_pointer(view, qtbot):
    qtbot.mouseMove(view, view.center_of(0))
    qtbot.waitUntil(lambda: bool(QToolTip.text()))
    assert "cuda:0: 892 B, 100.0% (892 bytes), room for 300 B: 592 B too much" in QToolTip.text()
    assert "Click to search for device:cuda:0" in QToolTip.text()
    assert view.cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.mouseMove(view, QPoint(5, 5))
    qtbot.waitUntil(lambda: view.cursor().shape() == Qt.CursorShape.ArrowCursor)


# ------------------------------------------------------------------ parts of a chart


def test_a_scale_of_bytes_is_round_and_has_units():
    bars = Bars(SCREEN.charts[0])
    assert [text.strip("\u2007") for _, text in bars._ticks(0, 500, 500)] == [
        "0",
        "100 MB",
        "200 MB",
        "300 MB",
        "400 MB",
    ]


def test_a_chart_in_words():
    chart = Chart(title="T", bars=(Bar(label="As saved", segments=(), text=""),))
    assert Bars(chart).description == "As saved: nothing"
    assert Bars(RANKING).description == "parameter: 5 B, 25%; optimizer: 15 B, 75%"
    assert Bars(ROOM).description == (
        "cuda:0: cuda:0 892 B, room for 300 B: 592 B too much; "
        "cuda:1: cuda:1 100 B, room for 1.0 KB: 900 B left"
    )


def test_the_smallest_parts_are_seen(view):
    parts = tuple(Segment(label=f"p{n}", color=n, nbytes=size) for n, size in enumerate((10**12, 1, 0, 1)))
    view.show_drawing(Bars(Chart(title="", bars=(Bar(label="", segments=parts, text=""),))))
    view.plot()
    assert view.drawing.count == 3
    areas = [view.drawing.area(part) for part in range(3)]
    assert min(area.width() for area in areas) > 1.9
    assert areas[-1].right() == 400


def test_a_share_is_drawn_in_proportion(view, theme):
    view.show_drawing(Bars(RANKING))
    image, area = view.grab().toImage(), area_of(view, 0)
    assert image.pixelColor(area.center()).name() == theme.tokens.shade(0).name()
    free = image.pixelColor(area.left() + round(area.width() * 2.5), area.center().y())
    assert free.name() == theme.tokens.colors["neutral_soft"]


def test_an_empty_card_has_no_chart(qtbot, theme):
    card = ChartCard(theme)
    qtbot.addWidget(card)
    theme.set_mode("dark")
    assert said(card) == [""]
    assert card.view.is_drawn


def test_the_map_is_asked_for_when_it_is_first_looked_at(qtbot, theme):
    panel = MemoryPanel(theme, lambda: MapPart(theme))
    qtbot.addWidget(panel)
    panel.resize(520, 700)
    with qtbot.assertNotEmitted(panel.map_wanted):
        panel.show_screen(replace(SCREEN, module_map=None))
    assert panel.bars.isVisibleTo(panel)
    assert panel.map is None
    with qtbot.waitSignal(panel.map_wanted):
        qtbot.keyClick(panel.switch, Qt.Key.Key_Right)
    assert not panel.is_drawn
    page = map_of(sized({"conv.w": 40, "head.w": 80}))
    panel.show_screen(replace(SCREEN, module_map=page, tree=page.areas.tree))
    assert panel.is_drawn
    assert panel.map.isVisibleTo(panel)
    panel.show_screen(replace(SCREEN, charts=()))  # of another file, without bytes
    assert "Nothing takes memory" in said(panel.bars)
    assert not panel.switch.isVisibleTo(panel)
    assert not panel.map.isVisibleTo(panel)
