"""What becomes of the parts of a checkpoint after `torch.load`, and what torch says when they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import compress
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, HiddenPlace, Tensor
from inspector.model.optimizer.parameters import serves_all
from inspector.model.roles.roles import DICTIONARIES
from inspector.records import dataclass
from inspector.target.parts import Form, Kind, Part
from inspector.target.restore import landing_place


class Complaint(StrEnum):
    """Part of an error or a warning of torch 2.13, as it stands there."""

    SAME_DEVICE = "Expected all tensors to be on the same device"
    """Tensors on different devices meet: in a layer, a loss, the step of an optimizer."""
    NOT_EXPECTED = "is not on the expected device"
    """The same, where one of them is on the meta device."""
    FOREACH = "Tensors of the same index must be on the same device"
    """An optimizer that updates all parameters at once finds one apart from its state."""
    CAPTURABLE = "If capturable=True, params"
    """An optimizer that is `capturable` finds its counters or parameters on the CPU."""
    BYTE_TENSOR = "RNG state must be a torch.ByteTensor"
    """`torch.set_rng_state` and its like want bytes on the CPU."""
    FIRST_DEVICE = "must have its parameters and buffers on device"
    """`DataParallel.forward` finds a parameter or buffer that is not on its first device."""
    NO_DATA = "Cannot copy out of meta tensor; no data!"
    """A tensor without data is copied, or moved to a device that holds data."""
    NO_OP = "copying from a non-meta parameter in the checkpoint to a meta parameter"
    """A warning: `load_state_dict` changed nothing, since the model is on the meta device."""


# ------------------------------------------------------------------------------------------------------------
# How code restores what `torch.load` returned, step by step: where each tensor is afterwards, and the error.
#
# The rules are those of torch 2.4 to 2.13, read from `Module._load_from_state_dict` and `Module._apply` in
# `torch/nn/modules/module.py` and from `_process_value_according_to_param_policy` in
# `torch/optim/optimizer.py`. Places are devices and dtypes, nothing else: shapes and names are taken to
# match.

META = "meta"


class At(NamedTuple):
    """Where a tensor is.

    Attributes:
        dtype: Its dtype, torch's name without `torch.`.
        is_number: Whether it has no dimensions: such a tensor on the CPU may meet those of any device.
    """

    device: str
    dtype: str = "float32"
    is_number: bool = False


class Way(StrEnum):
    """How code restores a part."""

    COPY = "load_state_dict"
    """`load_state_dict` into what the code has made."""
    ASSIGN = "assign"
    """`load_state_dict(assign=True)`: the module takes the tensors of the file in the place of its own."""
    USE = "use"
    """What `torch.load` returned is used itself: a whole object, or tensors."""


class Restored(NamedTuple):
    """What a step comes to.

    Attributes:
        places: Where the tensors are then, in the order given.
        error: What torch says where the step fails, or None.
        warning: What it warns of: the step did nothing; or None.
    """

    places: tuple[At, ...]
    error: Complaint | None = None
    warning: Complaint | None = None


def load_module(own: Sequence[At], saved: Sequence[At], way: Way = Way.COPY) -> Restored:
    """Return where the parameters and buffers of a module are after `load_state_dict`.

    Copied values take the device and dtype of the module's own tensors, whatever those of the file are.
    With `assign=True` the module has the file's tensors; only `requires_grad` stays the module's.

    Args:
        saved: Where those of the state dict are, as `torch.load` returned them.
        way: `COPY` or `ASSIGN`.
    """
    if way is not Way.COPY:
        return Restored(tuple(saved))
    pairs = list(zip(own, saved, strict=True))
    if any(one.device != META and other.device == META for one, other in pairs):
        return Restored(tuple(own), error=Complaint.NO_DATA)
    is_lost = any(one.device == META and other.device != META for one, other in pairs)
    return Restored(tuple(own), warning=Complaint.NO_OP if is_lost else None)


def move_module(places: Sequence[At], device: str) -> Restored:
    """Return where the parameters and buffers of a module are after `module.to(device)`.

    What is a plain attribute of a module stays where it is, and so does the state of an optimizer.
    """
    if device != META and any(place.device == META for place in places):
        return Restored(tuple(places), error=Complaint.NO_DATA)
    return Restored(tuple(place._replace(device=device) for place in places))


def load_slot(name: str, saved: At, parameter: At, *, on_device: bool) -> At:
    """Return where an optimizer slot is after `optimizer.load_state_dict`.

    It goes to the device of its parameter and takes the dtype of one with floating-point numbers, whatever
    its own is. Only `step` is left where it is, with its dtype, unless the counters belong on the device.

    Args:
        name: The slot's name, such as `exp_avg`; of nested slots `state/exp_avg`.
        saved: Where `torch.load` put it.
        on_device: Whether the parameter's group in the file is `capturable` or `fused`.
    """
    if name.rpartition("/")[2] == "step":
        return saved._replace(device=parameter.device, dtype="float32") if on_device else saved
    dtype = parameter.dtype if "float" in parameter.dtype else saved.dtype
    return saved._replace(device=parameter.device, dtype=dtype)


# ------------------------------------------------------------------------------------------------------------
# What torch says when tensors are used that are not together: in a forward pass, a loss, a step.
#
# Each function returns torch's complaint, or None where the use works. A model that is split on purpose, and
# sends its activations from device to device in forward, is known to none of them.

# _get_capturable_supported_devices and _get_foreach_kernels_supported_devices in torch/optim/optimizer.py and
# torch/utils/_foreach_utils.py
_CAPTURABLE = frozenset({"cuda", "xpu", "hpu", "privateuseone", "xla"})
_FOREACH = frozenset({"cuda", "xpu", "mtia", "privateuseone"})
_READ_AS_NUMBERS = frozenset({"step", "mu_product"})
_OF_COUNTERS = frozenset({"float32", "float64"})


def mixing_failure(places: Iterable[At]) -> Complaint | None:
    """Return what torch says when these tensors meet: in a layer, in a loss, in arithmetic.

    A tensor without dimensions on the CPU may meet those of any device, as a counter of `BatchNorm` does.
    """
    devices = {place.device for place in places if not (place.is_number and place.device == "cpu")}
    if len(devices) < 2:
        return None
    return Complaint.NOT_EXPECTED if META in devices else Complaint.SAME_DEVICE


def parallel_failure(places: Iterable[At], first: str) -> Complaint | None:
    """Return what `DataParallel.forward` says: every parameter and buffer must be on the first device."""
    return Complaint.FIRST_DEVICE if any(place.device != first for place in places) else None


def rng_failure(state: At) -> Complaint | None:
    """Return what `torch.set_rng_state` and its like say: they want bytes on the CPU, also for a GPU."""
    return None if state.device == "cpu" and state.dtype == "uint8" else Complaint.BYTE_TENSOR


def step_failure(
    parameter: At, slots: Mapping[str, At], *, capturable: bool = False, foreach: bool | None = None
) -> Complaint | None:
    """Return what `optimizer.step` says for one parameter and its slots.

    Args:
        foreach: The option of that name; None lets torch choose, which it does by the parameter's device.
    """
    kind = _kind(parameter.device)
    counter = slots.get("step")
    beside = counter is None or (takes_capturable(kind) and _kind(counter.device) == kind)
    if capturable and not beside:
        return Complaint.CAPTURABLE
    together = [place for name, place in slots.items() if name not in _READ_AS_NUMBERS]
    is_foreach = kind in _FOREACH if foreach is None else foreach
    if is_foreach and not all(_may_be_grouped(place, parameter) for place in slots.values()):
        return Complaint.FOREACH
    return mixing_failure([parameter, *together])


def _may_be_grouped(place: At, parameter: At) -> bool:
    """Return whether a slot passes when all tensors of an optimizer are sorted by device and dtype.

    `_group_tensors_by_first_tensors_device_and_dtype` in torch's `aten/src/ATen/native/ForeachUtils.h` lets
    pass whatever could be a counter by its dtype. Other slots on the CPU fail at the first operation.
    """
    return place.device == parameter.device or (place.device == "cpu" and place.dtype in _OF_COUNTERS)


def takes_capturable(device: str) -> bool:
    """Return whether an optimizer with `capturable=True` works on a device."""
    return _kind(device) in _CAPTURABLE


def _kind(device: str) -> str:
    return device.partition(":")[0]


# --- one part of a checkpoint from the file to its use: where it ends, who decides that, and what fails -----

_COUNTERS = ("num_batches_tracked", "n_averaged")
_REGISTERED = DICTIONARIES - {"._modules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What code does with a part, as far as it decides about devices.

    Attributes:
        way: How it restores the part; None for the usual way of its form.
        built_on: Where the code's own tensors are at that moment: those of its model, or the parameters of
            its optimizer.
        built_as: Their dtype; empty for that of the file.
        moved_to: The device of `model.to(device)` afterwards; empty where the model is not moved.
        inputs: The device of what meets it: a batch, a prediction; empty for none that is elsewhere.
    """

    way: Way | None = None
    built_on: str = "cpu"
    built_as: str = ""
    moved_to: str = ""
    inputs: str = ""
    foreach: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What becomes of a part.

    Attributes:
        places: Where its tensors end, in the order of its rows.
        by_file: Whether the file (and `map_location`) decides that, rather than the code.
        error: What torch says when the part is restored or moved, or None.
        warning: What it warns of: nothing was restored; or None.
        failure: What it says when the part is used then, or None.
    """

    places: tuple[At, ...]
    by_file: bool
    error: Complaint | None = None
    warning: Complaint | None = None
    failure: Complaint | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that it ends on, each once."""
        return tuple(dict.fromkeys(place.device for place in self.places))


def usual_way(part: Part) -> Way:
    """Return the way in which code restores such a part as a rule; a scheduler takes its state as it is."""
    is_copied = part.form is Form.STATE and part.kind is not Kind.SCHEDULER
    return Way.COPY if is_copied else Way.USE


def landed_places(checkpoint: Checkpoint, part: Part, landed: Sequence[str] = ()) -> tuple[At, ...]:
    """Return where `torch.load` puts the tensors of a part.

    Args:
        landed: The device of each tensor of the file, as `LoadOutcome.tensors` has it; as saved if empty.
    """
    rows = ((index, checkpoint.tensors[index]) for index in part.rows)
    return tuple(
        At(landing_place(landed[index] if landed else row.device, 0), row.dtype, not row.shape)
        for index, row in rows
    )


def follow(checkpoint: Checkpoint, part: Part, code: Code, landed: Sequence[str] = ()) -> Course:
    """Follow a part from where `torch.load` put it to its first use.

    Args:
        landed: The device of each tensor of the file, as `LoadOutcome.tensors` has it; as saved if empty.
    """
    saved = landed_places(checkpoint, part, landed)
    if part.kind is Kind.OPTIMIZER and part.form is not Form.TENSORS:
        return _optimizer(checkpoint, part, code, saved)
    if part.kind is Kind.RNG:
        failure = next((said for said in map(rng_failure, saved) if said), None)
        return Course(places=saved, by_file=True, failure=failure)
    if part.form is Form.TENSORS:
        failure = mixing_failure([*saved, At(code.inputs)]) if code.inputs else None
        return Course(places=saved, by_file=True, failure=failure)
    return _module(checkpoint, part, code, saved)


def _module(checkpoint: Checkpoint, part: Part, code: Code, saved: tuple[At, ...]) -> Course:
    way = code.way or usual_way(part)
    own = tuple(place._replace(device=code.built_on, dtype=code.built_as or place.dtype) for place in saved)
    restored = load_module(own, saved, way)
    places, error = restored.places, restored.error
    registered = [is_registered(row) for row in part.tensors(checkpoint)]
    if code.moved_to and not error:
        moved = move_module(list(compress(places, registered)), code.moved_to)
        error, then = moved.error, iter(moved.places)
        places = tuple(
            next(then) if is_in else place for place, is_in in zip(places, registered, strict=True)
        )
    failure = None
    if not error:
        first = first_of_parallel(checkpoint, part)
        failure = parallel_failure(compress(places, registered), first) if first else None
        inputs = [At(code.inputs)] if code.inputs else []
        failure = failure or mixing_failure([*meeting(checkpoint, part, places), *inputs])
    by_file = way is not Way.COPY and not code.moved_to
    return Course(places=places, by_file=by_file, error=error, warning=restored.warning, failure=failure)


def meeting(checkpoint: Checkpoint, part: Part, places: Sequence[At]) -> Iterator[At]:
    """Yield the places of those tensors of a module that meet others: counters do not."""
    for row, place in zip(part.tensors(checkpoint), places, strict=True):
        if not str(row.keys[-1]).endswith(_COUNTERS):
            yield place


def is_registered(row: Tensor) -> bool:
    """Return whether `module.to(device)` moves a tensor: a parameter or buffer, not a plain attribute."""
    above = row.keys[-2] if len(row.keys) > 1 else ""
    is_inside = any(isinstance(key, str) and key.startswith(".") for key in row.keys)
    return not is_inside or above in _REGISTERED


def first_of_parallel(checkpoint: Checkpoint, part: Part) -> str:
    """Return the device on which a pickled `DataParallel` wants its whole model; empty if it is none."""
    found = (
        hidden.device
        for hidden in checkpoint.hidden_devices
        if hidden.what is HiddenPlace.DATA_PARALLEL and hidden.path == part.path
    )
    return next(found, "") if part.form is Form.OBJECT else ""


def _optimizer(checkpoint: Checkpoint, part: Part, code: Code, saved: tuple[At, ...]) -> Course:
    rows = part.tensors(checkpoint)
    capturable = is_capturable(checkpoint, part)
    if part.form is Form.OBJECT:
        return _whole_optimizer(checkpoint, part, code, saved, capturable=capturable)
    parameter = At(code.built_on, code.built_as or "float32")
    places = saved
    if code.way is not Way.USE:
        on_device = any(one.path == part.path and one.capturable for one in checkpoint.optimizers)
        # What a group holds, such as a learning rate in a tensor, is copied as it is.
        places = tuple(
            place if row.slot is None else load_slot(row.slot, place, parameter, on_device=on_device)
            for row, place in zip(rows, saved, strict=True)
        )
    now = parameter._replace(device=code.moved_to or code.built_on)
    slots = (pair for pair in zip(rows, places, strict=True) if pair[0].slot is not None)
    owned = _by_owner(part, slots)
    said = (_step([now], slots, capturable=capturable, foreach=code.foreach) for slots in owned)
    failure = next((complaint for complaint in said if complaint), None)
    return Course(places=places, by_file=code.way is Way.USE, failure=failure)


def _whole_optimizer(
    checkpoint: Checkpoint, part: Part, code: Code, saved: tuple[At, ...], *, capturable: bool
) -> Course:
    """Follow an optimizer that is used as it comes: it holds its parameters, and a model that moves does so.

    Which state is whose is told by its shape alone. What is apart from all parameters that it could belong
    to is apart from its own.
    """
    rows = part.tensors(checkpoint)
    places = tuple(
        place._replace(device=code.moved_to) if code.moved_to and is_own_parameter(row) else place
        for row, place in zip(rows, saved, strict=True)
    )
    homes: dict[str, list[At]] = {}
    for row, place in zip(rows, places, strict=True):
        if is_own_parameter(row):
            homes.setdefault(_sizes(row), []).append(place)
    every = [place for own in homes.values() for place in own]
    slots = [pair for pair in zip(rows, places, strict=True) if ".state" in pair[0].keys]
    failure = None
    for owned in _by_owner(part, slots):
        known = (homes[_sizes(row)] for row, _ in owned if _sizes(row) in homes)
        own = next(known, every) or [At(code.built_on)]
        failure = failure or _step(own, owned, capturable=capturable, foreach=code.foreach)
    return Course(places=places, by_file=True, failure=failure)


def is_own_parameter(row: Tensor) -> bool:
    """Return whether a tensor of a pickled optimizer is one of the parameters that it holds."""
    return ".param_groups" in row.keys and row.keys[-2] == "params"


def _sizes(row: Tensor) -> str:
    """Return a shape as a text: the hash of numbers could be foreseen by who made the file."""
    return str(row.shape)


def _by_owner(part: Part, slots: Iterable[tuple[Tensor, At]]) -> Iterable[list[tuple[Tensor, At]]]:
    owned: dict[str, list[tuple[Tensor, At]]] = {}
    for row, place in slots:
        owner = "/".join(row.path.split("/", len(part.keys) + 2)[:-1])
        owned.setdefault(owner, []).append((row, place))
    return owned.values()


def _step(
    homes: Sequence[At], slots: Sequence[tuple[Tensor, At]], *, capturable: bool, foreach: bool | None
) -> Complaint | None:
    """Return what `step` says to slots that fit none of these places of their parameter."""
    named = {row.path.rpartition("/")[2]: place for row, place in slots}
    if serves_all(row.slot for row, _ in slots):
        foreach = False  # LBFGS lays all parameters end to end
    said = [
        step_failure(home, named, capturable=capturable, foreach=foreach) for home in dict.fromkeys(homes)
    ]
    return said[0] if all(said) else None


def is_capturable(checkpoint: Checkpoint, part: Part) -> bool:
    """Return whether a group of an optimizer is `capturable`: made for CUDA graphs, refused on the CPU."""
    start = f"{part.path}/" if part.path else ""
    starts = (f"{start}param_groups/", f"{start}.param_groups/")
    return any(path.startswith(starts) for path in groups_with(checkpoint, "capturable"))


def groups_with(checkpoint: Checkpoint, option: str) -> list[str]:
    """Return the paths of parameter groups of optimizers that have an option such as `capturable` set."""
    return [
        value.path.rpartition("/")[0]
        for value in checkpoint.values
        if value.text == "True" and value.path.endswith(f"/{option}") and "param_groups/" in value.path
    ]
