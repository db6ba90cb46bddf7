"""What a checkpoint is called in titles."""

from __future__ import annotations

from pathlib import PurePath

from inspector.units import cut_text, escape_text

_MOST_TITLE = 120
_IN_A_FOLDER, _OF_A_FOLDER = {".metadata", "latest"}, (".index.json", ".distcp")


def shown_name(path: str) -> str:
    """Return what a checkpoint is called: a file that stands for its folder by the name of that."""
    place = PurePath(path)
    folder = place.parent.name
    stands = place.name in _IN_A_FOLDER or place.name.endswith(_OF_A_FOLDER)
    return cut_text(escape_text(folder if stands and folder else place.name), _MOST_TITLE)
