"""One value of each kind that a pickle can hand to torch, as instructions, and files of such values."""

from __future__ import annotations

import struct

from tests.builders import legacy, zips
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    legacy_storage,
    list_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)

OD = call("collections.OrderedDict")
TRUE, FALSE = op("NEWTRUE"), op("NEWFALSE")
# Storages by their key: class, elements, bytes. Their record or block is written where the key is used.
STORAGES: dict[str, tuple[str, int, int]] = {
    "s-float": ("torch.FloatStorage", 4, 16),
    "s-long": ("torch.LongStorage", 4, 32),
    "s-bool": ("torch.BoolStorage", 4, 4),
    "s-byte": ("torch.ByteStorage", 16, 16),
    "s-double": ("torch.DoubleStorage", 4, 32),
    "s-complex": ("torch.ComplexFloatStorage", 4, 32),
    "s-qint": ("torch.QInt8Storage", 4, 4),
    "s-quint4": ("torch.QUInt4x2Storage", 4, 4),
    "s-untyped": ("torch.storage.UntypedStorage", 16, 16),
    "s-empty": ("torch.FloatStorage", 0, 0),
    "s-short": ("torch.FloatStorage", 4, 12),
    "s-long-record": ("torch.FloatStorage", 4, 20),
    "s-missing": ("torch.FloatStorage", 4, -1),
    "s-typed": ("torch.storage.TypedStorage", 4, 16),
}


def floating(value: float) -> bytes:
    return op("BINFLOAT", struct.pack(">d", value))


def stored(key: str, *, legacy: bool = False) -> bytes:
    cls, numel, _ = STORAGES[key]
    return (legacy_storage if legacy else storage)(key, cls=cls, numel=numel)


def made(key: str = "s-float", *shape: int, legacy: bool = False) -> bytes:
    return tensor(stored(key, legacy=legacy), *(shape or (STORAGES[key][1],)))


def palette(*, legacy: bool = False) -> dict[str, bytes]:
    return {
        "None": NONE,
        "True": TRUE,
        "False": FALSE,
        "0": number(0),
        "1": number(1),
        "4": number(4),
        "-1": number(-1),
        "2**63": number(1 << 63),
        "2.0": floating(2.0),
        "nan": floating(float("nan")),
        "''": text(""),
        "'cpu'": text("cpu"),
        "'12'": text("12"),
        "'torch.strided'": text("torch.strided"),
        "b''": call("_codecs.encode", text(""), text("latin1")),
        "b'ab'": call("_codecs.encode", text("ab"), text("latin1")),
        "'cpu' of Python 2": op("SHORT_BINSTRING", b"\3cpu"),
        "()": tuple_(),
        "(4,)": tuple_(number(4)),
        "(1,)": tuple_(number(1)),
        "(1, 2)": tuple_(number(1), number(2)),
        "('a', 1)": tuple_(text("a"), number(1)),
        "(None,)": tuple_(NONE),
        "(True,)": tuple_(TRUE),
        "(-1,)": tuple_(number(-1)),
        "(2.0,)": tuple_(floating(2.0)),
        "[]": list_(),
        "[4]": list_(number(4)),
        "[1, 2, 3, 300]": list_(number(1), number(2), number(3), number(300)),
        "['ab', 'cd']": list_(text("ab"), text("cd")),
        "[('a', 1)]": list_(tuple_(text("a"), number(1))),
        "[[1, 2]]": list_(list_(number(1), number(2))),
        "[[], 2]": list_(list_(list_(), number(2))),
        "[{}]": list_(dict_()),
        "{}": dict_(),
        "{'a': 1}": dict_((text("a"), number(1))),
        "{1: 2}": dict_((number(1), number(2))),
        "set": op("EMPTY_SET"),
        "set([4])": call("builtins.set", list_(number(4))),
        "OrderedDict": OD,
        "OrderedDict(a=1)": OD + text("a") + number(1) + op("SETITEM"),
        "Counter": call("collections.Counter", dict_((text("a"), number(2)))),
        "bytearray": call("builtins.bytearray", list_(number(1), number(2))),
        "complex": call("builtins.complex", floating(1.0), floating(2.0)),
        "Size": call("torch.Size", list_(number(4))),
        "Size()": call("torch.Size", list_()),
        "device": call("torch.device", text("cpu")),
        "layout": call("torch.serialization._get_layout", text("torch.sparse_coo")),
        "strided": call("torch.serialization._get_layout", text("torch.strided")),
        "float32": name("torch.float32"),
        "int64": name("torch.int64"),
        "quint8": name("torch.quint8"),
        "per_tensor_affine": name("torch.per_tensor_affine"),
        "storage": stored("s-float", legacy=legacy),
        "long storage": stored("s-long", legacy=legacy),
        "untyped storage": stored("s-untyped", legacy=legacy),
        "tensor": made(legacy=legacy),
        "long tensor": made("s-long", legacy=legacy),
        "one long": made("s-long", 1, legacy=legacy),
        "long scalar": call(
            "torch._utils._rebuild_tensor", stored("s-long", legacy=legacy), number(0), tuple_(), tuple_()
        ),
        "matrix": made("s-float", 2, 2, legacy=legacy),
        "parameter": call("torch._utils._rebuild_parameter", made(legacy=legacy), TRUE, OD),
        "FloatStorage": name("torch.FloatStorage"),
        "UntypedStorage": name("torch.storage.UntypedStorage"),
        "torch.Tensor": name("torch.Tensor"),
        "torch.FloatTensor": name("torch.FloatTensor"),
        "Parameter": name("torch.nn.parameter.Parameter"),
        "class set": name("builtins.set"),
        "class OrderedDict": name("collections.OrderedDict"),
        "encode": name("_codecs.encode"),
        "_rebuild_tensor": name("torch._utils._rebuild_tensor"),
    }


def zip_file(push: bytes, *, protocol: int | None = 2, **facts: bytes) -> bytes:
    """A zip of one value, with the records of the storages that occur in it."""
    begin = b"" if protocol is None else proto(protocol)
    return zip_of(stream(begin, push), **facts)


def zip_of(data: bytes, **facts: bytes) -> bytes:
    parts = {"data.pkl": data}
    parts |= {
        f"data/{key}": bytes(nbytes)
        for key, (_, _, nbytes) in STORAGES.items()
        if nbytes >= 0 and key.encode() in data
    }
    parts |= {"version": b"3\n", **facts}
    return zips.build_zip(*(zips.Record(name=f"archive/{name}", data=part) for name, part in parts.items()))


def legacy_file(push: bytes, *, begin: int | None = 2, **given: object) -> bytes:
    head = b"" if begin is None else proto(begin)
    return legacy_of(stream(head, push), **given)


def legacy_of(data: bytes, **given: object) -> bytes:
    """A legacy file of a pickle, with the storages that occur in it."""
    rows = [
        (key, numel, bytes(max(nbytes, 0)))
        for key, (_, numel, nbytes) in STORAGES.items()
        if key.encode() in data
    ]
    return legacy.checkpoint(data, *rows, **given)  # type: ignore[arg-type]
