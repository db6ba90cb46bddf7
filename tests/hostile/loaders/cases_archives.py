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
from tests.builders.pickles import (
    MARK as MARK_OPCODE,
)
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
from tests.hostile.loaders.case import MARK, Case, payload

TORCH = "import torch; torch.load(path, weights_only=False)"
_CODE = f"__import__('os').makedirs({MARK!r}, exist_ok=True)"
EVIL = call("builtins.eval", text(_CODE))
_BYTES = payload()


def _file(name_: str, data: bytes, folder: Path) -> Path:
    path = folder / name_
    path.write_bytes(data)
    return path


def _writes(name_: str, data: bytes) -> Callable[[Path], Path]:
    return partial(_file, name_, data)


# --- torch.save: ways to call, places to stand --------------------------------------------------------------

_INST = MARK_OPCODE + text(_CODE) + op("INST", b"builtins\neval\n")
_OBJ = MARK_OPCODE + name("builtins.eval") + text(_CODE) + op("OBJ")
_STACK = op("SHORT_BINUNICODE", b"\x08builtins") + op("SHORT_BINUNICODE", b"\x04eval") + op("STACK_GLOBAL")
_PUSHES = {
    "REDUCE": EVIL,
    "INST": _INST,
    "OBJ": _OBJ,
    "STACK_GLOBAL": _STACK + tuple_(text(_CODE)) + op("REDUCE"),
    "a memo slot": name("builtins.eval")
    + op("BINPUT", b"\x07")
    + op("POP")
    + op("BINGET", b"\x07")
    + tuple_(text(_CODE))
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
    for title, push in _PUSHES.items():
        body = stream(proto(4), push)
        yield Case(title, "zip", "torch.load", _writes("a.pt", zips.checkpoint(body)), TORCH)
        yield Case(title, "legacy", "torch.load", _writes("a.pt", legacy.checkpoint(body)), TORCH)
    weights = zips.Record(name="archive/version", data=b"3\n")
    evil = stream(proto(), EVIL)
    pairs = (("data.pkl", evil), ("version", b"3"))
    spaced = [zips.Record(name=f"a b/{each}", data=data) for each, data in pairs]
    places = {
        "deflated": (zips.Record(name="archive/data.pkl", data=evil, method=8), weights),
        "under another folder": spaced,
        "in large letters": (zips.Record(name="archive/DATA.PKL", data=evil), weights),
        "behind another": (
            zips.Record(name="archive/data.pkl", data=state_dict()), weights,
            zips.Record(name="archive/data.pkl", data=evil),
        ),
        "named otherwise in its own header": (
            zips.Record(name="archive/data.pkl", data=evil, local_name="archive/data.xyz"), weights
        ),
        "with a comment": (zips.Record(name="archive/data.pkl", data=evil, comment=b"x" * 50), weights),
    }  # fmt: skip
    for title, records in places.items():
        for suffix in (".pt", ".zip", ".bin"):
            write = _writes(f"a{suffix}", zips.build_zip(*records))
            yield Case(f"{title}, {suffix}", "zip", "torch.load", write, TORCH)


def _legacies() -> Iterator[Case]:
    body = state_dict()
    computed = stream(proto(), EVIL + op("POP") + number(legacy.MAGIC))
    pickles = {
        "magic": {"magic": computed},
        "version": {"version": stream(proto(), EVIL + op("POP") + number(1001))},
        "system information": {"info": stream(proto(), EVIL + op("POP") + dict_())},
        "keys": {"keys": stream(proto(), EVIL + op("POP") + op("EMPTY_LIST"))},
    }
    for title, given in pickles.items():
        data = legacy.checkpoint(body, **given)
        for suffix in (".pt", ".pkl", ".bin"):
            yield Case(f"{title}, {suffix}", "legacy", "torch.load", _writes(f"a{suffix}", data), TORCH)
        if title != "magic":
            cut = data[: data.index(b"eval") + 200]
            yield Case(f"{title}, cut behind it", "legacy", "torch.load", _writes("a.pt", cut), TORCH)


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
    evil = stream(proto(), EVIL)
    parts = {
        "the object": {"pickle": evil},
        "the number of storages": {"storages": evil},
        "a storage": {"storages": one + evil},
        "the views": {"storages": zero + evil},
        "the number of tensors": {"tensors": evil},
        "a tensor": {"tensors": one + evil},
    }
    for title, changed in parts.items():
        data = tars.archive(_members(**changed))
        for suffix in (".pt", ".tar"):
            yield Case(f"{title}, {suffix}", "tar", "torch.load", _writes(f"a{suffix}", data), TORCH)
    twice = io.BytesIO(tars.archive(_members()))
    data = twice.getvalue().rstrip(b"\0")
    data += bytes(-len(data) % 512) + tars.archive({"pickle": evil})
    yield Case("the object a second time", "tar", "torch.load", _writes("a.pt", data), TORCH)
    yield Case(
        "a member by a link",
        "tar",
        "torch.load",
        _writes("a.pt", tars.linked(_members(pickle=evil), "pickle")),
        TORCH,
    )


# --- torch.jit, torch.package, torch.export -----------------------------------------------------------------

_PACKAGE = "import torch.package\ntorch.package.PackageImporter(path).load_pickle({package!r}, {name!r})"
_MODULE = f"import os\nos.makedirs({MARK!r}, exist_ok=True)\n"
_EXPORT = "import torch; torch.export.load(path)"


def _packages() -> Iterator[Case]:
    externs = zips.Record(name="p/.data/extern_modules", data=b"builtins\ntorch\ncollections\n_pickle\nos\n")
    version = zips.Record(name="p/.data/version", data=b"6\n")
    for package, name_ in (
        ("model", "model.pkl"),
        ("model", "weights"),
        ("a.b", "x.pkl"),
        ("model", "M.PKL"),
    ):
        for title in ("REDUCE", "dropped", "a key", "a memo slot", "bytes that pickle loads"):
            record = zips.Record(
                name=f"p/{package.replace('.', '/')}/{name_}", data=stream(proto(), _PUSHES[title])
            )
            load = _PACKAGE.format(package=package, name=name_)
            data = zips.build_zip(record, externs, version)
            yield Case(
                f"{package}/{name_}: {title}", "package", "PackageImporter", _writes("a.pt", data), load
            )
    good = zips.Record(name="p/model/good.pkl", data=stream(proto(), dict_()))
    more = zips.Record(name="p/model/evil.pkl", data=stream(proto(), EVIL))
    load = _PACKAGE.format(package="model", name="evil.pkl")
    yield Case(
        "one of two pickles",
        "package",
        "PackageImporter",
        _writes("a.pt", zips.build_zip(good, more, externs, version)),
        load,
    )
    code = zips.Record(name="p/mine/__init__.py", data=_MODULE.encode())
    uses = zips.Record(name="p/model/model.pkl", data=stream(proto(), name("mine.Net")))
    load = _PACKAGE.format(package="model", name="model.pkl")
    for suffix in (".pt", ".pth", ".zip"):
        data = zips.build_zip(uses, code, externs, version)
        yield Case(
            f"a module of its own, {suffix}", "package", "PackageImporter", _writes(f"a{suffix}", data), load
        )


def _packed_object() -> bytes:
    """A file of torch.save of a multiple of four bytes, as the constants of a program are."""
    sizes = (
        zips.checkpoint(stream(proto(), EVIL), {}, zips.Record(name="archive/x", data=bytes(n)))
        for n in range(4)
    )
    return next(data for data in sizes if len(data) % 4 == 0)


def _exports(made: bytes) -> Iterator[Case]:
    """Genuine programs of which one record is another: what torch.export.load loads without asking a list."""
    with zipfile.ZipFile(io.BytesIO(made)) as file:
        records = {each: file.read(each) for each in file.namelist()}
    found = [each for each in records if each.endswith("sample_inputs/model.pt")]
    assert found, sorted(records)
    for title, data in {
        "a zip": _packed_object(),
        "a legacy file": legacy.checkpoint(stream(proto(), EVIL)),
    }.items():
        for suffix in (".pt2", ".pt", ".zip"):
            write = _writes(f"a{suffix}", _zip({**records, found[0]: data}))
            yield Case(f"sample inputs are {title}, {suffix}", "pt2", "torch.export.load", write, _EXPORT)
    for kind, weight in (("weights", "w"), ("constants", "c")):
        listing = next(each for each in records if each.endswith(f"{kind}/model_{kind}_config.json"))
        for title, data in {
            "a zip": _packed_object(),
            "a legacy file": legacy.checkpoint(stream(proto(), EVIL)),
        }.items():
            row = exports.payload("tensor_0", 2, pickled=True)
            if kind == "constants":
                row["is_param"] = False
            document = json.loads(records[listing])
            document["config"][weight] = row
            place = listing.rpartition("/")[0]
            changed = {**records, listing: json.dumps(document).encode(), f"{place}/tensor_0": data}
            yield Case(
                f"{kind} are {title}", "pt2", "torch.export.load", _writes("a.pt2", _zip(changed)), _EXPORT
            )

    listing = next(each for each in records if each.endswith("constants/model_constants_config.json"))
    document = json.loads(records[listing])
    document["config"]["c"] = exports.payload("opaque_obj_0", 2, is_param=False, pickled=True)
    changed = {**records, listing: json.dumps(document).encode()}
    for title, push in _PUSHES.items():
        changed[f"{listing.rpartition('/')[0]}/opaque_obj_0"] = stream(proto(4), push)
        yield Case(
            f"an opaque object: {title}", "pt2", "torch.export.load", _writes("a.pt2", _zip(changed)), _EXPORT
        )


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
    places = {
        "data.pkl": scripts.script(root, code=_SCRIPT, storages=()),
        "constants.pkl": scripts.script(
            name("__torch__.Net") + op("EMPTY_TUPLE") + op("NEWOBJ") + number(5) + op("BUILD"),
            code=_SCRIPT,
            storages=(),
            constants=tuple_(root),
        ),
    }
    for title, data in places.items():
        for suffix in (".pt", ".pth", ".ts", ".zip"):
            for load in ("torch.jit.load", "torch.load"):
                code = f"import torch; {load}(path{', weights_only=False' if load == 'torch.load' else ''})"
                yield Case(f"{title}, {suffix}", "torchscript", load, _writes(f"a{suffix}", data), code)


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
            torch.load(io.BytesIO(archive.read(name)), weights_only={safe})
"""
_SB3_SOURCE = (
    "stable-baselines3 2.3.2, save_util.py: json_to_data (cloudpickle.loads), load_from_zip_file (th.load)"
)


def _agents() -> Iterator[Case]:
    evil = stream(proto(), EVIL)
    for title, push in list(_PUSHES.items()):
        data = agents.agent(data=agents.attributes(policy_class=agents.pickled(push)))
        yield Case(
            f"an attribute: {title}",
            "sb3",
            "BaseAlgorithm.load",
            _writes("a.zip", data),
            _SB3.format(safe=False),
        )
    for record in (
        "policy__pth",
        "pytorch_variables__pth",
        "policy__optimizer__pth",
        "actor__optimizer__pth",
    ):
        for kind, body in {"zip": exports.saved(EVIL), "legacy": legacy.checkpoint(evil)}.items():
            data = agents.agent(**{record: body})
            yield Case(
                f"{record} is a {kind}",
                "sb3",
                "BaseAlgorithm.load",
                _writes("a.zip", data),
                _SB3.format(safe=False),
            )
    odd = {":type:": "x", ":serialized:": "\n".join(agents.pickled(EVIL)[":serialized:"])}
    data = agents.agent(data=agents.attributes(x=odd))
    yield Case(
        "base64 with line ends", "sb3", "BaseAlgorithm.load", _writes("a.zip", data), _SB3.format(safe=False)
    )


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
    for packing, pack in packings.items():
        for suffix in (".joblib", ".pkl", ".gz", ".z"):
            write = _writes(f"a{suffix}", pack(payload(4)))
            yield Case(f"{packing}, {suffix}", "joblib", "joblib.load", write, _JOBLIB)


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
    evil = stream(proto(), EVIL)
    files = {
        "zip": zips.checkpoint(evil),
        "legacy": legacy.checkpoint(evil),
        "tar": tars.archive(_members(pickle=evil)),
        "pickle": evil,
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
    }
    for kind, data in files.items():
        for title, (named, lies) in places.items():
            yield Case(
                f"a {kind} {title}",
                "sharded",
                "load_sharded_checkpoint",
                partial(_indexed, named, lies, data),
                _INDEX,
            )
        yield Case(
            f"a {kind} by a link",
            "sharded",
            "load_sharded_checkpoint",
            partial(_indexed, "x.bin", "x.bin", data, links=True),
            _INDEX,
        )


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
