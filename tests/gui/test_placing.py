from __future__ import annotations

from PySide6.QtCore import QMargins, QRect, QSize

from inspector.gui.placing import CASCADE, WISHED, cascade, first_size, fit

FRAME = QMargins(2, 30, 2, 2)
SCREENS = (
    QRect(0, 0, 1366, 768),
    QRect(0, 0, 1280, 800),
    QRect(0, 27, 1024, 573),
    QRect(0, 0, 2560, 1440),
    QRect(-1920, 40, 1920, 1040),  # at the left of the first
)


def is_inside(inner: QRect, area: QRect) -> bool:
    return area.contains(inner.marginsAdded(FRAME))


def test_the_first_window_fits_its_screen_and_is_as_large_as_wished_where_it_can_be():
    for area in SCREENS:
        size = first_size(area, FRAME)
        assert is_inside(QRect(area.topLeft(), size).translated(2, 30), area), area
    assert first_size(SCREENS[3]) == WISHED
    assert first_size(SCREENS[0], FRAME) == QSize(1280, 736)


def test_a_window_from_another_screen_is_moved_and_made_smaller():
    for area in SCREENS:
        for window in (
            QRect(5000, 5000, 1280, 800),
            QRect(-9000, -9000, 400, 300),
            QRect(100, 100, 9000, 9000),
        ):
            assert is_inside(fit(window, area, FRAME), area), (area, window)
    kept = QRect(100, 100, 800, 600)
    assert fit(kept, SCREENS[0], FRAME) == kept


def test_windows_cascade_inside_the_screen_and_begin_again():
    for area in SCREENS:
        window = QRect(area.left() + 2, area.top() + 30, *QSize(800, 500).boundedTo(area.size()).toTuple())
        places = {window.topLeft().toTuple()}
        for _ in range(40):
            following = cascade(window, area, FRAME)
            assert is_inside(following, area), (area, following)
            assert following.size() == window.size()
            window = following
            places.add(window.topLeft().toTuple())
        assert len(places) > 2, area
    second = cascade(QRect(100, 100, 640, 480), SCREENS[3], FRAME)
    assert second == QRect(100 + CASCADE, 100 + CASCADE, 640, 480)
