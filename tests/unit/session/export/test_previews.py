from __future__ import annotations

import pytest

from inspector.model.build import open_checkpoint
from inspector.remap.convert.forms import Form, LeftOut
from inspector.resources import demo_path
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.export.previews import left_out_lines, with_preview
from tests.unit.report.rows import checkpoint, storage, tensor

DEMO = open_checkpoint(str(demo_path()))
DRAFT = ExportDraft(wish=ExportWish(), kinds=(), destination="/x", summary=("1 tensor moves", "All stays."))


def test_the_weights_alone_are_a_part_of_the_file() -> None:
    draft = with_preview(DRAFT, DEMO, Form(only_weights=True))
    assert draft.summary[0].endswith(f"tensors of {len(DEMO.tensors):,} are written")
    assert draft.summary[1] == "The model is model"
    assert any("optimizer" in line for line in draft.warnings)
    assert draft.can_cast
    assert draft.can_average
    assert "the file has 788 KB" in draft.size


def test_a_cast_says_what_it_costs() -> None:
    draft = with_preview(DRAFT, DEMO, Form(only_weights=True, cast="bfloat16"))
    assert "Float32 becomes bfloat16, which keeps fewer digits" in draft.summary


def test_a_file_without_some_of_its_parts_still_changes_devices() -> None:
    draft = with_preview(DRAFT, DEMO, Form(exclude=("optimizer/**",)))
    assert draft.summary[-1] == "1 tensor moves"
    assert not draft.can_cast
    assert not draft.can_average


def test_what_cannot_be_had_is_refused_in_words() -> None:
    draft = with_preview(DRAFT, DEMO, Form(shape="safetensors", container="legacy"))
    assert "container of its own" in draft.refusal
    assert draft.summary == ()
    assert draft.size == ""


@pytest.mark.parametrize("count", [3, 9])
def test_what_is_left_out_is_named_the_largest_first(count: int) -> None:
    rows = tuple(LeftOut(f"p{i}\u202e", "why", i, i * 1000) for i in range(count))
    lines = left_out_lines(rows, (("b", "a"),))
    assert lines[0].startswith(f"Left out: p{count - 1}\\u202e ({count - 1} tensors, ")
    if count > 4:
        assert lines[4] == "Left out as well: 5 more entries, 10.0 KB."
    else:
        assert lines[2] == "Left out: p0\\u202e (no tensors), why."
    assert lines[-1] == "Tied weights are written once: b can be had from their twins."


def test_a_prefix_that_goes_is_named() -> None:
    tensors = tensor("module.a.weight", storage="0"), tensor("module.b.weight", storage="1")
    rows = checkpoint(*tensors, storage("0"), storage("1"))
    draft = with_preview(DRAFT, rows, Form(only_weights=True))
    assert "The prefix module. is removed from every name" in draft.summary
