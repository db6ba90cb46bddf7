"""Drawings of the command line for the pages: what a terminal of 80 columns shows, as SVG.

    python -m tests.drawings

Each is made of what the program writes with `--color always`, so that a page shows this version: a test
compares one of them, and in a sweep all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from inspector.report.page import width_of
from inspector.resources import demo_path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "gallery"
COLUMNS = 80
LINES = {
    "show": "show best.pth --depth 1",
    "check": "check best.pth --target cpu",
    "stats": "stats best.pth model/layer1.0.conv1.weight",
}
"""The command line of each drawing."""
_MOST_ROWS = 32
_STEP, _HEIGHT, _MARGIN, _ASCENT = 8.4, 18, 14, 14
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


class Palette(NamedTuple):
    """The colors of a terminal, and what COLORFGBG says of it."""

    text: str
    back: str
    colors: tuple[str, ...]
    said: str


_LIGHT = (
    "#24292f #cf222e #116329 #4d2d00 #0969da #8250df #1b7c83 #6e7781 "
    "#57606a #a40e26 #1a7f37 #633c01 #218bff #a475f9 #3192aa #8c959f"
)
_DARK = (
    "#000000 #cd3131 #0dbc79 #e5e510 #2472c8 #bc3fbc #11a8cd #e5e5e5 "
    "#666666 #f14c4c #23d18b #f5f543 #3b8eea #d670d6 #29b8db #e5e5e5"
)
PALETTES = {
    "light": Palette("#24292f", "#ffffff", tuple(_LIGHT.split()), "0;15"),
    "dark": Palette("#d4d4d4", "#1e1e1e", tuple(_DARK.split()), "15;0"),
}


class Style(NamedTuple):
    """How a cell is painted."""

    ink: str
    paper: str
    is_bold: bool = False
    is_dim: bool = False


class Run(NamedTuple):
    """Characters beside each other that are painted alike."""

    column: int
    text: str
    style: Style


def draw_all(names: Iterable[str] = LINES) -> dict[Path, str]:
    """Return drawings with the paths where they belong."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(demo_path(), Path(folder, "best.pth"))
        for name in names:
            for theme, palette in PALETTES.items():
                line = LINES[name]
                shown = [f"$ checkpoint-inspector {line}", *_run(line, folder, palette)]
                found[FOLDER / theme / "terminal" / f"{name}.svg"] = draw(shown, palette, line)
    return found


def _run(line: str, folder: str, palette: Palette) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "inspector", *line.split(), "--color", "always"],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM_PROGRAM"}},
            "PYTHONPATH": str(ROOT),
            "COLUMNS": str(COLUMNS),
            "COLORTERM": "truecolor",
            "COLORFGBG": palette.said,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        },
        stdout=subprocess.PIPE,
        check=False,  # `check` ends with 1 where the answer is no
    )
    return done.stdout.decode().rstrip().split("\n")


def draw(lines: list[str], palette: Palette, title: str) -> str:
    """Draw lines as an SVG that stands alone."""
    if len(lines) > _MOST_ROWS:
        lines = [*lines[: _MOST_ROWS - 1], "..."]
    width, height = round(COLUMNS * _STEP) + 2 * _MARGIN, len(lines) * _HEIGHT + 2 * _MARGIN
    font = f'font-family="{_FONTS}" font-size="14" fill="{palette.text}"'
    box = f'viewBox="0 0 {width} {height}" width="{width}" role="img"'
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {font}>',
        f"<title>checkpoint-inspector {escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{palette.back}" stroke="#8c959f"/>',
    ]
    for row, run in _runs(lines, palette):
        x, y = _MARGIN + run.column * _STEP, _MARGIN + row * _HEIGHT + _ASCENT
        weight = ' font-weight="bold"' if run.style.is_bold else ""
        ink = f' fill="{run.style.ink}"' if run.style.ink != palette.text else ""
        dim = ' opacity="0.65"' if run.style.is_dim else ""
        length = sum(map(width_of, run.text)) * _STEP
        drawn.append(
            f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}"{weight}{ink}{dim}>{escape(run.text)}</text>'
        )
    return "\n".join([*drawn, "</svg>", ""])


def _runs(lines: list[str], palette: Palette) -> Iterator[tuple[int, Run]]:
    """Yield what stands beside each other in one style; wider gaps part it, since blanks collapse in SVG."""
    for (row, style), group in groupby(cells_of(lines, palette), key=lambda cell: (cell[0], cell[3])):
        cells = list(group)
        text = "".join(char for _, _, char, _ in cells)
        for match in re.finditer(r"\S+(?: \S+)*", text):
            yield row, Run(cells[match.start()][1], match.group(), style)


def cells_of(lines: list[str], palette: Palette) -> Iterator[tuple[int, int, str, Style]]:
    """Yield the row, column, character and style of each cell; a style goes on from line to line."""
    plain = style = Style(palette.text, palette.back)
    for row, line in enumerate(lines):
        column = 0
        for order, char in re.findall(r"\x1b\[([0-9;]*)m|(.)", line):
            if char:
                yield row, column, char, style
                column += width_of(char)
            else:
                style = _styled([int(code or 0) for code in order.split(";")], style, plain, palette)


def _styled(codes: list[int], style: Style, plain: Style, palette: Palette) -> Style:
    rest = iter(codes)
    for code in rest:
        known = {
            0: plain,
            1: style._replace(is_bold=True),
            2: style._replace(is_dim=True),
            7: style._replace(ink=style.paper, paper=style.ink),
            22: style._replace(is_bold=False, is_dim=False),
            39: style._replace(ink=plain.ink),
            49: style._replace(paper=plain.paper),
        }
        if code == 38 and next(rest) == 2:
            style = style._replace(ink=f"#{next(rest):02x}{next(rest):02x}{next(rest):02x}")
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = style._replace(ink=palette.colors[code - 30 if code < 90 else code - 82])
        else:  # in pink what nobody should have written
            style = known.get(code, style._replace(paper="#ff00ff"))
    return style


def main() -> None:
    for path, text in draw_all().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
