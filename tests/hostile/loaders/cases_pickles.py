"""Plain pickles and files of torch.save: the loaders that everybody has."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.loaders.case import Case, payload


def _pickle(folder: Path) -> Path:
    path = folder / "a.pkl"
    path.write_bytes(payload())
    return path


_TORCH = "import torch; torch.load(path, weights_only=False)"
CASES = (
    Case("plain", "pickle", "pickle.load", _pickle, "import pickle; pickle.load(open(path, 'rb'))"),
    Case("plain", "pickle", "torch.load", _pickle, _TORCH),
)
