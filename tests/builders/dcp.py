"""Folders of torch's distributed checkpoints made by hand: every place and size may lie."""

from __future__ import annotations

import array
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    list_,
    name,
    new,
    number,
    op,
    proto,
    storage,
    stream,
    text,
    tuple_,
)
from tests.builders.zips import Record, build_zip

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"
FLOAT = "torch.FloatStorage"


def size(*sizes: int) -> bytes:
    return call("torch.Size", tuple_(*map(number, sizes)))


def saved_tensor(
    data: bytes, sizes: Sequence[int], *, strides: Sequence[int] = (), cls: str = FLOAT
) -> bytes:
    """A file of torch.save with one tensor."""
    steps = strides or [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    itemsize = 4 if cls == FLOAT else 8
    root = call(
        "torch._utils._rebuild_tensor_v2",
        storage("0", cls, numel=len(data) // itemsize),
        number(0),
        tuple_(*map(number, sizes)),
        tuple_(*map(number, steps)),
        op("NEWFALSE"),
        call("collections.OrderedDict"),
    )
    return saved_zip(stream(proto(), root), {"0": data})


def saved_value(push: bytes) -> bytes:
    """A file of torch.save with any other value."""
    return saved_zip(stream(proto(), push))


def saved_zip(pickle: bytes, storages: Mapping[str, bytes] | None = None, *more: Record) -> bytes:
    """A zip as torch writes it, with the end record of Zip64."""
    return build_zip(
        Record(name="archive/data.pkl", data=pickle),
        *(Record(name=f"archive/data/{key}", data=data) for key, data in (storages or {}).items()),
        Record(name="archive/version", data=b"3\n"),
        *more,
        zip64=True,
    )


def tensor_entry(
    sizes: Sequence[int], chunks: Sequence[tuple[Sequence[int], Sequence[int]]], dtype: str = "torch.float32"
) -> bytes:
    encoding = call(f"{METADATA}._MEM_FORMAT_ENCODING", number(0))
    layout = call("torch.serialization._get_layout", text("torch.strided"))
    properties = (
        name(f"{METADATA}.TensorProperties")
        + op("EMPTY_TUPLE")
        + op("NEWOBJ")
        + tuple_(name(dtype), layout, op("NEWFALSE"), encoding, op("NEWFALSE"))
        + op("BUILD")
    )
    boxes = [
        new(
            f"{METADATA}.ChunkStorageMetadata",
            (text("offsets"), size(*starts)),
            (text("sizes"), size(*extents)),
        )
        for starts, extents in chunks
    ]
    return new(
        f"{METADATA}.TensorStorageMetadata",
        (text("properties"), properties),
        (text("size"), size(*sizes)),
        (text("chunks"), list_(*boxes)),
    )


def index_of(flat: str, start: Sequence[int] | None) -> bytes:
    offset = () if start is None else ((text("offset"), size(*start)),)
    return new(f"{METADATA}.MetadataIndex", (text("fqn"), text(flat)), (text("index"), NONE), *offset)


def place_of(path: str, offset: int, length: int, transforms: Sequence[str] = ()) -> bytes:
    more = ((text("transform_descriptors"), list_(*map(text, transforms))),) if transforms else ()
    return new(
        f"{FILESYSTEM}._StorageInfo",
        (text("relative_path"), text(path)),
        (text("offset"), number(offset)),
        (text("length"), number(length)),
        *more,
    )


@dataclass(slots=True, kw_only=True)
class Saved:
    """What is in a folder, while it is put together: files, and what `.metadata` says of names and places."""

    files: dict[str, bytearray] = field(default_factory=dict)
    entries: dict[str, bytes] = field(default_factory=dict)
    places: list[tuple[bytes, bytes]] = field(default_factory=list)
    paths: dict[str, tuple[str | int, ...]] = field(default_factory=dict)

    def put(self, file: str, data: bytes, flat: str, start: Sequence[int] | None = None) -> None:
        """Append a chunk or a value to a file, and note where it is."""
        body = self.files.setdefault(file, bytearray())
        self.places.append((index_of(flat, start), place_of(file, len(body), len(data))))
        body += data

    def tensor(
        self, flat: str, sizes: Sequence[int], *chunks: tuple[str, Sequence[int], Sequence[int]]
    ) -> None:
        """Add a tensor of float32 that counts its elements, in chunks: file, start, sizes."""
        steps = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        for file, start, extents in chunks:
            first = sum(at * step for at, step in zip(start, steps, strict=True))
            self.put(file, saved_tensor(floats(extents, steps, first), extents), flat, start)
        self.entries[flat] = tensor_entry(sizes, [(start, extents) for _, start, extents in chunks])

    def value(self, flat: str, push: bytes, file: str = "__0_0.distcp") -> None:
        self.put(file, saved_value(push), flat)
        self.entries[flat] = new(f"{METADATA}.BytesStorageMetadata")

    def metadata(self) -> bytes:
        paths = {flat: self.paths.get(flat, (flat,)) for flat in self.entries}
        return metadata(self.entries, self.places, paths)

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        (folder / ".metadata").write_bytes(self.metadata())
        for file, data in self.files.items():
            (folder / file).write_bytes(data)
        return folder


def metadata(
    entries: Mapping[str, bytes],
    places: Sequence[tuple[bytes, bytes]],
    paths: Mapping[str, tuple[str | int, ...]],
) -> bytes:
    keys = [
        (text(flat), tuple_(*(text(step) if isinstance(step, str) else number(step) for step in path)))
        for flat, path in paths.items()
    ]
    return stream(
        proto(),
        new(
            f"{METADATA}.Metadata",
            (text("state_dict_metadata"), dict_(*((text(flat), entry) for flat, entry in entries.items()))),
            (text("planner_data"), dict_(*keys)),
            (text("storage_data"), dict_(*places)),
            (text("version"), text("1.0.0")),
        ),
    )


def floats(sizes: Sequence[int], steps: Sequence[int], first: int) -> bytes:
    """The elements of a box, each the number that it has in the whole."""
    found = [first]
    for extent, step in zip(sizes, steps, strict=True):
        found = [at + number * step for at in found for number in range(extent)]
    return array.array("f", found).tobytes()


def two_ranks() -> Saved:
    """A checkpoint of two ranks: rows, columns, a grid, a whole tensor and values."""
    saved = Saved()
    saved.value("step", number(7))
    saved.value("names", list_(text("a"), text("b")), "__1_0.distcp")
    saved.tensor("model.rows", (4, 3), ("__0_0.distcp", (0, 0), (3, 3)), ("__1_0.distcp", (3, 0), (1, 3)))
    saved.tensor("model.columns", (3, 4), ("__0_0.distcp", (0, 0), (3, 1)), ("__1_0.distcp", (0, 1), (3, 3)))
    saved.tensor("scale", (), ("__1_0.distcp", (), ()))
    saved.tensor("empty", (0, 2), ("__0_0.distcp", (0, 0), (0, 2)))
    saved.paths = {"model.rows": ("model", "rows"), "model.columns": ("model", "columns")}
    return saved
