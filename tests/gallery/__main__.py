"""Make `docs/gallery` again: `python -m tests.gallery [--only NAME,NAME] [--themes light,dark]`.

Every page and dialog, in light, dark and high contrast, at 1280x800 and on a screen of 2560x1440 at 200 %,
with three files as people have them; and README's picture. Offscreen, so that it needs no screen. Of the
large pictures, each page's is in one theme by turns, so that the folder stays small; `--every` takes all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inspector.resources import demo_path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
THEMES = ("light", "dark", "contrast-dark")
SOME_THEME = "contrast-light"
"""Taken of some pictures alone: it differs from `light` in lines and inks."""
SOME = frozenset({"demo", "page-overview", "page-memory", "page-findings", "export", "compare"})
SCALES = {"1280x800": (1, 1280, 800), "2560x1440": (2, 1280, 720)}
SCREEN = {"name": "wide", "x": 0, "y": 0, "width": 2560, "height": 1600, "dpr": 1}
README_PICTURE = ("light", "1280x800", "demo")
_CHILD, _DEMO, _SAMPLES = "--child", "demo.pth", "resnet"


def main() -> None:
    """Take all pictures, each theme and scale in a process of its own: Qt reads the scale once."""
    options = _parse()
    if options.child:
        _take(options, Path(options.files), Path(options.to))
        return
    with _sample_files() as folder:
        for theme in options.themes.split(","):
            for scale in options.scales.split(","):
                if not options.only:
                    _forget_pictures(Path(options.to) / theme / scale)
                _run_child(options, theme, scale, folder)
    if options.to == str(FOLDER) and not options.only:
        theme, scale, name = README_PICTURE
        (ROOT / "docs" / "window.png").write_bytes((FOLDER / theme / scale / f"{name}.png").read_bytes())
        _write_index()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="names of pictures, with commas")
    parser.add_argument("--themes", default=",".join((*THEMES, SOME_THEME)))
    parser.add_argument("--scales", default=",".join(SCALES))
    parser.add_argument(
        "--every", action="store_true", help="the large pictures in every theme, not in turns"
    )
    parser.add_argument("--to", default=str(FOLDER))
    parser.add_argument("--files", default="", help=argparse.SUPPRESS)
    parser.add_argument(_CHILD, action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


@contextmanager
def _sample_files() -> Iterator[Path]:
    """Write the files where their paths look like those of a user, and are the same each time."""
    from tests.docs.samples import write_samples
    from tests.gallery.files import write_all

    folder = Path(tempfile.gettempdir()) / "runs"
    folder.mkdir()  # whose it is that is there already, nobody knows
    try:
        write_all(folder)
        (folder / _SAMPLES).mkdir()
        write_samples(folder / _SAMPLES)
        shutil.copy(demo_path(), folder / _DEMO)
        (folder / "screen.json").write_text(json.dumps({"screens": [SCREEN]}), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


def _forget_pictures(folder: Path) -> None:
    """Delete the pictures of a theme and a size: turns move with each scene, and none may be left over."""
    for picture in folder.glob("*.png"):
        picture.unlink()


def _run_child(options: argparse.Namespace, theme: str, scale: str, files: Path) -> None:
    platform = f"offscreen:configfile={files / 'screen.json'}"
    environment = {**os.environ, "QT_QPA_PLATFORM": platform, "QT_SCALE_FACTOR": str(SCALES[scale][0])}
    command = [sys.executable, "-m", "tests.gallery", _CHILD, "--files", str(files), "--only", options.only]
    command += ["--every"] if options.every else []
    command += ["--themes", theme, "--scales", scale, "--to", options.to]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def _take(options: argparse.Namespace, files: Path, to: Path) -> None:
    from tests.gallery.files import EPOCHS, NAMES
    from tests.gallery.taking import Gallery

    folder = to / options.themes / options.scales
    folder.mkdir(parents=True, exist_ok=True)
    more = {"demo": _DEMO, "samples": _SAMPLES, "epochs": EPOCHS}
    paths = {name: files / file for name, file in (NAMES | more).items()}
    gallery = Gallery(paths, folder, options.themes, SCALES[options.scales][1:])
    wanted = frozenset(filter(None, options.only.split(",")))
    is_large = SCALES[options.scales][0] > 1
    if options.themes == SOME_THEME and not (wanted or options.every):
        if is_large:
            return
        wanted = SOME
    by_turns = is_large and not (wanted or options.every) and options.themes in THEMES
    gallery.take_all(wanted, (THEMES.index(options.themes), len(THEMES)) if by_turns else (0, 1))


def _write_index() -> None:
    """Write the page that shows the pictures side by side."""
    lines = ["# Gallery", "", "Made by `python -m tests.gallery`; not by hand.", ""]
    for picture in sorted((FOLDER / THEMES[0] / "1280x800").glob("*.png")):
        lines += [f"## {picture.stem}", ""]
        small = {theme: f"{theme}/1280x800/{picture.name}" for theme in (*THEMES, SOME_THEME)}
        there = {theme: path for theme, path in small.items() if (FOLDER / path).is_file()}
        lines += [f"![{picture.stem}, {theme}]({path})" for theme, path in there.items()]
        large = [f"{theme}/2560x1440/{picture.name}" for theme in THEMES]
        links = [f"[{path.partition('/')[0]}]({path})" for path in large if (FOLDER / path).is_file()]
        lines += ["", f"2560x1440 at 200 %: {', '.join(links)}", ""]
    (FOLDER / "README.md").write_text("\n".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
