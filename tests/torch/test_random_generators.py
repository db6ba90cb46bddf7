"""NumPy random generators under `weights_only=True`: what is offered is all that torch asks for."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import _pickle as makers

from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.builders.pickles import As

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def old(name: str, *more: Any) -> As:
    """A generator as NumPy 1.17 to 1.26 pickled it: by its bit generator's name, with that one's state."""
    return As(makers.__generator_ctor, (name, *more), getattr(np.random, name)(3).state)


VALUES = {
    "default_rng": np.random.default_rng(1),
    "RandomState": np.random.RandomState(1),
    "SeedSequence": np.random.SeedSequence(5),
    **{name: getattr(np.random, name)(1) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")},
    "Generator(Philox)": np.random.Generator(np.random.Philox(1)),
    "NumPy 1.17": old("PCG64"),
    "NumPy 1.26": old("Philox", makers.__bit_generator_ctor),
    "NumPy 1.17, bits": As(makers.__bit_generator_ctor, ("SFC64",), np.random.SFC64(1).state),
    "NumPy 1.17, RandomState": As(
        makers.__randomstate_ctor, ("MT19937",), np.random.RandomState(1).get_state(legacy=False)
    ),
}


def resolved(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def wrong_about(value: Any, path: Path) -> str:
    torch.save({"x": value}, path)
    verdict = judge(open_checkpoint(str(path)))
    allowed = [resolved(name) for name in verdict.to_allow]
    for left_out in (None, *allowed):
        try:
            with torch.serialization.safe_globals([one for one in allowed if one is not left_out]):
                found = torch.load(path, weights_only=True)["x"]
        except Exception as error:  # noqa: BLE001 - whatever torch says is what the table shows
            if left_out is None:
                return f"torch refuses what {verdict.to_allow} allow: {str(error)[-200:]}"
        else:
            if left_out is not None:
                return f"{left_out} is not needed"
            if not isinstance(value, As) and type(found) is not type(value):
                return f"it comes back as {found!r}"
    return ""


def test_every_generator_loads_with_the_names_that_are_offered(tmp_path: Path) -> None:
    wrong = {name: said for name, value in VALUES.items() if (said := wrong_about(value, tmp_path / "x.pt"))}
    assert wrong == {}
