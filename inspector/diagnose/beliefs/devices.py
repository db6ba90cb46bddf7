"""Beliefs about devices: what of the machine that saved a file has to be there where it is loaded."""

from __future__ import annotations

from inspector.diagnose.beliefs.belief import Answer, Row
from inspector.diagnose.beliefs.facts import Facts, and_joined, shown, tensors
from inspector.model.roles.devices import is_accelerator, split_device
from inspector.pickles.python2 import present_name
from inspector.target.machine.wish import THIS
from inspector.units import escape_text, format_nbytes

_NO_GPU = "Nothing in this file was saved on a GPU."


def _gpu_must_be_there(facts: Facts) -> Answer:
    why = (
        "The device in the file is only where torch.load puts each tensor if nobody says otherwise: "
        "map_location says otherwise. Which GPU it was is not recorded, only its number."
    )
    here = f"{_saved_on(facts)}{_missing(facts)}"
    archive = facts.load.safety.archive
    if archive is not None and not archive.maps and facts.accelerators:
        why = f"{archive.loader} has no map_location: it puts each tensor where it was."
        return Answer("true", here, why)
    hidden = [one.device for one in facts.checkpoint.hidden_devices if is_accelerator(one.device)]
    if not hidden:
        return Answer("false", here, why, facts.loading())
    names = and_joined([shown(name) for name in dict.fromkeys(hidden)])
    objects = "1 object in it names" if len(hidden) == 1 else f"{len(hidden):,} objects in it name"
    here += f" But {objects} {names} where map_location does not reach, and can fail without it."
    return Answer("depends", here, why, facts.loading())


def _saved_on(facts: Facts) -> str:
    if not facts.accelerators:
        return _NO_GPU
    cpu = sum(total.nbytes for total in facts.totals if total.device == "cpu")
    rest = f"; {format_nbytes(cpu)} on the CPU" if cpu else ""
    return f"Saved on {facts.places}{rest}."


def _missing(facts: Facts) -> str:
    missing = [total.device for total in facts.accelerators if not _is_there(facts, total.device)]
    is_this = facts.target.id == THIS
    where = "This machine" if is_this else f"The target ({escape_text(facts.target.label)})"
    if not missing:
        return f" {where} has all of them." if facts.accelerators else ""
    names = and_joined([shown(name) for name in missing], "or")
    archive = facts.load.safety.archive
    is_mapped = facts.loads_on_cpu or (archive is not None and archive.maps)
    loads = ', and map_location="cpu" loads it there' if is_mapped else ""
    return f" {where} has no {names}{loads}."


def _is_there(facts: Facts, device: str) -> bool:
    parts = split_device(device)
    return parts is not None and facts.target.offers(*parts)


def _as_many_gpus(facts: Facts) -> Answer:
    count = len(facts.accelerators)
    named = {0: _NO_GPU, 1: f"Everything on a GPU is on one, {facts.places}."}
    here = named.get(count, f"It names {count} devices: {facts.places}. One is enough, and so is none.")
    why = (
        "map_location sends any number of devices to one. A single device name does it for all; a dictionary "
        "names them one by one."
    )
    return Answer("false", here, why, facts.loading())


def _same_cuda_version(facts: Facts) -> Answer:
    here = f"It holds {tensors(len(facts.checkpoint.tensors))} as plain bytes"
    here += (
        f", with the names of their devices: {facts.places}." if facts.accelerators else ", none on a GPU."
    )
    why = (
        "No CUDA version is compared when a file is loaded. torch brings its own CUDA; what must fit is the "
        "driver of the machine, for every file alike."
    )
    return Answer("false", here, why, "print(torch.version.cuda, torch.cuda.is_available())")


def _cpu_tensor_breaks(facts: Facts) -> Answer:
    on_cpu = [row for row in facts.checkpoint.tensors if row.device == "cpu"]
    by_design = sum(row.on_cpu_by_design for row in on_cpu)
    here = "No tensor in it is on the CPU."
    if on_cpu:
        part = "all" if by_design == len(on_cpu) else f"{by_design:,}"
        design = f", {part} of them by design (step counters, random states)" if by_design else ""
        here = f"On the CPU: {len(on_cpu):,} of {tensors(len(facts.checkpoint.tensors))}{design}."
    why = (
        "A file may mix devices, and the CPU is on every machine. load_state_dict then copies each value to "
        "the device of the model's own parameter."
    )
    return Answer("false", here, why)


def _data_parallel(facts: Facts) -> Answer:
    names = facts.names
    wrapped = sum(name.startswith("module.") for name in names)
    why = (
        "DataParallel and DistributedDataParallel only put `module.` before each name. Without it the "
        "weights fit the plain model, on any number of GPUs or none."
    )
    if any(present_name(use.name) in _WRAPPERS for use in facts.checkpoint.globals):
        here = "It holds a pickled wrapper, which is one again when it is loaded: take the model out of it."
        return Answer("depends", here, why, "model = model.module")
    here = (
        f"{wrapped:,} of its {len(names):,} names begin with `module.`." if names else "It holds no wrapper."
    )
    code = 'state_dict = {name.removeprefix("module."): value for name, value in state_dict.items()}'
    return Answer("false", here, why, code if wrapped else "")


_WRAPPERS = frozenset(
    {"torch.nn.parallel.data_parallel.DataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"}
)


def _map_location_moves_model(facts: Facts) -> Answer:
    here = f"map_location places its {format_nbytes(facts.nbytes)} as they are read, and nothing else."
    if facts.has_module:
        why = "The module comes out of the file, so map_location decides where it is. Your inputs are not."
        return Answer("depends", here, why, _TO_DEVICE)
    why = (
        "load_state_dict copies the values into the tensors that the model has, where those are. The model "
        "stays where it was until .to() moves it."
    )
    return Answer("false", here, why, _TO_DEVICE)


_TO_DEVICE = "model.to(device)"


def _map_location_moves_optimizer(facts: Facts) -> Answer:
    slots = facts.slots
    steps = sum(row.on_cpu_by_design for row in slots if row.slot == "step")
    if slots:
        nbytes = format_nbytes(sum(row.nbytes for row in slots if row.part_of is None))
        kept = f"; its step counters ({steps:,}) stay where torch.load puts them" if steps else ""
        here = f"It holds {tensors(len(slots))} of optimizer state, {nbytes}{kept}."
    else:
        here = "It holds no optimizer state."
    why = (
        "optimizer.load_state_dict moves each slot to the device and dtype of its parameter, wherever "
        "map_location put it. So move the model before, not after."
    )
    return Answer("false", here, why, f"{_TO_DEVICE}  # before optimizer.load_state_dict(...)")


DEVICE_BELIEFS = (
    Row(id="same-gpu", claim="The GPU it was trained on must be there.", answer=_gpu_must_be_there),
    Row(id="same-number-of-gpus", claim="It needs as many GPUs as it was saved from.", answer=_as_many_gpus),
    Row(id="same-cuda-version", claim="It needs the same CUDA version.", answer=_same_cuda_version),
    Row(
        id="cpu-tensor-breaks",
        claim="A CPU tensor among CUDA tensors breaks loading.",
        answer=_cpu_tensor_breaks,
    ),
    Row(
        id="data-parallel-needed",
        claim="Saved from DataParallel, it needs DataParallel.",
        answer=_data_parallel,
    ),
    Row(
        id="map-location-moves-model",
        claim="map_location='cuda' puts my model on the GPU.",
        answer=_map_location_moves_model,
    ),
    Row(
        id="map-location-moves-optimizer",
        claim="map_location moves the optimizer.",
        answer=_map_location_moves_optimizer,
    ),
)
