"""The new archive of what was saved, as torch.save of today lays it out, whatever the damaged file was.

Bytes are summed once more while they are copied: what was whole when it was checked must be so still.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import partial

from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.extents import Extents
from inspector.containers.persistent_ids import NO_DEVICE, parse_storage_id
from inspector.containers.source import Source
from inspector.containers.storage_reader import ExtentReader
from inspector.errors import ExportError
from inspector.pickles.values import Call, PersistentId
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.archive.torch_zip import FOLDER, storage_name, torch_records
from inspector.remap.archive.zip_layout import DEFAULT_ALIGNMENT, Record, write_zip
from inspector.remap.objects.views import StorageName, as_written, storage_class


class Numbering:
    """Numbers the storages in the order of their first use, as torch.save does.

    A storage that torch 0.x knew as a view of another becomes one of its own.

    Attributes:
        keys: The old keys, each at its new number.
    """

    def __init__(self, container: Container, crcs: Mapping[str, int]) -> None:
        """Number the storages of a container, of which those in `crcs` are whole."""
        self._container = container
        self._crcs = crcs
        self._names: dict[str, StorageName] = {}

    @property
    def keys(self) -> list[str]:
        """The old keys in the order of the new ones."""
        return list(self._names)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage."""
        own = parse_storage_id(node)
        if own is None:
            return None
        viewed = own.viewed()
        name = self._names.get(viewed.key)
        if name is None:
            if viewed.key not in self._crcs:
                raise ExportError(
                    "a lost tensor is nested so deeply that it cannot be left out",
                    where=f"storage {viewed.key[:40]!a}",
                )
            first = as_written(self._container.storage_ids.get(viewed.key, viewed))
            cls = storage_class(None if first.untyped else first.dtype)
            numel = viewed.numel if own.view is not None else first.numel
            place = "cpu" if first.location == NO_DEVICE else first.location
            name = StorageName(cls, str(len(self._names)), place, numel)
            self._names[viewed.key] = name
        return name

    def move_view(self, _call: Call) -> int | None:
        """Leave offsets as they are: storages are kept whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Writes one archive.

    Attributes:
        source: The damaged file.
        extents: Where its storages are.
        crcs: The checksums of those that are whole.
        progress: Told of bytes copied, asked for cancellation.
    """

    source: Source
    extents: Extents
    crcs: Mapping[str, int]
    progress: Progress

    def write(self, target: int, pickle: bytes, keys: Sequence[str]) -> None:
        """Write the objects and their storages, by their old keys in the order of the new ones."""
        whole = self.extents.whole
        reader = ExtentReader(self.source)
        storages = [
            Record(
                storage_name(str(number)),
                whole[key].nbytes,
                whole[key].nbytes,
                partial(self._copy, target, key, reader),
            )
            for number, key in enumerate(keys)
        ]
        if self.source.gzipped:  # read forwards only
            order = {storage_name(str(number)): whole[key].offset for number, key in enumerate(keys)}
            storages.sort(key=lambda record: order[record.name])
        byteorder = dict(self.extents.container.versions).get("byteorder")
        records = torch_records(
            FOLDER,
            pickle,
            storages,
            byteorder="big" if byteorder == "big" else "little",
            serialization_id=b"%040d" % zlib.crc32(pickle),
            is_in_order_of_use=not self.source.gzipped,
        )
        self.progress.start("copying", sum(whole[key].nbytes for key in keys))
        write_zip(records, DEFAULT_ALIGNMENT, partial(write_bytes, target))

    def _copy(self, target: int, key: str, reader: ExtentReader) -> int:
        crc = 0
        for data in reader.contents(self.extents.whole[key]):
            crc = zlib.crc32(data, crc)
            self.progress.advance(write_bytes(target, data))
        if crc != self.crcs[key]:
            raise self.source.changed("read")
        return crc
