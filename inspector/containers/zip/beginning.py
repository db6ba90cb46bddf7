"""The beginning of a pickle in a zip of very many records, to be shown while its directory is read.

Nothing is decided here, and nothing that is read stays: the pickle is read anew once all records are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED, ZipEntry, payload_offsets
from inspector.errors import CancelledError, CheckpointError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress

_PICKLE = "data.pkl"
_NBYTES = 1 << 17


def show_beginning(source: Source, entries: Sequence[ZipEntry], limits: Limits, progress: Progress) -> None:
    """Have the first values of a checkpoint shown that stands among the first records, as torch writes it.

    Raises:
        CancelledError: The work was cancelled.
    """
    folder, slash, _ = entries[0].name.partition("/")
    name = folder + slash + _PICKLE
    entry = next((one for one in entries if one.name == name), None)
    if entry is None or entry.method != STORED:
        return
    try:
        (start,) = payload_offsets(source, [entry.header_offset])
        data = b"" if start is None else source.read_upto(start, min(entry.stored_nbytes, _NBYTES))
        Machine(data, name=_PICKLE, limits=limits, progress=progress).run()
    except CancelledError:
        raise
    except CheckpointError:
        pass  # it is only the beginning; what is wrong with the whole is told when that is read
