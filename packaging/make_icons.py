"""Draws the icon of the program as Windows and macOS want it, from the one picture of it.

    python packaging/make_icons.py OUT.ico      what resources/desktop/checkpoint-inspector.ico is made with
    python packaging/make_icons.py OUT.icns     for the application bundle of macOS

Both formats are a list of pictures of several sizes, each of which may be a PNG.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QGuiApplication, QIcon

ICON = Path(__file__).resolve().parents[1] / "resources" / "icons" / "app.svg"
ICO_SIZES = (16, 24, 32, 48, 64, 256)
ICNS_SIZES = {b"ic07": 128, b"ic08": 256, b"ic09": 512, b"ic10": 1024, b"ic11": 32, b"ic12": 64}
"""By the word that stands for each size, see https://en.wikipedia.org/wiki/Apple_Icon_Image_format."""


def draw(size: int) -> bytes:
    """Return the icon as a PNG."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QIcon(str(ICON)).pixmap(size, size).save(buffer, "PNG")
    return bytes(buffer.data().data())


def format_ico(pictures: dict[int, bytes]) -> bytes:
    """Write pictures as an ICO: a directory, then the pictures; 0 stands for 256 pixels."""
    place = 6 + 16 * len(pictures)
    rows, content = b"", b""
    for size, picture in pictures.items():
        rows += struct.pack(
            "<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(picture), place + len(content)
        )
        content += picture
    return struct.pack("<HHH", 0, 1, len(pictures)) + rows + content


def format_icns(pictures: dict[bytes, bytes]) -> bytes:
    """Write pictures as an ICNS: each behind its word and its length."""
    content = b"".join(
        word + struct.pack(">I", len(picture) + 8) + picture for word, picture in pictures.items()
    )
    return b"icns" + struct.pack(">I", len(content) + 8) + content


def main(out: Path) -> None:
    """Write the format that the suffix names."""
    QGuiApplication([])
    if out.suffix == ".ico":
        out.write_bytes(format_ico({size: draw(size) for size in ICO_SIZES}))
    elif out.suffix == ".icns":
        out.write_bytes(format_icns({word: draw(size) for word, size in ICNS_SIZES.items()}))
    else:
        sys.exit("usage: make_icons.py OUT.ico|OUT.icns")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
