"""Tar checkpoints of torch 0.1, which no torch writes any more and every torch still reads."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.overriding import override
from inspector.remap.export import export_copy
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.rules import parse_rule
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from tests.builders import tars
from tests.builders.pickles import dict_, proto, stream, text
from tests.sweep import tries

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    # From torch, which extracts them; Python 3.12 and 3.13 say so.
    pytest.mark.filterwarnings("ignore:Python 3.14 will, by default, filter:DeprecationWarning"),
]
few = settings(
    max_examples=tries(20, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

TAGS = ("cpu", "cuda:0", "cuda:1", "cuda:11", "cuda")
TYPES = {"Float": torch.float32, "Int": torch.int32}


class Made(NamedTuple):
    data: bytes
    tags: list[str]

    @override
    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes on {self.tags}>"


@st.composite
def files(draw: st.DrawFn) -> Made:
    storages, views, tensors, seen = [], [], [], []
    for number in range(draw(st.integers(1, 5))):
        numel = draw(st.integers(0, 40))
        kind = draw(st.sampled_from(sorted(TYPES)))
        data = struct.pack(f"<{numel}i", *range(100 * number, 100 * number + numel))
        storages.append(tars.Storage(number + 1, draw(st.sampled_from(TAGS)), data, f"torch.{kind}Storage"))
        seen.append((number + 1, numel))
        if draw(st.booleans()):
            start = draw(st.integers(0, numel))
            views.append((number + 101, number + 1, start, draw(st.integers(0, numel - start))))
            seen.append((views[-1][0], views[-1][3]))
    entries = [(text("cpu"), text("cuda:0"))]
    for number in range(draw(st.integers(0, 6))):
        key, numel = draw(st.sampled_from(seen))
        rows = draw(st.integers(0, 3))
        shape = (rows, numel // rows) if rows else (numel,)
        stride = (shape[-1], 1) if rows else (1,)
        tensors.append(tars.Tensor(number + 1001, key, shape, stride))
        entries.append((text(f"t{number}"), tars.reference(number + 1001)))
    root = stream(proto(), dict_(*entries))
    mtime = draw(st.sampled_from([0, tars.WRITTEN]))
    data = tars.checkpoint(root, storages, tensors, views, mtime=mtime, protocol=draw(st.integers(1, 4)))
    return Made(data, [one.location for one in storages])


def load(path: Path) -> tuple[dict[str, object], list[str]]:
    tags: list[str] = []

    def note(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        tags.append(tag)
        return storage

    found = torch.load(path, weights_only=False, map_location=note)
    return plain(found), tags


def plain(found: dict[str, object]) -> dict[str, object]:
    return {key: value.tolist() if torch.is_tensor(value) else value for key, value in found.items()}


def planned(path: Path, *rules: str) -> Plan:
    return plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules])


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "in.pth"
        path.write_bytes(data)
        return path

    return write


Write = Callable[[bytes], Path]


@few
@given(made=files())
def test_rows_are_what_torch_loads(write: Write, made: Made) -> None:
    path = write(made.data)
    found = torch.load(path, weights_only=False, map_location="cpu")
    rows = open_checkpoint(str(path)).tensors
    assert [row.path for row in rows] == [key for key in found if key != "cpu"]
    for row in rows:
        tensor = found[row.path]
        assert (row.shape, row.stride) == (tuple(tensor.shape), tensor.stride())
        assert row.dtype == str(tensor.dtype).removeprefix("torch.")
        assert row.problem is None


@few
@given(
    made=files(), rules=st.lists(st.sampled_from(["*=cpu", "cuda:*=cuda:3", "cpu=cuda:11", "cuda:1=cuda:0"]))
)
def test_copies_differ_in_their_tags_alone(write: Write, made: Made, rules: list[str]) -> None:
    path = write(made.data)
    plan = planned(path, *rules)
    copy = path.with_name("out.pth")
    export_copy(str(path), copy, plan, overwrite=True, verify="full")
    values, tags = load(path)
    assert tags == made.tags
    values_now, tags_now = load(copy)
    assert values_now == values
    assert tags_now == [plan.by_device(tag) or tag for tag in tags]
    if not rules:
        assert copy.read_bytes() == made.data


@few
@given(made=files())
def test_changed_in_place_and_given_back(write: Write, made: Made) -> None:
    path = write(made.data)
    plan = planned(path, "cuda:*=cpu")
    if plan.by_device("cuda") and "cuda" in made.tags:  # a byte longer than `cpu`, which nothing can fill
        with pytest.raises(ExportError, match="everything behind them would move"):
            patch_in_place(str(path), plan)
        assert path.read_bytes() == made.data
        return
    done = patch_in_place(str(path), plan)
    assert load(path)[1] == ["cpu"] * len(made.tags)
    if done.record is not None:
        undo_patch(str(path))
    assert path.read_bytes() == made.data


@few
@given(made=files(), form=st.sampled_from([Form(compact=True), Form(container="legacy")]))
def test_other_containers_hold_the_same(write: Write, made: Made, form: Form) -> None:
    path = write(made.data)
    copy = path.with_name("out.pth")
    export_form(str(path), copy, planned(path, "cuda:*=cpu"), form, overwrite=True)
    values, _ = load(path)
    found = torch.load(copy, weights_only=True)  # which no tar file can be loaded with
    assert plain(found) == values


def test_weights_only_is_refused_as_foretold(write: Write) -> None:
    root = stream(proto(), dict_((text("w"), tars.reference(2))))
    path = write(tars.checkpoint(root, [tars.Storage(1, "cpu", bytes(8))], [tars.Tensor(2, 1, (2,), (1,))]))
    with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
        torch.load(path, weights_only=True)
    checkpoint = open_checkpoint(str(path))
    verdict = judge(checkpoint)
    assert (verdict.verdict, verdict.weights_only, verdict.to_allow) == ("runs-code", False, ())
    assert verdict.answer.kind == "errors"
    assert "does not read tar files of torch 0.1" in verdict.answer.sentence
    code = render(checkpoint, style="plain", target=CPU_ONLY)
    assert "weights_only=False" in code


def test_attack_is_told_before_the_format(write: Write) -> None:
    evil = stream(proto(), b"cposix\nsystem\n" + text("id") + b"\x85R")
    path = write(
        tars.archive({"pickle": evil, "tensors": b"\x80\x02K\x00.", "storages": b"\x80\x02K\x00.\x80\x02]."})
    )
    verdict = judge(open_checkpoint(str(path)))
    assert verdict.verdict == "dangerous"
    assert verdict.answer.kind == "never"
