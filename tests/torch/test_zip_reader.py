"""What torch's own reader makes of archives that lie, beside ours, and of large ones that we lay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import find_obstacle, is_ambiguous
from inspector.remap.zip_layout import Record, write_zip
from inspector.safety.verdict import judge
from tests.hostile.cases import CASES
from tests.sweep import table, tries
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


GIB = 1 << 30


def write(path: Path, sizes: dict[str, int], alignment: int) -> dict[str, int]:
    """Lay out an archive; return where the contents of each record start."""
    places = {}
    with path.open("wb") as file:

        def skip(name: str) -> int:
            places[name] = file.tell()
            if name == "version":
                file.write(b"3\n")
            file.seek(places[name] + sizes[name])
            return 0

        rows = [Record(f"a/{name}", nbytes, nbytes, partial(skip, name)) for name, nbytes in sizes.items()]
        write_zip(rows, alignment, file.write)
    return places


@table("alignment", [64, 4096])
@table("large", [GIB, 4 * GIB - 1, 4 * GIB, 5 * GIB])
def test_torch_finds_and_computes_every_place(tmp_path: Path, large: int, alignment: int) -> None:
    sizes = {
        "data.pkl": 100,
        "data/0": large,
        "data/1": 7,
        "data/2": large,
        "data/3": 0,
        "data/4": 9,
        "version": 2,
    }
    path = tmp_path / "large.pt"
    places = write(path, sizes, alignment)
    reader = torch._C.PyTorchFileReader(str(path))
    assert set(reader.get_all_records()) == set(sizes)
    assert {name: reader.get_record_offset(name) for name in sizes} == places
    # What `calculate_storage_offsets` does: from the end of one record to the contents of the next.
    for name, following in pairwise(sizes):
        start = reader.get_record_header_offset(following)
        assert start == places[name] + sizes[name] + descriptor(
            sizes[name], reader.get_record_header_offset(name)
        )
        computed = reader.get_record_offset_no_read(start, following, sizes[following], alignment)
        assert computed == places[following]


def descriptor(nbytes: int, start: int) -> int:
    """What torch's `_get_offset` reckons with behind a record."""
    if not nbytes:
        return 0
    return 24 if max(nbytes, start) >= 0xFFFFFFFF else 16
