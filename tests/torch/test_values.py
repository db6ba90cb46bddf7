"""Statistics of tensors against torch's own, for every element type and for views of any shape."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.values.request import Requests
from inspector.values.statistics import Statistics, build_statistics
from inspector.worker.tensor_values import answer

pytestmark = pytest.mark.torch

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
SMALL = [
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]
INTEGERS = [
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]
Named = Iterator[tuple[str, torch.Tensor]]


def strided(tensor: torch.Tensor) -> Named:
    yield "plain", tensor
    yield "transposed", tensor.T
    yield "every other", tensor[:, ::2]
    yield "every third row from the second", tensor[1::3]
    yield "column", tensor[:, 7]
    yield "diagonal", tensor.diagonal()
    yield "expanded", tensor[:1].expand(1000, 30)
    yield "expanded inside", tensor[:, :1].expand(24, 500)
    yield "windows", tensor[0].unfold(0, 5, 1)
    yield "permuted", tensor.reshape(2, 12, 5, 6).permute(3, 1, 0, 2)
    yield "scalar", tensor[3, 4]
    yield "empty", tensor[:0]
    yield "of ones", tensor[:, 4].reshape(1, 24, 1)


def real_tensors() -> Named:
    torch.manual_seed(1)
    odd = torch.randn(24, 30, dtype=torch.float64) * torch.logspace(-6, 6, 30, dtype=torch.float64)
    odd[5, 3] = odd[23, 29] = math.nan
    odd[2, 7] = odd[0, 1] = math.inf
    odd[4, 4] = -math.inf
    odd[7] = 0.0
    odd[8, 8] = -0.0
    for dtype in FLOATS:
        for name, view in strided(odd.to(dtype)):
            yield f"{dtype} {name}", view
    for dtype in SMALL:
        codes = torch.randint(0, 256, (24, 30), dtype=torch.uint8)
        for name, view in list(strided(codes))[:3]:
            yield (
                f"{dtype} {name}",
                view.view(dtype) if view.is_contiguous() else view.contiguous().view(dtype),
            )
        yield f"{dtype} transposed", codes.view(dtype).T
    for dtype in INTEGERS:
        limits = torch.iinfo(dtype)
        whole = torch.randint(max(limits.min, -900), min(limits.max, 900), (24, 30)).to(dtype)
        whole[3, 3], whole[4, 4] = (torch.tensor(end, dtype=dtype) for end in (limits.max, limits.min))
        for name, view in strided(whole):
            yield f"{dtype} {name}", view


def odd_tensors() -> Named:
    far = torch.randint(0, 50, (24, 30)) + (1 << 60)
    yield "int64 far from zero", far
    yield "float64 far from zero", torch.rand(5000, dtype=torch.float64) + 1e9
    yield "float64 near the end", torch.tensor([1.5e308, -1.2e308, 3e307], dtype=torch.float64)
    yield "float64 near zero", torch.tensor([5e-324, 1e-310, -3e-320], dtype=torch.float64)
    yield "float32 denormal", torch.tensor([1e-45, 1e-40, -1e-39, 0.0])
    yield "constant", torch.full((300,), 0.1)
    yield "all nan", torch.full((30,), math.nan)
    yield "bool", torch.rand(24, 30) < 0.3
    yield "large", torch.randn(700_001)
    yield "zeros, then others", torch.cat([torch.zeros(2_000_000), torch.randn(9) * 1e-9])
    yield "negated lazily", torch.imag(torch.randn(50, dtype=torch.complex64).conj())


def complex_tensors() -> Named:
    for dtype in (torch.complex64, torch.complex128):
        for name, view in strided(torch.randn(24, 30, dtype=dtype)):
            yield f"{dtype} {name}", view
    bad = torch.randn(40, dtype=torch.complex64)
    bad[3], bad[7], bad[9] = complex(math.nan, 1), complex(2, math.inf), complex(-math.inf, math.nan)
    yield "complex with gaps", bad
    yield "conjugated lazily", torch.randn(50, dtype=torch.complex64).conj()
    yield "complex32", torch.randn(50, dtype=torch.complex64).to(torch.complex32)


def special_tensors() -> Named:
    values = torch.randn(24, 30)
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        yield f"{dtype}", torch.quantize_per_tensor(values, 0.0371, 3, dtype)
        scales, zeros = torch.rand(30, dtype=torch.float64) / 20 + 0.01, torch.arange(30)
        yield f"{dtype} per channel", torch.quantize_per_channel(values, scales, zeros, 1, dtype)
        rows = torch.rand(24, dtype=torch.float64) / 20 + 0.01
        yield f"{dtype} per row", torch.quantize_per_channel(values, rows, torch.arange(24), 0, dtype)
    packed = torch.quantize_per_channel(
        values, torch.rand(24) + 0.1, torch.rand(24), 0, torch.quint4x2
    )  # what quantized embeddings are
    yield "quint4x2", packed
    coo = torch.sparse_coo_tensor(
        torch.tensor([[3, 0, 5], [2, 1, 4]]), torch.tensor([1.5, math.nan, -2.0]), (8, 6)
    )
    yield "sparse_coo", coo
    yield "sparse_coo hybrid", torch.sparse_coo_tensor(torch.tensor([[3, 1]]), torch.randn(2, 5), (9, 5))
    yield (
        "sparse_coo of integers",
        torch.sparse_coo_tensor(torch.tensor([[3, 1]]), torch.tensor([7, -9]), (9,)),
    )
    yield "sparse_coo empty", torch.sparse_coo_tensor(size=(3, 4))
    dense = torch.randn(6, 8) * (torch.rand(6, 8) < 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "sparse_csr", dense.to_sparse_csr()
        yield "sparse_csc", dense.to_sparse_csc()
        yield "sparse_bsr", dense.to_sparse_bsr((2, 2))


def asked(path: Path, row: int = 0) -> Statistics:
    checkpoint = open_checkpoint(str(path))
    requests = Requests(checkpoint)
    request = requests.of(row)
    *_, (last, _) = answer({"what": "stats", **requests.file, "tensor": request}, iter(()))
    assert "error" not in last, last
    return build_statistics(last["found"], request)


def expected(tensor: torch.Tensor) -> dict[str, Any]:
    """What torch and NumPy say, from the whole tensor in memory and in double precision."""
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype.is_complex:
        return of_complex(tensor.to(torch.complex128).numpy())
    if tensor.dtype.is_floating_point:
        wide = tensor.to(torch.float32).to(torch.float64) if tensor.dtype != torch.float64 else tensor
        return of_real(wide.numpy())
    return of_real(tensor.numpy())


def of_real(values: np.ndarray) -> dict[str, Any]:
    is_float = values.dtype.kind == "f"
    finite = values[np.isfinite(values)] if is_float else values.ravel()
    exact = finite.astype(object if finite.dtype.kind in "iu" else np.longdouble)
    first = {}
    for name, ask in (("nan", np.isnan), ("posinf", np.isposinf), ("neginf", np.isneginf)):
        places = np.argwhere(ask(values)) if is_float else []
        first[name] = tuple(places[0].tolist()) if len(places) else None
    mean = exact.sum() / len(exact) if len(exact) else None
    apart = None if mean is None else (exact.astype(np.longdouble) - np.longdouble(mean)) ** 2
    return {
        "numel": values.size,
        "finite": finite.size,
        "zeros": int((values == 0).sum()),
        "nan": int(np.isnan(values).sum()) if is_float else 0,
        "low": finite.min().item() if finite.size else None,
        "high": finite.max().item() if finite.size else None,
        "mean": None if mean is None else float(mean),
        "std": float(np.sqrt(apart.sum() / (len(exact) - 1))) if finite.size > 1 else None,
        "norm": None if mean is None else norm_of(finite),
        "first_nan": first["nan"],
        "first_posinf": first["posinf"],
        "first_neginf": first["neginf"],
        "counted": finite,
    }


def norm_of(values: np.ndarray) -> float | None:
    norm = float(np.sqrt((values.astype(np.longdouble) ** 2).sum()))
    return norm if math.isfinite(norm) else None


def of_complex(values: np.ndarray) -> dict[str, Any]:
    finite = values[np.isfinite(values)]
    sizes = np.hypot(finite.real, finite.imag)
    nan = np.argwhere(np.isnan(values))
    return {
        "numel": values.size,
        "finite": finite.size,
        "zeros": int((values == 0).sum()),
        "nan": len(nan),
        "low": sizes.min().item() if finite.size else None,
        "high": sizes.max().item() if finite.size else None,
        "std": float(torch.from_numpy(finite).std()) if finite.size > 1 else None,
        "norm": float(np.sqrt((sizes**2).sum())) if finite.size else None,
        "complex_mean": (finite.mean().real.item(), finite.mean().imag.item()) if finite.size else None,
        "first_nan": tuple(nan[0].tolist()) if len(nan) else None,
        "counted": sizes,
    }


def differences(found: Statistics, wanted: dict[str, Any]) -> list[str]:
    counted = np.sort(wanted.pop("counted"))
    wrong = []
    for name, value in wanted.items():
        seen = getattr(found, name)
        inexact = name in {"mean", "std", "norm", "complex_mean"} or (
            found.is_complex and name in {"low", "high"}
        )
        tiny = 1e-14 * abs(found.high or 0)  # a mean near zero is a difference of larger numbers
        if not (
            seen == pytest.approx(value, rel=1e-12, abs=tiny)
            if inexact and value is not None
            else seen == value
        ):
            wrong.append(f"{name}: {seen} instead of {value}")
    edges = found.edges
    if found.counts:
        places = [int(np.searchsorted(counted, counted.dtype.type(edge), "left")) for edge in edges[:-1]]
        places.append(len(counted))
        counts = [after - before for before, after in pairwise(places)]
        if counts != list(found.counts) or edges[0] > counted[0] or edges[-1] < counted[-1]:
            wrong.append(f"histogram: {found.counts} instead of {counts}")
    if sum(found.counts) != found.finite or sum(found.octaves) != found.finite - found.zeros:
        wrong.append("the histograms do not hold all values")
    sizes = np.abs(counted[counted != 0].astype(np.longdouble))
    octaves = [
        int(
            (
                (sizes >= np.ldexp(np.longdouble(1), found.exponent + number))
                & (sizes < np.ldexp(np.longdouble(1), found.exponent + number + 1))
            ).sum()
        )
        for number in range(len(found.octaves))
    ]
    if octaves != list(found.octaves):
        wrong.append(f"octaves: {found.octaves} instead of {octaves}")
    return wrong


def test_statistics_are_those_of_torch(tmp_path: Path) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [*real_tensors(), *odd_tensors(), *complex_tensors(), *special_tensors()]
        for name, tensor in tensors:
            torch.save(tensor, tmp_path / "tensor.pt")
            wrong += [
                f"{name}: {text}" for text in differences(asked(tmp_path / "tensor.pt"), expected(tensor))
            ]
    assert not wrong, "\n".join(wrong)
