"""Whatever torch saves, our remap and torch's `map_location` agree on every tensor's device and bytes."""

from __future__ import annotations

import pickletools
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.rules import Rule, Rules
from tests.sweep import tries
from tests.torch.remapping import loaded, pickle_of, tagged, unpickled
from tests.torch.remapping import remap as write_copy
from tests.torch.sameness import assert_same

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

DEVICES = ["cpu", "cuda", "mps", "cuda:0", "cuda:1", "xpu:3"]
DESTINATIONS = ["cpu", "mps", "cuda:0", "cuda:1", "cuda:127"]
WORDS = [*DEVICES, "weight", "bias", "state", "a/b"]
DTYPES = [
    torch.float32,
    torch.int32,
    torch.int64,
    torch.bfloat16,
    torch.bool,
    torch.complex64,
    torch.float8_e5m2,
]


class Saved:
    """Something that torch saves, with the device that it shall say of each storage."""

    def __init__(self, value: Any, places: dict[int, str], *, new: bool, protocol: int) -> None:
        self.value = value
        self.places = places
        self.new = new
        self.protocol = protocol

    def write(self, path: Path) -> None:
        with tagged(lambda storage: self.places.get(storage.data_ptr(), "cpu")):
            torch.save(
                self.value, path, pickle_protocol=self.protocol, _use_new_zipfile_serialization=self.new
            )


def storage_of(numel: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    data = torch.randint(0, 2, (numel * dtype.itemsize,), dtype=torch.uint8, generator=generator)
    return data.view(dtype)


@st.composite
def saves(draw: st.DrawFn) -> Saved:
    new = draw(st.booleans())
    dtypes = DTYPES if new else DTYPES[:-1]  # torch cannot load what it saves of the last in legacy files
    storages = [
        storage_of(draw(st.integers(1, 40)), draw(st.sampled_from(dtypes)), seed)
        for seed in range(draw(st.integers(1, 4)))
    ]
    places = {storage.data_ptr(): draw(st.sampled_from(DEVICES)) for storage in storages}
    views = st.builds(view_of, st.sampled_from(storages), st.integers(0, 3), st.integers(1, 3))
    leaves = views | st.sampled_from(WORDS) | st.integers(0, 9) | st.sampled_from(DEVICES).map(torch.device)
    nested = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(WORDS) | st.integers(0, 3), inner, max_size=4),
        ),
        max_leaves=8,
    )
    value = {"first": draw(views), "more": draw(nested), draw(st.sampled_from(WORDS)): draw(nested)}
    return Saved(value, places, new=new, protocol=draw(st.sampled_from([2, 2, 3, 4, 5])))


def view_of(storage: torch.Tensor, offset: int, step: int) -> torch.Tensor:
    view = storage[min(offset, len(storage) - 1) :: step]
    return (
        torch.nn.Parameter(view, requires_grad=step == 2)
        if view.dtype.is_floating_point and step > 1
        else view
    )


def rules() -> st.SearchStrategy[list[Rule]]:
    froms = st.sampled_from([*DEVICES, "*", "cuda:*"])
    return st.lists(st.builds(Rule, device=froms, to=st.sampled_from(DESTINATIONS)), min_size=1, max_size=3)


def remap(path: Path, rules: list[Rule]) -> tuple[Path, Plan]:
    plan = plan_remap(open_checkpoint(str(path)), rules, move_all=True)
    destination = path.with_name(f"{len(list(path.parent.iterdir()))}.pt")
    export_copy(str(path), destination, plan)
    return destination, plan


SETTINGS = settings(max_examples=tries(15, 40), deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(saved=saves(), rules=rules())
def test_we_agree_with_map_location(saved: Saved, rules: list[Rule]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        saved.write(path)
        before, tags = loaded(path)
        copy, _ = remap(path, rules)
        after, moved = loaded(copy)
        assert moved == [Rules(rules).by_device(tag) or tag for tag in tags]
        assert_same(before, after)
        rows = open_checkpoint(str(copy)).storages
        assert {row.device for row in rows} == set(moved)


@SETTINGS
@given(saved=saves(), device=st.sampled_from(DEVICES))
def test_there_and_back_is_the_identity(saved: Saved, device: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        saved.write(path)
        there, _ = remap(path, [Rule(device=device, to="hpu:77")])
        back, _ = remap(there, [Rule(device="hpu:77", to=device)])
        before, tags = loaded(path)
        after, again = loaded(back)
        assert again == tags
        assert_same(before, after)
        assert open_checkpoint(str(back)).tensors == open_checkpoint(str(path)).tensors
        copy, plan = remap(path, [Rule(device="hpu:77", to="cpu")])
        assert plan.is_empty
        assert copy.read_bytes() == path.read_bytes()


@SETTINGS
@given(
    saved=saves(), pattern=st.sampled_from(["first", "more/**", "*", "**"]), to=st.sampled_from(DESTINATIONS)
)
def test_a_branch_moves_and_the_rest_stays(saved: Saved, pattern: str, to: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        saved.write(path)
        original = open_checkpoint(str(path))
        rule = Rule(path=pattern, to=to)
        try:
            copy, _ = remap(path, [rule])
        except PlanError:  # tensors within and outside of the branch share their bytes
            shared = [row.storage for row in original.tensors]
            assert len(set(shared)) < len(shared)
            return
        for was, row in zip(original.tensors, open_checkpoint(str(copy)).tensors, strict=True):
            named = any(
                other.storage == was.storage and rule.matches("", [other.path]) for other in original.tensors
            )
            assert row.device == (to if named else was.device)
        assert_same(loaded(path)[0], loaded(copy)[0])


@pytest.mark.parametrize(("protocol", "to"), [(4, "cpu"), (5, "cuda:11")])
def test_frames_are_exact_for_every_unpickler(tmp_path: Path, protocol: int, to: str) -> None:
    """A frame ends at 64 KB: long texts fill it sooner than tensors do."""
    path = tmp_path / "in.pt"
    value = {f"{number:04000}": {"cuda": torch.full((3,), number), "at": "cuda"} for number in range(60)}
    with tagged(lambda _: "cuda"):
        torch.save(value, path, pickle_protocol=protocol)
    data = pickle_of(write_copy(path, f"cuda={to}"))
    frames = [(pos, arg) for code, arg, pos in pickletools.genops(data) if code.name == "FRAME"]
    assert len(frames) > 2
    ends = [start + 9 + nbytes for start, nbytes in frames]
    assert ends == [*(start for start, _ in frames[1:]), data.rindex(b".") + 1]
    for pure in (False, True):
        found = unpickled(data, pure=pure)
        assert [item["at"] for item in found.values()] == ["cuda"] * 60
        assert {item["cuda"].args[0][3] for item in found.values()} == {to}
