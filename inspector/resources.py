"""Where the files that ship with the program are: icons, themes, the demo checkpoint.

A wheel carries them as `inspector/_resources`; a checkout keeps them in `resources/` beside the package, so
that people who draw icons need not know how a wheel is laid out.
"""

from __future__ import annotations

import sys
from pathlib import Path

TRUSTED_FOLDER = sys.prefix
"""What lies in there belongs to the Python that runs this program, and to nobody who sends checkpoints."""

PROBE = "probe/checkpoint_inspector_probe.py"
"""The stand-alone script that describes a machine."""

LIBRARIES = "desktop/debian-libraries.txt"
"""The packages of Debian that Qt needs, one a line, and what Qt loads from each."""

RESCUE = "rescue"
"""The folder of the start-up hook that `run` gives to the Pythons of a command."""

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "_resources", _PACKAGE.parent / "resources")


def resource_path(name: str) -> Path:
    """Return the path of a file that ships with the program, such as `icons/app.svg`."""
    for place in _PLACES:
        path = place / name
        if path.exists():
            return path
    raise FileNotFoundError(f"the program's file is missing: {name}")


def demo_path() -> Path:
    """Return the path of the demo checkpoint: a small training state saved from two GPUs."""
    return resource_path("demo/demo.pth")
