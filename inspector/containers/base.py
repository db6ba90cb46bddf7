"""What is true of a format: how to tell it, what reads it, and what torch and this program do with it.

A format is a class in the module of its reader and an entry of `formats`. Nothing else compares the names of
formats; where a layer above needs more than a fact (what writes a copy, what `torch.load` says to it), it has
a table with a row for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector.containers.container import Container, Extent, Extents, plain_extents
from inspector.containers.source import Source
from inspector.errors import NotACheckpointError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.folder import Folder

Find = Callable[[str], Extent | None]
"""Returns where the bytes of a storage are, by its key; None where it does not know."""
Step = Literal["remap", "in-place", "recover", "verify"]
"""What can be done with a file besides looking at it."""


class Cannot(NamedTuple):
    """Why some steps make no sense for a format, and what to do instead."""

    steps: tuple[Step, ...]
    what: str
    remedy: str


def no_copy_of(what: str) -> Cannot:
    """Return why nothing that is made of this can be verified."""
    return Cannot(
        ("verify",),
        f"a file made of {what} is no copy whose bytes could be compared with it",
        "remap compares the names, types and shapes of what it writes",
    )


class Format:
    """One format; what its class does not say is as it is here."""

    name: str = ""  # its word in `show --json`
    what: str = ""  # its name with an article, for messages
    is_read: bool = True  # whether anything here reads it; others are only named
    is_foreign: bool = False  # whether it is no format of checkpoints at all
    remedy: str = ""  # what to do with a file that is only named
    is_read_through_gzip: bool = False  # whether a file of it is read that is compressed as a whole
    torch_loads: bool = False  # whether `torch.load` reads it
    loads_restricted: bool = True  # whether `torch.load` reads it with `weights_only=True`
    loader: str = "torch.load"  # what loads it, as code that a path in parentheses follows
    loader_maps: bool = False  # whether that loader goes by no device of the file, but maps everything to one
    # whether that loader reads pickles as `torch.load` does with `weights_only=True`
    loader_restricts: bool = False
    # what decides where its tensors go, where the file names no device: a clause
    device_from: str = "the call that loads it decides"
    # what the loader's own classes are called, which make nothing but data; where there are any, the loader
    # restricts nothing else
    own_names: frozenset[str] = frozenset()
    unchecked: bool = False  # whether its loader runs whatever is named in a file, and cannot be told not to
    runs_with: str = ""  # what that loader has to be told before it does so; empty where it does at once
    reads_by_name: bool = False  # whether `safe_open` gives one of its tensors, by its name
    is_archive: bool = False  # whether it is a zip, which can hold records beside its tensors
    # whether torch finds its parts as records of a zip, by name, so that it can map storages
    has_records: bool = False
    is_stream: bool = False  # whether torch reads it from front to back: five pickles, then the storages
    has_tags: bool = False  # whether pickles of their own say where storages go
    is_agent: bool = False  # whether what loads it is the class of the algorithm that saved it
    reads_below: bool = False  # whether what stands in the subfolders of such a folder belongs to it
    keys_are_texts: bool = False  # whether its writer makes texts of all keys
    era: str = ""  # which versions of torch wrote it, where the name of the format says so
    becomes: str = "zip"  # the format of a copy that is not written by changing the file's own bytes
    suffix: str = ".pth"  # the suffix that says what a file of it is, where it comes without a name
    # what a copy is, where nothing is said of it: `same` keeps the format, `state-dict` and `objects` are
    # files for `torch.load`, of the model's tensors or of everything
    copied_as: Literal["same", "state-dict", "objects"] = "same"
    weights_at: str = ""  # where its weights stand, of several that it may hold
    # the steps that make no sense for it. A format that `relabel.formats` has no row for should say here what
    # to do instead of `remap`.
    cannot: tuple[Cannot, ...] = ()

    @property
    def can_map(self) -> bool:
        """Whether the devices of its files can be changed."""
        return not any("remap" in why.steps for why in self.cannot)

    def matches(self, _source: Source) -> bool:
        """Return whether a file is of this format; asked after all entries above said no."""
        return False

    def matches_folder(self, _folder: Folder) -> bool:
        """Return whether a folder is of this format; asked as `matches`."""
        return False

    def kind_of(self, _source: Source, _limits: Limits, _progress: Progress) -> str:
        """Return the name of the format of a file that matches, where several begin alike."""
        return self.name

    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        """Take a file apart."""
        raise NotImplementedError(self.name)  # every format that is read brings it

    def finder(self, _source: Source) -> Find:
        """Return what finds a storage that the container has no place of, or of whose checksum it knows."""
        return lambda _key: None

    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        """Take a file apart, and find the bytes of its storages."""
        container = self.read(source, limits, progress)
        is_packed = any(place.offset is None for place in container.stored.values())
        find = self.finder(source) if is_packed else lambda _key: None
        return plain_extents(container, container.stored, find)

    def read_rival(self, _source: Source, _limits: Limits, _progress: Progress) -> bool:
        """Read what a file runs as one of another format, and return whether it is one."""
        return False

    def check(self, source: Source) -> None:
        """Refuse a file of this format that is not read."""
        if self.is_foreign:
            raise NotACheckpointError(
                f"this is {self.what}", where=source.path, remedy=self.remedy, form=self.name
            )
        if not self.is_read:
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


class Entry(NamedTuple):
    """A format in the list of all: its name, and where its class stands.

    That is imported when it is asked for: importing all of them would take longer than opening a file.
    """

    name: str
    home: str

    def format(self) -> Format:
        """Return the format."""
        return _made(self.home)


@cache
def _made(home: str) -> Format:
    module, _, name = home.partition(":")
    found: type[Format] = getattr(__import__(f"inspector.containers.{module}", fromlist=[name]), name)
    return found()
