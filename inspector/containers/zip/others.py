"""What other readers than its own run of a zip: object arrays, and pickles beside the one that torch reads.

`numpy.load` opens every zip as an archive of arrays (`NpzFile` in NumPy's `numpy/lib/_npyio_impl.py`),
`torch.package` unpickles any resource, and owners of zips with several pickles unpickle them one by one. A
record of torch.save's own is none of these, whatever is in it: nobody asks those readers for one.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.containers.arrays.npy import read_objects
from inspector.containers.arrays.npy_header import MAGIC, read_header
from inspector.containers.inner.record import open_record
from inspector.containers.source import Source
from inspector.containers.unread import within_bounds
from inspector.containers.zip.directory import ZipEntry
from inspector.errors import BrokenOffError, ContainerError, InvalidPickleError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress

_FIRST_READ_NBYTES = 1 << 16
_MOST_RECORDS = 64


def read_for_others(source: Source, entries: Iterable[ZipEntry], limits: Limits, progress: Progress) -> None:
    """Read what other readers run of these records, and keep it as rivals among the source's programs.

    Args:
        source: The zip.
        entries: The records, see `Records.for_others`.
        limits: The bounds of reading.
        progress: Asked for cancellation.
    """
    limits, left = within_bounds(limits), _MOST_RECORDS
    for entry in entries:
        progress.advance(0)
        if not left:
            source.programs.miss("further records for other readers", f"{_MOST_RECORDS} are read")
            return
        left -= 1
        try:
            _read(source, entry, limits, progress)
        except (BrokenOffError, InvalidPickleError):
            continue  # every unpickler stops there
        except (ContainerError, PickleError) as error:
            source.programs.miss(entry.name, error.what)


def _read(source: Source, entry: ZipEntry, limits: Limits, progress: Progress) -> None:
    inside = open_record(source, entry, limits)
    if inside.read_upto(0, len(MAGIC)) == MAGIC:
        header = read_header(inside, limits.counted(progress.advance).look)
        if header.type.has_objects:
            name = f"{entry.name}, which numpy.load reads"
            try:
                read_objects(inside, header.start, name, limits, progress)
            finally:
                source.programs.adopt(inside.programs, name, "rival")
        return

    def extend(nbytes: int) -> bytes:
        return inside.read_upto(0, min(2 * nbytes + _FIRST_READ_NBYTES, limits.pickle_nbytes))

    machine = Machine(extend(0), name=entry.name, limits=limits, progress=progress, extend=extend)
    source.programs.run(machine, f"{entry.name}, which torch.package or pickle.load reads", "rival")
