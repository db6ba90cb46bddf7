"""A torch archive without its directory: the records are found again by walking over the file.

The directory of a zip stands at its end, so it is the first thing that a file loses which was not fetched or
written whole, while all that it points to may still be there.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from inspector.containers.container import Container, damage_note
from inspector.containers.foreign.zips import name_zip
from inspector.containers.notes import Note, NoteKind
from inspector.containers.programs import Programs
from inspector.containers.source import Source
from inspector.containers.zip.archive import find_storages, read_object
from inspector.containers.zip.directory import ZipDirectory
from inspector.containers.zip.duplicates import namesakes, read_rivals
from inspector.containers.zip.end import END, END_SIGNATURE, DirectoryError
from inspector.containers.zip.kinds import PICKLE, Records
from inspector.containers.zip.metadata import read_metadata
from inspector.containers.zip.records import read_zip_record
from inspector.containers.zip.torch_words import MinizError, miniz_words
from inspector.containers.zip.walk import ZipWalk
from inspector.errors import CheckpointError, ContainerError, DamagedError, NotACheckpointError, PickleError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import cut_text, escape_text, format_count

_MOST_NAME_CHARS = 80
_ARRAY = ".npy"
_TAIL_NBYTES = (1 << 16) + END.size  # in which Python looks for the end of a zip
_FETCH = "fetch or copy it again; nothing that is left has a name"
# Names by which TorchScript, torch.export and torch.package are told, before or instead of their own marks.
_OTHERS = re.compile(r"[^/]*/(code/|constants\.pkl|models/|data/weights/|\.data/\d+\.storage)")


class Salvage(NamedTuple):
    """What was found in a zip without a directory.

    Attributes:
        container: The checkpoint.
        records: Its records; one that the end of the file cuts off is among them.
    """

    container: Container
    records: Records


def salvage_zip(source: Source, limits: Limits, progress: Progress, error: DamagedError) -> Salvage:
    """Take a torch.save zip apart whose directory is missing, or there but of no use, as an error says."""
    walk = ZipWalk(source, limits, progress)
    walk.run()
    other = next((read for mark, read in _READERS if any(map(mark.match, walk.names))), None)
    if all(name.endswith(_ARRAY) for name in walk.names):
        other = _read_arrays
    if other is not None and walk.entries:
        return _salvage_other(walk, source, limits, progress, (other, error))
    if walk.stream is None or any(map(_OTHERS.match, walk.names)):
        raise _hopeless(walk, source)
    directory = ZipDirectory(entries=tuple(walk.entries), start=source.nbytes, end=source.nbytes)
    records = Records(directory)
    pickle = next(entry for entry in walk.entries if entry.name == records.prefix + PICKLE)
    odd = read_rivals(
        pickle,
        namesakes(pickle, walk.entries),
        lambda rival: read_object(source, rival, limits, progress, "rival"),
    )
    stored = find_storages(source, records, walk.storage_ids, progress).stored
    is_intact = pickle.crc in {0, zlib.crc32(read_zip_record(source, pickle, limits.pickle_nbytes))}
    notes = (
        *_damage(walk, error),
        None if is_intact else Note(NoteKind.WRONG_CHECKSUM),
        damage_note(walk.storage_ids, stored),
    )
    container = Container(
        path=source.path,
        format="zip",
        file_nbytes=source.file_nbytes,
        root=walk.stream.root,
        stream=replace(walk.stream, oddities=(*walk.stream.oddities, *odd)),
        programs=source.programs.all(),
        storage_ids=walk.storage_ids,
        stored=stored,
        versions=read_metadata(source, records.get, records.prefix, walk.names).versions,
        notes=tuple(filter(None, notes)),
        refusal=_words(error),
    )
    return Salvage(container, records)


def _damage(walk: ZipWalk, error: DamagedError) -> tuple[Note, ...]:
    """Return what is wrong with the directory, and whether all of the file was searched."""
    is_missing = isinstance(error, DirectoryError) and error.miniz is MinizError.NO_DIRECTORY
    kind = NoteKind.NO_DIRECTORY if is_missing else NoteKind.BAD_DIRECTORY
    found = Note(kind, (format_count(len(walk.entries), "record"),))
    return (found, Note(NoteKind.SEARCH_ENDED)) if walk.gave_up else (found,)


Reader = Callable[[Source, Records, Limits, Progress, tuple[Note, ...]], Container]


def _salvage_other(
    walk: ZipWalk, source: Source, limits: Limits, progress: Progress, how: tuple[Reader, DamagedError]
) -> Salvage:
    """Take another archive of torch apart by the records that were found."""
    read, error = how
    source.programs = Programs()  # its pickles are read once more
    records = Records(ZipDirectory(entries=tuple(walk.entries), start=source.nbytes, end=source.nbytes))
    try:
        container = read(source, records, limits, progress, _damage(walk, error))
    except (ContainerError, PickleError):
        raise _hopeless(walk, source) from None
    if not container.storage_ids:
        raise _hopeless(walk, source)
    words = _words(error)
    if read is _read_agent:
        words = _words_of_agent(source)
    elif read is _read_arrays:
        words = "BadZipFile: File is not a zip file"
    return Salvage(replace(container, refusal=words), records)


def _read_script(source: Source, records: Records, *how: Any) -> Container:  # noqa: ANN401 - handed on
    from inspector.containers.torchscript.archive import take_apart  # noqa: PLC0415 - few are such

    return take_apart(source, records, *how)


def _read_export(source: Source, records: Records, *how: Any) -> Container:  # noqa: ANN401 - as above
    from inspector.containers.exported.pt2 import open_pt2  # noqa: PLC0415 - as above

    return open_pt2(source, records, *how)


def _read_package(source: Source, records: Records, *how: Any) -> Container:  # noqa: ANN401 - as above
    from inspector.containers.exported.package import open_package  # noqa: PLC0415 - as above

    return open_package(source, records, *how)


def _read_agent(source: Source, records: Records, *how: Any) -> Container:  # noqa: ANN401 - as above
    from inspector.containers.sb3.archive import open_sb3  # noqa: PLC0415 - as above

    return open_sb3(source, records, *how).container


_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (re.compile(r"[^/]*/(code/|constants\.pkl)"), _read_script),
    (re.compile(r"[^/]*/(models/|data/weights/)"), _read_export),
    (re.compile(r"[^/]*/\.data/\d+\.storage"), _read_package),
    (re.compile(r"policy\.pth$|_stable_baselines3_version$"), _read_agent),
)
"""What reads the other archives of torch, by records that are told before their own marks."""


def _read_arrays(source: Source, records: Records, *how: Any) -> Container:  # noqa: ANN401 - as above
    from inspector.containers.arrays.npz import open_npz  # noqa: PLC0415 - as above

    return open_npz(source, records, *how).container


def _words(error: DamagedError) -> str:
    """Return what torch says to the directory, or to the record of the pickle."""
    if isinstance(error, DirectoryError):
        return miniz_words("reading zip archive", error.miniz)
    return miniz_words(f"reading file {PICKLE}", MinizError.CORRUPTED)


def _words_of_agent(source: Source) -> str:
    """Return what Stable-Baselines3 says, which takes the end of a file within for that of the zip."""
    tail = source.read_upto(max(source.nbytes - _TAIL_NBYTES, 0), _TAIL_NBYTES)
    if END_SIGNATURE in tail:
        return "AssertionError: No data found in the saved file"
    return f"ValueError: Error: the file {source.path} wasn't a zip-file"


def _hopeless(walk: ZipWalk, source: Source) -> CheckpointError:
    """Return why nothing of the file can be shown."""
    path, names = source.path, walk.names
    if any(map(_OTHERS.match, names)):
        return DamagedError(
            "this is an archive of TorchScript, torch.export or torch.package that is cut off",
            where=path,
            remedy="fetch or copy it again",
        )
    if walk.pickle_error is not None:
        what = "the file is cut off or damaged within data.pkl, which says what is in it"
        why = walk.pickle_error
        return DamagedError(f"{what}: {why.what}", where=why.where, remedy=_FETCH)
    error = name_zip(names, path)
    if names and error.form != "zip":
        return NotACheckpointError(f"{error.what}, cut off", where=path, remedy=error.remedy, form=error.form)
    first = f", the first is {escape_text(cut_text(names[0], _MOST_NAME_CHARS))}" if names else ""
    return DamagedError(
        "the zip is cut off or damaged, and data.pkl, which says what is in it, is not among what is left",
        where=f"{source.nbytes:,} bytes, {format_count(len(names), 'record')}{first}",
        remedy=_FETCH,
    )
