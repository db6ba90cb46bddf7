"""Checkpoints for the forms of an export, written by hand: modules, state dicts, and files of both kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form, FormExport
from tests.builders import pickles
from tests.unit.remap.samples import NBYTES, legacy_of, stream, written, zip_of

TRUE, FALSE = b"\x88", b"\x89"


def tensor(key: str = "0", *, device: str = "cpu", numel: int = 4, geometry: str = "", **how: str) -> bytes:
    """A tensor over a storage of its own, or a view of it given as `offset;shape;stride`."""
    storage = pickles.storage(key, location=device, numel=numel, **how)
    if not geometry:
        return pickles.tensor(storage, numel)
    offset, shape, stride = (
        [int(number) for number in part.split(",") if number] for part in geometry.split(";")
    )
    return pickles.call(
        "torch._utils._rebuild_tensor_v2",
        storage,
        pickles.number(offset[0]),
        pickles.tuple_(*map(pickles.number, shape)),
        pickles.tuple_(*map(pickles.number, stride)),
        FALSE,
        pickles.call("collections.OrderedDict"),
    )


def mapping(items: dict[str, bytes]) -> bytes:
    return pickles.dict_(*((pickles.text(key), value) for key, value in items.items()))


def ordered(items: dict[str, bytes], metadata: bytes = b"") -> bytes:
    """An OrderedDict, with what torch keeps beside the names."""
    pairs = b"".join(pickles.text(key) + value for key, value in items.items())
    state = mapping({"_metadata": metadata}) + b"b" if metadata else b""
    return pickles.call("collections.OrderedDict") + b"(" + pairs + b"u" + state


def texts(*names: str) -> bytes:
    """A set of texts, as protocol 2 has it."""
    return pickles.call("__builtin__.set", pickles.list_(*map(pickles.text, names)))


def module(
    parameters: dict[str, bytes] | None = None,
    buffers: dict[str, bytes] | None = None,
    modules: dict[str, bytes] | None = None,
    unsaved: tuple[str, ...] = (),
) -> bytes:
    """A whole module, as `torch.save(module)` pickles it."""
    made = pickles.name("mine.Net") + b")\x81"
    state = {
        "training": TRUE,
        "_parameters": ordered(parameters or {}),
        "_buffers": ordered(buffers or {}),
        "_non_persistent_buffers_set": texts(*unsaved),
        "_modules": ordered(modules or {}),
    }
    return made + mapping(state) + b"b"


def numbers(key: str) -> bytes:
    """The bytes of a storage: its own for every key."""
    return bytes((16 * int(key) + place) % 256 for place in range(NBYTES))


def file_of(
    folder: Path, root: bytes, keys: str = "01", *, legacy: bool = False, **how: tuple[str, ...]
) -> Path:
    """A checkpoint with storages of four float32 under these keys."""
    storages = {key: numbers(key) for key in keys}
    data = legacy_of(stream(root), storages) if legacy else zip_of(stream(root), storages, **how)
    return written(folder, data)


def opened(folder: Path, root: bytes, keys: str = "01") -> Checkpoint:
    return open_checkpoint(str(file_of(folder, root, keys)))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def exported(path: Path, form: Form, name: str = "out.pt") -> tuple[Path, FormExport]:
    destination = path.with_name(name)
    return destination, export_form(str(path), destination, None, form, overwrite=True)


class Halved:
    """Casts without torch: keeps every second byte."""

    def __init__(self, dtype: str, _python: str = "") -> None:
        self.dtype = dtype
        self.overflowed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cast(self, chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
        for chunk in chunks:
            self.overflowed += 1
            yield chunk[::2]
