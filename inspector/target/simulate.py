"""What a call of `torch.load` does on a machine: the first error, or where everything lands.

Where something lands depends on the place that the file names and on nothing else, so each place is asked
about once, however many tensors name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile
from typing import Literal

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.agents import loader_of
from inspector.model.checkpoint import Checkpoint, HiddenPlace, Storage, Tensor
from inspector.model.obstacles import (
    Obstacle,
    ObstacleKind,
    legacy_obstacle,
    legacy_type,
    pickle_obstacle,
    storage_obstacles,
    tensor_obstacles,
)
from inspector.model.once import once
from inspector.model.tensors.views import CANNOT_GROW
from inspector.records import dataclass, replace
from inspector.safety.names import allow_list
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.target.call import (
    BAD_MAP,
    LoadCall,
    MapLocation,
    TorchDevice,
    device_for,
    goes_to_meta,
    load_call,
    plain_call,
    refusal_message,
    tag_for,
    text_of,
)
from inspector.target.opening import opening_failure
from inspector.target.profile import Profile
from inspector.target.restore import (
    Failure,
    generator_failure,
    land_exported,
    land_script,
    landing_place,
    restore_failure,
    send_failure,
)
from inspector.target.versions import HAS_WEIGHTS_ONLY, SKIPS_FOR_META, release_of

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


# ------------------------------------------------------------------------------------------------------------
# What torch cannot make on a device though its storage got there: the error comes from the rebuild function.
#
# Found by loading such tensors with torch 2.13; the texts go on with what the build has registered.

_QUANTIZED = ("qint", "quint")


def rebuild_failure(checkpoint: Checkpoint, landing: Landing) -> tuple[Tensor, Failure] | None:
    """Return the first tensor that cannot be made where its data land, with (finding, message)."""
    states = {
        f"{hidden.path}/.state/2"
        for hidden in checkpoint.hidden_devices
        if hidden.what is HiddenPlace.GENERATOR
    }
    tags = {row.device for row in checkpoint.tensors}
    if not states and all(landing.of_tag(tag)[0] != "meta" for tag in tags):
        return None
    rows = checkpoint.tensors
    for index, row in enumerate(rows):
        landed = landing.of_tag(row.device)[0]
        if landed not in {"", "cpu"} and row.path in states:
            # `check_rng_state` of ATen wants bytes on the CPU, whatever device the generator is of.
            return row, (
                "rng-off-cpu",
                "SystemError: <built-in method __setstate__ of torch._C.Generator object",
            )
        if landed == "meta":
            message = _not_on_meta(row, rows[index + 1 : index + 2])
            if message is not None:
                return row, (BAD_MAP, message)
    return None


def _not_on_meta(row: Tensor, following: tuple[Tensor, ...]) -> str | None:
    """Return what torch says to a tensor on the meta device, or None if there can be one."""
    if row.layout == "nested":
        return (
            "NotImplementedError: aten::_nested_view_from_buffer: attempted to run this operator with Meta "
            "tensors, but there was no fake impl or Meta kernel registered."
        )
    if not row.dtype.startswith(_QUANTIZED) or row.stride is None:
        return None
    by_channel = any(part.keys[-1:] == ("scales",) for part in following)
    function = "_empty_per_channel_affine_quantized" if by_channel else "_empty_affine_quantized"
    return (
        f"NotImplementedError: Could not run 'aten::{function}' with arguments from the 'QuantizedMeta' "
        "backend."
    )


# ------------------------------------------------------------------------------------------------------------
# What a call of `torch.load` does on a machine: the first error, or where everything lands.
#
# torch checks the container, then restores storages in the order of the pickle, and makes tensors and
# generators of their own devices in between. Whether the classes in the file can be imported there is not
# known, so their errors are left out.

__all__ = ["LoadFailure", "LoadOutcome", "device_failures", "restore_failure", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailure:
    """The error that stops a load.

    Attributes:
        device: The location tag that raises it; empty where no device does.
        storage: The storage that raises it first; empty where none does.
        tensor: The path of the first tensor that waits for it; empty where none does.
    """

    finding: str
    message: str
    device: str = ""
    storage: str = ""
    tensor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What a call of `torch.load` comes to.

    Attributes:
        weights_only: Whether the restricted unpickler did it: the default is torch's.
        tensors: Where each tensor lands, in the order of the checkpoint's rows; empty after a failure.
    """

    failure: LoadFailure | None
    weights_only: bool
    tensors: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that something lands on, in the order of their first tensor."""
        return tuple(dict.fromkeys(chain(self.tensors, self.storages)))


def simulate(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> LoadOutcome:
    """Return what `torch.load` does with a file on a machine."""
    is_weights_only = how.is_weights_only(release_of(target.torch_version))
    failure = first_failure(checkpoint, target, how)
    if failure is not None:
        return LoadOutcome(failure=failure, weights_only=is_weights_only)
    landing = Landing(checkpoint.format, target, how)
    return LoadOutcome(
        failure=None,
        weights_only=is_weights_only,
        tensors=landing.of_tensors(checkpoint),
        storages=landing.of_storages(checkpoint),
    )


def device_failures(checkpoint: Checkpoint, target: Profile) -> dict[str, Failure]:
    """Return, by device, what torch says to it on a machine; devices that it takes are left out."""
    restored = {storage.device for storage in _first_of_tags(checkpoint)}
    sent = {tensor.device for tensor in sent_tensors(checkpoint)}
    failures = {device: send_failure(device, target) for device in sent}
    landing = Landing(checkpoint.format, target, LoadCall())
    failures |= {device: landing.of_tag(device)[1] for device in restored - {NO_DEVICE}}
    return {device: failure for device, failure in failures.items() if failure is not None}


def first_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> LoadFailure | None:
    """Return the error that stops a call, or None if it loads."""
    opening = opening_failure(checkpoint, target, how)
    if opening is not None:
        return LoadFailure(finding=opening[0], message=opening[1])
    landing = Landing(checkpoint.format, target, how)
    failures = chain(_storage_failures(checkpoint, landing), _own_failures(checkpoint, target, landing))
    failure = _named(checkpoint, _legacy_type_failure(checkpoint, next(failures, None)))
    refusal = _refused(checkpoint, target, how, failure)
    if refusal is not None or failure is not None:
        return refusal or failure
    is_weights_only = how.is_weights_only(release_of(target.torch_version))
    obstacle = None if is_weights_only else pickle_obstacle(checkpoint, restricted=False)
    obstacle = obstacle or legacy_obstacle(checkpoint)
    return None if obstacle is None else _of_obstacle(obstacle)


def _legacy_type_failure(checkpoint: Checkpoint, failure: LoadFailure | None) -> LoadFailure | None:
    """Return the error of what the legacy format cannot hold, unless a load fails earlier in the file."""
    use, obstacle = legacy_type(checkpoint), legacy_obstacle(checkpoint)
    if use is None or obstacle is None:
        return failure
    if failure is not None and _storages_before(checkpoint, failure) < use.storages_before:
        return failure
    keys = [storage.key for storage in checkpoint.storages[use.storages_before :][:1]]
    return _of_obstacle(obstacle, storage="".join(keys))


def _refused(
    checkpoint: Checkpoint, target: Profile, how: LoadCall, failure: LoadFailure | None
) -> LoadFailure | None:
    """Return the error of the restricted unpickler, unless a device stops the load earlier in the file."""
    release = release_of(target.torch_version)
    refusal = how.refusal
    if refusal is None or not how.is_weights_only(release):
        return None
    if failure is not None and _storages_before(checkpoint, failure) < refusal.storages_before:
        return None
    message = refusal_message(refusal, release)
    return LoadFailure(finding=refusal.finding, message=message)


def _storages_before(checkpoint: Checkpoint, failure: LoadFailure) -> int:
    order = {storage.key: place for place, storage in enumerate(checkpoint.storages)}
    if failure.storage:
        return order[failure.storage]
    rows = takewhile(lambda row: row.path != failure.tensor, checkpoint.tensors)
    return 1 + max((order.get(row.storage or "", -1) for row in rows), default=-1)


def _named(checkpoint: Checkpoint, failure: LoadFailure | None) -> LoadFailure | None:
    if failure is None or failure.tensor or not failure.storage:
        return failure
    rows = (row.path for row in checkpoint.tensors if row.storage == failure.storage)
    return replace(failure, tensor=next(rows, ""))


def _storage_failures(checkpoint: Checkpoint, landing: Landing) -> Iterator[LoadFailure]:
    """Yield the errors of storages, and of tensors that are sent on as soon as their storage is read."""
    obstacles = storage_obstacles(checkpoint) if format_of(checkpoint.format).has_records else {}
    own, wrong = _own_by_storage(checkpoint), _wrong_by_storage(checkpoint)
    yield from wrong.get("", ())
    # Where nothing but its tag can stop a storage, the first with each tag tells of the rest.
    for storage in checkpoint.storages if obstacles or own or wrong else _first_of_tags(checkpoint):
        key = storage.key
        if key in obstacles and landing.meets(obstacles[key]):
            yield _of_obstacle(obstacles[key], storage=key)
        landed, failure = landing.of_tag(storage.device)
        if failure is not None:
            yield LoadFailure(finding=failure[0], device=storage.device, storage=key, message=failure[1])
        for tensor in own.get(key, ()):
            yield from _own_failure(tensor, landing)
        for unmade in wrong.get(key, ()):
            if landed != "meta" or unmade.message != CANNOT_GROW:
                yield unmade


@once
def _wrong_by_storage(checkpoint: Checkpoint) -> dict[str, list[LoadFailure]]:
    """Return the errors of tensors that cannot be made, by the last storage that is loaded before."""
    obstacles = tensor_obstacles(checkpoint)
    found: dict[str, list[LoadFailure]] = {}
    if not obstacles:
        return found
    order = {storage.key: place for place, storage in enumerate(checkpoint.storages)}
    order[""] = -1
    last = ""
    for number, row in enumerate(checkpoint.tensors):
        last = max(last, row.storage or "", key=order.__getitem__)
        if number in obstacles:
            failure = _of_obstacle(obstacles[number], storage=row.storage or "", tensor=row.path)
            found.setdefault(last, []).append(failure)
    return found


@once
def _first_of_tags(checkpoint: Checkpoint) -> tuple[Storage, ...]:
    found: dict[str, Storage] = {}
    for storage in checkpoint.storages:
        found.setdefault(storage.device, storage)
    return tuple(found.values())


@once
def _own_by_storage(checkpoint: Checkpoint) -> dict[str, list[Tensor]]:
    """Return the tensors that name a device themselves by the storage after which they are made.

    A wrapper is made after its parts, and they stand behind it in the file's order of rows.
    """
    own: dict[str, list[Tensor]] = {}
    last: dict[int, str] = {}
    for row in sent_tensors(checkpoint):
        if row.storage is not None:
            own.setdefault(row.storage, []).append(row)
    wrappers = {index: row for index, row in enumerate(checkpoint.tensors) if is_wrapper(row)}
    for row in checkpoint.tensors if wrappers else ():
        if row.part_of in wrappers and row.storage is not None:
            last[row.part_of] = row.storage
    for index, key in last.items():
        own.setdefault(key, []).append(wrappers[index])
    return own


def _own_failures(checkpoint: Checkpoint, target: Profile, landing: Landing) -> Iterator[LoadFailure]:
    """Yield the errors that no storage raises: of NumPy arrays, tensors made late, random generators."""
    for tensor in sent_tensors(checkpoint):
        if tensor.storage is None:
            yield from _own_failure(tensor, landing)
    unmade = rebuild_failure(checkpoint, landing)
    if unmade is not None:
        yield _of_row(*unmade)
    is_compiled = checkpoint.own_loader is not None and checkpoint.own_loader.is_compiled
    for hidden in checkpoint.hidden_devices:
        failure = None
        if hidden.what is HiddenPlace.GENERATOR:
            failure = generator_failure(hidden.device, target)
        elif is_compiled and hidden.what is HiddenPlace.CODE:
            failure = send_failure(hidden.device, target)
        if failure is not None:
            yield LoadFailure(finding=failure[0], device=hidden.device, message=failure[1])


def _own_failure(tensor: Tensor, landing: Landing) -> Iterator[LoadFailure]:
    failure = landing.of_own(tensor.device, is_wrapper=is_wrapper(tensor))[1]
    if failure is not None:
        yield _of_row(tensor, failure)


def _of_row(tensor: Tensor, failure: Failure) -> LoadFailure:
    return LoadFailure(
        finding=failure[0],
        device=tensor.device,
        storage=tensor.storage or "",
        message=failure[1],
        tensor=tensor.path,
    )


def _of_obstacle(obstacle: Obstacle, *, storage: str = "", tensor: str = "") -> LoadFailure:
    kind = obstacle.kind
    return LoadFailure(finding=kind.finding, message=obstacle.message, storage=storage, tensor=tensor)


# ------------------------------------------------------------------------------------------------------------
# The one judgment of a file on a machine: what `torch.load(path)` does there, and our code.
#
# The call is the one that the machine's torch makes by default: restricted since torch 2.6, unrestricted
# before. Of a format with a loader of its own it is that loader's; what `torch.load` says to such a file is
# another finding. The window, `check`, the findings, the snippets and the explanations of errors quote this
# and judge nothing themselves, so that they cannot contradict each other.

Way = Literal["as-it-is", "unchecked", "unsure", "names", "full", "other", "never"]
"""`as-it-is`: the default call loads it and runs nothing. `unchecked`: it loads it, and runs what the file
asks for. `unsure`: what was read loads, and programs read different things from the file. `names`: it refuses
until names are allowed. `full`: it refuses whatever is allowed. `other`: something other than the pickle
stops it, whatever the arguments. `never`: it should not be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultLoad:
    """What becomes of a file on a machine.

    Attributes:
        safety: The verdict on its pickles, by the list of the machine's torch.
        failure: What stops `torch.load(path)`, or the loader of its format; None if nothing does.
        loader: What that loader is, as code that the path in parentheses follows.
        code: The call that our loading code makes, with the names allowed that it allows. For a file that
            should not be loaded, it is the restricted call, which refuses it.
        stop: What stops that call, or None: a device that is missing, or damage.
    """

    safety: SafetyVerdict
    failure: LoadFailure | None
    code: LoadCall
    stop: LoadFailure | None
    way: Way
    loader: str = "torch.load"

    @property
    def loads(self) -> bool:
        """Whether `torch.load(path)` works there."""
        return self.failure is None

    @property
    def last_error(self) -> LoadFailure | None:
        """What is left when the names are allowed, or weights_only=False is given, or nothing has to be."""
        return self.stop or (self.failure if self.way == "other" else None)

    @property
    def is_safe(self) -> bool:
        """Whether loading it runs nothing but what torch counts as harmless, whatever the arguments."""
        return self.safety.weights_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A file, a machine, and what becomes of the one on the other."""

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad


def judge_load(checkpoint: Checkpoint, target: Profile, known: SafetyVerdict | None = None) -> DefaultLoad:
    """Judge a file on a machine.

    Args:
        known: A verdict on the file; it is taken where it is by the list of the machine's torch.
    """
    safety = judge_for(checkpoint, target, known)
    call, form = load_call(checkpoint, safety), format_of(checkpoint.format)
    if not form.torch_loads:
        map_location = "cpu" if form.loader_maps else None
        refusal = call.refusal if form.loader_restricts else None
        call = replace(call, by_loader=True, map_location=map_location, refusal=refusal)
    failure = first_failure(checkpoint, target, call)
    code = _code(checkpoint, target, safety)
    stop = failure if safety.may_harm else first_failure(checkpoint, target, code)
    way = _way(safety, failure)
    return DefaultLoad(
        safety=safety, failure=failure, code=code, stop=stop, way=way, loader=loader_of(checkpoint)
    )


def judge_for(
    checkpoint: Checkpoint, target: Profile | None, known: SafetyVerdict | None = None
) -> SafetyVerdict:
    """Return the verdict on a file by the list of a machine's torch, by the newest without a machine."""
    version = None if target is None else target.torch_version
    if known is not None and known.torch_version == allow_list(version).torch_version:
        return known
    return judge(checkpoint, version)


def code_weights_only(safety: SafetyVerdict) -> bool:
    """Return the argument of that name in our loading code: False only where no allowed name helps."""
    return safety.verdict != "runs-code" or safety.is_unsure


def _code(checkpoint: Checkpoint, target: Profile, safety: SafetyVerdict) -> LoadCall:
    release = release_of(target.torch_version)
    form = format_of(checkpoint.format)
    if not form.torch_loads:
        place = "cpu" if form.loader_maps else None
        return replace(plain_call(release), by_loader=True, map_location=place)
    if release < HAS_WEIGHTS_ONLY:
        return plain_call(release)  # the argument is not known yet
    call = load_call(checkpoint, safety, weights_only=code_weights_only(safety))
    return call if safety.may_harm else replace(call, refusal=None)


def _way(safety: SafetyVerdict, failure: LoadFailure | None) -> Way:
    if safety.may_harm:
        return "never"
    if failure is None:
        return "as-it-is" if safety.weights_only else "unsure" if safety.is_unsure else "unchecked"
    if safety.weights_only or safety.is_unsure:
        return "other"
    return "names" if safety.verdict == "needs-allow-list" else "full"
