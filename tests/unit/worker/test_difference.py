"""Differences in numbers, held against Python's exact ones and torch's dtypes."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import torch

from inspector.worker.difference import answer

pytestmark = pytest.mark.torch
NAN, INF = math.nan, math.inf


def found(
    one: torch.Tensor, other: torch.Tensor, *, step: int = 3, rtol: float = 0.0, atol: float = 0.0
) -> dict[str, Any]:
    """The answer for two tensors that come in blocks of a few elements."""
    blocks: list[bytes] = []
    for start in range(0, len(one), step):
        for tensor in (one, other):
            part = tensor[start : start + step].contiguous()
            blocks.append(bytes(part.view(torch.uint8).numpy().tobytes()))
    sizes = [sum(map(len, blocks[side::2])) for side in (0, 1)]
    pairs = [(str(one.dtype)[6:], str(other.dtype)[6:], *sizes)]
    ((head, block),) = answer({"pairs": pairs, "rtol": rtol, "atol": atol}, iter(blocks))
    assert block == b""
    given: dict[str, Any] = head["pairs"][0]
    assert given["numel"] == len(one)
    return given


def test_figures_are_those_of_the_definition() -> None:
    a = torch.tensor([1.0, 2.0, -3.0, 0.0, NAN, NAN, INF, INF, 5.0])
    b = torch.tensor([1.0, 2.5, 3.0, 0.0, NAN, 1.0, INF, -INF, 5.0])
    given = found(a, b)
    assert (given["differing"], given["not_finite"], given["other_bits"]) == (4, 2, 0)
    assert (given["max_abs"], given["max_rel"]) == (6.0, 2.0)
    assert (given["first"], given["first_a"], given["first_b"]) == (1, "2.0", "2.5")
    x, y = a[[0, 1, 2, 3, 8]].double(), b[[0, 1, 2, 3, 8]].double()
    assert given["cosine"] == pytest.approx(float(x @ y / x.norm() / y.norm()), abs=1e-12)
    lengths = [given["norm_a"], given["norm_b"], given["distance"]]
    assert lengths == pytest.approx([float(one.norm()) for one in (x, y, x - y)])


def test_every_dtype_of_numbers_against_itself_and_float64() -> None:
    dtypes = [
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
        torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64,
    ]  # fmt: skip
    for dtype in dtypes:
        one, other = torch.tensor([0, 1, 1, 0]).to(dtype), torch.tensor([0, 1, 0, 0]).to(dtype)
        wide = torch.complex128 if dtype.is_complex else torch.float64
        for second in (other, other.to(wide)):
            given = found(one, second)
            assert (given["differing"], given["first"], given["max_abs"]) == (1, 2, 1.0), (dtype, given)
        assert found(one, one)["differing"] == 0
        assert found(one, one.to(wide))["differing"] == 0


def test_large_whole_numbers_are_not_rounded() -> None:
    largest = 2**63 - 1
    given = found(torch.tensor([largest, -largest, 7]), torch.tensor([largest - 1, largest, 7]))
    assert (given["differing"], given["max_abs"]) == (2, float(2 * largest))
    assert found(torch.tensor([largest]), torch.tensor([largest - 1]))["max_abs"] == 1.0


def test_the_cosine_of_enormous_and_tiny_numbers() -> None:
    small = torch.tensor([1e-300, 1e-300, 1.0, 1e300, 1e300], dtype=torch.float64)
    other = torch.tensor([1e-300, 1e-300, 1.0, 1e300, -1e300], dtype=torch.float64)
    assert found(small, small)["cosine"] == pytest.approx(1.0)
    assert found(small, other, step=1)["cosine"] == pytest.approx(0.0, abs=1e-12)
    assert found(small[:2], other[:2])["cosine"] == pytest.approx(1.0)
    assert found(small, -other * 0.0)["cosine"] is None
    huge = torch.tensor([1.7e308], dtype=torch.float64)
    assert found(huge, -huge)["max_abs"] == pytest.approx(1.797e308, rel=1e-3)


def test_nothing_finite_has_no_figures() -> None:
    given = found(torch.tensor([NAN, INF]), torch.tensor([1.0, 1.0]))
    assert (given["differing"], given["max_abs"], given["max_rel"], given["cosine"]) == (2, None, None, None)
    given = found(torch.tensor([NAN]), torch.tensor([NAN]))
    assert (given["differing"], given["max_abs"], given["max_rel"]) == (0, 0.0, 0.0)
    given = found(torch.tensor([1.0]), torch.tensor([0.0]))
    assert (given["max_abs"], given["max_rel"]) == (1.0, None)


def test_other_bits_are_counted_where_numbers_are_equal() -> None:
    nans = struct.pack("<3I", 0x7FC00000, 0x7FC00001, 0x3F800000)
    others = struct.pack("<3I", 0x7FC00002, 0x7FC00001, 0x3F800000)
    one, other = (torch.frombuffer(bytearray(data), dtype=torch.float32) for data in (nans, others))
    given = found(one, other)
    assert (given["differing"], given["other_bits"]) == (0, 1)
    given = found(torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 2.0]))
    assert (given["differing"], given["other_bits"]) == (1, 1)


def test_a_tolerance_is_that_of_allclose() -> None:
    a, b = torch.tensor([1.0, 1.0, INF, NAN]), torch.tensor([1.05, 1.2, INF, NAN])
    for rtol, atol in ((0.1, 0.0), (0.0, 0.1), (0.1, 0.1), (0.0, 0.0)):
        given = found(a, b, rtol=rtol, atol=atol)
        assert given["differing"] == int((~torch.isclose(a, b, rtol, atol, equal_nan=True)).sum())
    assert found(a[:1], torch.tensor([INF]), rtol=0.1)["differing"] == 1


def test_whole_numbers_are_not_rounded_before_they_are_compared() -> None:
    large = 2**53 + 1
    rows: list[tuple[list[int], list[float], int, str, str]] = [
        ([large], [float(large)], 1, str(large), "9007199254740992.0"),
        ([large - 1, -(2**63), 2**63 - 1], [2.0**53, -(2.0**63), 2.0**63], 1, str(2**63 - 1), str(2.0**63)),
        ([0, 5], [0.0, NAN], 1, "5", "nan"),
    ]
    for whole, broken, differing, one, other in rows:
        given = found(torch.tensor(whole), torch.tensor(broken, dtype=torch.float64))
        assert (given["differing"], given["first_a"], given["first_b"]) == (differing, one, other)
        given = found(torch.tensor(broken, dtype=torch.float64), torch.tensor(whole))
        assert (given["differing"], given["first_a"], given["first_b"]) == (differing, other, one)
    largest = torch.tensor([2**64 - 1], dtype=torch.uint64)
    assert found(largest, torch.tensor([2.0**64], dtype=torch.float64))["differing"] == 1
    assert found(largest, torch.tensor([-1]))["differing"] == 1
    assert found(torch.tensor([large], dtype=torch.uint64), torch.tensor([large]))["differing"] == 0
    assert found(torch.tensor([large], dtype=torch.uint64), torch.tensor([large - 1]))["differing"] == 1


def test_a_complex_number_is_equal_where_both_its_parts_are() -> None:
    one = torch.tensor([complex(NAN, 1), complex(NAN, 1), complex(1, NAN), complex(0.0, 1)])
    other = torch.tensor([complex(NAN, 1), complex(NAN, 2), complex(1, NAN), complex(-0.0, 1)])
    given = found(one, other)
    assert (given["differing"], given["first"], given["other_bits"]) == (1, 1, 1)


def test_elements_that_share_a_byte_are_compared_one_by_one() -> None:
    head = {"pairs": [("quint4x2", "quint4x2", 2, 2)], "rtol": 0.0, "atol": 0.0}
    ((answered, _),) = answer(head, iter([b"\x21\x43", b"\x21\x53"]))
    (given,) = answered["pairs"]
    assert (given["numel"], given["differing"], given["first"]) == (4, 1, 3)
    head = {"pairs": [("float4_e2m1fn_x2", "float4_e2m1fn_x2", 1, 1)], "rtol": 0.0, "atol": 0.0}
    ((answered, _),) = answer(head, iter([b"\x81", b"\x01"]))
    (given,) = answered["pairs"]
    assert (given["numel"], given["differing"], given["other_bits"]) == (2, 0, 1)


def test_pairs_that_come_together_are_told_apart() -> None:
    """Pairs of several dtypes and lengths, cut into blocks at any place: each has the answer it has alone."""
    pairs = [
        (torch.tensor([1.0, 2.0, NAN]), torch.tensor([1.0, 2.5, NAN])),
        (torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64)),
        (torch.tensor([1, 2, 3, 4], dtype=torch.int8), torch.tensor([1, 2, 3, 5], dtype=torch.float64)),
        (torch.tensor([True, False]), torch.tensor([True, True])),
        (torch.tensor([0.5] * 9, dtype=torch.bfloat16), torch.tensor([0.25] * 9)),
    ]
    raw = [[bytes(one.contiguous().view(torch.uint8).numpy().tobytes()) for one in pair] for pair in pairs]
    head = {
        "pairs": [
            (str(a.dtype)[6:], str(b.dtype)[6:], len(first), len(second))
            for (a, b), (first, second) in zip(pairs, raw, strict=True)
        ],
        "rtol": 0.0,
        "atol": 0.0,
    }
    together = b"".join(first for first, _ in raw), b"".join(second for _, second in raw)
    ((given, _),) = answer(head, iter(together))
    assert given["pairs"] == [found(a, b, step=100) for a, b in pairs]
    apart = [block for (a, b), both in zip(pairs, raw, strict=True) for block in cut(both, len(a))]
    ((given, _),) = answer(head, iter(apart))
    assert [one["differing"] for one in given["pairs"]] == [1, 0, 1, 1, 9]


def cut(both: list[bytes], count: int) -> list[bytes]:
    """Blocks of one element of each in turn."""
    sizes = [len(data) // max(count, 1) for data in both]
    return [
        data[place * size : (place + 1) * size]
        for place in range(count)
        for data, size in zip(both, sizes, strict=True)
    ]
