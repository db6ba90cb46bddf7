"""Archives of torch.jit, torch.package, torch.export, Stable-Baselines3; tar, legacy and joblib; indexes."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.builders import agents, exports, legacy, scripts, tars, zips
from tests.builders.pickles import MARK as MARK_OPCODE
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    name,
    number,
    op,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.corpus import CORPUS
from tests.hostile.loaders.case import CODE, EVIL, MARK, TORCH, Case, files, payload

_BYTES = payload()
_STREAM = stream(proto(), EVIL)
_VERSION = zips.Record(name="archive/version", data=b"3\n")


# --- torch.save: ways to call, places to stand --------------------------------------------------------------

_INST = MARK_OPCODE + text(CODE) + op("INST", b"builtins\neval\n")
_OBJ = MARK_OPCODE + name("builtins.eval") + text(CODE) + op("OBJ")
_STACK = op("SHORT_BINUNICODE", b"\x08builtins") + op("SHORT_BINUNICODE", b"\x04eval") + op("STACK_GLOBAL")
_PUSHES = {
    "REDUCE": EVIL,
    "INST": _INST,
    "OBJ": _OBJ,
    "STACK_GLOBAL": _STACK + tuple_(text(CODE)) + op("REDUCE"),
    "a memo slot": name("builtins.eval")
    + op("BINPUT", b"\x07")
    + op("POP")
    + op("BINGET", b"\x07")
    + tuple_(text(CODE))
    + op("REDUCE"),
    "dropped": EVIL + op("POP") + NONE,
    "a key": dict_((EVIL, NONE)),
    "in arguments": call("collections.OrderedDict", tuple_(EVIL)) + op("POP") + NONE,
    "in a state": call("collections.OrderedDict") + EVIL + op("POP") + dict_((text("x"), EVIL)) + op("BUILD"),
    "getattr": call("builtins.getattr", name("builtins.str"), text("join")) + op("POP") + EVIL,
    "in a storage's id": tuple_(text("storage"), EVIL) + op("POP") + NONE,
    "bytes that torch loads": call(
        "torch.storage._load_from_bytes", op("BINBYTES", struct.pack("<I", len(_BYTES)) + _BYTES)
    ),
    "bytes that pickle loads": call("_pickle.loads", op("BINBYTES", struct.pack("<I", len(_BYTES)) + _BYTES)),
}


def _zips() -> Iterator[Case]:
    for reader, wrap in (("zip", zips.checkpoint), ("legacy", legacy.checkpoint)):
        rows = {title: wrap(stream(proto(4), push)) for title, push in _PUSHES.items()}
        yield from files(reader, "torch.load", TORCH, rows)
    pkl = partial(zips.Record, name="archive/data.pkl")
    places = {
        "deflated": (pkl(data=_STREAM, method=8), _VERSION),
        "under another folder": (
            zips.Record(name="a b/data.pkl", data=_STREAM),
            zips.Record(name="a b/version", data=b"3"),
        ),
        "in large letters": (zips.Record(name="archive/DATA.PKL", data=_STREAM), _VERSION),
        "behind another": (pkl(data=state_dict()), _VERSION, pkl(data=_STREAM)),
        "named otherwise in its own header": (pkl(data=_STREAM, local_name="archive/data.xyz"), _VERSION),
        "with a comment": (pkl(data=_STREAM, comment=b"x" * 50), _VERSION),
    }
    rows = {title: zips.build_zip(*records) for title, records in places.items()}
    yield from files("zip", "torch.load", TORCH, rows, (".pt", ".zip", ".bin"))


def _legacies() -> Iterator[Case]:
    rows = {}
    for title, part, value in (
        ("magic", "magic", number(legacy.MAGIC)),
        ("version", "version", number(1001)),
        ("system information", "info", dict_()),
        ("keys", "keys", op("EMPTY_LIST")),
    ):
        rows[title] = legacy.checkpoint(state_dict(), **{part: stream(proto(), EVIL + op("POP") + value)})
    yield from files("legacy", "torch.load", TORCH, rows, (".pt", ".pkl", ".bin"))
    cut = {
        f"{title}, cut behind it": data[: data.index(b"eval") + 200]
        for title, data in rows.items()
        if title != "magic"
    }
    yield from files("legacy", "torch.load", TORCH, cut)


# --- tar ----------------------------------------------------------------------------------------------------


def _members(**changed: bytes) -> dict[str, bytes]:
    made = {
        "sys_info": pickle.dumps({}, 2),
        "pickle": stream(proto(), NONE),
        "tensors": tars.tensors_member(()),
        "storages": tars.storages_member(()),
    }
    return {**made, **changed}


def _tars() -> Iterator[Case]:
    zero, one = pickle.dumps(0, 2), pickle.dumps(1, 2)
    parts = {
        "the object": {"pickle": _STREAM},
        "the number of storages": {"storages": _STREAM},
        "a storage": {"storages": one + _STREAM},
        "the views": {"storages": zero + _STREAM},
        "the number of tensors": {"tensors": _STREAM},
        "a tensor": {"tensors": one + _STREAM},
    }
    rows = {title: tars.archive(_members(**changed)) for title, changed in parts.items()}
    yield from files("tar", "torch.load", TORCH, rows, (".pt", ".tar"))
    honest = tars.archive(_members()).rstrip(b"\0")
    others = {
        "the object a second time": honest + bytes(-len(honest) % 512) + tars.archive({"pickle": _STREAM}),
        "a member by a link": tars.linked(_members(pickle=_STREAM), "pickle"),
    }
    yield from files("tar", "torch.load", TORCH, others)


# --- torch.jit, torch.package, torch.export -----------------------------------------------------------------

_PACKAGE = "import torch.package\ntorch.package.PackageImporter(path).load_pickle({package!r}, {name!r})"
_MODULE = f"import os\nos.makedirs({MARK!r}, exist_ok=True)\n"


def _packages() -> Iterator[Case]:
    behind = (
        zips.Record(name="p/.data/extern_modules", data=b"builtins\ntorch\ncollections\n_pickle\nos\n"),
        zips.Record(name="p/.data/version", data=b"6\n"),
    )
    package = partial(files, "package", "PackageImporter")
    for module, name_ in (("model", "model.pkl"), ("model", "weights"), ("a.b", "x.pkl"), ("model", "M.PKL")):
        path = f"p/{module.replace('.', '/')}/{name_}"
        rows = {
            f"{module}/{name_}: {title}": zips.build_zip(
                zips.Record(name=path, data=stream(proto(), _PUSHES[title])), *behind
            )
            for title in ("REDUCE", "dropped", "a key", "a memo slot", "bytes that pickle loads")
        }
        yield from package(_PACKAGE.format(package=module, name=name_), rows)
    two = (
        zips.Record(name="p/model/good.pkl", data=stream(proto(), dict_())),
        zips.Record(name="p/model/evil.pkl", data=_STREAM),
    )
    load = _PACKAGE.format(package="model", name="evil.pkl")
    yield from package(load, {"one of two pickles": zips.build_zip(*two, *behind)})
    own = (
        zips.Record(name="p/model/model.pkl", data=stream(proto(), name("mine.Net"))),
        zips.Record(name="p/mine/__init__.py", data=_MODULE.encode()),
    )
    load = _PACKAGE.format(package="model", name="model.pkl")
    yield from package(load, {"a module of its own": zips.build_zip(*own, *behind)}, (".pt", ".pth", ".zip"))


def _packed_object() -> bytes:
    """A file of torch.save of a multiple of four bytes, as the constants of a program are."""
    sizes = (zips.checkpoint(_STREAM, {}, zips.Record(name="archive/x", data=bytes(n))) for n in range(4))
    return next(data for data in sizes if len(data) % 4 == 0)


def _exports(made: bytes) -> Iterator[Case]:
    """Genuine programs of which one record is another: what torch.export.load loads without asking a list."""
    with zipfile.ZipFile(io.BytesIO(made)) as file:
        records = {each: file.read(each) for each in file.namelist()}
    export = partial(files, "pt2", "torch.export.load", "import torch; torch.export.load(path)")
    saved = {"a zip": _packed_object(), "a legacy file": legacy.checkpoint(_STREAM)}
    inputs = next(each for each in records if each.endswith("sample_inputs/model.pt"))
    rows = {f"sample inputs are {title}": _zip({**records, inputs: data}) for title, data in saved.items()}
    yield from export(rows, (".pt2", ".pt", ".zip"))

    def with_row(kind: str, weight: str, row: dict[str, object], data: bytes) -> bytes:
        listing = next(each for each in records if each.endswith(f"{kind}/model_{kind}_config.json"))
        document = json.loads(records[listing])
        document["config"][weight] = row
        place = f"{listing.rpartition('/')[0]}/{row['path_name']}"
        return _zip({**records, listing: json.dumps(document).encode(), place: data})

    weight = exports.payload("tensor_0", 2, pickled=True)
    opaque = exports.payload("opaque_obj_0", 2, is_param=False, pickled=True)
    others = {
        f"{kind} are {title}": with_row(kind, key, row, data)
        for kind, key, row in (("weights", "w", weight), ("constants", "c", {**weight, "is_param": False}))
        for title, data in saved.items()
    } | {
        f"an opaque object: {title}": with_row("constants", "c", opaque, stream(proto(4), push))
        for title, push in _PUSHES.items()
    }
    yield from export(others, (".pt2",))


def _zip(records: dict[str, bytes]) -> bytes:
    return zips.build_zip(*(zips.Record(name=each, data=data) for each, data in records.items()))


_SCRIPT = f"""\
class Net(Module):
  __parameters__ = []
  __buffers__ = []
  kept : Tensor
  def __getstate__(self: __torch__.Net) -> int:
    return 5
  def __setstate__(self: __torch__.Net,
    state: int) -> NoneType:
    self.kept = torch.from_file("{MARK}", True, 16)
    return None
"""


def _scripts() -> Iterator[Case]:
    """TorchScript runs its own code while it loads: `from_file` makes a file, or writes into one."""
    root = name("__torch__.Net") + op("EMPTY_TUPLE") + op("NEWOBJ") + number(5) + op("BUILD")
    rows = {
        "data.pkl": scripts.script(root, code=_SCRIPT, storages=()),
        "constants.pkl": scripts.script(root, code=_SCRIPT, storages=(), constants=tuple_(root)),
    }
    for load in ("torch.jit.load", "torch.load"):
        code = f"import torch; {load}(path{', weights_only=False' if load == 'torch.load' else ''})"
        yield from files("torchscript", load, code, rows, (".pt", ".pth", ".ts", ".zip"))


# --- Stable-Baselines3, joblib ------------------------------------------------------------------------------

_SB3 = """
import base64, io, json, pickle, torch, zipfile
with zipfile.ZipFile(path) as archive:
    names = archive.namelist()
    if "data" in names:
        for item in json.loads(archive.read("data").decode()).values():
            if isinstance(item, dict) and ":serialized:" in item:
                try:
                    pickle.loads(base64.b64decode(item[":serialized:"].encode()))
                except (RuntimeError, TypeError, AttributeError):
                    pass
    for name in names:
        if name.endswith(".pth"):
            torch.load(io.BytesIO(archive.read(name)), weights_only=False)
"""


def _agents() -> Iterator[Case]:
    """As stable-baselines3 2.3.2 loads: `json_to_data` and `load_from_zip_file` of its save_util.py."""
    rows = {
        f"an attribute: {title}": agents.agent(data=agents.attributes(policy_class=agents.pickled(push)))
        for title, push in _PUSHES.items()
    }
    for record in ("policy", "pytorch_variables", "policy__optimizer", "actor__optimizer"):
        for kind, body in {"zip": exports.saved(EVIL), "legacy": legacy.checkpoint(_STREAM)}.items():
            rows[f"{record}__pth is a {kind}"] = agents.agent(**{f"{record}__pth": body})
    odd = {":type:": "x", ":serialized:": "\n".join(agents.pickled(EVIL)[":serialized:"])}
    rows["base64 with line ends"] = agents.agent(data=agents.attributes(x=odd))
    yield from files("sb3", "BaseAlgorithm.load", _SB3, rows, (".zip",))


_JOBLIB = """
import bz2, gzip, lzma, pickle, zlib, io
data = open(path, "rb").read()
for begin, unpack in ((b"\\x1f\\x8b", gzip.decompress), (b"BZh", bz2.decompress),
                      (b"\\xfd7zXZ", lzma.decompress), (b"]\\x00", lzma.decompress), (b"x", zlib.decompress)):
    if data.startswith(begin):
        data = unpack(data)
        break
pickle._Unpickler(io.BytesIO(data)).load()
"""


def _joblibs() -> Iterator[Case]:
    packings: dict[str, Callable[[bytes], bytes]] = {
        "plain": bytes,
        "zlib": zlib.compress,
        "gzip": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "lzma": partial(lzma.compress, format=lzma.FORMAT_ALONE),
    }
    rows = {packing: pack(payload(4)) for packing, pack in packings.items()}
    yield from files("joblib", "joblib.load", _JOBLIB, rows, (".joblib", ".pkl", ".gz", ".z"))


# --- indexes of several files -------------------------------------------------------------------------------

_INDEX = """
import json, os, torch
index = json.load(open(os.path.join(path, "pytorch_model.bin.index.json")))
for name in sorted(set(index["weight_map"].values())):
    torch.load(os.path.join(path, name), weights_only=False)
"""


def _indexed(named: str, lies: str, data: bytes, folder: Path, *, links: bool = False) -> Path:
    model = folder / "model"
    model.mkdir()
    good = "pytorch_model-00001-of-00002.bin"
    (model / good).write_bytes(zips.checkpoint(state_dict(a=tensor(storage("0"), 2)), {"0": bytes(8)}))
    (model / "deep").mkdir()
    place = model / lies
    if links:
        (folder / "elsewhere.bin").write_bytes(data)
        place.symlink_to(folder / "elsewhere.bin")
    else:
        place.write_bytes(data)
    weights = {"a": good, "b": named.replace("FOLDER", str(folder))}
    (model / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    return model


def _indexes() -> Iterator[Case]:
    kinds = {
        "zip": zips.checkpoint(_STREAM),
        "legacy": legacy.checkpoint(_STREAM),
        "tar": tars.archive(_members(pickle=_STREAM)),
        "pickle": _STREAM,
    }
    places = {
        "in its place": ("pytorch_model-00002-of-00002.bin",) * 2,
        "in a folder": ("deep/x.bin",) * 2,
        "beside the folder": ("../x.bin", "../x.bin"),
        "by an absolute path": ("FOLDER/x.bin", "../x.bin"),
        "through a folder and back": ("deep/../x.bin", "x.bin"),
        "twice slashed": (".//x.bin", "x.bin"),
        "with a dot": ("./x.bin", "x.bin"),
        "named oddly": ("x y.txt",) * 2,
        "without a suffix": ("weights",) * 2,
        "by a link": ("x.bin",) * 2,
    }
    for kind, data in kinds.items():
        for title, place in places.items():
            write = partial(_indexed, *place, data, links=title == "by a link")
            yield Case(f"a {kind} {title}", "sharded", "load_sharded_checkpoint", write, _INDEX)


def _cases() -> Iterator[Case]:
    yield from _zips()
    yield from _legacies()
    yield from _tars()
    yield from _packages()
    yield from _scripts()
    yield from _exports((CORPUS / "export" / "model.pt2").read_bytes())
    yield from _agents()
    yield from _joblibs()
    yield from _indexes()


CASES = tuple(_cases())
