"""The code of a file says what the device map says: torch is asked where each saved device goes.

What a snippet hands to `torch.load` is taken out of it, and torch's own function puts storages by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
import torch

from inspector.containers.formats import format_of
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import device_totals
from inspector.snippet.placement import place_devices
from inspector.snippet.styles.table import render, styles
from inspector.target.wish import parse_target
from tests.corpus import cases
from tests.sweep import tries
from tests.torch.running import play, run, stand_ins

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
OWN_RANKS = ("distributed", "fsdp", "accelerate", "deepspeed", "save")
"""These put everything on the device of each rank, whatever was saved where."""
MACHINES = [parse_target(text) for text in ("cuda", "4xcuda")]


def maps(devices: list[str]) -> Iterator[dict[str, str]]:
    """Yield what people choose: one stays, two change places, all go to one device that is not the first."""
    yield dict.fromkeys(devices, "cuda:1")
    yield {device: device if place else "cpu" for place, device in enumerate(devices)}
    yield dict(zip(devices, [*devices[1:], devices[0]], strict=True))


def placed_by(code: str, devices: list[str]) -> dict[str, str] | None:
    """Return where torch puts what was saved on each device, by the call in a snippet; None without one."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    loads = [call for call in calls if ast.unparse(call.func) == "torch.load"]
    if not loads:
        return None
    found = [word.value for word in loads[0].keywords if word.arg == "map_location"]
    location = ast.literal_eval(found[0]) if found else None
    restore = torch.serialization._get_restore_location(location)
    return {device: restore(None, device) for device in devices}


def opened() -> Iterator[tuple[str, Checkpoint, list[str]]]:
    """Yield files of the corpus that torch loads, with what they were saved on besides the CPU."""
    for case in cases()[:: tries(3, 1)]:
        try:
            rows = open_checkpoint(str(case.path))
        except CheckpointError:
            continue
        devices = [total.device for total in device_totals(rows) if total.device not in {"cpu", "meta"}]
        if devices and format_of(rows.format).torch_loads:
            yield case.name, rows, devices


def codes(rows: Checkpoint, number: int, chosen: dict[str, str]) -> Iterator[tuple[str, str]]:
    target = MACHINES[number % 2]
    tags = {row.device for row in rows.storages} | set(chosen)
    if (len(tags) > 1 or len(set(chosen.values())) > 1) and place_devices(rows, target, ()).as_one:
        return  # torch takes one device for all of such a file
    for style in styles(rows):
        if not style.id.startswith(OWN_RANKS):
            mapping = tuple(chosen.items())
            yield style.id, render(rows, style=style.id, target=target, mapping=mapping, is_exact=True)


def test_the_map_that_a_user_made_is_what_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.serialization, "default_restore_location", lambda _storage, location: location)
    wrong, seen = [], set()
    for name, rows, devices in opened():
        for number, chosen in enumerate(maps(devices)):
            for style, code in codes(rows, number, chosen):
                placed = placed_by(code, devices)
                if placed is not None:
                    seen.add((style, number))
                if placed not in (None, chosen):
                    wrong.append((name, style, chosen, placed))
    assert wrong == []
    assert {("plain", 0), ("plain", 1), ("plain", 2), ("resume", 1)} <= seen


@pytest.mark.parametrize("style", ["plain", "resume"])
def test_a_device_that_is_kept_stays_while_another_moves(
    demo: Checkpoint, monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    target, mapping = parse_target("2xcuda"), (("cuda:0", "cpu"), ("cuda:1", "cuda:1"))
    code = render(demo, style=style, target=target, mapping=mapping, is_exact=True)
    with monkeypatch.context() as patch:
        machine = play(patch, target)
        found = stand_ins(code)
        run(code, **found)
    assert set(machine.restored) == {"cpu", "cuda:1"}
    assert {thing.device for thing in found.values()} == {None}  # nothing else is moved as a whole
    assert "The map puts parts of model on cpu and cuda:1" in " ".join(code.split()).replace("# ", "")


@pytest.fixture(scope="module")
def demo() -> Checkpoint:
    from inspector.resources import demo_path

    return open_checkpoint(str(demo_path()))
