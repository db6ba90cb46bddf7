"""One byte changed anywhere in a checkpoint of each format: what `diff` and `verify` say of it.

Each must see it, or say that it did not look. What is left are bytes of which a reader that is not ours
(Python's own zipfile, tarfile, json, and its unpickler with classes that only remember) makes the same: memo
slots that nobody reads, lengths that are spelled otherwise, padding, times in headers.
`python -m tests.one_byte` prints the table of docs/forms.md.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import math
import pickle
import random
import shutil
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

import torch

from inspector.diff.compare import Wish, compare_paths
from inspector.errors import CheckpointError
from inspector.remap.verify import compare_files
from tests.builders import agents, arrays, deepspeed, exports, folders, megatron
from tests.corpus import CORPUS

LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
Outcome = Literal["seen", "named", "same", "missed"]
"""`named`: it says that it did not look, or that this does not count. `same`: other readers see none."""

FILES = {
    "zip": ("zip/train.pt", "zip/python_types.pt", "zip/views.pt", "zip/rezip_deflated.pt", "zip/params.pt"),
    "legacy": ("legacy/python_types.pt", "legacy/tied.pt", "legacy/gzipped.pt.gz"),
    "tar": ("tar/tar_cpu.pth",),
    "pickle": ("plain_pickle/state_p2.pkl", "plain_pickle/state_p4.pkl", "plain_pickle/tensor_p4.pkl"),
    "joblib": ("joblib/arrays.joblib", "joblib/arrays_zlib.joblib"),
    "torchscript": ("torchscript/conv.pt",),
    "package": ("package/pkg.pt",),
    "pt2": ("export/model.pt2",),
    "safetensors": ("safetensors/all.safetensors",),
    "gguf": ("gguf/small.gguf",),
    "DCP": ("dcp/plain",),
    "sharded": ("hf_sharded",),
    "DeepSpeed": ("frameworks/deepspeed/global_step10",),
}
"""Genuine files by format."""
MADE: dict[str, Callable[[Path], Path]] = {
    "npy": arrays.array,
    "npz": arrays.arrays,
    "SB3": lambda folder: _file(folder / "agent.zip", agents.agent()),
    "pt2, built": lambda folder: _file(folder / "model.pt2", exports.exported()),
    "trainer": lambda folder: folders.trainer(folder / "run"),
    "Megatron": lambda folder: megatron.megatron(folder / "run"),
    "DeepSpeed, built": lambda folder: deepspeed.write(folder / "run", deepspeed.zero2()),
}
"""Files that are built, by format."""


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# --- what other readers make of a file ----------------------------------------------------------------------


zipfile.MAX_EXTRACT_VERSION = 255  # type: ignore[attr-defined]  # loaders do not look at it


class Made:
    """What a pickle makes of a class: nothing but its name and all that it is given."""

    def __new__(cls, *args: Any, **named: Any) -> Self:
        made = object.__new__(cls)
        made.__dict__["given"] = [args, named]
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def _note(self, *args: Any) -> None:
        self.__dict__["given"].append(args)

    __setstate__ = append = extend = add = _note

    def __setitem__(self, key: Any, value: Any) -> None:
        self._note(key, value)


class Remembering(pickle._Unpickler):  # type: ignore[name-defined,misc]
    """An unpickler that imports and calls nothing."""

    def __init__(self, file: Any, **how: Any) -> None:
        super().__init__(file, **how)
        self.file = file

    def find_class(self, module: str, name: str) -> type:
        return self.__dict__.setdefault("found", {}).setdefault(
            (module, name), type(f"{module} {name}", (Made,), {})
        )

    def persistent_load(self, pid: Any) -> Any:
        return ("outside", pid)


def _built(unpickler: Any) -> None:
    """Carry out BUILD, and read the array that joblib puts behind it."""
    pickle._Unpickler.load_build(unpickler)  # type: ignore[attr-defined]
    made = unpickler.stack[-1]
    if type(made).__name__.endswith("NumpyArrayWrapper"):
        state = made.given[-1][0]
        kind = state["dtype"].given[0][0]
        if kind[0] == "O":
            made.given.append(spelled(Remembering(unpickler.file, encoding="latin-1").load()))
            return
        nbytes = int(kind[1:]) * (4 if kind[0] == "U" else 1) * math.prod(state["shape"])
        padding = unpickler.file.read(1) if state.get("numpy_array_alignment_bytes") else b"\0"
        made.given.append(unpickler.file.read(padding[0] + nbytes))


Remembering.dispatch = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: _built}  # type: ignore[attr-defined]


def unpickled(data: bytes, count: int = 1) -> list[str]:
    """Return what some pickles one behind the other make, as texts, and what stands behind them."""
    file = io.BytesIO(data)
    found = [spelled(Remembering(file, encoding="latin-1").load()) for _ in range(count)]
    return [*found, repr(file.read())]


def spelled(root: Any) -> str:
    """Return all of a value as a text, each object once."""
    known: dict[int, int] = {}
    out: list[str] = []
    todo: list[Any] = [root]
    while todo:
        value = todo.pop()
        if isinstance(value, float):
            out.append(struct.pack("<d", value).hex())
        elif isinstance(value, bytes) and value.startswith(LEGACY):
            out.append(repr(contents_of(value)))
        elif isinstance(value, type):
            out.append(value.__name__)
        elif isinstance(value, list | tuple | dict | set | frozenset | Made):
            if id(value) in known and value != ():
                out.append(f"again {known[id(value)]}")
                continue
            known[id(value)] = len(known)
            parts = _parts(value)
            out.append(f"{type(value).__name__} of {len(parts)}")
            todo += reversed(parts)
        else:
            out.append(f"{type(value).__name__} {value!r}")
    return "\n".join(out)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Made):
        return list(value.__dict__["given"])
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)


def contents(path: Path) -> Any:
    """Return what a file holds as other readers see it; errors are theirs."""
    if path.is_dir():
        return {
            str(file.relative_to(path)): contents(file) for file in sorted(path.rglob("*")) if file.is_file()
        }
    return contents_of(path.read_bytes())


def contents_of(data: bytes) -> Any:  # noqa: PLR0911 - one for each format
    for magic, unpack in (
        (b"\x1f\x8b", lambda packed: zlib.decompressobj(31).decompress(packed)),
        (b"BZh", bz2.decompress),
        (b"\xfd7z", lzma.decompress),
        (b"]\0\0", lzma.decompress),
        (b"\x78", lambda packed: zlib.decompressobj().decompress(packed)),
    ):
        if data.startswith(magic):
            return contents_of(unpack(data))
    if data.startswith(b"PK"):
        try:
            return _zip(data)
        except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError):  # torch reads more
            reader = torch._C.PyTorchFileReader(io.BytesIO(data))
            return {name: _record(name, reader.get_record(name)) for name in sorted(reader.get_all_records())}
    if data.startswith(b"\x93NUMPY"):
        (nbytes,) = struct.unpack_from("<H", data, 8)
        return data[:8], eval(data[10 : 10 + nbytes], {}), data[10 + nbytes :]
    if data[8:9] == b"{":
        (nbytes,) = struct.unpack_from("<Q", data)
        return json.loads(data[8 : 8 + nbytes]), data[8 + nbytes :]
    if data.startswith(LEGACY):
        magic, version, _, *rest = unpickled(data, 5)  # torch reads the third, of the system, and drops it
        return magic, version, rest
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return {one.name: archive.extractfile(one).read() for one in archive if one.isfile()}  # type: ignore[union-attr]
    return unpickled(data) if data[:1] == b"\x80" else data


def _zip(data: bytes) -> Any:
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
            start = entry.header_offset + 30 + name + extra
            raw = data[start : start + entry.compress_size]
            record = zlib.decompress(raw, -15) if entry.compress_type == zipfile.ZIP_DEFLATED else raw
            if data[entry.header_offset : entry.header_offset + 4] != b"PK\x03\x04":
                raise zipfile.BadZipFile
            name = entry.filename.partition("/")[2] or entry.filename
            found[name.lower()] = _record(name.lower(), record)  # torch finds them in any case
    return found


def _record(name: str, data: bytes) -> Any:
    is_file = name.endswith((".pkl", ".pt", ".npy", ".pth"))
    return contents_of(data) if is_file or data.startswith(b"PK\x03\x04") else data


# --- one byte -----------------------------------------------------------------------------------------------


def changed(path: Path, copy: Path, chance: random.Random) -> str:
    """Make a copy of a checkpoint with one byte changed; return where."""
    if path.is_dir():
        shutil.copytree(path, copy)
        files = sorted(file for file in copy.rglob("*") if file.is_file() and file.stat().st_size)
        file = chance.choice(files)
    else:
        file = copy
        shutil.copyfile(path, copy)
    data = bytearray(file.read_bytes())
    place = chance.randrange(len(data))
    data[place] ^= 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
    file.write_bytes(data)
    return f"{file.name} byte {place:,}: {data[place]:#04x}"


def outcomes(path: Path, copy: Path) -> tuple[Outcome, Outcome]:
    """Return what `diff` and `verify` make of a changed copy."""
    said: list[Outcome] = [_diff(path, copy), _verify(path, copy)]
    if "missed" in said:
        try:
            is_same = contents(copy) == contents(path)
        except Exception:  # noqa: BLE001 - whatever other readers raise: they see it
            is_same = False
        said = ["same" if one == "missed" and is_same else one for one in said]
    return said[0], said[1]


def _diff(path: Path, copy: Path) -> Outcome:
    try:
        found = compare_paths(str(path), str(copy), Wish())
    except CheckpointError:
        return "seen"
    if not found.is_equal:
        return "seen"
    other_bits = any(not change.differs for change in (*found.tensors, *found.values))
    return "named" if found.uncompared or found.reordered or other_bits else "missed"


def _verify(path: Path, copy: Path) -> Outcome:
    try:
        found = compare_files(str(copy), str(path))
    except CheckpointError as error:
        return "named" if "no copy whose bytes" in str(error) or "only a part" in str(error) else "seen"
    moved = found.moves or found.moved_hidden
    return "seen" if found.differences or moved else "missed"


def samples(folder: Path) -> Iterator[tuple[str, Path]]:
    for form, names in FILES.items():
        yield from ((form, CORPUS / name) for name in names)
    for form, make in MADE.items():
        place = folder / form
        place.mkdir()
        yield form, make(place)


def tried(form: str, path: Path, tries: int, seed: int = 7) -> tuple[Counter[str], list[str]]:
    """Change a byte so many times; return how often each came out, and what was missed."""
    chance = random.Random(f"{form} {path.name} {seed}")
    counts: Counter[str] = Counter()
    missed = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, path.name)
            where = changed(path, copy, chance)
            for command, outcome in zip(("diff", "verify"), outcomes(path, copy), strict=True):
                counts[f"{command} {outcome}"] += 1
                if outcome == "missed":
                    missed.append(f"{form}: {path.name}: {command}: {where}")
    return counts, missed


def main(tries: int) -> int:
    """Print the table; 1 where anything was missed."""
    totals: dict[str, Counter[str]] = {}
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for form, path in samples(Path(folder)):
            counts, missed = tried(form, path, tries)
            totals.setdefault(form.partition(",")[0], Counter()).update(counts)
            failures += missed
    columns = [
        f"{command} {outcome}" for command in ("diff", "verify") for outcome in ("seen", "named", "same")
    ]
    rows = [f"| format | changed | {' | '.join(columns)} | missed |", f"| --- |{' ---: |' * 8}"]
    for form, counts in totals.items():
        cells = [counts[column] for column in columns]
        cells.append(counts["diff missed"] + counts["verify missed"])
        shown = " | ".join(f"{cell:,}" for cell in cells)
        rows.append(f"| {form} | {sum(counts.values()) // 2:,} | {shown} |")
    sys.stdout.write("\n".join([*rows, ""]))
    sys.stderr.write("\n".join([*failures, ""]))
    return bool(failures)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
