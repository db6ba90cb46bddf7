"""The command `screenshot`: the window on a file as a PNG."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, plain_number
from inspector.cli.mapping import add_target_options, profile_of
from inspector.cli.screen import window_libraries
from inspector.errors import ContainerError, ExportError, NotACheckpointError, PlanError

if TYPE_CHECKING:
    from inspector.target.profile import Profile

SUMMARY = "Render the window on a file to a PNG."
_THEMES = ("light", "dark", "contrast-light", "contrast-dark")
IS_PLAIN = True
EXAMPLES = ("screenshot best.pth window.png --page memory --theme dark",)
_SMALLEST, _LARGEST = 200, 8000
"""Pixels along an edge of a picture."""
_SMALLEST_THUMBNAIL, _LARGEST_THUMBNAIL = 32, 1024
_OTHERS = frozenset({".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg", ".pdf", ".tif", ".tiff"})
"""Suffixes that would say another format than the picture has."""
_PNG = b"\x89PNG\r\n\x1a\n"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the checkpoint, or a folder of them")
    parser.add_argument("output", metavar="OUT.png", help="the picture")
    parser.add_argument(
        "--size",
        default="1280x800",
        metavar="WxH",
        type=_size,
        help="the size of the window; default: 1280x800",
    )
    parser.add_argument("--theme", choices=_THEMES, default="light", help="the colors; default: light")
    parser.add_argument(
        "--page",
        choices=("overview", "memory", "map", "tensor", "findings", "code", "file", "values"),
        default="memory",
        help="the page at the right; default: memory",
    )
    parser.add_argument(
        "--thumbnail",
        metavar="PIXELS",
        type=_edge,
        help="no window, but the small picture that file managers show: a bar for each device",
    )
    add_target_options(parser)
    parser.add_argument("--force", action="store_true", help="replace OUT even if it is no picture")


def _size(text: str) -> tuple[int, int]:
    width, _, height = (plain_number(part) for part in text.partition("x"))
    if not (_SMALLEST <= width <= _LARGEST and _SMALLEST <= height <= _LARGEST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 1280x800")
    return width, height


def _edge(text: str) -> int:
    edge = plain_number(text)
    if not _SMALLEST_THUMBNAIL <= edge <= _LARGEST_THUMBNAIL:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from {_SMALLEST_THUMBNAIL} to {_LARGEST_THUMBNAIL}"
        )
    return edge


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_stdin

    refuse_stdin("a picture shows the file by its name", options.file)
    if Path(options.output).suffix.lower() in _OTHERS:
        raise PlanError(
            "the picture would be a PNG", where=options.output, remedy="name it with the suffix .png"
        )
    if options.thumbnail is not None:
        from inspector.desktop.thumbnail import draw_file

        picture = draw_file(options.file, options.thumbnail)
        _write(options, lambda part: part.write_bytes(picture), into=_is_waiting(Path(options.output)))
        return DONE
    from inspector.containers.walking import checkpoints_in
    from inspector.model.build import open_checkpoint
    from inspector.target.wish import parse_wish

    wish = None if options.target is None else parse_wish(options.target)
    try:
        open_checkpoint(options.file)  # an unreadable file is reported as an error, not as a picture of one
    except NotACheckpointError:
        if not Path(options.file).is_dir() or next(checkpoints_in(options.file), None) is None:
            raise
    target = None if wish is None else profile_of(wish, options)
    _write(options, lambda part: _take(options, part, target))
    return DONE


def _take(options: argparse.Namespace, part: Path, target: Profile | None) -> None:
    with window_libraries():
        from inspector.gui.app import screenshot

        screenshot(
            options.file,
            os.fspath(part),
            size=options.size,
            theme=options.theme,
            page=options.page,
            target=target,
        )


def _write(options: argparse.Namespace, draw: Callable[[Path], object], *, into: bool = False) -> None:
    """Let a picture be drawn beside the place where it belongs, and put it there, or `into` what is there."""
    from inspector.remap.files import refuse_destination

    output = Path(options.output)
    refuse_destination(options.file, output, overwrite=options.force or _is_picture(output))
    part = output.with_name(f".{os.urandom(6).hex()}.part")
    try:
        draw(output if into else part)
        if not into:
            part.replace(output)
    except TimeoutError as error:
        raise ContainerError(str(error), where=options.file) from error
    except OSError as error:
        reason = error.strerror or "the folder takes no file"
        raise ExportError(f"the picture cannot be written: {reason}", where=options.output) from error
    finally:
        part.unlink(missing_ok=True)


def _is_waiting(path: Path) -> bool:
    """Return whether there is an empty file: Thunar's thumbnailer holds it open, and reads no other."""
    return path.is_file() and not path.stat().st_size


def _is_picture(path: Path) -> bool:
    """Return whether nothing but a picture would be replaced, or an empty file."""
    from inspector.containers.source import FileSource

    if not path.is_file():
        return not os.path.lexists(path)
    with FileSource(os.fspath(path)) as source:
        return source.read_upto(0, len(_PNG)) in {_PNG, b""}
