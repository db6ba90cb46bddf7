"""What a walk over the values remembers: where it is, and all that it found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.model.checkpoint import Encoding, HiddenDevice, Key, KeyFault, Tensor, ValueRow
from inspector.model.optimizer.state_dict import OptimizerDraft
from inspector.model.programs.uses import Uses
from inspector.model.roles.roles import NONE_PINNED, NOWHERE, Context, ModelDraft
from inspector.model.tensors.storages import Views
from inspector.pickles.values import Value
from inspector.records import dataclass, field


@dataclass(slots=True)
class Found:
    """All that a walk found.

    Attributes:
        tensors: The rows; optimizer slots do not know their parameter's name yet.
        sources: What each of them is in the pickle, for those who change it there.
        slots: For each slot, its row, its optimizer and the optimizer's own number or name of the parameter.
        leaf_values: What each of them is in the pickle, for those who need all of it.
        places: Where the containers stand that were entered, by their `id`.
        holders: Those containers, but for tensors, for those who need more of them than their leaves.
        leaves: Where the objects stand that are shown as one leaf, by their `id`.
        faults: What stops torch in a dictionary, see `model.walk.KeyFaults`.
        embedded: Bytes that may be checkpoints of their own, with their places.
        encodings: How values come out of elements, by row, where not simply by their type.
    """

    tensors: list[Tensor] = field(default_factory=list)
    sources: list[Value] = field(default_factory=list)
    slots: list[tuple[int, int, Key]] = field(default_factory=list)
    views: Views = field(default_factory=Views)
    values: list[ValueRow] = field(default_factory=list)
    leaf_values: list[Value] = field(default_factory=list)
    optimizers: list[OptimizerDraft] = field(default_factory=list)
    models: list[ModelDraft] = field(default_factory=list)
    hidden_devices: list[HiddenDevice] = field(default_factory=list)
    hidden_sources: list[Value] = field(default_factory=list)
    uses: Uses = field(default_factory=set)
    places: dict[int, str] = field(default_factory=dict)
    holders: list[Value] = field(default_factory=list)
    leaves: dict[int, str] = field(default_factory=dict)
    faults: set[KeyFault] = field(default_factory=set)
    embedded: list[tuple[str, Value]] = field(default_factory=list)
    too_deep: int = 0
    unlisted: int = 0
    encodings: list[tuple[int, Encoding]] = field(default_factory=list)


class Frame(NamedTuple):
    """A container that is being walked.

    Attributes:
        children: What is still to come of it; the root comes under the key None.
        pinned: Keys below which tensors are on the CPU by design.
        weight: What the way to it costs each row below, in bytes beyond the text of its path.
    """

    children: Iterator[tuple[Key | None, Value]]
    keys: tuple[Key, ...] = ()
    prefix: str = ""
    context: Context = NOWHERE
    part_of: int | None = None
    pinned: frozenset[Key] = NONE_PINNED
    weight: int = 0
