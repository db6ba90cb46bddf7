"""Whatever torch saves is listed as torch loads it: paths in order, geometry, values."""

from __future__ import annotations

import io
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.values.text import step_text
from inspector.safety.verdict import judge
from tests.documents import show_document
from tests.sweep import tries

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

_WORDS = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64"
DTYPES = _WORDS.split()
ZIP_ONLY = ("float8_e4m3fn", "uint16", "uint32")
SETTINGS = settings(max_examples=tries(25, 60), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """A tensor or a view of one: transposed, sliced, stretched, empty, a parameter."""
    dtype = getattr(torch, draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    tensor = torch.zeros(shape, dtype=dtype)
    change = draw(st.sampled_from(["as it is", "transposed", "sliced", "stretched", "stepped", "parameter"]))
    if change == "transposed" and shape:
        tensor = tensor.transpose(0, -1)
    elif change == "sliced" and shape and shape[0] > 1:
        tensor = tensor[1:]
    elif change == "stepped" and shape and shape[-1] > 1:
        tensor = tensor[..., ::2]
    elif change == "stretched":
        tensor = torch.zeros([1, *shape], dtype=dtype).expand(3, *shape)
    elif change == "parameter" and (dtype.is_floating_point or dtype.is_complex):
        tensor = torch.nn.Parameter(tensor, requires_grad=draw(st.booleans()))
    return tensor


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEYS = st.one_of(TEXTS, st.integers(-(2**31), 2**31))
LEAVES = st.one_of(
    tensors(),
    tensors(),
    tensors(),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    TEXTS,
)


def containers(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inside, max_size=4),
        st.lists(inside, max_size=3).map(tuple),
        st.dictionaries(KEYS, inside, max_size=4),
        st.dictionaries(KEYS, inside, max_size=4).map(OrderedDict),
    )


TREES = st.recursive(LEAVES, containers, max_leaves=16)


def leaves(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Everything that torch loaded, in order; sequences without tensors and containers are one leaf."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, key))
    elif isinstance(value, list | tuple) and any(
        isinstance(item, torch.Tensor | dict | list | tuple) for item in value
    ):
        for index, item in enumerate(value):
            yield from leaves(item, (*keys, index))
    else:
        yield keys, value


def opened(value: Any, **options: Any) -> tuple[Checkpoint, Any]:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    handle, path = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(buffer.getvalue())
        return open_checkpoint(path), torch.load(path, weights_only=True)
    finally:
        Path(path).unlink()


def compare(checkpoint: Checkpoint, value: Any) -> None:
    found = list(leaves(value))
    tensors = [(keys, item) for keys, item in found if isinstance(item, torch.Tensor)]
    others = [(keys, item) for keys, item in found if not isinstance(item, torch.Tensor)]
    assert [row.keys for row in checkpoint.tensors] == [keys for keys, _ in tensors]
    sizes = {storage.key: storage.nbytes for storage in checkpoint.storages}
    pointers: dict[str, set[int]] = {}
    for row, (_, tensor) in zip(checkpoint.tensors, tensors, strict=True):
        assert row.path == "/".join(map(step_text, row.keys))
        assert f"torch.{row.dtype}" == str(tensor.dtype)
        assert (row.shape, row.stride) == (tuple(tensor.shape), tensor.stride())
        assert (row.storage_offset, row.requires_grad) == (tensor.storage_offset(), tensor.requires_grad)
        assert row.nbytes == tensor.numel() * tensor.element_size()
        assert sizes[row.storage] == tensor.untyped_storage().nbytes()
        assert (row.device, row.layout, row.problem) == ("cpu", "strided", None)
        if sizes[row.storage]:
            pointers.setdefault(row.storage, set()).add(tensor.untyped_storage().data_ptr())
    assert all(len(found) == 1 for found in pointers.values())
    assert [(row.keys, row.type) for row in checkpoint.values] == [
        (keys, type_name(item)) for keys, item in others
    ]
    assert [row.after for row in checkpoint.values] == [
        sum(isinstance(item, torch.Tensor) for _, item in found[:place])
        for place, (_, item) in enumerate(found)
        if not isinstance(item, torch.Tensor)
    ]


def type_name(item: Any) -> str:
    return "collections.OrderedDict" if isinstance(item, OrderedDict) else type(item).__name__


@SETTINGS
@given(TREES)
def test_zip(value: Any) -> None:
    compare(*opened(value))


@SETTINGS
@given(TREES)
def test_legacy(value: Any) -> None:
    compare(*opened(value, _use_new_zipfile_serialization=False))


@SETTINGS
@given(st.lists(st.tuples(st.sampled_from(ZIP_ONLY), st.integers(0, 5)), max_size=4))
def test_types_that_only_the_zip_format_has(kinds: list[tuple[str, int]]) -> None:
    compare(*opened([torch.zeros(size, dtype=getattr(torch, kind)) for kind, size in kinds]))


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_views_of_one_storage_are_counted_once(spans: list[tuple[int, int]]) -> None:
    base = torch.arange(8.0)
    checkpoint, value = opened([base[start : start + size] for start, size in spans])
    compare(checkpoint, value)
    (storage,) = checkpoint.storages
    viewed = {place for start, size in spans for place in range(start, start + size)}
    assert (storage.nbytes, storage.tensors) == (32, len(spans))
    assert storage.viewed_nbytes == 4 * len(viewed)


@SETTINGS
@given(TREES)
def test_document_is_as_its_schema_has_it(value: Any) -> None:
    checkpoint, _ = opened(value)
    safety = judge(checkpoint)
    findings = diagnose(checkpoint, safety)
    show_document(checkpoint, safety, findings, open_seconds=0.25)
    assert safety.weights_only
