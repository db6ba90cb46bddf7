"""Every case that is named after a payload holds one: torch runs it, and the verdict says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hostile.cases import CASES, Case
from tests.sweep import table
from tests.torches import run_with_torch

_NAMED = re.compile(r"payload|evil|eval|runs|passes for")
_LOADING = """
import os, signal, sys, torch, warnings
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    with open(path + ".said", "wb") as said:
        pid = os.fork()
        if not pid:
            signal.alarm(30)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            try:
                torch.load(path, weights_only=False, map_location="cpu")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
"""
_WORSE = {"dangerous", "runs-code", "runs-code|dangerous"}
PAYLOADS = [case for case in CASES if _NAMED.search(case.name)]

NOT_BY_TORCH: dict[str, str] = {
    "18-two-data.pkl,-the-evil-one-first": "torch takes the other record here, other readers this one",
    "24-magic-through-eval": "it only makes the number; what it could make is anything",
    "24-a-tar-file-whose-name-is-a-payload": "torch.load of a file object without a descriptor, and pickle",
    "24-a-tar-file-behind-a-member-whose-name-is-a-payload": "the same",
}
"""Payloads that this torch does not run from a path, and why they are payloads all the same."""


@table("case", PAYLOADS, ids=str)
def test_case_with_a_payload_asserts_that_it_is_seen(case: Case) -> None:
    assert case.says.get("verdict") in _WORSE
    assert case.says.keys() & {"globals", "calls", "runs", "error"}


@pytest.mark.torch
@pytest.mark.slow
def test_payloads_are_run_by_torch(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.pt" for number in range(len(PAYLOADS))]
    for path, case in zip(paths, PAYLOADS, strict=True):
        path.write_bytes(case.build())
    run_with_torch("-c", _LOADING, *paths, cwd=tmp_path)
    wrong = []
    for path, case in zip(paths, PAYLOADS, strict=True):
        said = path.with_name(f"{path.name}.said").read_bytes()
        ran = b"uid=" in said  # what `id` says, the one command that these payloads run
        if ran == (str(case) in NOT_BY_TORCH):
            wrong.append((str(case), said[:500]))
    assert wrong == []
    assert NOT_BY_TORCH.keys() <= set(map(str, PAYLOADS))


def test_no_case_asks_for_what_is_always_so() -> None:
    empty = [
        str(case)
        for case in CASES
        if not case.says or all(wanted in {"", None} for wanted in map(str, case.says.values()))
    ]
    assert empty == []
