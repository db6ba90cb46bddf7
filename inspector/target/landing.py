"""Where storages and tensors land when `torch.load` is told to map them, and what torch says if they cannot.

Everything depends on the place that the file names and on nothing else, so each place is asked about once,
however many tensors name it.
"""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.obstacles import Obstacle, ObstacleKind
from inspector.model.once import once
from inspector.target.load_call import LoadCall
from inspector.target.machine.profile import Profile
from inspector.target.map_location import (
    BAD_MAP,
    MapLocation,
    TorchDevice,
    device_for,
    goes_to_meta,
    tag_for,
    text_of,
)
from inspector.target.restore import Failure, landing_place, restore_failure, send_failure
from inspector.target.scripts import land_exported, land_script
from inspector.target.versions import SKIPS_FOR_META, release_of

_LANDINGS = {"torchscript": land_script, "pt2": land_exported}
"""What restores the tags of formats that another function than `torch.load` reads."""

Landed = tuple[str, Failure | None]
"""The device (empty after a failure), and (finding, message) of the failure or None."""


def is_sent(tensor: Tensor) -> bool:
    """Return whether a tensor is stored on the CPU and sent to its device: such a row has no geometry."""
    return tensor.stride is None and tensor.layout == "strided"


def is_wrapper(tensor: Tensor) -> bool:
    """Return whether a tensor holds others and has a device of its own: it has a geometry and no storage.

    So have tensors on the meta device, for which it makes no difference.
    """
    return tensor.storage is None and tensor.stride is not None and tensor.device != "meta"


@once
def sent_tensors(checkpoint: Checkpoint) -> tuple[Tensor, ...]:
    """Return the tensors that are sent to their devices."""
    return tuple([row for row in checkpoint.tensors if row.stride is None and is_sent(row)])


@once
def _odd_rows(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Return the rows without a storage or a geometry, by their indexes."""
    rows = enumerate(checkpoint.tensors)
    return tuple([index for index, row in rows if row.storage is None or row.stride is None])


class Landing:
    """The answers for one file format, machine and call."""

    def __init__(self, form: str, target: Profile, how: LoadCall) -> None:
        self._target = target
        self._how = how
        self._release = release_of(target.torch_version)
        self._has_records = format_of(form).has_records
        self._land = _LANDINGS.get(form)
        self._tags: dict[str, Landed] = {}
        self._own: dict[tuple[str, bool], Landed] = {}

    @property
    def skips_data(self) -> bool:
        """Whether torch reads no storage at all, since everything goes to the meta device."""
        return self._has_records and self._release >= SKIPS_FOR_META and goes_to_meta(self._how.map_location)

    @property
    def reads_records(self) -> bool:
        """Whether torch looks for the records of storages."""
        return self._has_records

    def meets(self, obstacle: Obstacle) -> bool:
        """Return whether a record's obstacle stops this call: what is not read has no size to be wrong."""
        is_about_size = obstacle.kind is ObstacleKind.RECORD_SIZE
        return not (is_about_size and (self._how.mmap or self.skips_data))

    def of_tag(self, tag: str) -> Landed:
        """Return where a storage with this location tag lands."""
        if tag not in self._tags:
            self._tags[tag] = self._restore(tag)
        return self._tags[tag]

    def of_own(self, device: str, *, is_wrapper: bool) -> Landed:
        """Return where a tensor lands that names its device itself.

        A wrapper is made of nothing but its description, so that no device need be there. In the legacy
        format torch forgets to tell such tensors of the map.
        """
        key = device, is_wrapper
        if key not in self._own:
            self._own[key] = self._make(device, is_wrapper=is_wrapper)
        return self._own[key]

    def of_storages(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """Return the device of each storage, of a load that does not fail."""
        places = {tag: self.of_tag(tag)[0] for tag in {row.device for row in checkpoint.storages}}
        return tuple([places[row.device] for row in checkpoint.storages])

    def of_tensors(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """Return the device of each tensor row, of a load that does not fail."""
        tags = [row.device for row in checkpoint.tensors]
        places = {tag: self.of_tag(tag)[0] for tag in set(tags)}
        landed = [places[tag] for tag in tags]
        for index in _odd_rows(checkpoint):
            landed[index] = self._of_odd(checkpoint.tensors[index], landed[index])
        return tuple(landed)

    def _of_odd(self, row: Tensor, landed: str) -> str:
        """Return where a tensor lands that has no storage, or is not described by one."""
        if is_sent(row):
            return self.of_own(row.device, is_wrapper=False)[0]
        if is_wrapper(row):
            return self.of_own(row.device, is_wrapper=True)[0]
        # A composite is where its parts are. A tensor without data stays on the meta device.
        return "meta" if row.device == "meta" and row.storage is None and row.part_of is None else landed

    def _restore(self, tag: str) -> Landed:
        if self.skips_data:
            return "meta", None
        if tag == NO_DEVICE:
            return self._load_to(self._how.map_location)
        if self._land is not None:
            place = self._how.map_location  # of another type it was refused before
            text = text_of(place) if isinstance(place, str | TorchDevice) else None
            return self._land(tag, text, self._target, self._how.current)
        asked = tag_for(self._how.map_location, tag, self._release)
        if not isinstance(asked, str):
            return "", asked
        failure = restore_failure(asked, self._target)
        return ("", failure) if failure is not None else (landing_place(asked, self._how.current), None)

    def _load_to(self, place: MapLocation) -> Landed:
        """Return where a loader puts what the file has no place for: on the CPU unless it is told another."""
        asked = text_of(place) if isinstance(place, str | TorchDevice) else "cpu"
        failure = send_failure(asked, self._target)
        if asked.partition(":")[0] == "meta":
            failure = BAD_MAP, f"SafetensorError: device {asked} is invalid"
        return ("", failure) if failure is not None else (landing_place(asked, self._how.current), None)

    def _make(self, device: str, *, is_wrapper: bool) -> Landed:
        place = self._how.map_location if self._has_records else None
        asked = device_for(place, device, self._release, is_wrapper=is_wrapper)
        if not isinstance(asked, str):
            return "", asked
        failure = None if is_wrapper else send_failure(asked, self._target)
        return ("", failure) if failure is not None else (landing_place(asked, self._how.current), None)
