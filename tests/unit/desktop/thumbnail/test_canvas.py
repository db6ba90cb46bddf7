"""Shapes on a small picture, and what a reader of PNG makes of it."""

from __future__ import annotations

import struct
import zlib

import pytest

from inspector.desktop.thumbnail.picture import Canvas

RED, BLUE = (200, 0, 0), (0, 0, 200)


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
    canvas.fill((1, 0, 3, 1), 0, RED)
    head, rows = read_png(canvas.to_png())
    assert head == (3, 3, 8, 6, 0, 0, 0)
    assert rows == b"\0" + bytes(4) + bytes((*RED, 255)) * 2 + (b"\0" + bytes(12)) * 2


def test_a_real_reader_reads_it(tmp_path):
    gui = pytest.importorskip("PySide6.QtGui")
    canvas = Canvas(20)
    canvas.fill((2, 2, 18, 18), 5, RED)
    image = gui.QImage.fromData(canvas.to_png())
    assert (image.width(), image.height()) == (20, 20)
    assert image.pixelColor(10, 10).getRgb() == (*RED, 255)
    assert image.pixelColor(0, 0).alpha() == 0


def test_corners_are_round_and_smooth():
    canvas = Canvas(20)
    canvas.fill((0, 0, 20, 20), 8, RED)
    assert canvas.pixel(0, 0) == (0, 0, 0, 0)
    assert canvas.pixel(10, 0) == canvas.pixel(0, 10) == canvas.pixel(19, 10) == (*RED, 255)
    edges = [canvas.pixel(x, 1) for x in range(20)]
    assert edges == edges[::-1]
    assert any(0 < alpha < 255 for *_, alpha in edges)
    assert all(
        color[:3] == list(RED) or not color[3] for (*color,) in ([*pixel] for pixel in edges) if color[3]
    )


def test_what_reaches_beyond_the_picture_is_cut():
    canvas = Canvas(4)
    canvas.fill((-5, -5, 50, 2), 3, RED)
    canvas.fill((9, 1, 12, 2), 0, BLUE)
    canvas.stroke([[(-3, 3.5), (9, 3.5)]], 1, BLUE)
    assert canvas.pixel(3, 0) == (*RED, 255)
    assert canvas.pixel(0, 3) == canvas.pixel(3, 3) == (*BLUE, 255)


def test_an_empty_box_draws_nothing():
    canvas = Canvas(4)
    canvas.fill((3, 3, 1, 1), 5, RED)
    assert not any(canvas.pixel(x, y)[3] for x in range(4) for y in range(4))


def test_a_line_crossed_is_no_darker():
    once, twice = Canvas(12), Canvas(12)
    once.stroke([[(2, 6), (10, 6)]], 2, RED)
    twice.stroke([[(2, 6), (10, 6)], [(10, 6), (2, 6)]], 2, RED)
    assert once.to_png() == twice.to_png()
    dot = Canvas(12)
    dot.stroke([[(6, 6)]], 4, RED)
    assert dot.pixel(5, 5) == dot.pixel(6, 6) == (*RED, 255)
    assert dot.pixel(2, 6) == (0, 0, 0, 0)


def test_a_color_over_another_mixes_with_it():
    canvas = Canvas(1)
    canvas.blend([((0, 0), 0.5)], RED)
    assert canvas.pixel(0, 0) == (*RED, 128)
    canvas.fill((0, 0, 1, 1), 0, RED)
    canvas.blend([((0, 0), 0.5)], BLUE)
    assert canvas.pixel(0, 0) == (100, 0, 100, 255)
