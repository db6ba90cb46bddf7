"""What `check` answers for target words x files, against torch on a machine that is played.

The words are read as people type them; what they mean stands beside them in plain numbers. torch itself says
whether a file loads there and with which error, and runs the first line that `check` offers: what that loads
has to be where it was wanted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.model.roles.devices import is_accelerator
from tests.torch.remapping import tagged
from tests.torch.simulating import Machine, device_of

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


class Meant(NamedTuple):
    """What a word means: numbers of devices, the device that is wanted, and where things go."""

    cuda: int = 0
    xpu: int = 0
    mps: int = 0
    wanted: str | None = None
    destination: str = "cuda:0"


WORDS = {
    "cpu": Meant(destination="cpu"),
    "mps": Meant(mps=1, destination="mps"),
    "xpu": Meant(xpu=1, destination="xpu:0"),
    "xpu:1": Meant(xpu=2, wanted="xpu:1", destination="xpu:1"),
    "rocm": Meant(cuda=1),
    "cuda": Meant(cuda=1),
    "cuda@24gb": Meant(cuda=1),
    "cuda:0": Meant(cuda=1, wanted="cuda:0"),
    "cuda:1": Meant(cuda=2, wanted="cuda:1", destination="cuda:1"),
    "cuda:3": Meant(cuda=4, wanted="cuda:3", destination="cuda:3"),
    "2xcuda": Meant(cuda=2),
    "cuda@2x80gb": Meant(cuda=2),
    "2xcuda:1": Meant(cuda=2, wanted="cuda:1", destination="cuda:1"),
    "4xcuda": Meant(cuda=4),
    "4xcuda:1": Meant(cuda=4, wanted="cuda:1", destination="cuda:1"),
    "4xcuda@cpu": Meant(cuda=4, wanted="cpu", destination="cpu"),
}
# The tags of the storages of a file, in turn; the first of two is by far the larger.
FILES = {
    "cpu": ("cpu",),
    "cuda:0": ("cuda:0",),
    "cuda:1": ("cuda:1",),
    "cuda:3": ("cuda:3",),
    "mps": ("mps",),
    "xpu": ("xpu:0",),
    "training": ("cuda:0", "cpu"),
    "two GPUs": ("cuda:0", "cuda:1"),
    "all kinds": ("cuda:1", "mps", "cpu"),
}
# What `check` has to say first of all, by word and file; all that is not listed loads, and nothing is to be
# said about its devices. `!` stops the load, `>` lands elsewhere than is wanted.
SAID = {
    "cpu": "cuda:0! cuda:1! cuda:3! mps! xpu! training! two GPUs! all kinds!",
    "mps": "cuda:0! cuda:1! cuda:3! xpu! training! two GPUs! all kinds!",
    "xpu": "cuda:0! cuda:1! cuda:3! mps! training! two GPUs! all kinds!",
    "xpu:1": "cuda:0! cuda:1! cuda:3! mps! xpu> training! two GPUs! all kinds!",
    "rocm": "cuda:1! cuda:3! mps! xpu! two GPUs! all kinds!",
    "cuda": "cuda:1! cuda:3! mps! xpu! two GPUs! all kinds!",
    "cuda@24gb": "cuda:1! cuda:3! mps! xpu! two GPUs! all kinds!",
    "cuda:0": "cuda:1! cuda:3! mps! xpu! two GPUs! all kinds!",
    "cuda:1": "cuda:0> cuda:3! mps! xpu! training> two GPUs> all kinds!",
    "cuda:3": "cuda:0> cuda:1> mps! xpu! training> two GPUs> all kinds!",
    "2xcuda": "cuda:3! mps! xpu! all kinds!",
    "cuda@2x80gb": "cuda:3! mps! xpu! all kinds!",
    "2xcuda:1": "cuda:0> cuda:3! mps! xpu! training> two GPUs> all kinds!",
    "4xcuda": "mps! xpu! all kinds!",
    "4xcuda:1": "cuda:0> cuda:3> mps! xpu! training> two GPUs> all kinds!",
    "4xcuda@cpu": "cuda:0> cuda:1> cuda:3> mps! xpu! training> two GPUs> all kinds!",
}
ABOUT_DEVICES = {
    "cuda-unavailable",
    "cuda-index-out-of-range",
    "mps-unavailable",
    "xpu-unavailable",
    "unknown-device",
    "not-on-wanted-device",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("saved"), {}
    for name, tags in FILES.items():
        made[name] = folder / f"{name.replace(':', '').replace(' ', '_')}.pt"
        sizes = [64 >> place for place in range(len(tags))]
        by_size = dict(zip([4 * size for size in sizes], tags, strict=True))
        with tagged(lambda storage, by_size=by_size: by_size[storage.nbytes()]):
            torch.save({f"t{place}": torch.ones(size) for place, size in enumerate(sizes)}, made[name])
    return made


def played(meant: Meant, line: str, path: Path) -> tuple[str | None, list[str | None]]:
    """Run a line on the machine: the error, or where the tensors are."""
    machine = Machine(cuda=meant.cuda, xpu=meant.xpu, mps=bool(meant.mps))
    torch.serialization._serialization_tls.map_location = None  # torch leaves it behind after an error
    try:
        with machine.played():
            found: Any = eval(line, {"torch": torch})
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return f"{type(error).__name__}: {error}", []
    rows = open_checkpoint(str(path)).tensors
    return None, [device_of(machine, found, list(row.keys)) for row in rows]


def wrong_about(word: str, name: str, path: Path, answer: dict[str, Any]) -> str:
    meant, saved = WORDS[word], FILES[name]
    target = answer["target"]
    counts = tuple(sum(row.startswith(kind) for row in target["devices"]) for kind in ("cuda", "xpu", "mps"))
    if (*counts, target["wanted"], target["destination"]) != meant:
        return f"it was understood as {target}"
    error, landed = played(meant, f"torch.load({str(path)!r})", path)
    if answer["error"] != error or answer["loads"] != (error is None):
        return f"torch says {error}, and check {answer['error']}"
    said = [row for row in answer["findings"] if row["id"] in ABOUT_DEVICES]
    mark = "!" if error is not None else ">" if said else ""
    if mark != next((sign for sign in "!>" if f" {name}{sign}" in f" {SAID[word]}"), ""):
        return f"it says {mark or 'nothing'}: {[row['title'] for row in said]}"
    if not said:
        return "" if landed == list(saved) else f"it lands on {landed}"
    fix = said[0]["fix"]
    line = fix["lines"][0]
    error, landed = played(meant, line["text"], path)
    # One rule can name several types of devices only along with the CPU.
    is_all = fix["map"].startswith("*=")
    expected = [meant.destination if is_all else _expected(tag, meant) for tag in saved]
    return (
        "" if error is None and landed == expected else f"{line['text']}: {error or landed}, not {expected}"
    )


def _expected(tag: str, meant: Meant) -> str:
    """Where a tensor has to be after the first line: what exists stays, unless one device is wanted."""
    counts = {"cuda": meant.cuda, "xpu": meant.xpu, "mps": meant.mps}
    kind, _, index = tag.partition(":")
    if not is_accelerator(tag) or (meant.wanted is None and counts[kind] > int(index or 0)):
        return tag
    return meant.destination


def test_every_word_and_file_gets_the_right_answer(cli, files: dict[str, Path]) -> None:
    wrong = {}
    for word in WORDS:
        for name, path in files.items():
            answer = cli("check", path, "--target", word, "--json")
            document = json.loads(answer.out)
            found = wrong_about(word, name, path, document) or (
                "" if answer.code == (not document["loads"]) else f"exit code {answer.code}"
            )
            if found:
                wrong[word, name] = found
    assert len(WORDS) * len(files) > 100
    assert not wrong, "\n".join(f"--target {word} {name}: {text}" for (word, name), text in wrong.items())
