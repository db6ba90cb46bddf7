"""What `weights_only=True` asks for before it loads: modules to import, and names of NumPy to allow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo
import torch.distributed.tensor
from numpy.random import _pickle as makers

from inspector.model.build import open_checkpoint
from inspector.report.words.verdicts import load_verdict
from inspector.safety.verdict import judge
from inspector.safety.words import IMPORT_ERRORS, IMPORTS, imports_for
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import Judged, judge_load
from tests.builders.pickles import As

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
DYNAMO, TENSOR = "torch._dynamo", "torch.distributed.tensor"


def values() -> dict[str, tuple[Any, str]]:
    """What is saved, with the module that it wants."""
    from torch.distributed.tensor import DeviceMesh, DTensor, Replicate, Shard

    mesh = DeviceMesh("cpu", [0, 1])
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    marked = torch.ones(3, 3)
    torch._dynamo.mark_dynamic(marked, 0, min=2, max=9)
    return {
        "sharded": (DTensor.from_local(torch.ones(2, 3), mesh, [Shard(0)], run_check=False), TENSOR),
        "replicated": (DTensor.from_local(torch.ones(2), mesh, [Replicate()], run_check=False), TENSOR),
        "mesh": (mesh, TENSOR),
        "jagged": (jagged, DYNAMO),
        "a tensor that was marked dynamic": (marked, DYNAMO),
    }


def wrong_about(value: Any, module: str, path: Path) -> Iterator[str]:
    torch.save({"x": value}, path)
    known = torch.serialization.get_safe_globals()
    try:  # as in a process that has imported torch alone
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(
            [one for one in known if f"{one.__module__}.{one.__name__}" not in IMPORTS]
        )
        error = ""
        torch.load(path)
    except Exception as raised:  # noqa: BLE001 - whatever torch says
        error = f"{type(raised).__name__}: {raised}"
    finally:
        torch.serialization.add_safe_globals(known)
    checkpoint = open_checkpoint(str(path))
    load = judge_load(checkpoint, CPU_ONLY)
    if load.failure is None or load.failure.message != error:
        yield f"torch says {error!r}, we {load.failure}"
    said = load_verdict(Judged(checkpoint=checkpoint, target=CPU_ONLY, load=load), (), "here").why
    if said != f"refused until {module} is imported":
        yield said
    code = render(checkpoint, style=None, target=CPU_ONLY)
    if f"import {module}\n" not in code or "add_safe_globals" in code or "weights_only=True" not in code:
        yield code
    torch.load(path, weights_only=True)


def test_the_error_and_the_import_are_told(process_group: None, tmp_path: Path) -> None:
    wrong = {
        name: found
        for name, (value, module) in values().items()
        if (found := list(wrong_about(value, module, tmp_path / "x.pt")))
    }
    assert wrong == {}


def test_the_names_are_those_that_the_modules_allow() -> None:
    allowed = {f"{one.__module__}.{one.__name__}" for one in torch.serialization.get_safe_globals()}
    if torch.distributed.tensor.DTensor in torch.serialization.get_safe_globals():
        allowed.add("torch.distributed.tensor.DTensor")
    assert IMPORTS.keys() <= allowed
    assert IMPORT_ERRORS.keys() <= IMPORTS.keys()
    assert imports_for([*IMPORTS, "a.B"]) == (TENSOR, DYNAMO)


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


def wrong_names(value: Any, path: Path) -> str:
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
    wrong = {name: said for name, value in VALUES.items() if (said := wrong_names(value, tmp_path / "x.pt"))}
    assert wrong == {}
