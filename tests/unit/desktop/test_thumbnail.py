"""What the small picture of a file shows, and what it costs."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from inspector.desktop import thumbnail
from inspector.desktop.thumbnail import Bar, Canvas, Picture, draw, draw_file, picture_of
from inspector.errors import CheckpointError, ModelError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.report.colors import NEUTRAL
from inspector.resources import demo_path
from tests.hostile.cases import CASES
from tests.sweep import put_through, table

CORPUS = Path(__file__).parents[2] / "data" / "corpus"
SURFACE, RED = (0xFF, 0xFF, 0xFF), (0xC8, 0x37, 0x2C)
BLUE, ORANGE, GRAY = (0x1F, 0x77, 0xC9), (0xF0, 0x9A, 0x14), (0x8C, 0x97, 0xA8)


def colors_in(png: bytes) -> set[tuple[int, ...]]:
    head, rows = read_png(png)
    edge = head[0]
    lines = [rows[at + 1 : at + 1 + edge * 4] for at in range(0, len(rows), edge * 4 + 1)]
    return {
        tuple(line[at : at + 3]) for line in lines for at in range(0, len(line), 4) if line[at + 3] == 255
    }


def shown(name: str) -> Picture:
    return picture_of(open_checkpoint(str(CORPUS / name)))


def test_the_demo_has_a_bar_for_each_device():
    seen = picture_of(open_checkpoint(str(demo_path())))
    assert [bar.color for bar in seen.bars] == [0, 1, NEUTRAL]
    assert [round(bar.share, 2) for bar in seen.bars] == [0.33, 1.0, 0.01]
    assert not seen.is_dangerous
    for edge in (32, 64, 256):
        png = draw_file(str(demo_path()), edge)
        assert read_png(png)[0][:2] == (edge, edge)
        assert colors_in(png) >= {SURFACE, BLUE, ORANGE}
        assert RED not in colors_in(png)


@table(
    ("name", "bars"),
    [
        ("zip/meta.pt", [0.0]),
        ("safetensors/all.safetensors", [1.0]),
        ("gguf/small.gguf", [1.0]),
        ("tar/tar_cpu.pth", [1.0]),
    ],
)
def test_formats_without_devices_have_a_gray_bar(name, bars):
    assert [bar.share for bar in shown(name).bars] == bars
    assert colors_in(draw(shown(name), 128)) >= ({GRAY} if bars[0] else {SURFACE})


def test_a_dangerous_file_bears_a_sign_at_every_size():
    for name in ("hostile/os_system.pt", "hostile/os_system_legacy.pt"):
        assert shown(name).is_dangerous, name
        for edge in (32, 64, 128):
            assert RED in colors_in(draw(shown(name), edge)), (name, edge)


def test_many_devices_share_the_last_bar():
    checkpoint = open_checkpoint(str(demo_path()))
    one = checkpoint.storages[0]
    many = [one._replace(key=str(index), device=f"cuda:{index}", nbytes=100) for index in range(20)]
    seen = picture_of(replace(checkpoint, storages=tuple(many), tensors=()))
    assert len(seen.bars) == 12
    assert seen.bars[0] == Bar(color=0, share=100 / 900)
    assert seen.bars[-1] == Bar(color=NEUTRAL, share=1.0)
    assert colors_in(draw(seen, 128)) >= {BLUE, ORANGE, GRAY}  # the ninth device has the first color again


def test_a_checkpoint_without_tensors_is_a_sheet():
    assert SURFACE in colors_in(draw(Picture(bars=(), is_dangerous=False), 64))


def test_bars_stay_on_the_sheet():
    head, rows = read_png(draw(Picture(bars=(Bar(color=0, share=1.0),) * 3, is_dangerous=False), 128))
    width = head[0] * 4 + 1
    columns = {at for y in range(128) for at in range(128) if rows[y * width + 1 + at * 4 + 3]}
    assert (min(columns), max(columns)) == (16, 111)  # nothing beyond the sheet's edges


def test_hostile_files_have_a_picture_or_none(tmp_path):
    """Each ends in a picture or in an error of ours; what is said to be dangerous bears the sign."""
    drawn = []

    def check(case):
        path = tmp_path / "case.pt"
        path.write_bytes(case.build())
        try:
            png = draw_file(str(path), 32)
        except CheckpointError:
            return
        drawn.append(case)
        assert (RED in colors_in(png)) == (
            case.says.get("verdict") == "dangerous"
        ) or "verdict" not in case.says

    put_through(check, CASES, every=6)
    assert len(drawn) > 5


def test_a_picture_may_cost_less_than_a_window(monkeypatch):
    bounds = ("pickle_nbytes", "opcodes", "values", "seconds", "parts", "chars", "inflated_nbytes")
    assert all(getattr(thumbnail.LIMITS, name) <= getattr(DEFAULT_LIMITS, name) / 4 for name in bounds)
    monkeypatch.setattr(thumbnail, "LIMITS", replace(thumbnail.LIMITS, parts=3))
    with pytest.raises(ModelError, match="more than 3 times"):
        draw_file(str(demo_path()), 64)


PURE_RED, PURE_BLUE = (200, 0, 0), (0, 0, 200)


def read_png(png: bytes) -> tuple[tuple[int, ...], bytes]:
    """Read a PNG as the specification has it: the head, and rows without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(name + content),)
        chunks[name] = content
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    return struct.unpack(">IIBBBBB", chunks[b"IHDR"]), zlib.decompress(chunks[b"IDAT"])


def test_a_png_holds_every_pixel():
    canvas = Canvas(3)
    canvas.fill((1, 0, 3, 1), 0, PURE_RED)
    head, rows = read_png(canvas.to_png())
    assert head == (3, 3, 8, 6, 0, 0, 0)
    assert rows == b"\0" + bytes(4) + bytes((*PURE_RED, 255)) * 2 + (b"\0" + bytes(12)) * 2


def test_a_real_reader_reads_it(tmp_path):
    gui = pytest.importorskip("PySide6.QtGui")
    canvas = Canvas(20)
    canvas.fill((2, 2, 18, 18), 5, PURE_RED)
    image = gui.QImage.fromData(canvas.to_png())
    assert (image.width(), image.height()) == (20, 20)
    assert image.pixelColor(10, 10).getRgb() == (*PURE_RED, 255)
    assert image.pixelColor(0, 0).alpha() == 0


def test_corners_are_round_and_smooth():
    canvas = Canvas(20)
    canvas.fill((0, 0, 20, 20), 8, PURE_RED)
    assert canvas.pixel(0, 0) == (0, 0, 0, 0)
    assert canvas.pixel(10, 0) == canvas.pixel(0, 10) == canvas.pixel(19, 10) == (*PURE_RED, 255)
    edges = [canvas.pixel(x, 1) for x in range(20)]
    assert edges == edges[::-1]
    assert any(0 < alpha < 255 for *_, alpha in edges)
    assert all(
        color[:3] == list(PURE_RED) or not color[3] for (*color,) in ([*pixel] for pixel in edges) if color[3]
    )


def test_what_reaches_beyond_the_picture_is_cut():
    canvas = Canvas(4)
    canvas.fill((-5, -5, 50, 2), 3, PURE_RED)
    canvas.fill((9, 1, 12, 2), 0, PURE_BLUE)
    canvas.stroke([[(-3, 3.5), (9, 3.5)]], 1, PURE_BLUE)
    assert canvas.pixel(3, 0) == (*PURE_RED, 255)
    assert canvas.pixel(0, 3) == canvas.pixel(3, 3) == (*PURE_BLUE, 255)


def test_an_empty_box_draws_nothing():
    canvas = Canvas(4)
    canvas.fill((3, 3, 1, 1), 5, PURE_RED)
    assert not any(canvas.pixel(x, y)[3] for x in range(4) for y in range(4))


def test_a_line_crossed_is_no_darker():
    once, twice = Canvas(12), Canvas(12)
    once.stroke([[(2, 6), (10, 6)]], 2, PURE_RED)
    twice.stroke([[(2, 6), (10, 6)], [(10, 6), (2, 6)]], 2, PURE_RED)
    assert once.to_png() == twice.to_png()
    dot = Canvas(12)
    dot.stroke([[(6, 6)]], 4, PURE_RED)
    assert dot.pixel(5, 5) == dot.pixel(6, 6) == (*PURE_RED, 255)
    assert dot.pixel(2, 6) == (0, 0, 0, 0)


def test_a_color_over_another_mixes_with_it():
    canvas = Canvas(1)
    canvas.blend([((0, 0), 0.5)], PURE_RED)
    assert canvas.pixel(0, 0) == (*PURE_RED, 128)
    canvas.fill((0, 0, 1, 1), 0, PURE_RED)
    canvas.blend([((0, 0), 0.5)], PURE_BLUE)
    assert canvas.pixel(0, 0) == (100, 0, 100, 255)
