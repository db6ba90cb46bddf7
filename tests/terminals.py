"""Pictures of the commands on a terminal: each in tmux, at three widths, on a light and on a dark background.

    python -m tests.terminals OUT [SCENE ...]

What tmux shows is captured with its colors and painted cell by cell, so that a picture is what somebody sees,
and not what this program believes that it wrote.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from inspector.report.page import width_of
from inspector.resources import demo_path
from tests.builders import pickles, zips

ROOT = Path(__file__).parents[1]
WIDTHS = (60, 80, 140)
ROWS = 48
MOST_ROWS = 90
PROGRAM = f"{sys.executable} -P -m inspector"
SCENES = {
    "show": "show demo.pth --depth 2 --no-pager",
    "show-paged": "show demo.pth",
    "show-deep": "show deep.pth --no-pager",
    "show-devices": "show devices.pth --no-pager",
    "show-hostile": "show hostile.pth --no-pager",
    "show-empty": "show empty.pth",
    "show-cut": "show cut.pth --depth 1 --no-pager",
    "show-filter": 'show demo.pth --filter "device:cuda:1 size>10KB" --no-pager',
    "check": "check demo.pth --target cuda --no-pager",
    "check-good": "check demo.pth --target 2xcuda --no-pager",
    "check-danger": "check hostile.pth --target cpu --no-pager",
    "check-cut": "check cut.pth --target cpu --no-pager",
    "check-error": "check demo.pth --target cuda --error-text 'RuntimeError: CUDA out of memory' --no-pager",
    "check-several": "check demo.pth empty.pth missing.pth --target cuda --no-pager",
    "check-script": "check demo.pth --target cuda --script train.py --no-pager",
    "stats": "stats demo.pth model/layer1.0.conv1.weight",
    "stats-scan": "stats odd.pth --scan",
    "diff": "diff demo.pth moved.pth --no-pager",
    "diff-names": "diff demo.pth devices.pth --no-pager",
    "diff-values": "diff odd.pth other.pth --values --no-pager",
    "diff-series": "diff --series odd.pth other.pth odd.pth --no-pager",
    "remap": "remap demo.pth -o out.pth --force --map cuda:1=cuda:0",
    "remap-plan": "remap demo.pth --dry-run",
    "recover": "recover cut.pth -o rest.pth --force",
    "verify": "verify out.pth --against demo.pth --map cuda:1=cuda:0",
    "verify-differs": "verify demo.pth --against odd.pth",
    "verify-several": "verify out.pth moved.pth missing.pth --against demo.pth",
    "verify-piped": "verify - --against demo.pth < out.pth",
    "error": "stats demo.pth model/layer1.0.conv1.weigth",
    "error-exists": "remap demo.pth -o moved.pth --map cuda:*=cpu",
    "target": "target --target 4xcuda:1@24gb --no-pager",
    "target-this": "target --no-pager",
    "snippet": "snippet demo.pth --target cuda --style resume --no-pager",
    "help": "--help",
    "help-remap": "remap --help",
    "help-snippet": "snippet --help",
    "help-stats": "stats --help",
    "mistake": "shwo demo.pth",
    "ascii": "show devices.pth --no-pager",
    "names": "show names.pth --no-pager",
    "names-check": "check names.pth --target cpu --no-pager",
    "names-diff": "diff names.pth demo.pth --no-pager",
    "names-stats": "stats names.pth '**'",
    "million": "show million.pth --depth 2 --no-pager",
    "schema": "schema verify | head -30",
    "run": "run -- python3 -c 'print(1)'",
    "desktop": "desktop status",
    "remap-form": "remap demo.pth -o w.safetensors --force --only weights",
    "remap-form-plan": "remap demo.pth --dry-run --only weights --exclude 'model/head.*'",
    "remap-in-place": f"remap patched.pth --in-place --map cuda:1=cuda:0; {PROGRAM} remap patched.pth --undo",
    "remap-into": "remap demo.pth empty.pth missing.pth --into folder --force",
    "check-names": "check names.pth --target 2xcuda --no-pager",
    "check-page": "check demo.pth --target cuda --json | head -c 300",
    "help-check": "check --help",
    "help-diff": "diff --help",
    "help-run": "run --help",
    "error-option": "show demo.pth --dept 2",
    "error-cut": "stats cut.pth optimizer/state/46/exp_avg",
    "error-form": "remap demo.pth -o a.onnx",
    "diff-cut": "diff demo.pth cut.pth --no-pager",
}
"""The command line of each picture, without the program's name."""


class Palette(NamedTuple):
    """The colors of a terminal.

    Attributes:
        text: The color of text.
        back: The color behind it.
        colors: Its sixteen colors.
        said: What COLORFGBG says of it.
    """

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
EVIL = "a\x1b]0;owned\x07\x1b[41;5mb\x9b2J\u202egnp.exe\r\nz"


# --- files --------------------------------------------------------------------------------------------------


def make_files(folder: Path) -> None:
    data = demo_path().read_bytes()
    (folder / "demo.pth").write_bytes(data)
    (folder / "cut.pth").write_bytes(data[: len(data) // 2])
    (folder / "deep.pth").write_bytes(_deep())
    (folder / "devices.pth").write_bytes(_devices())
    (folder / "hostile.pth").write_bytes(_hostile())
    (folder / "empty.pth").write_bytes(zips.checkpoint(pickles.stream(pickles.proto(), pickles.dict_())))
    numbers = b"".join(bytes((0, 0, 128, 63)) for _ in range(63))
    nan = bytes((0, 0, 192, 127))
    for name, content in (("odd", numbers + nan), ("other", bytes(64) + numbers[:192])):
        rows = {
            key: pickles.tensor(pickles.storage(key, numel=64), 8, 8) for key in ("head.weight", "b.weight")
        }
        stored = {"head.weight": content, "b.weight": bytes(256)}
        (folder / f"{name}.pth").write_bytes(zips.checkpoint(pickles.state_dict(**rows), stored))
    (folder / "names.pth").write_bytes(_names())
    (folder / "million.pth").write_bytes(_many())
    (folder / "patched.pth").write_bytes(data)
    (folder / "train.py").write_text("import torch\n\nstate = torch.load('demo.pth')\n", encoding="utf-8")
    run = [*shlex.split(PROGRAM), "remap", "demo.pth", "-o", "moved.pth", "--force"]
    subprocess.run(run, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def _deep() -> bytes:
    row = pickles.tensor(pickles.storage("0", location="cuda:0"), 2)
    tree = row
    for level in range(40, 0, -1):
        side = pickles.text(f"a_rather_long_name_of_a_module_number_{level}.attention.out_proj.weight")
        tree = pickles.dict_((side, row), (pickles.text(f"level_{level}"), tree))
    return zips.checkpoint(pickles.stream(pickles.proto(), tree), {"0": bytes(8)})


def _devices() -> bytes:
    rows = {
        f"blocks.{number}.mlp.weight": pickles.tensor(
            pickles.storage(str(number), location=f"cuda:{number}", numel=4096), 64, 64
        )
        for number in range(16)
    }
    rows["重み"] = pickles.tensor(pickles.storage("16", numel=4), 2, 2)
    rows["e\u0301te\u0301"] = pickles.tensor(pickles.storage("17", location="mps", numel=4), 4)
    stored = {str(number): bytes(16384) for number in range(16)} | {"16": bytes(16), "17": bytes(16)}
    return zips.checkpoint(pickles.state_dict(**rows), stored)


def _names() -> bytes:
    """Names of every width and direction, and one that no line has room for."""
    names = (
        "模型/层.重み",
        "모델.가중치",
        "שלום.משקל",
        "مرحبا.وزن",
        "👩\u200d🔬.😀",
        "e\u0301" * 12,
        "\uff46\uff55\uff4c\uff4c",
        "tab\there",
        "a" * 300,
        "module." * 30 + "weight",
        "",
        " ",
        "-o",
    )
    rows = [
        (
            pickles.text(name),
            pickles.tensor(pickles.storage(str(at), location=f"cuda:{at % 3}", numel=4), 2, 2),
        )
        for at, name in enumerate(names)
    ]
    tree = pickles.dict_(*rows, (pickles.text("说明"), pickles.text("长" * 80)))
    stored = {str(at): bytes(16) for at in range(len(names))}
    return zips.checkpoint(pickles.stream(pickles.proto(), tree), stored)


def _many() -> bytes:
    row = pickles.tensor(pickles.storage("0", location="cuda:0"), 2)
    rows = {f"layer{number}.weight": row for number in range(20_000)}
    tree = pickles.dict_(
        (pickles.text("model"), pickles.dict_(*((pickles.text(name), row) for name in rows))),
        (pickles.text("epoch"), pickles.number(3)),
    )
    return zips.checkpoint(pickles.stream(pickles.proto(), tree), {"0": bytes(8)})


def _hostile() -> bytes:
    evil = pickles.text(EVIL)
    weight = pickles.tensor(pickles.storage("0", location="cuda:3"), 2)
    danger = pickles.call("posix.system", evil)
    tree = pickles.dict_((evil, weight), (pickles.text("run"), danger), (pickles.text("note"), evil))
    return zips.checkpoint(pickles.stream(pickles.proto(), tree), {"0": bytes(8)})


# --- tmux ---------------------------------------------------------------------------------------------------


def capture(folder: Path, scene: str, width: int, palette: Palette) -> list[str]:
    """Run a command in a terminal, and return what it shows, line by line, with its colors."""
    session = f"terminals-{os.getpid()}-{time.monotonic_ns()}"
    variables = {
        "PYTHONPATH": str(ROOT),
        "COLORTERM": "truecolor",
        "COLORFGBG": palette.said,
        "LC_ALL": "C" if scene == "ascii" else "C.UTF-8",
        "PAGER": "less -FRX" if scene == "show-paged" else "",
    }
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    program = f"{PROGRAM} {SCENES[scene]}"
    command = f"cd {shlex.quote(str(folder))}; export {settings}; {program}; tmux wait-for -S {session}"
    size = ("-x", str(width), "-y", str(ROWS))
    _tmux("new-session", "-d", "-s", session, *size, f"{command}; sleep 100")
    try:
        if scene == "show-paged":
            time.sleep(2)
        else:
            _tmux("wait-for", session)
        shown = _tmux("capture-pane", "-e", "-p", "-S", "-", "-t", session)
    finally:
        _tmux("kill-session", "-t", session)
    return shown.rstrip().split("\n")[:MOST_ROWS]


def _tmux(*words: str) -> str:
    command = ["tmux", "-u", "-L", "terminals", "-f", os.devnull, *words]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8", timeout=100).stdout


# --- painting -----------------------------------------------------------------------------------------------


class Style(NamedTuple):
    """How a cell is painted."""

    ink: str
    paper: str
    is_bold: bool = False
    is_dim: bool = False


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


def paint(lines: list[str], width: int, palette: Palette, path: Path) -> None:
    from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter

    font = QFont("DejaVu Sans Mono")
    font.setPixelSize(15)
    metrics = QFontMetricsF(font)
    step, height, margin = metrics.horizontalAdvance("m"), metrics.height(), 12
    image = QImage(
        round(width * step) + 2 * margin, round(len(lines) * height) + 2 * margin, QImage.Format.Format_RGB32
    )
    image.fill(QColor(palette.back))
    painter = QPainter(image)
    for row, column, char, style in cells_of(lines, palette):
        size = max(width_of(char), 0)
        x, y = round(margin + (column - (not size)) * step), round(margin + row * height)
        font.setBold(style.is_bold)
        painter.setFont(font)
        ink = QColor(style.ink)
        ink.setAlphaF(0.6 if style.is_dim else 1.0)
        if style.paper != palette.back:
            painter.fillRect(x, y, round(step * size) + 1, round(height) + 1, QColor(style.paper))
        painter.setPen(ink)
        painter.drawText(x, round(y + metrics.ascent()), char)
    painter.end()
    image.save(os.fspath(path))


def main(out: str, *scenes: str) -> None:
    from PySide6.QtGui import QGuiApplication

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QGuiApplication([])
    files = Path(out, "files")
    files.mkdir(parents=True, exist_ok=True)
    make_files(files)
    for scene in scenes or SCENES:
        for width in WIDTHS:
            for name, palette in PALETTES.items():
                lines = capture(files, scene, width, palette)
                paint(lines, width, palette, Path(out, f"{scene}-{width}-{name}.png"))
    application.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
