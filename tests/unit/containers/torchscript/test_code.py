"""The code of TorchScript: looked at as text, within bounds."""

from __future__ import annotations

import pytest

from inspector.containers import torchscript as code
from inspector.containers.container import CodeDevice
from inspector.containers.source import BytesSource
from inspector.containers.torchscript import Code, read_code
from inspector.containers.zip.records import records_of
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip


def read(*records: Record) -> Code:
    source = BytesSource(build_zip(Record(name="net/version", data=b"3"), *records), "a.zip")
    return read_code(source, records_of(source, Limits(), Progress()), Progress())


def file(name: str, text: bytes, **more: object) -> Record:
    return Record(name=f"net/code/{name}.py", data=text, **more)


def test_each_device_is_told_with_its_line_once() -> None:
    found = read(
        file("b", b'x\ntorch.ones([2], device=torch.device("cpu"))\n'),
        file("__torch__/a", b'torch.device("cuda:0"), torch.device("cuda:0")\n\ntorch.device("cuda:0")'),
    )
    assert found.devices == (
        CodeDevice("cuda:0", "code/__torch__/a.py:1"),
        CodeDevice("cuda:0", "code/__torch__/a.py:3"),
        CodeDevice("cpu", "code/b.py:2"),
    )
    assert found.is_whole


def test_what_names_no_device() -> None:
    texts = (
        b"",
        b"ops.prim.device(x)",
        b'torch.device("a b")',
        b'torch.device("\x1b[31m")',
        b"torch.device(x)",
    )
    assert [read(file("a", text)).devices for text in texts] == [()] * len(texts)


def test_only_code_is_looked_at() -> None:
    said = b'torch.device("cpu")'
    names = ("net/extra/a.py", "net/code/a.txt", "b/code/a.py", "net/code/a.py.debug_pkl")
    assert read(*(Record(name=name, data=said) for name in names)).devices == ()


def test_members_are_those_of_each_class() -> None:
    text = b"""\
class A(Module):
  __parameters__ = ["w", "0", ]
  __buffers__ = ["b\\"", ]
class B(Module):
  __parameters__ = []
  w : Tensor
class C(NamedTuple):
  __parameters__ = ["x", ]
"""
    found = read(file("__torch__/a/b", text)).members
    assert set(found) == {"__torch__.a.b.A", "__torch__.a.b.B"}
    assert found["__torch__.a.b.A"].parameters == {"w", "0"}
    assert found["__torch__.a.b.A"].buffers == {'b\\"'}
    assert found["__torch__.a.b.B"] == (frozenset(), None)


def test_what_runs_at_load_and_what_reaches_for_files() -> None:
    text = (
        b'class A(Module):\n  def __setstate__(self, x):\n    torch.save(x, "a")\n    torch.from_file("b")\n'
    )
    found = read(file("a", text), file("b", b"  def forward(self):\n    torch.savez(x)\n"))
    assert found.runs_at_load == ("code/a.py:2",)
    assert found.files == ("torch.save in code/a.py:3", "torch.from_file in code/a.py:4")


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    files = file("a", b"x" * 99 + b'torch.device("cpu")'), file("b", b'torch.device("mps")'), file("c", b"")
    assert [one.device for one in read(*files).devices] == ["cpu", "mps"]
    monkeypatch.setattr(code, "_MOST_NBYTES", 30)  # code that is not read names none
    found = read(*files)
    assert ([one.device for one in found.devices], found.is_whole) == (["mps"], False)
    monkeypatch.setattr(code, "_MOST_RECORDS", 1)
    assert read(*files).devices == ()
    monkeypatch.undo()
    monkeypatch.setattr(code, "_MOST_RECORDS", 2)
    assert not read(*files).is_whole
    monkeypatch.setattr(code, "_MOST_PLACES", 2)
    many = b"\n".join(b'torch.device("cuda:%d")' % number for number in range(5))
    assert len(read(file("a", many), file("b", many)).devices) == 2
