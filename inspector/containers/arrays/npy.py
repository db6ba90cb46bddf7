"""One array of NumPy in a file of its own, as `numpy.save` writes it.

An array of objects is a pickle behind its header (`read_array` in NumPy's `numpy/lib/_format_impl.py`), which
`numpy.load` refuses unless it is told to run what it names.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from inspector.containers.arrays.listing import Arrays
from inspector.containers.arrays.npy_header import Header, read_header
from inspector.containers.container import Container, Extent, damage_note
from inspector.containers.notes import Note, NoteKind
from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED
from inspector.errors import ContainerError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.machine import Machine
from inspector.pickles.values import Value
from inspector.progress import Progress

OBJECTS = "pickle"
_KEY = "0"
_FIRST_READ_NBYTES = 1 << 16
_NO_PICKLES = "ValueError: Object arrays cannot be loaded when allow_pickle=False"


def read_npy(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a file of one array apart; errors as those of `open_npy`."""
    return open_npy(source, limits, progress)[0]


def find_swapped(source: Source) -> Callable[[str], Extent | None]:
    """Return what finds the bytes of an array whose numbers stand the other way round."""
    return open_npy(source, DEFAULT_LIMITS, Progress())[1].extents.get


def open_npy(source: Source, limits: Limits, progress: Progress) -> tuple[Container, Arrays]:
    """Take a file of one array apart, and return where its bytes are."""
    limits = limits.started(progress.advance)
    try:
        header = read_header(source, limits.counted(progress.advance).look)
    except ContainerError as error:
        source.programs.miss("what stands behind its header", error.what)
        raise
    arrays = Arrays(limits)
    left = max(source.nbytes - header.start, 0)
    if header.type.has_objects:
        root = read_objects(source, header.start, OBJECTS, limits, progress)
    else:
        root = arrays.add(_KEY, header, Extent(header.start, left, left, STORED, 0))
    container = Container(
        path=source.path,
        format="npy",
        file_nbytes=source.file_nbytes,
        root=root,
        programs=source.programs.all(),
        storage_ids=arrays.storage_ids,
        stored=arrays.stored,
        versions=(("npy", header.version),),
        notes=tuple(_notes(header, left, arrays)),
        refusal=_refusal(header, left),
    )
    return container, arrays


def read_objects(source: Source, start: int, name: str, limits: Limits, progress: Progress) -> Value:
    """Read the pickle that an array of objects is; nothing in it is run."""

    def extend(nbytes: int) -> bytes:
        return source.read_upto(start, min(2 * nbytes + _FIRST_READ_NBYTES, limits.pickle_nbytes))

    machine = Machine(extend(0), name=name, limits=limits, progress=progress, extend=extend)
    return source.programs.run(machine, name, "object").root


def _notes(header: Header, left: int, arrays: Arrays) -> list[Note]:
    lost = damage_note(arrays.storage_ids, arrays.stored)
    notes = [] if lost is None else [lost]
    if arrays.is_swapped:
        notes.append(Note(NoteKind.SWAPPED))
    if header.type.has_objects:
        return [*notes, Note(NoteKind.OBJECT_ARRAYS, ("Its elements are objects",))]
    more = left - header.type.nbytes * prod(header.shape)
    return [*notes, Note(NoteKind.BEHIND_ARRAY, (f"{more:,}",))] if more > 0 else notes


def _refusal(header: Header, left: int) -> str:
    """Return what `numpy.load` says to a file that it does not take."""
    if header.is_long:
        return "ValueError: Header info length is large and may not be safe to load securely."
    if header.type.has_objects:
        return _NO_PICKLES
    nbytes = header.type.nbytes
    if nbytes * prod(header.shape) <= left or not nbytes:
        return ""
    expected = f"{header.shape} = {prod(header.shape)}"
    return (
        f"ValueError: Failed to read all data for array. Expected {expected} elements, could only read "
        f"{left // nbytes} elements. (file seems not fully written?)"
    )
