"""Where each saved device goes, as code: fixed where the machine is known, else chosen when the code runs.

`map_location` as a dictionary changes the named devices only and leaves what was saved on the CPU there:
random states and Adam's `step` belong there whatever the model is on, and a plain device would move them too.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.containers.rebuilds import REBUILDS, WRAPPER
from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.devices import device_order, is_accelerator, split_device
from inspector.records import dataclass
from inspector.snippet.device import RUN_TIME, Device, best_device, choice_lines, fixed_device
from inspector.snippet.literals import literal
from inspector.snippet.script import Bracketed
from inspector.target.machine.profile import Profile

# These take a device of their own, for which torch does not ask a dictionary by the text of the device.
_WITH_OWN_DEVICE = frozenset(one.dotted for one in REBUILDS if one.sent or one.name == WRAPPER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the devices of one file go.

    Attributes:
        places: By saved device, where to; None is decided by the code when it runs.
        keeps_cpu: Whether the file holds what belongs on the CPU.
        as_one: Whether torch takes one device only for this file.
        choice: Lines that set `device`, for what is decided then.
        chosen: The saved devices that the user has mapped.
    """

    places: dict[str, str | None]
    keeps_cpu: bool
    as_one: bool
    choice: tuple[str, ...]
    chosen: frozenset[str]

    @property
    def by_map_location(self) -> bool:
        """Whether `map_location` alone puts everything in its place."""
        return not self.as_one and (not self.keeps_cpu or self.places.get("cpu", "cpu") == "cpu")

    def map_location(self) -> str | Bracketed | None:
        """Return the argument of `torch.load`; None when everything goes where it was saved."""
        changes = {tag: place for tag, place in self.places.items() if place != tag}
        if not changes:
            return None
        if self.as_one or set(self.places.values()) == {"cpu"}:
            return 'map_location="cpu"'
        if self.keeps_cpu:
            changes.pop("cpu", None)
        is_split = self._count(self.places) > 1
        items = tuple(f"{literal(tag)}: {self._expression(tag, is_split=is_split)}" for tag in changes)
        return Bracketed(head="map_location={", items=items, tail="}") if items else None

    def to_cpu(self) -> str | None:
        """Return the argument of `torch.load` that sends everything to the CPU; None where it is there."""
        return None if set(self.places) <= {"cpu"} else 'map_location="cpu"'

    def choice_for(self, devices: Iterable[str]) -> tuple[str, ...]:
        """Return the lines that set `device`, if one of these saved devices is decided when the code runs."""
        is_open = any(self.places.get(device, "cpu") is None for device in devices)
        return self.choice if is_open else ()

    def move(self, model: str, devices: tuple[str, ...]) -> tuple[str, ...]:
        """Return the lines that put a model where its tensors go.

        Args:
            model: The variable.
            devices: The saved devices of its tensors.
        """
        places = {self.places[device] for device in devices if device in self.places}
        if places <= {"cpu"}:
            return ()
        if len(places) > 1:
            return (f"# {model} was split over several devices: place its parts before the next line.",)
        place = places.pop()
        if place is not None:
            return (f"{model}.to({literal(place)})",)
        count = self._count(devices)
        if count == 1:
            return (f"{model}.to(device)",)
        return (
            f"if torch.cuda.device_count() < {count}:  # too few to split it as it was",
            f"    {model}.to(device)",
        )

    def one_device(self, devices: Iterable[str], otherwise: Device) -> Device:
        """Return the device where something goes as a whole, for code that takes one only.

        Args:
            devices: The saved devices of its tensors.
            otherwise: Where it goes as long as the user has not sent all of them to one device.
        """
        saved = set(devices)
        places = {self.places.get(device) for device in saved}
        place = next(iter(places), None)
        return fixed_device(place) if saved <= self.chosen and len(places) == 1 and place else otherwise

    def whole(self, devices: Iterable[str]) -> Device:
        """Return the one device where a model goes, for code that cannot split it; of several, the CPU."""
        places = {self.places.get(device, "cpu") for device in devices}
        if None in places:
            return Device(choice=self.choice, code="device")
        place = places.pop() if len(places) == 1 else None
        return fixed_device(place or "cpu")

    def _expression(self, tag: str, *, is_split: bool) -> str:
        place = self.places[tag]
        if place is not None:
            return literal(place)
        kind, index = split_device(tag) or ("", None)
        if is_split and kind == "cuda" and index:
            return f"{literal(tag)} if torch.cuda.device_count() > {index} else device"
        return "device"

    def _count(self, devices: Iterable[str]) -> int:
        """Return the number of GPUs that it takes to put each of these devices where it was saved."""
        parts = [split_device(device) for device in devices if self.places.get(device, "cpu") is None]
        indices = [part[1] or 0 for part in parts if part is not None and part[0] == "cuda"]
        return max(indices) + 1 if len(indices) > 1 else 1


def place_devices(checkpoint: Checkpoint, target: Profile, mapping: tuple[tuple[str, str], ...]) -> Placement:
    """Decide where each saved device goes.

    Args:
        checkpoint: The file.
        target: The machine.
        mapping: What the user chose, as (saved device, where to); the rest stays where it was saved if the
            machine has such a device and none is wanted there, and goes to its destination otherwise.
    """
    moving = {(row.dtype, row.device) for row in checkpoint.tensors}
    dtypes = {dtype for dtype, device in moving if is_accelerator(device)}
    best = best_device(target, dtypes)
    tags = {tensor.device for tensor in checkpoint.tensors} | {row.device for row in checkpoint.storages}
    chosen = dict(mapping)
    places = {
        tag: chosen[tag] if tag in chosen else _place(tag, target, best, decided=bool(mapping))
        for tag in sorted(tags, key=device_order)
        if tag != "meta"
    }
    return Placement(
        places=places,
        keeps_cpu=any(tensor.on_cpu_by_design and tensor.device == "cpu" for tensor in checkpoint.tensors),
        as_one=any(use.name in _WITH_OWN_DEVICE for use in checkpoint.globals),
        choice=choice_lines(dtypes),
        chosen=frozenset(chosen),
    )


def _place(tag: str, target: Profile, best: str, *, decided: bool) -> str | None:
    if not is_accelerator(tag):
        return "cpu"  # torch refuses `cpu:0`
    if target.wanted is not None:
        return best
    parts = split_device(tag)
    is_offered = parts is not None and target.offers(*parts)
    if target.id == RUN_TIME and not (decided and is_offered):  # who maps others leaves this one as it is
        return None
    return tag if is_offered else best
