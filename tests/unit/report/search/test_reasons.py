from __future__ import annotations

import pytest

from inspector.errors import QueryError
from inspector.records import replace
from inspector.report.query import refuse_mistakes, searchable, why_nothing
from tests.unit.report.rows import checkpoint, is_harmless, tensor, value

ROWS = searchable(
    checkpoint(
        tensor("m", "a.weight", device="cuda:0", shape=(8, 4)),
        tensor("m", "kernel:0", dtype="bfloat16"),
        tensor("o", "exp_avg", role="optimizer", storage="0"),
        value("._modules", "._buffers", text="{}"),
    )
)
KNOWN = "device:, dtype:, role:, shape:, storage:, path:, is:, finding:, size>, params>"
MISTAKES = {
    "devise:cuda": ("devise: is no field of the search: did you mean device:?", "device:cuda"),
    "weight dtpye:bf16": ("dtpye: is no field of the search: did you mean dtype:?", "weight dtype:bf16"),
    "cuda:1": ("cuda: is no field of the search: did you mean device:cuda:1?", "device:cuda:1"),
    "sise>1MB": ("sise> is no field of the search: did you mean size>?", "size>1mb"),
    "size>big": ("size>big is no comparison: write one such as size>10MB.", ""),
    "params:1M": ("params:1M is no comparison: write one such as params>1M.", ""),
    "xyzzy:1": (f"xyzzy: is no field of the search; fields are {KNOWN}.", ""),
    "role:foo": (
        "There is no role foo; roles are parameter, buffer, optimizer, scheduler, rng, ema, other.",
        "",
    ),
    "dtype:flot32": ("There is no dtype flot32; this file has float32, bfloat16.", "dtype:float32"),
    "dtype:qqq": ("There is no dtype qqq; this file has float32, bfloat16.", ""),
    "nan:": ("nan: needs a scan of all tensors first.", ""),
    "-dead-rows:": ("dead-rows: needs a scan of all tensors first.", ""),
}
HONEST = {
    "nothing": "No path has nothing in it.",
    '"devise:x"': 'No path has "devise:x" in it.',
    "device:mps": "No tensor was saved on mps; this file has cpu, cuda:0.",
    "dtype:float16": "No tensor has the dtype float16; this file has float32, bfloat16.",
    "role:ema": "No tensor has the role ema; this file has parameter, optimizer.",
    "shape:99": "No tensor has a shape with 99; the most usual are 4, 8 \u00d7 4.",
    "storage:7": "No tensor views the storage 7.",
    "size>1GB": "No tensor has a number of bytes with size>1GB.",
    "params>1M": "No tensor has a number of parameters with params>1M.",
    "-*": "-* leaves out every row.",
    "a.weight dtype:bf16": "Each of these words finds rows, but no row has all of them.",
    "_buffers": "The tree shows no row with _buffers.",
}


def test_a_mistake_is_named_with_what_was_meant() -> None:
    found = {text: why_nothing(text, ROWS) for text in MISTAKES}
    assert {text: (reason.words, reason.instead) for text, reason in found.items()} == MISTAKES
    assert all(reason.is_mistake for reason in found.values())
    for text, (words, _) in MISTAKES.items():
        with pytest.raises(QueryError) as refused:
            refuse_mistakes(text, ROWS)
        assert refused.value.what == words.rstrip(".")


def test_what_is_just_not_there_is_no_mistake() -> None:
    assert {text: why_nothing(text, ROWS).words for text in HONEST} == HONEST
    for text in (*HONEST, "kernel:0", "", "weight"):
        assert not why_nothing(text, ROWS).is_mistake
        refuse_mistakes(text, ROWS)


def test_a_field_with_nothing_behind_it_is_refused_where_nobody_types_on() -> None:
    with pytest.raises(QueryError, match="device: has nothing behind it"):
        refuse_mistakes("weight device:", ROWS)


def test_after_a_scan_there_is_nothing_odd_or_there_is() -> None:
    scanned = replace(ROWS, odd={"nan": frozenset({0})})
    assert why_nothing("inf:", scanned).words == "The scan of all tensors found nothing for inf:."
    refuse_mistakes("nan: inf:", scanned)


def test_a_file_of_many_dtypes_and_one_of_none() -> None:
    many = searchable(checkpoint(*(tensor(f"t{at}", device=f"cuda:{at}") for at in range(9))))
    assert why_nothing("device:mps", many).words.endswith("cuda:3, cuda:4 and others.")
    assert why_nothing("device:mps", searchable(checkpoint())).words.endswith("this file has no tensors.")


def test_nothing_invisible_is_repeated() -> None:
    evil = "\u202e\x1b[31m"
    rows = searchable(checkpoint(tensor("a", device=evil, dtype=evil)))
    for text in (evil, f"devise:{evil}", f"device:x{evil}", f"dtype:{evil}x", f"role:{evil}"):
        assert is_harmless(why_nothing(text, rows).words)
