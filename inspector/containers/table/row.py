"""What a row of the table of formats says: how to tell a format, what reads it, what makes no sense there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector.containers.container import Container, Extent
from inspector.containers.source import Source
from inspector.errors import NotACheckpointError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.containers.extents import Extents
    from inspector.containers.folder import Folder

Reader = Callable[[Source, Limits, Progress], Container]
Step = Literal["remap", "in-place", "recover", "verify"]
"""What can be done with a file besides looking at it."""


class Cannot(NamedTuple):
    """Why some steps make no sense for a format, and what to do instead."""

    steps: tuple[Step, ...]
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One row of the table.

    Attributes:
        name: Its word in `show --json`.
        what: Its name with an article, for messages.
        matches: Tells whether a file is of this format; asked after all rows above said no.
        matches_folder: Tells whether a folder is of this format.
        kind_of: Returns the name of the row for a file that this one matches: formats that begin alike
            are told apart by what the reader reads anyway.
        read: The reader, or None for a format that is only named.
        remedy: What to do with a file that is only named.
        is_foreign: Whether it is no format of checkpoints at all.
        extents: Finds the bytes of the storages; None where the container tells enough.
        storage_extents: Returns what finds a storage by key, where the container does not say where it is, or
            the file knows more of it: its checksum.
        read_rival: Reads what the file runs as a file of another format, and returns whether it is one.
        is_read_through_gzip: Whether a file of it is read that is compressed as a whole.
        torch_loads: Whether `torch.load` reads it.
        loader: What loads it, as code that a path in parentheses follows.
        device_from: What decides where its tensors go, where the file names no device: a clause.
        own_names: What the loader's own classes are called, which make nothing but data; where there are any,
            the loader restricts nothing else.
        loads_restricted: Whether `torch.load` reads it with `weights_only=True`.
        has_records: Whether torch finds its parts as records of a zip, by name, so that it can map storages.
        is_stream: Whether torch reads it from front to back: five pickles, then the storages.
        is_archive: Whether it is a zip, which can hold records beside its tensors.
        has_tags: Whether pickles of their own say where storages go.
        is_agent: Whether what loads it is the class of the algorithm that saved it.
        keys_are_texts: Whether its writer makes texts of all keys.
        unchecked: Whether its loader runs whatever is named in a file, and cannot be told not to.
        runs_with: What that loader has to be told before it does so; empty where it does at once.
        era: Which versions of torch wrote it, where the name of the format says so.
        becomes: The format of a copy that is not written by changing the file's own bytes.
        suffix: The suffix that says what a file of it is, where it comes without a name.
        loader_maps: Whether that loader goes by no device of the file, but maps everything to one.
        loader_restricts: Whether that loader reads pickles as `torch.load` does with `weights_only=True`.
        copied_as: What a copy is, where nothing is said of it: `same` keeps the format, `state-dict` and
            `objects` are files for `torch.load`, of the model's tensors or of everything.
        weights_at: Where its weights stand, of several that it may hold.
        cannot: The steps that make no sense for it. A format that `relabel.formats` has no row for should say
            here what to do instead of `remap`.
    """

    name: str
    what: str
    matches: Callable[[Source], bool] = lambda _source: False
    matches_folder: Callable[[Folder], bool] = lambda _folder: False
    kind_of: Callable[[Source, Limits, Progress], str] | None = None
    read: Reader | None = None
    remedy: str = ""
    is_foreign: bool = False
    extents: Callable[[Source, Limits, Progress], Extents] | None = None
    storage_extents: Callable[[Source], Callable[[str], Extent | None]] = lambda _source: lambda _key: None
    read_rival: Callable[[Source, Limits, Progress], bool] = lambda _source, _limits, _progress: False
    is_read_through_gzip: bool = False
    torch_loads: bool = False
    loader: str = "torch.load"
    loader_maps: bool = False
    device_from: str = "the call that loads it decides"
    loader_restricts: bool = False
    own_names: frozenset[str] = frozenset()
    loads_restricted: bool = True
    has_records: bool = False
    is_stream: bool = False
    is_archive: bool = False
    has_tags: bool = False
    is_agent: bool = False
    keys_are_texts: bool = False
    unchecked: bool = False
    runs_with: str = ""
    era: str = ""
    becomes: str = "zip"
    suffix: str = ".pth"
    copied_as: Literal["same", "state-dict", "objects"] = "same"
    weights_at: str = ""
    cannot: tuple[Cannot, ...] = ()

    @property
    def can_map(self) -> bool:
        """Whether the devices of its files can be changed."""
        return not any("remap" in why.steps for why in self.cannot)

    def reader_for(self, source: Source) -> Reader:
        """Return what reads a file of this format."""
        if self.is_foreign:
            raise NotACheckpointError(
                f"this is {self.what}", where=source.path, remedy=self.remedy, form=self.name
            )
        if self.read is None:
            raise UnsupportedFormatError(
                f"this is {self.what}, which this version does not read",
                where=source.path,
                remedy=self.remedy,
                form=None if source.gzipped else self.name,
            )
        if source.gzipped and not self.is_read_through_gzip:
            raise UnsupportedFormatError(
                f"this is {self.what}, compressed with {source.packing}",
                where=source.path,
                remedy="unpack it first",
            )
        return self.read
