"""TorchScript archives made by hand."""

from __future__ import annotations

from tests.builders.pickles import call, new, proto, storage, stream, tensor, text, tuple_
from tests.builders.zips import Record, build_zip

WEIGHTS = bytes(range(16))
CODE = """\
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["mean", ]
  weight : Tensor
  def forward(self: __torch__.Net, x: Tensor) -> Tensor:
    return torch.add(x, torch.zeros([2], device=torch.device("cuda:0")))
"""


def weight(key: str = "0", location: str = "cpu") -> bytes:
    return tensor(storage(key, location=location, numel=4), 4)


def net(location: str = "cpu") -> bytes:
    """A module with a parameter, a buffer and an attribute that are one storage, and a child."""
    return new(
        "__torch__.Net",
        (text("weight"), weight("0", location)),
        (text("mean"), weight("1", location)),
        (text("kept"), weight("2", location)),
        (text("child"), new("__torch__.a.Leaf", (text("b"), weight("0", location)))),
    )


def script(
    root: bytes | None = None,
    *more: Record,
    constants: bytes | None = None,
    code: str = CODE,
    storages: tuple[str, ...] = ("data/0", "data/1", "data/2"),
) -> bytes:
    """An archive; a record that is given again stands beside the first."""
    return build_zip(
        *(Record(name=f"net/{name}", data=WEIGHTS) for name in storages),
        Record(name="net/data.pkl", data=stream(proto(), root or net())),
        Record(name="net/code/__torch__.py", data=code.encode(), method=8),
        Record(name="net/constants.pkl", data=stream(proto(), constants or tuple_())),
        Record(name="net/version", data=b"3\n"),
        Record(name="net/byteorder", data=b"little"),
        *more,
    )


def evil() -> bytes:
    return call("os.system", text("id"))
