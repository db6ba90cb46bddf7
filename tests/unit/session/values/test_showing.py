from __future__ import annotations

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.operations import Job
from inspector.session.present.compose import ask
from inspector.session.state import State
from inspector.session.values.page import Picture, ValuesPage
from inspector.session.values.showing import (
    SAVE,
    SCAN,
    STATISTICS,
    forms_of,
    picture_note,
    saved_name,
    slice_shape,
    sparks_of,
)
from inspector.values.statistics import Oddity, Scan, Scanned
from tests.unit.session.documents import document_of
from tests.unit.values.rows import checkpoint, stored, tensor

DOCUMENT = document_of(checkpoint(tensor("a"), tensor("b\x1b", device="meta"), stored()))
READY = State(phase="ready", path="/a.pt", document=DOCUMENT, selected=DOCUMENT.tree.tensor_nodes[0])


def with_job(kind: str, **fields: object) -> State:
    return READY.with_job(Job(kind=kind, about="/a.pt", progress=Progress(), **fields))


def values_page(state: State) -> ValuesPage:
    return ask(state, "values")


def test_a_tensor_without_values_says_why() -> None:
    page = values_page(replace(READY, selected=DOCUMENT.tree.tensor_nodes[1]))
    assert page.title == "b\\u001b"
    assert page.refusal == "It was saved from the meta device, which keeps no values."
    assert values_page(replace(READY, selected=None)).row is None
    assert values_page(replace(READY, selected=0)).row is None


def test_how_work_ended_is_said() -> None:
    assert values_page(with_job(STATISTICS)).progress is not None
    assert values_page(with_job(STATISTICS, status="cancelled")).error == "Cancelled."
    failed = values_page(with_job(STATISTICS, status="failed", error=KeyError("x")))
    assert failed.error == "Unexpected KeyError: 'x'"
    assert values_page(with_job(SAVE)).saved == "Saving \u2026"
    assert values_page(with_job(SAVE, status="done", result="/b.npy")).saved == "Saved as /b.npy."


def test_a_scan_lists_the_odd_before_the_unread_and_counts_the_rest() -> None:
    tensors = (
        Scanned(row=1, statistics=None, why="no"),
        Scanned(row=0, statistics=None, oddities=(Oddity.ZERO,), spark=(1,)),
    )
    page = values_page(with_job(SCAN, status="done", result=Scan(tensors=tensors, nbytes=0))).scan
    assert [row.path for row in page.rows] == ["a", "b\\u001b"]
    assert (page.more, page.is_odd) == (0, True)
    assert values_page(with_job(SCAN)).scan.progress is not None
    assert values_page(with_job(SCAN, status="cancelled")).scan.sentence == "Cancelled."
    assert sparks_of(DOCUMENT, Scan(tensors=tensors, nbytes=0)) == ((1,), ())
    assert sparks_of(DOCUMENT, None) == ()


def test_a_tensor_is_saved_as_what_can_hold_it() -> None:
    plain = {"shape": [2, 3], "conj": False, "neg": False, "scale": None, "place": {}}
    npy, safetensors = (".npy", "NumPy array"), (".safetensors", "safetensors")
    as_float = ".npy", "NumPy array, as float32"
    for dtype, more, forms in (
        ("float32", {}, (npy, safetensors)),
        ("bfloat16", {}, (as_float, safetensors)),
        ("float8_e5m2", {}, (as_float, safetensors)),
        ("complex128", {}, (npy,)),
        ("complex64", {"conj": True}, (npy,)),
        ("float32", {"neg": True}, (npy,)),
        ("qint8", {"scale": 0.1}, (as_float,)),
        ("qint8", {"axis": 0}, ()),
        ("float32", {"part": "values"}, (npy,)),
        ("quint4x2", {}, ()),
        ("float4_e2m1fn_x2", {}, ()),  # safetensors holds it, and its halves of bytes are read apart here
        ("q8_0", {"place": {"blocks": "q8_0"}}, (as_float,)),
    ):
        assert forms_of(tensor("a", dtype=dtype), plain | more) == forms, (dtype, more)
    assert forms_of(tensor("a", layout="sparse_coo"), plain | {"layout": "sparse_coo"}) == ()
    named = (tensor("model", "a.w"), tensor("m", ".weight"), tensor()._replace(keys=()))
    assert [saved_name(one) for one in named] == ["a.w", "weight", "tensor"]


def test_a_picture_says_what_its_colors_do_not() -> None:
    picture = Picture(
        shape=(4, 6), seen=(4, 6), steps=(1, 1), rows=1, columns=2, cells=bytes(8), levels=bytes(2), limit=1.0
    )
    assert picture_note(picture) == ""
    assert picture_note(replace(picture, is_clipped=True)) == "Larger numbers look like the ends."
    found = picture_note(replace(picture, steps=(2, 3), seen=(2, 6), levels=b"\x00\xff"))
    assert found.startswith("Only the first 2 \u00d7 6 of 4 \u00d7 6. Yellow is NaN. A cell is the one of")


def test_slices_are_taken_of_what_has_plain_elements() -> None:
    plain = {"shape": [2, 3]}
    assert slice_shape(tensor(), plain) == (2, 3)
    assert slice_shape(tensor(), plain | {"layout": "sparse_coo"}) == ()
    assert slice_shape(tensor(), {"shape": [2, 0]}) == ()
    for dtype in ("quint4x2", "float4_e2m1fn_x2"):
        assert slice_shape(tensor(dtype=dtype), plain) == ()
