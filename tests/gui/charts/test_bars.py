from __future__ import annotations

from PySide6.QtCore import QRectF

from inspector.gui.charts.bars import Bars
from inspector.report.charts.bars import Bar, Chart, Segment


class Paper:
    """Takes down where words are written, in letters as wide as those of large text."""

    room = QRectF(0, 0, 480, 400)

    def __init__(self) -> None:
        self.edges: dict[str, tuple[float, float]] = {}

    def advance(self, text: str, *, small: bool = False) -> float:
        return 11.0 * len(text)

    def write(
        self, room: QRectF, text: str, ink: object, *, right: bool = False, small: bool = False
    ) -> None:
        start = room.right() - self.advance(text) if right else room.left()
        self.edges[text] = start, start + self.advance(text)

    def fill(self, *_: object) -> None: ...


def test_the_titles_of_a_legend_stand_apart_in_large_text(theme):
    parts = tuple(Segment(label=name, nbytes=9_000_000, color=0) for name in ("cuda:0", "cuda:1"))
    bars = tuple(Bar(label=label, segments=parts, text="") for label in ("As saved", "After the map"))
    paper = Paper()
    Bars(Chart(title="Memory by device", bars=bars))._write_legend(paper, theme.tokens)
    assert paper.edges["As saved"][1] < paper.edges["After the map"][0]
