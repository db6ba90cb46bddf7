"""What is simulated against what torch does: every kind of file x machine x form of `map_location`.

torch runs in one child process, see `simulating.py`. `--update-golden` writes the summary into
docs/simulation.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import Function, LoadCall, MapLocation, TagMap, TorchDevice, WrongType, refusal_of
from inspector.target.profile import Profile
from inspector.target.restore import send_failure
from inspector.target.simulate import LoadOutcome, simulate
from inspector.target.wish import parse_target
from tests.builders.pickles import As
from tests.corpus import CORPUS
from tests.torch.remapping import tagged
from tests.torches import here, run_with_torch

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "simulation.md"
BEGIN, END = "<!-- figures: written by pytest --update-golden -->", "<!-- end of figures -->"

CPU, META = TorchDevice(text="cpu"), TorchDevice(text="meta")
MAPS: dict[str, MapLocation] = {
    "None": None,
    **{repr(text): text for text in ("cpu", "cuda", "cuda:0", "cuda:1", "cuda:7", "mps", "xpu:0", "meta")},
    **{repr(text): text for text in ("cpu:0", "gpu")},
    "torch.device('cpu')": CPU,
    "torch.device('cuda:1')": TorchDevice(text="cuda:1"),
    "torch.device('meta')": META,
    "{}": TagMap(pairs=()),
    "{'cuda:0': 'cpu'}": TagMap(pairs=(("cuda:0", "cpu"),)),
    "{'cuda': 'cpu'}": TagMap(pairs=(("cuda", "cpu"),)),
    "a ring of tags": TagMap(
        pairs=(("cuda:0", "cuda:1"), ("cuda:1", "cpu"), ("mps", "cpu"), ("cpu", "cuda:0"))
    ),
    "{'cuda:0': torch.device('cpu')}": TagMap(pairs=(("cuda:0", CPU),)),
    "devices as keys": TagMap(pairs=((CPU, "meta"), (TorchDevice(text="cuda:0"), "cpu"))),
    "lambda storage, tag: storage": Function(gives="storage"),
    "lambda storage, tag: None": Function(gives="nothing"),
    "b'cpu'": WrongType(name="bytes"),
    "0": WrongType(name="int"),
    "['cpu']": WrongType(name="list"),
}
TARGETS = tuple(parse_target(word) for word in ("cpu", "cuda", "2xcuda", "8xcuda", "mps", "xpu"))


def no_gpu() -> str:
    """What the torch that plays says itself."""
    return (send_failure("cuda:0", here()) or ("", ""))[1]


# Kinds of files, each with genuine samples; those that are made here are added by `made`.
KINDS: dict[str, tuple[str, ...]] = {
    "zip, one GPU": ("devices/zip_train_cuda_capturable.pt", "devices/zip_cuda_proto3.pt"),
    "zip, GPUs and CPU": ("devices/zip_mixed8.pt",),
    "zip, quantized on a GPU": ("devices/zip_quant_cuda.pt",),
    "zip, Apple": ("devices/zip_memo_mps.pt",),
    "zip, Intel": ("devices/zip_xpu_0.pt",),
    "zip, device unknown to torch": (
        "devices/zip_hpu.pt",
        "devices/zip_privateuseone_0.pt",
        "devices/zip_ipu.pt",
    ),
    "zip, meta": ("devices/zip_meta.pt",),
    "zip, sent while loading": ("devices/zip_xla_from_cpu_tensor.pt",),
    "zip, CPU": ("zip/train.pt", "zip/views.pt", "zip/sparse.pt", "zip/storages.pt", "zip/nested.pt"),
    "zip, pickle protocol 4": ("devices/zip_cuda_proto4.pt", "zip/proto4.pt"),
    "zip, pickle protocol 1": ("devices/zip_cuda_proto1.pt",),
    "zip, module": ("zip/module_custom.pt", "old/t1.5_py37_zip_module.pt"),
    "zip, generator": ("zip/generator.pt",),
    "zip of torch 1.4": ("old/t1.4_py27_zip_cuda_sd.pt",),
    "zip of torch 1.5 to 1.12": ("old/t1.5_py37_zip_cuda_sd.pt", "old/t1.12_py39_zip_cuda_sd.pt"),
    "zip without a version": ("zip/noversion.pt",),
    "legacy, one GPU": ("devices/legacy_train_cuda_capturable.pt", "devices/legacy_views_cuda.pt"),
    "legacy, GPUs and CPU": ("devices/legacy_mixed8.pt", "devices/legacy_train_cuda_step_cpu.pt"),
    "legacy, sparse on a GPU": ("devices/legacy_sparse_cuda.pt",),
    "legacy, Apple": ("devices/legacy_mps.pt",),
    "legacy, device unknown to torch": ("devices/legacy_npu_0.pt", "devices/legacy_hpu_0.pt"),
    "legacy, CPU": ("legacy/tied.pt", "legacy/view_metadata_cpu.pt"),
    "legacy, pickle protocol 1, 4": ("legacy/proto1.pt", "legacy/proto4.pt"),
    "legacy, module": ("devices/legacy_module_cuda.pt",),
    "legacy of torch 1.0 to 1.12": (
        "old/t1.0_py27_legacy_cuda_opt.pt",
        "old/t1.5_py37_legacy_cuda_sd.pt",
        "old/t1.12_py39_legacy_misc.pt",
    ),
    "legacy in gzip": ("legacy/gzipped.pt.gz",),
}


# Without an index it is the current device, which a tensor of that machine would say itself.
SAME_DEVICE = {"cuda": "cuda:0", "xpu": "xpu:0", "mps:0": "mps"}


class Cell(NamedTuple):
    kind: str
    path: str
    target: Profile
    map: str
    weights_only: bool
    mmap: bool


def made(folder: Path) -> dict[str, tuple[str, ...]]:
    from torch.testing._internal.two_tensor import TwoTensor

    wrapper = {"w": TwoTensor(torch.ones(2), torch.ones(2)), "b": torch.ones(2)}
    # As torch pickled tensors of devices it did not know how to store.
    arguments = (np.ones(3, dtype=np.float32), torch.float32, "cuda:1", False)
    from_numpy = As(torch._utils._rebuild_device_tensor_from_numpy, arguments)
    paths = {}
    for name, value, tag, is_new in (
        ("zip, wrapper of a GPU's tensors", wrapper, "cuda:0", True),
        ("legacy, wrapper of a GPU's tensors", wrapper, "cuda:0", False),
        ("zip, wrapper on the CPU", wrapper, "cpu", True),
        ("zip, sent to a GPU while loading", {"a": torch.ones(2), "n": from_numpy}, "cpu", True),
        ("legacy, sent to a GPU while loading", {"a": torch.ones(2), "n": from_numpy}, "cpu", False),
    ):
        path = folder / f"{len(paths)}.pt"
        with tagged(lambda storage, tag=tag: tag):
            torch.save(value, path, _use_new_zipfile_serialization=is_new)
        paths[name] = (str(path),)
    return paths


def cells_of(kinds: dict[str, tuple[str, ...]], targets: tuple[Profile, ...] = TARGETS) -> Iterator[Cell]:
    """Every map on every machine; the other arguments with the commonest maps only."""
    for kind, paths in kinds.items():
        for path in paths:
            for target in targets:
                for name in MAPS:
                    yield Cell(kind, path, target, name, weights_only=False, mmap=False)
                for name in ("None", "'cpu'", "'cuda:1'"):
                    yield Cell(kind, path, target, name, weights_only=True, mmap=False)
                for name in ("None", "'cpu'", "'meta'"):
                    yield Cell(kind, path, target, name, weights_only=False, mmap=True)


def said_by_torch(
    cells: list[Cell], opened: dict[str, Checkpoint], *, is_real: bool = False
) -> dict[Cell, dict[str, Any]]:
    by_target: dict[Profile, list[Cell]] = {}
    for cell in cells:
        by_target.setdefault(cell.target, []).append(cell)
    jobs = [
        {
            "machine": {
                "cuda": target.count("cuda"),
                "xpu": target.count("xpu"),
                "mps": target.count("mps"),
                "is_real": is_real,
            },
            "cells": [
                {
                    "path": cell.path,
                    "map": cell.map,
                    "weights_only": cell.weights_only,
                    "mmap": cell.mmap,
                    "keys": [row.keys for row in opened[cell.path].tensors],
                }
                for cell in asked
            ],
        }
        for target, asked in by_target.items()
    ]
    child = run_with_torch(
        Path(__file__).with_name("simulating.py"), given="".join(f"{json.dumps(job)}\n" for job in jobs)
    )
    assert child.returncode == 0, child.stderr[-2000:]
    answers = map(json.loads, child.stdout.splitlines())
    return {
        cell: said
        for asked, given in zip(by_target.values(), answers, strict=True)
        for cell, said in zip(asked, given, strict=True)
    }


def compare(ours: LoadOutcome, theirs: dict[str, Any], checkpoint: Checkpoint) -> str:
    """Return `same words`, `same beginning` or `same devices`; else what differs, in more words."""
    if ours.failure is not None:
        said = theirs.get("error")
        if said is None:
            return f"torch loads it, and we said {ours.failure.message[:90]}"
        if not said.startswith(ours.failure.message):
            return f"torch says {said[:300]!r}, and we said {ours.failure.message[:300]!r}"
        return "same words" if said == ours.failure.message else "same beginning"
    if "error" in theirs:
        return f"torch says {theirs['error'][:200]!r}, and we said that it loads"
    for row, mine, real in zip(checkpoint.tensors, ours.tensors, theirs["devices"], strict=True):
        if real is not None and SAME_DEVICE.get(real, real) != mine:
            return f"{row.path} is on {real}, and we said {mine}"
    return "same devices"


class Answers(NamedTuple):
    results: dict[Cell, str]
    torch: dict[Cell, dict[str, Any]]
    ours: dict[Cell, LoadOutcome]
    opened: dict[str, Checkpoint]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return ask(tmp_path_factory.mktemp("made"))


def ask(folder: Path, targets: tuple[Profile, ...] = TARGETS, *, is_real: bool = False) -> Answers:
    """Fill the table; `benchmarks/simulate_on_gpu.py` does for a real machine."""
    genuine = {kind: tuple(str(CORPUS / name) for name in names) for kind, names in KINDS.items()}
    cells = list(cells_of(genuine | made(folder), targets))
    opened = {path: open_checkpoint(path) for path in {cell.path for cell in cells}}
    refusals = {path: refusal_of(found, judge(found)) for path, found in opened.items()}
    ours = {
        cell: simulate(
            opened[cell.path],
            replace(cell.target, evidence=here().evidence),  # whose torch plays them all
            LoadCall(
                map_location=MAPS[cell.map],
                weights_only=cell.weights_only,
                mmap=cell.mmap,
                refusal=refusals[cell.path],
            ),
        )
        for cell in cells
    }
    theirs = said_by_torch(cells, opened, is_real=is_real)
    results = {cell: compare(ours[cell], theirs[cell], opened[cell.path]) for cell in cells}
    return Answers(results, theirs, ours, opened)


AGREEING = {"same words", "same beginning", "same devices"}


# Why torch does something else, by what tells these cells from all others.
EXPLAINED: dict[str, Callable[[Cell, str], bool]] = {
    "Legacy views on the meta device: torch cannot cut a view out of a meta storage, and which storages are "
    "views is not kept when a file has been opened.": lambda cell, result: (
        cell.path.endswith("view_metadata_cpu.pt")
        and cell.map in {"'meta'", "torch.device('meta')"}
        and "Not available for 'meta' device type" in result
    ),
    "A generator's state mapped off the CPU: torch refuses it, but the played accelerators leave it on the "
    "CPU.": lambda cell, result: (
        cell.kind == "zip, generator" and result.startswith("torch loads it, and we said SystemError")
    ),
    "A tensor sent to a GPU number that is not there: the torch that plays has no CUDA, and says so instead "
    "of what CUDA says.": lambda cell, result: (
        bool(cell.target.count("cuda"))
        and result.startswith(f"torch says {no_gpu()!r}")
        and "CUDA error: invalid device ordinal" in result
    ),
}


def explanation(cell: Cell, result: str) -> str | None:
    return next((text for text, fits in EXPLAINED.items() if fits(cell, result)), None)


def test_every_cell_agrees_or_is_explained(answers: Answers) -> None:
    assert len(answers.results) > 5000
    differing = {cell: result for cell, result in answers.results.items() if result not in AGREEING}
    unexplained = {cell: result for cell, result in differing.items() if explanation(cell, result) is None}
    shown = Counter(f"{cell.kind} [{cell.map}] {result}" for cell, result in unexplained.items())
    assert not unexplained, "\n".join(f"{count} x {text}" for text, count in shown.most_common(40))
    assert {explanation(*item) for item in differing.items()} == set(EXPLAINED)  # none that is out of date
    assert len(differing) < len(answers.results) / 100


def test_the_storage_that_fails_first_is_the_one_that_torch_meets_first(answers: Answers) -> None:
    """torch restores one storage after the other: how many it got to tells which one failed."""
    compared = 0
    for cell, outcome in answers.ours.items():
        failure = outcome.failure
        if failure is None or not failure.device or "Attempting to deserialize" not in failure.message:
            continue
        keys = [row.key for row in answers.opened[cell.path].storages]
        assert answers.torch[cell]["restored"] == keys.index(failure.storage) + 1, cell
        compared += 1
    assert compared > 500


def test_every_device_is_landed_on(answers: Answers) -> None:
    """The comparison is not between files that end on the CPU all alike."""
    landed = Counter(device for outcome in answers.ours.values() for device in outcome.devices)
    wanted = ("cpu", "cuda:0", "cuda:1", "cuda:7", "mps", "xpu:0", "meta")
    assert min(landed[device] for device in wanted) > 20


def test_devices_are_looked_up_in_torch(answers: Answers) -> None:
    """Few tensors escape the child, which finds them by their keys."""
    found = [device for said in answers.torch.values() for device in said.get("devices", ())]
    assert sum(device is None for device in found) < len(found) / 20


def test_the_summary_is_the_documents(answers: Answers, request: pytest.FixtureRequest) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    written = f"{before}{BEGIN}\n\n{summary(answers)}\n\n{END}{rest.split(END)[1]}"
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(written, encoding="utf-8")
    assert written == DOCUMENT.read_text(encoding="utf-8"), "run pytest --update-golden and review"


def summary(answers: Answers) -> str:
    """Count cells by kind of file: how many fail and load, and how many agree."""
    heads = ("Kind of file", "Files", "Cells", "Load", "Fail", "Same words", "Same beginning", "Explained")
    rows = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    kinds = dict.fromkeys(cell.kind for cell in answers.results)
    for kind in (*kinds, None):
        cells = {cell: result for cell, result in answers.results.items() if kind in {None, cell.kind}}
        counts = Counter(result if result in AGREEING else "explained" for result in cells.values())
        loads = sum("error" not in answers.torch[cell] for cell in cells)
        figures = (
            *(len({cell.path for cell in cells}), len(cells), loads, len(cells) - loads),
            *(counts["same words"], counts["same beginning"], counts["explained"]),
        )
        rows.append(f"| {' | '.join((kind or '**all**', *(f'{figure:,}' for figure in figures)))} |")
    reasons = Counter(explanation(*item) for item in answers.results.items() if item[1] not in AGREEING)
    listed = [f"- {count:,}: {text}" for text, count in sorted(reasons.items(), key=lambda item: -item[1])]
    return "\n".join([*rows, "", "Explained differences:", "", *listed])
