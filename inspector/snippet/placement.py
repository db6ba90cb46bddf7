"""Where each saved device goes, as code: fixed where the machine is known, else chosen when the code runs.

What the file says decides for whole modules and for tensors that are used as they are. `load_state_dict`
copies into a model that is somewhere already: there `map_location` only has to name a device that exists, and
the CPU always does. As a dictionary it changes the named devices only and leaves what was saved on the CPU
there: random states and Adam's `step` belong there whatever the model is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.containers.rebuilds import REBUILDS, WRAPPER
from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.devices import device_order, is_accelerator, split_device
from inspector.records import dataclass
from inspector.snippet.device import RUN_TIME, Device, best_device, choice_lines, fixed_device
from inspector.snippet.literals import literal
from inspector.snippet.models import Model
from inspector.snippet.script import Bracketed, comment_lines
from inspector.target.profile import Profile

# These take a device of their own, for which torch does not ask a dictionary by the text of the device.
_WITH_OWN_DEVICE = frozenset(one.dotted for one in REBUILDS if one.sent or one.name == WRAPPER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the devices of one file go.

    Attributes:
        places: By saved device, where to; None is decided by the code when it runs.
        as_one: Whether torch takes one device only for this file.
        copied: Whether the file holds nothing but what `load_state_dict` copies into a model that is there.
        home: Where a model goes that was saved on the CPU; None is decided by the code when it runs.
        choice: Lines that set `device`, for what is decided then.
        is_exact: Whether the user has made the map, so that the code says what it says and nothing less.
    """

    places: dict[str, str | None]
    keeps_cpu: bool
    as_one: bool
    copied: bool
    home: str | None
    choice: tuple[str, ...]
    chosen: frozenset[str]
    is_exact: bool = False

    def map_location(self) -> str | Bracketed | None:
        """Return the argument of `torch.load` that changes the least; None where nothing has to change."""
        changes = {tag: place for tag, place in self.places.items() if place != tag}
        if not changes:
            return None
        to = set(self.places.values())
        if self.as_one and self.is_exact and len(to) == 1 and (place := to.pop()) is not None:
            return f"map_location={literal(place)}"
        if self.as_one or (self.copied and not self.is_exact) or set(self.places.values()) == {"cpu"}:
            return 'map_location="cpu"' if set(self.places) != {"cpu"} else None
        if self.keeps_cpu:
            changes.pop("cpu", None)
        is_split = self._count(self.places) > 1
        items = tuple(f"{literal(tag)}: {self._expression(tag, is_split=is_split)}" for tag in changes)
        return Bracketed(head="map_location={", items=items, tail="}") if items else None

    def for_copying(self) -> str | Bracketed | None:
        """Return the argument of `torch.load` for what is copied to its place afterwards."""
        return self.map_location() if self.is_exact else self.to_cpu()

    def to_cpu(self) -> str | None:
        """Return the argument of `torch.load` that sends everything to the CPU; None where it is there."""
        return None if set(self.places) <= {"cpu"} else 'map_location="cpu"'

    def puts(self, devices: Iterable[str]) -> bool:
        """Return whether `map_location` alone puts what was saved on these devices in its place."""
        saved = set(devices) - {"meta"}
        return not self.as_one and not self.copied and "cpu" not in saved

    def choice_for(self, devices: Iterable[str], *, moved: bool = True) -> tuple[str, ...]:
        """Return the lines that set `device`, if it is used.

        Args:
            devices: The saved devices of what goes where `map_location` or `move` says.
            moved: Whether models among it are moved: then those saved on the CPU need it as well.
        """
        places = {self._home_of(device) if moved else self.places.get(device, "cpu") for device in devices}
        return self.choice if None in places else ()

    def move(self, model: str, devices: tuple[str, ...], *, is_module: bool = False) -> tuple[str, ...]:
        """Return the lines that put a model where it computes.

        Args:
            is_module: Whether it is a whole module, which stays split over devices as it was.
        """
        saved = [device for device in devices if device != "meta"]
        gone = {self._home_of(device) for device in saved if device != "cpu"} or {self._home_of("cpu")}
        count = self._count(saved)
        if self.is_exact and len(gone) > 1:
            where = " and ".join(sorted(place or "device" for place in gone))
            if is_module:
                return (f"# {model} is split over {where}, as the map says.",)
            return tuple(
                comment_lines(
                    f"The map puts parts of {model} on {where}: put them there before the next line, which "
                    "copies into them."
                )
            )
        if is_module and len(gone) > 1:
            return (f"# {model} is split over several devices, as it was when it was saved.",)
        if is_module and count > 1:
            return (
                f"if torch.cuda.device_count() < {count}:  # too few to split it as it was",
                f"    {model}.to(device)",
            )
        is_split = len(gone) > 1 or count > 1
        place = self.home if is_split else gone.pop()
        said = (f"# It was split over devices: where {model} places its parts itself, do not move it.",)
        code = "device" if place is None else literal(place)
        return () if place == "cpu" else (*(said if is_split else ()), f"{model}.to({code})")

    def _home_of(self, device: str) -> str | None:
        """Return where a model goes that was saved on a device."""
        if device == "meta" or (device == "cpu" and device not in self.chosen):
            return self.home
        return self.places.get(device, self.home)

    def one_device(self, devices: Iterable[str], otherwise: Device) -> Device:
        """Return the device where something goes as a whole, for code that takes one only.

        Args:
            otherwise: Where it goes as long as the user has not sent all of them to one device.
        """
        saved = set(devices)
        places = {self.places.get(device) for device in saved}
        place = next(iter(places), None)
        return fixed_device(place) if saved <= self.chosen and len(places) == 1 and place else otherwise

    def whole(self, devices: Iterable[str]) -> Device:
        """Return the one device where a model goes, for code that cannot split it; of several, the CPU."""
        saved = set(devices) - {"meta"}
        places = {self._home_of(device) for device in saved - {"cpu"} or {"cpu"}}
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


def place_devices(
    checkpoint: Checkpoint,
    target: Profile,
    mapping: tuple[tuple[str, str], ...],
    models: Sequence[Model] = (),
    *,
    is_exact: bool = False,
) -> Placement:
    """Decide where each saved device goes.

    Args:
        mapping: What the user chose, as (saved device, where to); the rest stays where it was saved if the
            machine has such a device and none is wanted there, and goes to its destination otherwise.
    """
    moving = {(row.dtype, row.device) for row in checkpoint.tensors}
    computed = frozenset[str]().union(*(model.dtypes for model in models))
    dtypes = {dtype for dtype, device in moving if is_accelerator(device)} | computed
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
        copied=bool(models) and not any(model.is_module for model in models),
        home=_home(places, chosen, target, best),
        choice=choice_lines(target, dtypes),
        chosen=frozenset(chosen),
        is_exact=is_exact,
    )


def _home(places: dict[str, str | None], chosen: dict[str, str], target: Profile, best: str) -> str | None:
    """Return where a model goes that was saved on the CPU: beside what the user has sent somewhere."""
    sent = {places[tag] for tag in places if tag in chosen and is_accelerator(tag)}
    if len(sent) == 1:
        return sent.pop()
    return None if target.id == RUN_TIME and target.wanted is None else best


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
