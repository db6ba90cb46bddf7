"""Which format a file is of, told from its first bytes, in the order that keeps the formats apart."""

from __future__ import annotations

import os.path
from collections.abc import Callable

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.gzip_inside import MAGIC as GZIP_MAGIC
from inspector.containers.legacy import makes_magic, read_legacy
from inspector.containers.nested import read_nested
from inspector.containers.source import GzipSource, Source
from inspector.containers.tar.sniff import passes_for_tar
from inspector.containers.unread import programs_on_errors, read_other_format, within_bounds
from inspector.containers.zip.archive import read_torchzip
from inspector.errors import NotACheckpointError, UnsupportedFormatError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.notes import Note
from inspector.progress import Progress
from inspector.records import dataclass, replace

Reader = Callable[[Source, Limits, Progress], Container]
HEAD_NBYTES = 2048
_LOOK_NBYTES = 4096
_TWO_FORMATS = "The file is of two formats at once, and programs differ in which of them they read."

# The first pickle of a legacy file, an integer, as each protocol writes it: in a frame from 4 on.
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_LEGACY = (
    b"\x80\x02" + _MAGIC,
    b"\x80\x03" + _MAGIC,
    b"\x80\x04\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"\x80\x05\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"L119547037146038801333356L\n.",
)


def _read_tar(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.tar.archive import read_tar  # noqa: PLC0415 - files of 2017 are rare

    return read_tar(source, limits, progress)


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table: how to tell a format, and what reads it or why nothing does.

    Attributes:
        matches: Says whether the first bytes of a file are of this format.
        read: The reader, or None for a format that is only named.
        what: The format's name with its article, for the message.
        remedy: What to do with a file that is only named.
        name: The word of `show --json` for it.
    """

    matches: Callable[[bytes], bool]
    read: Reader | None
    what: str
    remedy: str = ""
    name: str | None = None


FORMATS: tuple[Format, ...] = (
    Format(lambda head: head.startswith(b"PK\x03\x04"), read_torchzip, "a torch.save zip"),
    Format(lambda head: head.startswith(_LEGACY), read_legacy, "a legacy checkpoint"),
    Format(
        lambda head: head[8:9] == b"{" and 0 < int.from_bytes(head[:8], "little") <= 100_000_000,
        None,
        "a safetensors file",
        "load it with safetensors.torch.load_file; it holds no device",
        "safetensors",
    ),
    Format(
        lambda head: head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05",
        None,
        "a plain pickle, not written by torch.save",
        "load it with the program that wrote it",
        "pickle",
    ),
)


def read_container(path: str, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None) -> Container:
    """Open a file and take it apart. The file is closed again before this returns.

    Raises:
        CheckpointError: The file is missing, no checkpoint, of a format that is not read, or damaged.
        CancelledError: The work was cancelled.
    """
    progress = progress or Progress()
    progress.start("reading")
    with (
        collector_paused(),
        open_source(path, limits) as source,
        programs_on_errors(source, limits, progress),
    ):
        container = find_reader(source)(source, limits, progress)
        if read_other_format(source, container.format, limits, progress):
            container = _as_ambiguous(container)
        read_nested(source.programs, within_bounds(limits), progress)
        return replace(container, programs=source.programs.all(), stamp=source.stamp)


def _as_ambiguous(container: Container) -> Container:
    """Return a container of which programs read different things, since it answers to two formats."""
    note = Note("two-formats", 0, _TWO_FORMATS[:-1].lower())
    stream = replace(container.stream, notes=(*container.stream.notes, note))
    return replace(
        container,
        stream=stream,
        notes=(*container.notes, _TWO_FORMATS),
        marks=container.marks | {"ambiguous"},
    )


def find_reader(source: Source) -> Reader:
    """Say who reads a file, or what it is instead of a checkpoint.

    Raises:
        ContainerError: It is no checkpoint, or of a format that is not read.
    """
    head = source.read_upto(0, HEAD_NBYTES)
    form = next((form for form in FORMATS if form.matches(head)), None)
    if (form is None or form.read is not read_torchzip) and passes_for_tar(source):
        return _tar_reader(source)
    if form is None or form.read is None:
        if makes_magic(source):
            return read_legacy
        _refuse_lookalike(source)
    if form is None:
        raise NotACheckpointError(
            "this is no checkpoint that torch.save wrote",
            where=source.path,
            remedy="ask where it comes from, or fetch it again",
        )
    return _reader_of(form, source)


def _tar_reader(source: Source) -> Reader:
    """Return the reader of tar checkpoints.

    Raises:
        NotACheckpointError: It is a tar archive of something else.
    """
    from inspector.containers.tar.members import INFO, NEEDED, list_members  # noqa: PLC0415 - few are tar files

    if any(info.name in {INFO, *NEEDED} for info in list_members(source)):
        return _reader_of(Format(lambda _head: True, _read_tar, "a tar checkpoint of torch 0.1"), source)
    _refuse_lookalike(source)
    raise NotACheckpointError(
        "this is a tar archive",
        where=source.path,
        remedy="unpack it with tar xf, and open what is inside",
        form="tar",
    )


def _refuse_lookalike(source: Source) -> None:
    """Say what a file is instead of a checkpoint, if that is known.

    Raises:
        ContainerError: It is known.
    """
    from inspector.containers.foreign.table import name_lookalike  # noqa: PLC0415 - healthy files never need it
    from inspector.containers.foreign.text import Look  # noqa: PLC0415 - the same

    head = source.read_upto(0, _LOOK_NBYTES)
    if not head:
        raise NotACheckpointError(
            "the file is empty", where=source.path, remedy="fetch or copy it again", form="empty"
        )
    name = os.path.basename(source.path)  # noqa: PTH119 - the path is a text, maybe of no file name at all
    error = name_lookalike(Look(head, source.file_nbytes, name), source.path)
    if error is None:
        return
    if source.gzipped:
        error.what += ", packed with gzip"
    raise error


def open_source(path: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """Open a file for reading, looking through gzip.

    Raises:
        ContainerError: It is missing, unreadable or no regular file.
    """
    source = Source(path)
    if source.read_upto(0, len(GZIP_MAGIC)) != GZIP_MAGIC:
        return source
    source.close()
    return GzipSource(path, limits)


def _reader_of(form: Format, source: Source) -> Reader:
    if form.read is None:
        raise UnsupportedFormatError(
            f"this is {form.what}, which this version does not read",
            where=source.path,
            remedy=form.remedy,
            form=None if source.gzipped else form.name,
        )
    if source.gzipped and form.read is not read_legacy:
        raise UnsupportedFormatError(
            "this is a gzip file", where=source.path, remedy="unpack it with gunzip first"
        )
    return form.read
