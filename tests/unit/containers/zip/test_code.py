"""Devices in traced code: found as text, within bounds, and told with the remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import FileSource
from inspector.containers.zip import code
from inspector.errors import UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS

Write = Callable[..., str]
PICKLE = b"\x80\x02N."


def traced(**files: bytes) -> bytes:
    """A TorchScript archive with these files of code."""
    written = (Record(name=f"net/code/__torch__/{name}.py", data=text) for name, text in files.items())
    return build_zip(
        Record(name="net/data.pkl", data=PICKLE), *written, Record(name="net/constants.pkl", data=PICKLE)
    )


def refusal(path: str) -> UnsupportedFormatError:
    with pytest.raises(UnsupportedFormatError) as caught, FileSource(path) as source:
        read_container(source, Limits(), Progress())
    return caught.value


def test_each_device_is_named_once(write: Write) -> None:
    error = refusal(
        write(
            traced(
                a=b'_0 = torch.zeros([2], device=torch.device("cuda:0"))\n_1 = torch.device("cpu")',
                b=b'torch.ones([2], dtype=6, device=torch.device("cpu"))',
            )
        )
    )
    assert (error.form, error.devices) == ("torchscript", ("cpu", "cuda:0"))
    assert error.remedy is not None
    assert error.remedy.startswith("load it with torch.jit.load; its code makes tensors on cpu and cuda:0, ")


def test_what_names_no_device(write: Write) -> None:
    for text in (
        b"",
        b"ops.prim.device(x)",
        b'torch.device("a b")',
        b'torch.device("\x1b[31m")',
        b"torch.device(x)",
    ):
        error = refusal(write(traced(a=text)))
        assert (error.devices, error.remedy) == ((), "load it with torch.jit.load"), text
    assert refusal(str(CORPUS / "torchscript" / "conv.pt")).devices == ()


def test_only_code_is_looked_at(write: Write) -> None:
    said = b'torch.device("cpu")'
    other = (
        Record(name="net/extra/a.py", data=said),
        Record(name="net/code/a.txt", data=said),
        Record(name="b/code/a.py", data=said),
    )
    data = build_zip(
        Record(name="net/data.pkl", data=PICKLE), *other, Record(name="net/constants.pkl", data=PICKLE)
    )
    assert refusal(write(data)).devices == ()


def test_there_are_bounds(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    data = traced(a=b"x" * 99 + b'torch.device("cpu")', b=b'torch.device("mps")', c=b'torch.device("xpu")')
    assert refusal(write(data)).devices == ("cpu", "mps", "xpu")
    monkeypatch.setattr(code, "_MOST_NBYTES", 30)  # code that is not read names none
    assert refusal(write(data)).devices == ("mps",)
    monkeypatch.setattr(code, "_MOST_RECORDS", 2)
    assert refusal(write(data)).devices == ("mps",)
