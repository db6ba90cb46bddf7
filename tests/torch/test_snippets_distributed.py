"""Loading code for several ranks, run by two real ones that talk to each other by gloo."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render
from inspector.snippet.unopened import render_unopened
from inspector.target.profile import CPU_ONLY, Profile
from tests.conftest import TESTS
from tests.torch.running import save_as_if_on
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
ATTEMPTS, TIMEOUT_S = 2, 200  # together less than what a test may take, however busy the machine is
NAMES = ("full", "full broadcast", "prefixed", "bare broadcast", "module", "full fsdp", "dcp")
WRAPPERS = {"dcp": "Sequential", "full fsdp": "FSDPSequential"}


class Saved:
    """A run of one process: what it saved, and the step that it took afterwards."""

    def __init__(self) -> None:
        torch.manual_seed(7)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))
        self.adam = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.step(self.adam)

    def step(self, optimizer: Any) -> None:
        optimizer.zero_grad()
        self.model(torch.arange(8.0).reshape(2, 4)).square().mean().backward()
        optimizer.step()

    def numbers(self) -> list[Any]:
        return [parameter.tolist() for parameter in self.model.parameters()]


def codes(saved: Saved, folder: Path) -> Iterator[tuple[str, bool]]:
    """Return the code of each case, and whether it restores the optimizer."""
    state = saved.model.state_dict()
    files: dict[str, Any] = {
        "full": {"net": state, "optimizer": saved.adam.state_dict()},
        "prefixed": {"net": {f"module.{name}": tensor for name, tensor in state.items()}},
        "bare": state,
        "module": saved.model,
    }
    for name, value in files.items():
        save_as_if_on("cuda:0", value, folder / name)

    def code(name: str, style: str, target: Profile) -> str:
        return render(open_checkpoint(str(folder / name)), style=style, target=target)

    yield code("full", "distributed", CPU_ONLY), True
    yield code("full", "distributed-broadcast", THIS), True
    yield code("prefixed", "distributed", THIS), False
    yield code("bare", "distributed-broadcast", CPU_ONLY), False
    yield code("module", "distributed", THIS), False
    yield code("full", "fsdp", CPU_ONLY), True
    import torch.distributed.checkpoint as dcp

    dcp.save({"model": state}, checkpoint_id=folder / "dcp")
    yield render_unopened("dcp", str(folder / "dcp"), THIS, style="distributed"), False


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="module")
def saved() -> Saved:
    return Saved()


@pytest.fixture(scope="module")
def ranks(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """The results of both ranks, by case.

    Others on this machine may take a port between our asking for it and the ranks' use of it. Then those wait
    for each other in vain, and may try again.
    """
    folder = tmp_path_factory.mktemp("ranks")
    made = list(codes(saved, folder))
    for attempt in range(ATTEMPTS):
        write_cases(made, folder)
        codes_of_ranks, said = run_ranks(folder)
        if codes_of_ranks == [0, 0] or attempt == ATTEMPTS - 1:
            break
    assert codes_of_ranks == [0, 0], said
    both = [json.loads((folder / f"{number}.json").read_text(encoding="utf-8")) for number in range(2)]
    return [list(pair) for pair in zip(*both, strict=True)]


def write_cases(made: list[tuple[str, bool]], folder: Path) -> None:
    cases = [
        {
            "code": code,
            "port": port,
            "optimizer": restores,
            "group": name == "dcp",
            "only_first_reads": "broadcast" in name or "fsdp" in name,
        }
        for name, port, (code, restores) in zip(NAMES, free_ports(len(made)), made, strict=True)
    ]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def run_ranks(folder: Path) -> tuple[list[int], list[str]]:
    """Run both; give their exit codes and what they complained of."""
    command = [sys.executable, "-W", "ignore", str(TESTS / "torch/rank.py"), str(folder / "cases.json")]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "CUDA_VISIBLE_DEVICES": ""}
    with ExitStack() as stack:
        processes = []
        for number in range(2):
            own = {"RANK": str(number), "LOCAL_RANK": str(number)}
            out = str(folder / f"{number}.json")
            environment = {**os.environ, **shared, **own}
            process = subprocess.Popen(
                [*command, out, str(TIMEOUT_S - 5)], env=environment, stderr=subprocess.PIPE, text=True
            )
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        said = []
        ends_s = time.monotonic() + TIMEOUT_S
        for process in processes:
            try:
                said.append(process.communicate(timeout=max(ends_s - time.monotonic(), 0))[1])
            except subprocess.TimeoutExpired:
                process.kill()
                said.append(f"no end after {TIMEOUT_S} s: {process.communicate()[1]}")
        return [process.returncode for process in processes], said


@pytest.mark.parametrize("case", range(len(NAMES)), ids=NAMES)
def test_both_ranks_hold_what_was_saved(ranks: Any, saved: Saved, case: int) -> None:
    first, second = ranks[case]
    assert first == second
    assert first["loaded"] == saved.numbers()
    assert first["wrapper"] == WRAPPERS.get(NAMES[case], "DistributedDataParallel")


def test_both_ranks_take_the_step_that_one_process_would_have_taken(ranks: Any) -> None:
    alone = Saved()
    alone.step(alone.adam)
    plain = Saved()
    plain.step(torch.optim.SGD(plain.model.parameters(), lr=0.1))
    assert alone.numbers() != plain.numbers()
    for name, (rank, _) in zip(NAMES, ranks, strict=True):
        assert rank["stepped"] == (alone if name.startswith("full") else plain).numbers()
