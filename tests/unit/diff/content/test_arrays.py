from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from inspector.diff.compare import Wish
from inspector.diff.content import Tolerance, array_of
from inspector.diff.records import Diff, Numbers
from inspector.pickles.values import Call, Global
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.rows import diff_rows
from inspector.report.comparing.words import verdict_text
from tests.builders import pickles as p
from tests.builders.states import Raw
from tests.unit.diff.test_compare import NUMBERS, compared, said

X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
MAKER = "numpy._core.multiarray._reconstruct"
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
