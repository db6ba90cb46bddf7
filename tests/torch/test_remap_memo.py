"""Texts of the user that are equal to location tags, which torch's pickles store as one object."""

from __future__ import annotations

import pickletools
import tempfile
from pathlib import Path

import pytest
import torch

from tests.sweep import IS_SWEEP, put_through, table
from tests.torch.remapping import loaded, pickle_of, remap, tagged, unpickled

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

SAVED = [
    *(("zip", protocol) for protocol in (1, 2, 3, 4, 5)),
    *(("legacy", protocol) for protocol in (1, 2, 3, 4, 5)),
]
# The tags that Python keeps one object of; torch writes them from such constants.
SHARED = ["cpu", "mps", "cuda", "meta", "hpu"]


def weight(number: int) -> torch.Tensor:
    return torch.full((3,), float(number))


def trap(word: str, order: str) -> dict:
    """A word as key and as value, before the first tensor, between tensors and after the last one."""
    mine = {word: {"device": word, "list": [word, (word, word)]}, "other": {word}}
    if order == "tensors first":
        return {"w": weight(1), "v": [weight(2), mine, weight(3)], word: word}
    if order == "texts first":
        return {word: mine, "w": weight(1), "v": [word, weight(2)], "x": {word: weight(3)}}
    return {"w": weight(1), word: {word: weight(2)}, "x": weight(3), "end": mine}


ORDERS = ["tensors first", "texts first", "in turn"]


def save(value: object, path: Path, container: str, protocol: int, tag: str) -> None:
    with tagged(lambda storage: tag):
        torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=container == "zip")


def plain(value: object) -> object:
    """The value with tensors as lists, so that `==` compares it."""
    if isinstance(value, torch.Tensor):
        return "tensor", value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


TRAPS = [
    (container, protocol, tag, order)
    for turn, (container, protocol) in enumerate(SAVED)
    for number, order in enumerate(ORDERS)
    for tag in (SHARED if IS_SWEEP else [SHARED[(turn + number) % len(SHARED)]])
]


def test_words_of_the_user_survive(tmp_path: Path) -> None:
    def check(made: tuple[str, int, str, str]) -> None:
        container, protocol, tag, order = made
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "in.pt"
        value = trap(tag, order)
        save(value, path, container, protocol, tag)
        if protocol == 2:
            assert tag.encode() in pickle_of(path)
        for to in ("cpu", "mps", "cuda:11"):
            copy = remap(path, f"{tag}={to}")
            found, tags = loaded(copy)
            assert plain(found) == plain(value)
            assert set(tags) == {to}
            for pure in (False, True):
                assert unpickled(pickle_of(copy), pure=pure).keys() == value.keys()
            back, tags = loaded(remap(copy, f"{to}={tag}")) if tag != "meta" else (value, [])
            assert plain(back) == plain(value)
            assert set(tags) <= {tag}

    put_through(check, TRAPS)


def test_the_traps_are_set(tmp_path: Path) -> None:
    """A naive change of the definition would change the user's words: they are fetched from its slot."""
    save(trap("mps", "tensors first"), tmp_path / "a.pt", "zip", 2, "mps")
    save(trap("mps", "texts first"), tmp_path / "b.pt", "zip", 2, "mps")
    for name in ("a.pt", "b.pt"):
        written = [arg for _, arg, _ in pickletools.genops(pickle_of(tmp_path / name)) if arg == "mps"]
        assert len(written) == 1


def opcodes(path: Path) -> set[str]:
    return {opcode.name for opcode, _, _ in pickletools.genops(pickle_of(path))}


@table("protocol", [1, 2, 3])
def test_old_protocols_get_no_new_instructions(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "in.pt"
    for order in ORDERS:
        save(trap("cuda", order), path, "zip", protocol, "cuda")
        before = opcodes(path)
        for to in ("cpu", "mps", "cuda:11"):
            after = opcodes(remap(path, f"*={to}"))
            assert after <= before, (order, to)
            assert not after & {"POP", "FRAME", "STACK_GLOBAL", "MEMOIZE", "SHORT_BINUNICODE"}, (order, to)


@pytest.mark.parametrize(("protocol", "to"), [(4, "cpu"), (5, "cuda:11")])
def test_frames_are_exact_for_every_unpickler(tmp_path: Path, protocol: int, to: str) -> None:
    path = tmp_path / "in.pt"
    # A frame ends at 64 KB: long texts fill it sooner than tensors do.
    value = {f"{number:04000}": {"cuda": weight(number), "at": "cuda"} for number in range(60)}
    save(value, path, "zip", protocol, "cuda")
    data = pickle_of(remap(path, f"cuda={to}"))
    frames = [(pos, arg) for code, arg, pos in pickletools.genops(data) if code.name == "FRAME"]
    assert len(frames) > 2
    ends = [start + 9 + nbytes for start, nbytes in frames]
    assert ends == [*(start for start, _ in frames[1:]), data.rindex(b".") + 1]
    for pure in (False, True):
        found = unpickled(data, pure=pure)
        assert [item["at"] for item in found.values()] == ["cuda"] * 60
        assert {item["cuda"].args[0][3] for item in found.values()} == {to}
