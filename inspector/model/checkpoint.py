"""What an opened checkpoint is: frozen rows that need no file to be shown.

Every class here is plain data. `inspector.model.build` fills it from the values of a pickle; everything to
the right of the model (findings, plans, snippets, reports, the window) only reads it. Rows of which a file
has a hundred thousand are named tuples: as frozen as a dataclass, and made eight times as fast.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

from inspector.containers.container import OwnLoader, Part
from inspector.containers.notes import Note
from inspector.containers.source import Stamp
from inspector.pickles.oddities import Oddity, OddityKind, StreamFault
from inspector.records import dataclass

Key = str | int
"""One step of a path: a mapping key, a sequence index, or an attribute with a leading dot."""


class OddKey(str):
    """A mapping key that is neither a str nor a short int, as its short text: no code can look it up so."""

    __slots__ = ()


Role = Literal["parameter", "buffer", "optimizer", "scheduler", "rng", "ema", "other"]
"""What a tensor is for. The order of `ROLES` is the order in which roles are listed."""

ROLES: tuple[Role, ...] = ("parameter", "buffer", "optimizer", "scheduler", "rng", "ema", "other")

Naming = Literal["names", "order", "shape", "recipe", "partial", "unknown"]
"""How optimizer slots came by their parameter's name.

`names`: the file says so. `order`: a single group, which torch numbers in the model's order, and only one
assignment of parameters of these shapes keeps it. `shape`: several groups, but each shape occurs once, so
that no order matters. `recipe`: several groups, and a known way of filling them fits in sizes, order and
shapes. `partial`: some could be named in one of these ways, the others could not. `unknown`: none.
"""


class Tensor(NamedTuple):
    """One tensor (or bare storage) at one place of the checkpoint.

    Attributes:
        keys: The way to it from the root; attributes carry a leading dot.
        path: The keys joined by `/`, escaped as in JSON Pointer.
        device: The device's text in the file, such as `cuda:1`.
        dtype: torch's name without `torch.`.
        storage_offset: First element within the storage; None when the layout has none.
        layout: `strided`, `sparse_coo`, ..., or `storage` for a bare storage.
        storage: The key of the storage it views; None for composites and meta tensors.
        parameter: For optimizer slots, the name of the parameter they belong to, where that is certain.
        slot: For optimizer slots, the slot's name (`exp_avg`).
        part_of: Index of the composite tensor that this row is a part of, else None.
        on_cpu_by_design: Whether torch keeps this state on the CPU whatever the model's device
            (Adam's `step`, RNG state).
        problem: Why the description cannot be true (it runs past its storage, ...), or None.
    """

    keys: tuple[Key, ...]
    path: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    storage_offset: int | None
    layout: str
    requires_grad: bool
    nbytes: int
    storage: str | None
    role: Role
    parameter: str | None
    slot: str | None
    part_of: int | None
    on_cpu_by_design: bool
    problem: str | None


class Encoding(NamedTuple):
    """How the values of a tensor come out of its elements, where that is not simply by their type.

    Attributes:
        conj: Whether complex elements are conjugated lazily, by torch's bit for it.
        scale: What quantized elements are multiplied with, where one number serves all.
        axis: The dimension whose indices have scales and zero points of their own, which are parts of it.
        is_readable: Whether the file says so in a way that is understood.
    """

    conj: bool = False
    neg: bool = False
    scale: float | None = None
    zero_point: float | None = None
    axis: int | None = None
    is_readable: bool = True


class Piece(NamedTuple):
    """One of the pieces that a storage is put together from.

    Attributes:
        part: The file that it is in; empty where that is missing.
    """

    part: str
    starts: tuple[int, ...]
    sizes: tuple[int, ...]


class Storage(NamedTuple):
    """One run of bytes that tensors view.

    Attributes:
        key: The storage's key in the file (`0`, `94003973405088`).
        dtype: torch's name of the element type; `uint8` for untyped storages.
        nbytes: What the file stores, in bytes; what the pickle declares when the bytes are missing.
        file_offset: Where the bytes start in their file; None when they are absent or compressed.
        viewed_nbytes: Bytes that at least one tensor views, counted once.
        expected_nbytes: What the pickle declares, where the file holds more or less than that; else None.
        part: The file that they are in, where a checkpoint consists of several; else empty.
    """

    key: str
    device: str
    dtype: str
    nbytes: int
    file_offset: int | None
    missing: bool
    viewed_nbytes: int
    tensors: int
    expected_nbytes: int | None = None
    part: str = ""
    pieces: tuple[Piece, ...] = ()


class ValueRow(NamedTuple):
    """One leaf that is no tensor: a number, a text, an object that stays closed.

    Attributes:
        after: How many tensor rows stand before it in the file, so that the two can be listed in one order.
    """

    keys: tuple[Key, ...]
    path: str
    type: str
    text: str
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalUse:
    """A name that loading the file would import.

    Attributes:
        storages_before: How many storages are loaded before they do so first.
        part: The file that asks for it first, where a checkpoint consists of several.
        elsewhere: Whether only what other readers than the file's own unpickle asks for it.
    """

    name: str
    count: int
    storages_before: int = 0
    part: str = ""
    elsewhere: bool = False


class HiddenPlace(StrEnum):
    """Where a device is written that `map_location` does not reach."""

    DEVICE = "torch.device"
    KEY = "the key torch.device"
    """A key of a dictionary, or in a tuple that is one."""
    GENERATOR = "torch.Generator"
    MESH = "DeviceMesh"
    NESTED = "a torch file in bytes on"
    """A storage of a checkpoint that bytes in this one are."""
    DATA_PARALLEL = "DataParallel"
    TEXT = "the text"
    """A str that a module keeps under the name that everybody gives its device."""
    TENSOR_TYPE = "the tensor type"
    """A class such as `torch.cuda.FloatTensor`."""
    CODE = "TorchScript"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenDevice:
    """A device written in a place that `map_location` does not reach."""

    path: str
    device: str
    what: HiddenPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One optimizer state dict found in the checkpoint.

    Attributes:
        by_place: Whether their order alone tells apart parameters of one shape.
        capturable: Whether any group is `capturable` or `fused`, so that `step` belongs on the device.
        models: Where the models stand whose parameters it holds, in its order if it has one group; empty
            where that is unknown.
        is_object: Whether the optimizer itself was pickled, not its state dict.
    """

    path: str
    keys: tuple[Key, ...]
    parameters: int
    with_state: int
    naming: Naming
    detail: str
    by_place: bool = False
    capturable: bool
    groups: tuple[int, ...] = ()
    models: tuple[str, ...] = ()
    is_object: bool = False


class Verb(StrEnum):
    """What a pickle does with a name that it imports, or with what calling it made."""

    APPEND = "append"
    """It appends items to the result."""
    BUILD = "build"
    """It sets a state that torch's restricted unpickler sets on names of the user's list alone."""
    CALL = "call"
    GETATTR = "getattr"
    """It reaches the name by `getattr`."""
    LOAD = "load"
    """It loads a persistent id that is no storage's."""
    MISBUILD = "misbuild"
    """It sets a state that nobody writes for the type of the result."""
    MISCALL = "miscall"
    """It hands the name arguments that nobody writes."""
    MISREAD = "misread"
    """It loads a storage by an id that torch cannot read."""
    SETITEM = "setitem"
    """It sets items of the result."""


class KeyFault(StrEnum):
    """What a key of a dictionary does to an unpickler, which hashes it."""

    ALIKE = "alike-keys"
    """It takes minutes, since thousands of keys have the same hash."""
    DEEP = "deep-key"
    """It crashes."""
    ENDLESS = "endless-key"
    """It never ends."""
    UNHASHABLE = "unhashable-key"
    """It raises."""


Fault = OddityKind | StreamFault | KeyFault
"""What stops an unpickler though it knows every name."""


class CallUse(NamedTuple):
    """A call that loading the file would make.

    Attributes:
        name: What is called, dotted; empty for what has no name: it comes out of another call.
        handed: Names among its arguments, which it may call in turn.
        path: The row that it makes; None where it makes none: its result is dropped, or hidden elsewhere.
    """

    name: str
    text: str
    handed: tuple[str, ...]
    path: str | None


class UnusualOpcode(NamedTuple):
    """An opcode that not every restricted unpickler knows, where a file uses it first."""

    name: str
    storages_before: int
    names_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """What a pickle needs in order to load, as far as reading alone can tell.

    Attributes:
        unusual: Those that not every restricted unpickler knows, with their places.
        protocol: The pickle protocol that the stream declares; 0 without a declaration.
        oddities: What no honest writer does, or readers understand differently.
        uses: What is done with a name besides importing it; the name is empty for what has none. Tensors
            are left out.
        calls: The first calls of each name but those that make plain tensors, in their order.
        constructed: Names that are classes for certain, and of which nothing but objects are made.
        read_within: Names that unpickle bytes in turn, where all such bytes were read and nothing else is
            done with the name; and what announces arrays that were found.
        called: Names that are called, or handed to what is called, see `model.programs.constructing`.
        unread: What loading would unpickle and was not read whole, each with the reason, as clauses.
        rivals: What other readers than the file's own unpickle, and imports something.
        unread_before_2_6: What is not known and torch unpickles by its list alone since 2.6.
    """

    opcodes: tuple[str, ...]
    protocol: int
    oddities: tuple[Oddity, ...]
    unread: tuple[str, ...]
    unusual: tuple[UnusualOpcode, ...] = ()
    uses: tuple[tuple[str, Verb], ...] = ()
    calls: tuple[CallUse, ...] = ()
    calls_made: int = 0
    faults: tuple[Fault, ...] = ()
    unread_before_2_6: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    constructed: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    read_within: tuple[str, ...] = ()


NOTHING = Safety(opcodes=(), protocol=0, oddities=(), unread=())
"""What loading needs that runs no pickle."""


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class Checkpoint:
    """Everything known of one file, complete and without a handle on it.

    Attributes:
        format: The container, in the words of `show --json`.
        storages: All storages in the order of their first use.
        globals: Names that the pickles ask for, in the order of their first use.
        root: The kind of the outermost value: `mapping`, `sequence`, `tensor`, `module`, `object` or `value`.
        module_class: The dotted class of a whole pickled module, else None.
        safety: What loading would need; None where there is no pickle, so that loading runs nothing.
        notes: What there is to know about the file; verdicts rest on their kinds.
        refusal: What torch's reader says to the container; empty where it opens it.
        refused: What it says to the record of a storage, as (key, words).
        tied: Names that the file leaves out, each with the name that the same tensor is kept under.
        parts: The files that it consists of, where there are several.
        embedded: Where bytes stand that are a checkpoint of their own, which loading does not open.
        imported_inside: What those import, each with the place of the bytes.
        stamp: What the file on disk looked like before it was read, or None.
        own_loader: What loads it in place of the loader of its format.
        is_program: Whether it is one model whose modules are the mappings in it, as in TorchScript: the way
            to a tensor, with dots, is its name in the state dict.
        encodings: How values come out of elements, by the row of the tensor, where not simply by its type.
        tuples: Where the tuples stand that have rows below them: no item of one can be left out alone.
    """

    path: str
    format: str
    file_nbytes: int
    tensors: tuple[Tensor, ...]
    storages: tuple[Storage, ...]
    values: tuple[ValueRow, ...]
    globals: tuple[GlobalUse, ...]
    hidden_devices: tuple[HiddenDevice, ...]
    optimizers: tuple[Optimizer, ...]
    versions: tuple[tuple[str, str], ...]
    root: str
    module_class: str | None
    safety: Safety | None
    notes: tuple[Note, ...]
    refusal: str = ""
    refused: tuple[tuple[str, str], ...] = ()
    tied: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    embedded: tuple[str, ...] = ()
    imported_inside: tuple[tuple[str, str], ...] = ()
    stamp: Stamp | None = None
    is_program: bool = False
    own_loader: OwnLoader | None = None
    encodings: tuple[tuple[int, Encoding], ...] = ()
    tuples: tuple[str, ...] = ()

    @property
    def needs(self) -> Safety:
        """What loading would need; nothing where there is no pickle."""
        return self.safety or NOTHING
