"""The remap of a file in one call, what torch makes of it, and the classes that genuine files name."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from inspector.containers.opening import read_container
from inspector.model.build import open_checkpoint
from inspector.remap.export import Export, export_copy
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule


class Point(NamedTuple):
    x: int
    y: Any


class Net(torch.nn.Module):
    """Only its class is needed: what is in it comes from the file."""


class SubT(torch.Tensor):
    """A subclass with data of its own."""


def remap(path: Path, *rules: str, move_all: bool = False) -> Path:
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules], move_all=move_all)
    destination = path.with_name(f"{path.stem}-{len(list(path.parent.iterdir()))}.pt")
    done: Export = export_copy(str(path), destination, plan)
    assert done.verified
    return destination


@contextmanager
def replaced(rows: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Put values in the place of others: objects, names of attributes, values."""
    rows = list(rows)
    before = [(place, name, getattr(place, name)) for place, name, _ in rows]
    for place, name, value in rows:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def tagged(tag_of: Callable[[torch.UntypedStorage], str]) -> AbstractContextManager[None]:
    """Let torch.save write other location tags than the truth, by the very way it writes that."""

    def tag(storage: Any) -> str:
        return tag_of(getattr(storage, "_untyped_storage", storage))

    return replaced([(torch.serialization, "location_tag", tag)])


def loaded(path: Path, *, weights_only: bool = False) -> tuple[Any, list[str]]:
    """What torch loads, and the tags it asks for, in order."""
    tags: list[str] = []

    def note(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        tags.append(tag)
        return storage

    return torch.load(path, map_location=note, weights_only=weights_only), tags


def pickle_of(path: Path) -> bytes:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return next(archive.read(name) for name in archive.namelist() if name.endswith("/data.pkl"))
    stream = read_container(str(path)).stream
    return stream.data[: stream.end]


def rezipped(path: Path, out: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Write an archive with other records in the place of its own."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as made:
        for name in old.namelist():
            made.writestr(name, change(name, old.read(name)))
    return out


def retagged(path: Path, tag: str, out: Path) -> Path:
    """A file of TorchScript as a machine with this device would have saved it."""
    new = b"X" + len(tag).to_bytes(4, "little") + tag.encode()
    return rezipped(
        *(path, out),
        lambda name, data: data.replace(b"X\x03\0\0\0cpu", new) if name.endswith(".pkl") else data,
    )


class Name:
    def __init__(self, dotted: str) -> None:
        self.dotted = dotted

    def __call__(self, *args: object) -> Made:
        return Made(self.dotted, args)


class Made:
    """What a call in a pickle would make."""

    def __init__(self, name: str, args: tuple) -> None:
        self.name = name
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        self.args = (*self.args, (key, value))


class _Recording:
    def persistent_load(self, pid: tuple) -> tuple:
        return pid

    def find_class(self, module: str, name: str) -> Name:
        return Name(f"{module}.{name}")


class _C(_Recording, pickle.Unpickler):
    pass


class _Pure(_Recording, pickle._Unpickler):
    pass


def unpickled(data: bytes, *, pure: bool) -> object:
    """What Python's own unpicklers make of a pickle, persistent ids as they are."""
    return (_Pure if pure else _C)(io.BytesIO(data)).load()
