"""Folders of `torch.distributed.checkpoint` whose values, chunks or metadata run something.

torch 2.13: `FileSystemReader.read_metadata` unpickles `.metadata` without a list, and
`DefaultLoadPlanner.load_bytes` calls `torch.load(weights_only=False)` for each value. Chunks of tensors were
loaded by the default of `torch.load` in older releases, which is played here by a call of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.builders import dcp
from tests.builders.pickles import call, dict_, new, number, text, tuple_
from tests.hostile.loaders.case import EVIL, Case, payload, zipped

_FILE = "__0_0.distcp"
_LOAD = """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import BytesStorageMetadata
try:
    metadata = FileSystemReader(path).read_metadata()
except Exception:
    metadata = FileSystemReader(path).read_metadata(rank=0)
for name, entry in metadata.state_dict_metadata.items():
    if isinstance(entry, BytesStorageMetadata):
        try:
            dcp.load({name: None}, checkpoint_id=path, no_dist=True)
        except BaseException as error:  # torch's own for errors of ranks is no Exception
            print(error)
"""
_RANK = (
    "from torch.distributed.checkpoint import FileSystemReader\nFileSystemReader(path).read_metadata(rank=0)"
)
_CHUNKS = """
import io, pickle, torch
from torch.distributed.checkpoint import FileSystemReader
reader = FileSystemReader(path)
for info in reader.read_metadata().storage_data.values():
    data = open(f'{path}/{info.relative_path}', 'rb').read()[info.offset:][:info.length]
    torch.load(io.BytesIO(data), weights_only=False)  # checkpoint/filesystem.py of torch 2.1 to 2.3
"""


FORMS: dict[str, bytes] = {
    "a zip": zipped("data.pkl"),
    "DATA.PKL": zipped("DATA.PKL"),
    **{f"a pickle of protocol {protocol}": payload(protocol) for protocol in range(6)},
    "a pickle behind a pickle": payload() + b"\x80\x02N.",
}


def _saved() -> dcp.Saved:
    saved = dcp.Saved()
    saved.tensor("model.weight", (2, 2), (_FILE, (0, 0), (2, 2)))
    saved.value("step", number(7))
    return saved


def _entry(saved: dcp.Saved, name: str = "extra") -> None:
    saved.entries[name] = new(f"{dcp.METADATA}.BytesStorageMetadata")


def _place(saved: dcp.Saved, data: bytes, path: str = _FILE, *, more: int = 0) -> None:
    """Append data to the first file, and say that a value is there, in a file of some path."""
    body = saved.files.setdefault(_FILE, bytearray())
    place = dcp.place_of(path, len(body), len(data) + more)
    saved.places.append((dcp.index_of("extra", None), place))
    body += data


def _linked(saved: dcp.Saved, data: bytes, folder: Path, *, is_folder: bool) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "x").write_bytes(saved.files[_FILE] + data)
    (folder / "a").mkdir()
    (folder / "a" / "link").symlink_to(folder / "b" if is_folder else folder / "b" / "x")
    _place(saved, data, "link/x" if is_folder else "link")


def _elsewhere(saved: dcp.Saved, data: bytes, folder: Path, *, place: str, said: str = "") -> None:
    """The file is at some place below the folder of the case, and said to be at another."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(saved.files[_FILE] + data)
    _place(saved, data, said or str(path))


def _dots(saved: dcp.Saved, data: bytes, folder: Path) -> None:
    (folder / "a" / "sub").mkdir(parents=True)
    _place(saved, data, f"sub/../{_FILE}")


def _in_a_tensors_place(saved: dcp.Saved, data: bytes, folder: Path) -> None:
    """The value has two entries that are one key to a reader that takes any start that is none for None."""
    _place(saved, data)
    saved.value("harmless", number(1))
    key, place = saved.places[-1]
    odd = call("torch.Size", tuple_(number(-1)))
    key = new(f"{dcp.METADATA}.MetadataIndex", (text("fqn"), text("extra")), (text("offset"), odd))
    saved.places[-1] = key, place


def _twice(saved: dcp.Saved, data: bytes, folder: Path) -> None:
    saved.value("extra", number(1))
    _place(saved, data)


PLACES: dict[str, Callable[[dcp.Saved, bytes, Path], None]] = {
    "in its place": lambda saved, data, folder: _place(saved, data),
    "past the end of its file": lambda saved, data, folder: _place(saved, data, more=100),
    "by a path with dots": _dots,
    "by a path with two slashes": lambda saved, data, folder: _place(saved, data, f".//{_FILE}"),
    "by an absolute path": partial(_elsewhere, place="other"),
    "beside the folder": partial(_elsewhere, place="other", said="../other"),
    "deep in the folder": partial(_elsewhere, place="a/1/2/3/4/5/6/x", said="1/2/3/4/5/6/x"),
    "through a link": partial(_linked, is_folder=False),
    "through a linked folder": partial(_linked, is_folder=True),
    "beside an entry with an odd start": _in_a_tensors_place,
    "as the second of two": _twice,
}
ZIPS_ONLY = {"past the end of its file"}  # a zip needs its end; what is unpickled is over before it


def _value(form: str, place: str, folder: Path) -> Path:
    saved = _saved()
    PLACES[place](saved, FORMS[form], folder)
    _entry(saved)
    return saved.write(folder / "a")


def _metadata(change: Callable[[bytes], bytes], rank: str, folder: Path) -> Path:
    path = _saved().write(folder / "a")
    whole = (path / ".metadata").read_bytes()
    (path / f"{rank}.metadata").write_bytes(change(whole))
    return path


def _rank_alone(folder: Path) -> Path:
    path = _metadata(_in_front, "", folder)
    (path / ".metadata").rename(path / "__0.metadata")
    return path


def _fallback(folder: Path) -> Path:
    """`.metadata` cannot be read by Python, but by readers that only know the names of its classes."""
    saved = _saved()
    path = saved.write(folder / "a")
    whole = (path / ".metadata").read_bytes()
    broken = whole[:2] + new("pathlib.PosixPath", (text("x"), number(1))) + b"0" + whole[2:]
    _place(saved, FORMS["a zip"])
    _entry(saved)
    saved.write(path)
    (path / ".metadata").rename(path / "__0.metadata")
    (path / ".metadata").write_bytes(broken)
    return path


def _changed_later(folder: Path) -> Path:
    """Where a value is was changed after `__dict__` got a copy of it."""
    saved = _saved()
    data = FORMS["a zip"]
    start = len(saved.files[_FILE])
    saved.value("harmless", number(1))
    saved.files[_FILE] += data
    at = len(saved.files[_FILE]) - len(data)
    true = dict_(
        *((text("relative_path"), text(_FILE)), (text("offset"), number(at))),
        (text("length"), number(len(data))),
    )
    later = b"h\x63" + text("offset") + number(start) + b"s" + text("length") + number(at - start)
    info = b"c" + f"{dcp.FILESYSTEM}\n_StorageInfo\n".encode() + b")\x81" + true + b"q\x63b"
    saved.places.append((dcp.index_of("extra", None), info + b"h\x63" + later[2:] + b"s0"))
    _entry(saved)
    return saved.write(folder / "a")


def _in_front(whole: bytes) -> bytes:
    return whole[:2] + EVIL + b"0" + whole[2:]


def _chunk(form: str, folder: Path) -> Path:
    saved = dcp.Saved()
    saved.value("step", number(7))
    saved.put(_FILE, FORMS[form], "model.weight", (0, 0))
    saved.entries["model.weight"] = dcp.tensor_entry((2, 2), [((0, 0), (2, 2))])
    return saved.write(folder / "a")


def _cases() -> Iterator[Case]:
    loader = "torch.distributed.checkpoint.load"
    for place in PLACES:
        for form in FORMS:
            if form == "a zip" or place not in ZIPS_ONLY:
                yield Case(f"{form} {place}", "dcp", loader, partial(_value, form, place), _LOAD)
    changes: dict[str, Callable[[bytes], bytes]] = {
        "in front": _in_front,
        "at the end": lambda whole: whole[:-1] + EVIL + b"0.",
        **{f"instead, protocol {old}": lambda _, old=old: payload(old) for old in range(6)},
    }
    for name, change in changes.items():
        for whose, rank, load in (("", "", _LOAD), ("a rank's ", "__0", _RANK)):
            title = f"{whose}metadata with a call {name}"
            write = partial(_metadata, change, rank)
            yield Case(title, "dcp", "FileSystemReader.read_metadata", write, load)
    yield Case("metadata of a rank alone", "dcp", "FileSystemReader.read_metadata", _rank_alone, _RANK)
    yield Case("metadata that only Python cannot read", "dcp", loader, _fallback, _LOAD)
    yield Case("a place that is changed later", "dcp", loader, _changed_later, _LOAD)
    for form in FORMS:
        yield Case(f"{form} as a chunk", "dcp", "torch.load of older torch", partial(_chunk, form), _CHUNKS)


CASES = tuple(_cases())
