"""What our reader takes out of archives that lie, beside what torch's own reader takes out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import find_obstacle, is_ambiguous
from inspector.safety.verdict import judge
from tests.hostile.cases import CASES
from tests.sweep import tries
from tests.torch.zip_mutations import archives
from tests.torch.zip_reader import Answer, ask_torch

pytestmark = pytest.mark.torch
COUNT, SEED = tries(250, 1500), 1


def disagreement(path: Path, torch: Answer) -> tuple[str, str]:
    """How the two answers go together, in a word, and what is wrong with that; empty where nothing is."""
    try:
        container = read_container(str(path))
        checkpoint = build_checkpoint(container)
    except CheckpointError as error:
        return ("both refuse" if "pickle" not in torch else "only we refuse"), "" if str(
            error
        ) else "no words"
    if is_ambiguous(checkpoint):
        verdict = judge(checkpoint)
        told = verdict.answer.kind == "ambiguous" or verdict.archive is not None
        safe = verdict.weights_only or not told
        return "ambiguous", "ambiguous, and safe all the same" if safe else ""
    if "error" in torch:
        obstacle = find_obstacle(checkpoint)
        return "both refuse", "" if obstacle else f"torch refuses it: {torch['error'][:100]}"
    return "both read", "; ".join(_differences(path, container, checkpoint, torch))


def _differences(path: Path, container: Container, checkpoint: Checkpoint, torch: Answer) -> Iterator[str]:
    if bytes.fromhex(torch["pickle"]) != container.stream.data:
        yield f"torch runs another pickle: {bytes.fromhex(torch['pickle'])[:40]!r}"
    data = path.read_bytes()
    readable = True
    for key in container.storage_ids.keys() & torch["storages"].keys():  # a changed pickle asks for others
        said, place = torch["storages"][key], container.stored.get(key)
        readable = readable and not said.startswith("error")
        if said.startswith("error") != (place is None):
            yield f"storage {key}: torch {said[:60]}, we {place}"
        elif place is not None and place.offset is not None:
            ours = data[place.offset : place.offset + place.nbytes]
            if ours.hex() != said:
                yield f"storage {key}: other bytes"
    obstacle = find_obstacle(checkpoint)
    if readable and obstacle is not None and all(row.expected_nbytes is None for row in checkpoint.storages):
        yield f"torch reads it, we say {obstacle.message}"


def test_no_file_is_read_otherwise_than_by_torch(tmp_path: Path) -> None:
    for name, data in archives(COUNT, SEED):
        (tmp_path / name).write_bytes(data)
    answers = ask_torch(tmp_path)
    assert len(answers) == COUNT
    counts: Counter[str] = Counter()
    wrong = {}
    for name, answer in answers.items():
        word, why = disagreement(tmp_path / name, answer)
        counts[word] += 1
        if why:
            wrong[name] = why
    assert wrong == {}
    # The files are of all kinds, so that none of the answers is one for all of them.
    assert min(counts[word] for word in ("both read", "both refuse", "ambiguous")) > COUNT // 20, counts


def test_hostile_zips_are_judged_by_what_torch_would_run(tmp_path: Path) -> None:
    zips = [case for case in CASES if case.group in {18, 19, 21}]  # bombs take their time
    for number, case in enumerate(zips):
        data = case.build()
        if data.startswith(b"PK\3\4"):  # others are told by the legacy reader
            (tmp_path / f"{number:03}").write_bytes(data)
    for name, answer in ask_torch(tmp_path).items():
        number = int(name)
        word, why = disagreement(tmp_path / f"{number:03}", answer)
        assert why == "", str(zips[number])
        evil = b"system" in bytes.fromhex(answer.get("pickle", ""))
        if evil and word != "only we refuse":
            assert judge(open_checkpoint(str(tmp_path / f"{number:03}"))).verdict == "dangerous"
