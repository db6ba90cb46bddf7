"""Files whose names torch allows once a module of it is imported: its error without, and what loads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo
import torch.distributed.tensor

from inspector.model.build import open_checkpoint
from inspector.report.words.verdicts import load_verdict
from inspector.safety.words import IMPORT_ERRORS, IMPORTS, imports_for
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import Judged, judge_load

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
