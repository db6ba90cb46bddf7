"""Arrays that the library reads, whole and in part, against what `torch.load` makes of the file."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import inspector
from tests.torch.test_values import complex_tensors, odd_tensors, real_tensors, special_tensors

pytestmark = pytest.mark.torch

PARTS: list[Any] = [
    (slice(None, 2),),
    (slice(None, None, -1),),
    (slice(1, None, 2), ..., slice(None, None, 3)),
    (..., -1),
    (0, None, ...),
    (slice(5, 2),),
]


def of_torch(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_quantized:
        return tensor.dequantize().numpy()
    if tensor.dtype == torch.complex32:
        return tensor.to(torch.complex64).numpy()
    is_known = tensor.dtype in {torch.float64, torch.float32, torch.float16} or tensor.dtype.is_complex
    is_small = tensor.dtype.is_floating_point and not is_known
    return tensor.to(torch.float32).numpy() if is_small else tensor.numpy()


def differs(found: Any, wanted: np.ndarray) -> str:
    found = np.asarray(found)
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"{found.dtype} {found.shape} instead of {wanted.dtype} {wanted.shape}"
    if found.dtype.kind in "fc":  # a NaN has many spellings
        found, wanted = (np.where(np.isnan(one), one.dtype.type(np.nan), one) for one in (found, wanted))
    return "" if found.tobytes() == wanted.tobytes() else "other numbers"  # -0.0 is not 0.0


def wrong_parts(name: str, one: inspector.Tensor, wanted: np.ndarray) -> list[str]:
    wrong = []
    for part in PARTS:
        count = sum(item is not None and item is not ... for item in part)
        if count > wanted.ndim or (isinstance(part[0], int) and not wanted.shape[0]):
            continue
        if part[-1] == -1 and (not wanted.ndim or not wanted.shape[-1]):
            continue
        difference = differs(one[part], wanted[part])
        wrong += [f"{name} {part}: {difference}"] if difference else []
    return wrong


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_every_type_and_view_is_that_of_torch(tmp_path: Path, legacy: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = dict([*real_tensors(), *odd_tensors(), *complex_tensors(), *special_tensors()])
        torch.save(tensors, tmp_path / "all.pt", _use_new_zipfile_serialization=not legacy)
    checkpoint = inspector.open(tmp_path / "all.pt")
    wrong, refused = [], set()
    for name, tensor in tensors.items():
        one = checkpoint[name.replace("/", "~1")]
        try:
            found = one.numpy()
        except inspector.ValuesError:
            refused.add(name.split()[0])
            continue
        wanted = of_torch(tensor)
        difference = differs(found, wanted)
        wrong += [f"{name}: {difference}"] if difference else []
        assert found.flags.writeable, name
        wrong += wrong_parts(name, one, wanted)
        made = one.torch()
        is_alike = made.dtype == (torch.float32 if tensor.is_quantized else tensor.dtype)
        if not is_alike or made.shape != tensor.shape or differs(of_torch(made), wanted):
            wrong.append(f"{name}: torch() has {made.dtype} {made.shape}")
        if tensor.ndim:
            part = one.torch((..., slice(None, None, -2)))
            wrong += [f"{name}: torch(...)"] if differs(of_torch(part), wanted[..., ::-2]) else []
    assert not wrong, "\n".join(wrong)
    assert refused == {"quint4x2", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr"}


def test_files_of_the_other_byte_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `torch.save` writes them where the most significant byte stands first."""
    tensors = {
        "real": torch.randn(3, 4),
        "small": torch.randn(5).to(torch.bfloat16),
        "complex": torch.randn(4, dtype=torch.complex64),
        "whole": torch.arange(6),
        "flag": torch.tensor([True, False]),
    }
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "byteorder", "big")
    torch.save(tensors, buffer)
    monkeypatch.undo()
    checkpoint = inspector.open(buffer.getvalue())
    assert checkpoint.versions["byteorder"] == "big"
    loaded = torch.load(io.BytesIO(buffer.getvalue()))
    assert not torch.equal(loaded["real"], tensors["real"])
    for name, tensor in loaded.items():
        one = checkpoint[name]
        assert differs(one.numpy(), of_torch(tensor)) == "", name
        assert differs(one[::-1], of_torch(tensor)[::-1]) == "", name
        assert differs(of_torch(one.torch()), of_torch(tensor)) == "", name


def test_a_state_dict_goes_into_a_model(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.pth")
    found = inspector.open(tmp_path / "run.pth").state_dict("model", framework="torch")
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(torch.bfloat16)
    other.load_state_dict(found)
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    )
    assert list(found) == list(model.state_dict())
    arrays = inspector.open(tmp_path / "run.pth").state_dict("model")
    assert all(differs(arrays[name], of_torch(one)) == "" for name, one in found.items())


def test_the_parts_of_a_tensor_are_no_tensors_of_their_own(tmp_path: Path) -> None:
    scales = torch.rand(4, dtype=torch.float64) + 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = torch.quantize_per_channel(torch.randn(4, 3), scales, torch.arange(4), 0, torch.qint8)
        torch.save({"w": whole}, tmp_path / "quantized.pt")
    checkpoint = inspector.open(tmp_path / "quantized.pt")
    assert len(checkpoint) > 1
    found = checkpoint.state_dict()
    assert list(found) == ["w"]
    assert differs(found["w"], of_torch(whole)) == ""


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no such type")
def test_two_numbers_in_a_byte_are_one_element_of_torch(tmp_path: Path) -> None:
    codes = torch.randint(0, 256, (4, 3), dtype=torch.uint8)
    torch.save({"w": codes.view(torch.float4_e2m1fn_x2)}, tmp_path / "packed.pt")
    one = inspector.open(tmp_path / "packed.pt")["w"]
    assert one.torch().dtype == torch.float4_e2m1fn_x2
    assert torch.equal(one.torch().view(torch.uint8), codes)
    assert torch.equal(one.torch(slice(1, 3)).view(torch.uint8), codes[1:3])
    with pytest.raises(inspector.ValuesError, match="share bytes"):
        one.numpy()
