from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from inspector.diff import content
from inspector.diff.compare import Wish, compare_paths
from inspector.diff.content import (
    FORMS,
    Elements,
    Equalities,
    Tolerance,
    array_of,
    differs_in_numbers,
    elements_of,
    has_elements,
    refuse_endless,
    side_by_side,
)
from inspector.diff.records import Diff, Numbers
from inspector.diff.side import open_side
from inspector.errors import CancelledError, ContainerError, ExportError
from inspector.model.tensors.row_blocks import View
from inspector.pickles.values import Call, Global
from inspector.progress import Progress
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.rows import diff_rows
from inspector.report.comparing.words import verdict_text
from tests.builders import pickles as p
from tests.builders.states import Raw, T, save_zip
from tests.unit.diff.test_compare import NUMBERS, compared, said
from tests.unit.diff.test_facts import ROW

# Two spellings of NaN and two of zero, and a number, by type.
CODES = {
    "float64": ("<Q", 0x7FF8 << 48, 0xFFF8000000000001, 1 << 63, 0x3FF0 << 48),
    "float32": ("<I", 0x7FC00000, 0xFFC00001, 1 << 31, 0x3F800000),
    "float16": ("<H", 0x7E00, 0xFE01, 0x8000, 0x3C00),
    "bfloat16": ("<H", 0x7FC0, 0xFFC1, 0x8000, 0x3F80),
    "float8_e5m2": ("<B", 0x7D, 0xFF, 0x80, 0x3C),
    "float8_e4m3fn": ("<B", 0x7F, 0xFF, 0x80, 0x38),
}
INFINITY = {
    "float64": 0x7FF0 << 48,
    "float32": 0x7F800000,
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float8_e5m2": 0x7C,
}


def test_nan_is_nan_and_zero_is_zero_whatever_their_bits() -> None:
    for dtype, (code, nan, other_nan, zero, one) in CODES.items():
        size = struct.calcsize(code)
        largest = FORMS[dtype].largest

        def differs(left: int, right: int, code: str = code, size: int = size, dtype: str = dtype) -> bool:
            blocks = [bytes(size) + struct.pack(code, number) for number in (left, right)]
            return differs_in_numbers(*blocks, dtype)

        assert not differs(nan, other_nan), dtype
        assert not differs(0, zero), dtype
        assert differs(nan, one), dtype
        assert differs(one, nan), dtype
        assert differs(0, one), dtype
        assert differs(zero, one), dtype
        assert differs(one, one | zero), dtype
        assert differs(largest, nan), dtype  # infinity, or the largest number where there is none
        assert INFINITY.get(dtype, largest) == largest


def test_equal_elements_beside_a_difference_are_passed_over() -> None:
    one, other = struct.pack("<3f", 1, 0.0, 2), struct.pack("<3f", 1, -0.0, 3)
    assert differs_in_numbers(one, other, "float32")
    assert not differs_in_numbers(one[:8], other[:8], "float32")
    assert not differs_in_numbers(one[:8], other[:8], "complex64")


def test_two_numbers_in_a_byte_are_told_apart() -> None:
    def differs(left: int, right: int) -> bool:
        return differs_in_numbers(bytes([left]), bytes([right]), "float4_e2m1fn_x2")

    assert not differs(0x81, 0x01)
    assert not differs(0x18, 0x10)
    assert not differs(0x88, 0x00)
    assert differs(0x81, 0x82)
    assert differs(0x91, 0x11)
    assert differs(0x09, 0x01)


def test_other_types_have_one_spelling_of_each_number() -> None:
    assert differs_in_numbers(b"\x00", b"\x80", "int8")
    assert differs_in_numbers(b"\x00", b"\x80", "float8_e4m3fnuz")


def test_where_elements_are_follows_from_the_row() -> None:
    found = elements_of(ROW._replace(storage_offset=4))
    assert found == Elements("0", 4, View((2, 3), (3, 1), 4), 4)
    assert (found.nbytes, found.is_plain, found.is_dense) == (24, True, True)
    assert elements_of(ROW._replace(dtype="complex64")).unit == 4
    turned = elements_of(ROW._replace(stride=(1, 2)))
    assert (turned.is_plain, turned.is_dense) == (False, True)
    assert not elements_of(ROW._replace(stride=(1, 5))).is_dense
    bare = elements_of(ROW._replace(stride=None, storage_offset=None, shape=(6,)))
    assert bare.view == View((6,), (1,), 0)


def test_elements_that_share_a_byte_are_read_as_bytes() -> None:
    packed = elements_of(ROW._replace(dtype="quint4x2", shape=(7,), stride=(1,), storage_offset=2))
    assert packed == Elements("0", 1, View((4,), (1,), 1), 1)
    block = elements_of(ROW._replace(dtype="q8_0", shape=(64,), stride=None, storage_offset=0))
    assert block.nbytes == 68


def test_what_cannot_be_true_is_refused() -> None:
    with pytest.raises(ContainerError, match="past the end"):
        elements_of(ROW._replace(problem="runs past the end"))
    with pytest.raises(ContainerError, match="too often"):
        refuse_endless(Elements("0", 4, View((1 << 30, 2), (0, 1), 0), 4))
    refuse_endless(Elements("0", 4, View((1 << 20, 2), (0, 1), 0), 4))


def test_composites_and_meta_tensors_have_no_elements() -> None:
    assert has_elements(ROW)
    assert not has_elements(ROW._replace(storage=None))
    assert not has_elements(ROW._replace(device="meta"))


MANY = [float(number) for number in range(64)]
TURNED = [MANY[8 * row + column] for column in range(8) for row in range(8)]


def answers(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> tuple[list[str], int]:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        progress = Progress()
        found = Equalities(one, other, progress)
        rows = zip(one.checkpoint.tensors, other.checkpoint.tensors, strict=True)
        given = [found.compare(*pair).answer for pair in rows]
        assert progress.done == found.nbytes
        return given, found.nbytes


def test_large_tensors_are_compared_step_by_step_up_to_the_first_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (content, __import__("inspector.model.tensors.row_blocks", fromlist=["x"])):
        monkeypatch.setattr(module, "PLAIN_NBYTES", 64)
    zeros, other_zeros = [0.0] * 64, [-0.0] * 64
    a = {"same": T(MANY), "early": T(MANY), "bits": T(zeros), "late": T(zeros)}
    b = {
        "same": T(MANY),
        "early": T([9.0, *MANY[1:]]),
        "bits": T(other_zeros),
        "late": T([*other_zeros[:63], 1.0]),
    }
    assert answers(tmp_path, a, b) == (["equal", "differs", "bits", "differs"], 256 + 64 + 256 + 256)


def test_views_of_one_layout_are_compared_as_they_lie(tmp_path: Path) -> None:
    gaps, other_gaps = [1.0, 8.0, 2.0, 8.0, 3.0], [1.0, 9.0, 2.0, 9.0, 3.0]
    a = {
        "t": T(TURNED, (8, 8), stride=(1, 8)),
        "u": T(TURNED, (8, 8), stride=(1, 8)),
        "g": T(gaps, (3,), stride=(2,)),
    }
    b = {
        "t": T(TURNED, (8, 8), stride=(1, 8)),
        "u": T([*TURNED[:63], 1.0], (8, 8), stride=(1, 8)),
        "g": T(other_gaps, (3,), stride=(2,)),
    }
    assert answers(tmp_path, a, b) == (["equal", "differs", "equal"], 256 + 256 + 20 + 12)


def test_views_of_other_layouts_are_compared_by_rows(tmp_path: Path) -> None:
    a = {"t": T(MANY, (8, 8)), "e": T([], (0, 3)), "x": T([1.0, 2.0], (3, 2), stride=(0, 1))}
    b = {"t": T(TURNED, (8, 8), stride=(1, 8)), "e": T([], (0, 3)), "x": T([1.0, 2.0], (3, 2), stride=(0, 1))}
    assert answers(tmp_path, a, b)[0] == ["equal", "equal", "equal"]


def test_streams_of_any_steps_are_brought_side_by_side() -> None:
    rng = random.Random(1)
    for sizes in ((1, 1), (4, 2), (2, 8)):
        count = 240
        streams = [rng.randbytes(count * size) for size in sizes]

        def steps(data: bytes, size: int) -> Any:
            pos = 0
            while pos < len(data):
                step = size * rng.randint(1, 30)
                yield data[pos : pos + step]
                pos += step

        pairs = list(side_by_side(*(steps(*given) for given in zip(streams, sizes, strict=True)), sizes))
        assert [b"".join(parts) for parts in zip(*pairs, strict=True)] == streams
        assert all(len(one) // sizes[0] == len(other) // sizes[1] for one, other in pairs)


def test_comparing_can_be_cancelled(tmp_path: Path) -> None:
    path = save_zip(tmp_path / "a.pt", {"w": T(MANY)})
    with open_side(path, Progress()) as one, open_side(path, Progress()) as other:
        progress = Progress()
        found = Equalities(one, other, progress)
        progress.cancel()
        with pytest.raises(CancelledError):
            found.compare(one.checkpoint.tensors[0], other.checkpoint.tensors[0])


X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
BYTES = bytes(range(16))
LARGE = 20_000  # bytes above which a value stays in the stream


def array(
    numbers: Any,
    shape: tuple[int, ...] | None = None,
    *,
    code: str = "f8",
    fortran: bool = False,
    order: str = "<",
) -> Raw:
    """An array as NumPy writes it in protocol 2, from numbers or bytes."""
    letter = {"f8": "d", "f4": "f", "i8": "q"}.get(code, "")
    data = numbers if isinstance(numbers, bytes) else struct.pack(f"{order}{len(numbers)}{letter}", *numbers)
    sizes = p.tuple_(*map(p.number, shape if shape is not None else (len(data) // int(code[1:]),)))
    flags = (p.op("NEWTRUE") if so else p.op("NEWFALSE") for so in (False, True))
    dtype = p.call("numpy.dtype", p.text(code), *flags)
    nones, ends = (p.NONE, p.NONE, p.NONE), (p.number(-1), p.number(-1), p.number(0))
    dtype += p.tuple_(p.number(3), p.text(order), *nones, *ends) + p.op("BUILD")
    made = p.call(
        "numpy._core.multiarray._reconstruct", p.name("numpy.ndarray"), p.tuple_(p.number(0)), p.text("b")
    )
    held = p.call("_codecs.encode", p.text(data.decode("latin-1")), p.text("latin1"))
    is_fortran = p.op("NEWTRUE" if fortran else "NEWFALSE")
    return Raw(made + p.tuple_(p.number(1), sizes, dtype, is_fortran, held) + p.op("BUILD"))


def pair(tmp_path: Path, a: Raw, b: Raw, wish: Wish | None = None) -> Diff:
    return compared(tmp_path, {"x": a}, {"x": b}, wish)


def test_arrays_differ_in_what_tensors_differ_in(tmp_path: Path) -> None:
    columns = array([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], (2, 3), fortran=True)
    other_order = array(X, (2, 3), fortran=True)
    rows: dict[str, tuple[Raw, Raw, list[str] | None]] = {
        "equal": (array(X), array(X), None),
        "large": (
            array(bytes(LARGE), code="i8"),
            array(bytes(LARGE - 1) + b"\x01", code="i8"),
            ["value", "values"],
        ),
        "other numbers": (array(X), array([*X[:5], 7.0]), ["value", "values"]),
        "shape": (array(X, (2, 3)), array(X, (3, 2)), ["value", "shape"]),
        "size": (array(X), array(X[:5]), ["value", "shape"]),
        "type": (array(X), array(X, code="f4"), ["value", "dtype"]),
        "order": (array(X, (2, 3)), columns, ["value", "stride"]),
        "order and numbers": (
            array(X, (2, 3)),
            other_order,
            ["value", "stride", "values"],
        ),
        "byte order": (array(X), array(X, order=">"), ["value", "dtype"]),
        "byte order and numbers": (array(X), array(X[::-1], order=">"), ["value", "dtype", "values"]),
        "nothing in them": (array(b""), array(b""), None),
        "no numbers": (array(b"ab", code="S2"), array(b"ac", code="S2"), ["value"]),
        "too few bytes": (array(X, (7,)), array(X[::-1], (7,)), ["value"]),
    }
    failures = []
    for name, (a, b, expected) in rows.items():
        found = said(pair(tmp_path, a, b)).get("changed", {}).get("x")
        if found != expected:
            failures.append(f"{name}: {found}")
    assert not failures, "\n".join(failures)
    assert said(pair(tmp_path, array([0.0, 1.0]), array([-0.0, 1.0]))) == {"same_numbers": ["x"]}


def test_an_array_and_what_is_none_differ_as_values_do(tmp_path: Path) -> None:
    assert said(compared(tmp_path, {"x": array(X)}, {"x": 1}))["changed"] == {"x": ["value", "type"]}
    assert array_of(Call(Global("m", "f"), (), "reduce"), b"") is None
    assert array_of(1, b"") is None


def test_numbers_of_arrays_say_how_much_and_where(tmp_path: Path) -> None:
    a, b = array(X, (2, 3), fortran=True), array([*X[:5], 8.0], (2, 3), fortran=True, code="f4", order=">")
    diff = pair(tmp_path, a, b, NUMBERS)
    (row,) = diff_document(diff)["changed"]
    assert row["what"] == ["value", "dtype", "values"]
    assert (row["max_abs"], row["max_rel"]) == (2.0, 0.25)
    assert (row["array"]["differing"], row["array"]["numel"]) == (1, 6)
    assert row["array"]["first"] == {"index": [1, 2], "a": "6.0", "b": "8.0"}
    (shown,) = diff_rows(diff)
    assert shown.detail.startswith(
        "float64 2 \u00d7 3, Fortran order \u2192 float32 2 \u00d7 3, Fortran order, big-endian; "
        "1 of 6 elements differ"
    )
    (shown,) = diff_rows(pair(tmp_path, array(X), array(X[::-1])))
    assert (shown.detail, shown.arrays) == ("float64 6; values differ", (0, 0))


def test_a_tolerance_holds_for_arrays(tmp_path: Path) -> None:
    wish = Wish(mode="numbers", tolerance=Tolerance(atol=0.5))
    near, signed = array([*X[:5], 6.25]), array([-0.0, 1.0])
    a = {"x": array(X), 1: array(X), "z": array([0.0, 1.0])}
    diff = compared(tmp_path, a, {"x": near, "1": near, "z": signed}, wish)
    assert said(diff) == {"changed": {"1": ["key"]}, "same_numbers": ["z"]}
    assert diff.tolerated_values == 2
    numbers = {one.what: one.numbers for one in diff.values}[("bits",)]
    assert isinstance(numbers, Numbers)
    assert numbers.other_bits == 1
    diff = compared(tmp_path, {"x": array(X), "y": 1}, {"x": near, "y": 1}, wish)
    assert (diff.is_equal, diff.values) == (True, ())
    assert "1 array only within the tolerance" in verdict_text(diff)


def test_hostile_arrays_are_compared_or_refused_in_one_line(tmp_path: Path) -> None:
    strange = [
        array(BYTES, (1 << 62, 1 << 62)),
        array(b"", (0, 1 << 62)),
        array(b"", (1 << 62, 0), fortran=True),
        array(BYTES, (1,) * 65),
        array(BYTES, (-6,)),
        array(BYTES, code="f9"),
        array(BYTES, ()),
        array(BYTES, code="b1"),
        array(BYTES, (2, 3), fortran=True, code="c16"),
        array(BYTES, code="c16", order=">"),
    ]
    for number, one in enumerate(strange):
        for other in (one, array(X), strange[number - 1]):
            assert pair(tmp_path, one, other).is_equal == (one is other), number
    a, b = dict(enumerate(strange)), dict(enumerate([*strange[1:], strange[0]]))
    assert not compared(tmp_path, a, b, NUMBERS).is_equal


def test_a_child_that_cannot_answer_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text("def answer(head, blocks):\n    raise ModuleNotFoundError('no numpy')\n    yield\n")
    monkeypatch.setattr(content, "worker_script", lambda _: script)
    paths = [save_zip(tmp_path / f"{number}.pt", {"w": T([number])}) for number in (1.0, 2.0)]
    with pytest.raises(ExportError, match=r"the numbers cannot be compared: w: .*no numpy"):
        compare_paths(*paths, Wish(mode="numbers"))
