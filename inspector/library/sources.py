"""What the functions of the library take, and what is known of an open checkpoint."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, TypeAlias
from weakref import finalize

from inspector.containers.collector import collector_paused
from inspector.containers.packed import looked_through
from inspector.containers.source import BytesSource, Source
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint as Facts
from inspector.model.checkpoint import Storage
from inspector.model.findings import Finding
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.rules import Rule, parse_rule
from inspector.safety.unread import advice, judge_unread
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.safety.words import LEVELS
from inspector.target.profile import Profile
from inspector.target.profile_file import probe_this_machine
from inspector.target.wish import Wish
from inspector.units import cut_text, escape_text
from inspector.values.asking import end_staying_reader
from inspector.values.request import Requests
from inspector.values.tensor_bytes import TensorBytes, close_kept, open_bytes

if TYPE_CHECKING:
    from inspector.library.checkpoint import Checkpoint


class Opened:
    """A file as it was when it was opened, and what follows from that, computed when it is asked for.

    Attributes:
        facts: Everything known of the file, under the name that it was opened by.
        seconds: How long that took.
    """

    def __init__(self, path: str, progress: Progress | None = None, data: bytes | None = None) -> None:
        """Open a file, or the contents of one.

        Raises:
            CheckpointError: It cannot be read.
        """
        self._file = os.path.abspath(path)  # noqa: PTH100 - a text that may be no UTF-8
        self._folder = os.getcwd()  # noqa: PTH109 - the same
        self._data = data
        started = time.perf_counter()
        with telling_what_runs(), collector_paused():
            source = path if data is None else _in_memory(data)
            self.facts = open_checkpoint(source, progress=progress, beside=data is None)
        self.seconds = time.perf_counter() - started

    @override
    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs; the file that was made of bytes goes with this one."""
        kept = {"facts", "seconds", "_file", "_folder", "_data"}
        return {name: value for name, value in vars(self).items() if name in kept}

    @contextmanager
    def stored_bytes(self) -> Iterator[TensorBytes]:
        """Yield what reads the storages of the file, which must be as it was, or of the bytes."""
        if self._data is None:
            with open_bytes(**self.requests.file) as opened:
                yield opened
            return
        free: list[TensorBytes] = vars(self).setdefault("_free", [])  # one for each thread that reads
        try:
            opened = free.pop()
        except IndexError:
            opened = TensorBytes(_in_memory(self._data))
        yield opened
        free.append(opened)

    @property
    def is_file(self) -> bool:
        """Whether it is a file of the user, which may be changed."""
        return self._data is None

    @property
    def file(self) -> str:
        """Its absolute path: the working directory may change before it is read again.

        Bytes are written into a file for those who need one, which goes with the checkpoint.
        """
        return self._file if self._data is None else self._written

    @cached_property
    def _written(self) -> str:
        from tempfile import mkstemp  # noqa: PLC0415 - few open bytes

        descriptor, path = mkstemp(prefix="checkpoint-")
        finalize(self, _remove, path, os.getpid())
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._data or b"")
        return path

    def close(self) -> None:
        """Close the file that is kept open, end the child process, and remove the file of bytes."""
        path = vars(self).pop("_written", None)
        if path is not None:
            _remove(path, os.getpid())
            vars(self).pop("located", None)  # which names it
        close_kept()
        end_staying_reader()

    @cached_property
    def requests(self) -> Requests:
        """What asks for the numbers of its tensors."""
        return Requests(self.located if self.is_file else self.facts)

    @cached_property
    def located(self) -> Facts:
        """The same facts under the absolute path, of a folder and the files with its storages."""
        facts = replace(self.facts, path=self.file)
        if not facts.parts:
            return facts
        return replace(facts, storages=tuple(map(self._located_storage, facts.storages)))

    def _located_storage(self, storage: Storage) -> Storage:
        part = os.path.join(self._folder, storage.part) if storage.part else ""  # noqa: PTH118 - as above
        return storage._replace(part=part)

    @cached_property
    def safety(self) -> SafetyVerdict:
        """The verdict on what loading it runs."""
        return judge(self.facts)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What its owner should know, worst first."""
        return diagnose(self.facts, self.safety)


def _in_memory(data: bytes) -> Source:
    return looked_through(BytesSource(data, IN_MEMORY))


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a fork ends too, and earlier
        with suppress(OSError):
            os.remove(path)  # noqa: PTH107 - a text


@contextmanager
def telling_what_runs() -> Iterator[None]:
    """Add to an error what loading the file would run all the same, where any of it was seen.

    An advice that would have somebody load such a file is taken back.
    """
    try:
        yield
    except CheckpointError as error:
        seen = judge_unread(error) if error.programs else None
        if seen is not None:
            error.remedy = advice(error, seen) or None
            if seen.sentence:
                error.add_note(f"{LEVELS[seen.verdict].upper()}: {seen.sentence}")
        raise


Path = str | os.PathLike[str]
"""The path of a file or folder."""
Readable: TypeAlias = "Path | bytes | bytearray | memoryview | BinaryIO"
"""What `open` takes: a path, the contents of a file, or a file that is open for reading."""
IN_MEMORY = "<bytes>"
CheckpointLike: TypeAlias = "Path | Checkpoint"
"""A path, or an open checkpoint."""
Map = str | Sequence[str] | Mapping[str, str]
"""Rules: `"cuda:*=cpu"`, several of them in a list, or `{"cuda:*": "cpu"}`; the first match counts."""

_MOST_CHARS = 120
_BY_PLACE = ("path:", "role:", "dtype:")


def path_of(source: CheckpointLike) -> str:
    """Return the path of a checkpoint that is to be read again; absolute where it is open already."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    return source._opened.file  # noqa: SLF001 - one library


def changed_path_of(source: CheckpointLike) -> str:
    """Return the path of a checkpoint that is to be changed itself.

    Raises:
        PlanError: It was opened from bytes.
    """
    if not isinstance(source, str | os.PathLike) and not source._opened.is_file:  # noqa: SLF001 - one library
        raise PlanError("it was opened from bytes: there is no file to change", remedy="write a copy")
    return path_of(source)


def content_of(source: Readable) -> tuple[str, bytes | None]:
    """Return the path that `open` was given, or the bytes, or those that a file object has left.

    Raises:
        TypeError: It is none of them.
    """
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source), None
    if isinstance(source, bytes | bytearray | memoryview):
        return IN_MEMORY, bytes(source)
    if not hasattr(source, "read"):
        kind = type(source).__name__
        raise TypeError(f"a checkpoint is a path, bytes or a file that is open for reading, not {kind}")
    path = _path_behind(source)
    if path is not None:
        return path, None
    data = source.read()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"reading the file gave {type(data).__name__}, not bytes: open it with mode 'rb'")
    return IN_MEMORY, bytes(data)


def _path_behind(file: BinaryIO) -> str | None:
    """Return the path of a file that is open from its beginning; None for anything else."""
    name = getattr(file, "name", None)
    try:
        is_same = isinstance(name, str) and os.path.samestat(os.fstat(file.fileno()), os.stat(name))  # noqa: PTH116
        return name if is_same and file.tell() == 0 and "b" in str(getattr(file, "mode", "")) else None
    except (OSError, AttributeError, ValueError):  # a pipe, a buffer, a path that leads elsewhere by now
        return None


def opened_of(source: CheckpointLike, progress: Progress | None = None) -> Opened:
    """Return what is known of a checkpoint; a path is opened.

    Raises:
        CheckpointError: It cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return Opened(os.fsdecode(source), progress)
    return source._opened  # noqa: SLF001 - the same


def rules_of(given: Map) -> tuple[Rule, ...]:
    """Read a map.

    Raises:
        PlanError: A rule is malformed, or torch would refuse its destination.
    """
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        given = [f"{what}{'@' if what.startswith(_BY_PLACE) else '='}{to}" for what, to in given.items()]
    return tuple(parse_rule(text) for text in given)


def texts_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text or several as several."""
    return (given,) if isinstance(given, str) else tuple(given)


def shown(text: str) -> str:
    """Return a text from a file for one line: cut, in quotes, with nothing invisible in it."""
    return f"'{escape_text(cut_text(text, _MOST_CHARS))}'"


def machine_of(wish: Wish, python: Path | None, progress: Progress | None = None) -> Profile:
    """Return the machine that is wished for; this one is asked in the Python that runs, if none is named.

    Raises:
        PlanError: The machine lacks what is wanted, or there is no such Python.
        CheckpointError: torch gave no answer about this machine.
    """
    named = sys.executable or None if python is None else os.fsdecode(python)
    return wish.profile(lambda: probe_this_machine(progress or Progress(), named))
