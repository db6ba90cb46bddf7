"""Rules about devices: what will not load, and what is wanted on the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from inspector.containers.formats import Format, format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diagnose.branches import branch_fix, devices_fix
from inspector.diagnose.case import Case, Rule
from inspector.diagnose.listing import plain
from inspector.model.agents import loader_of
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.findings import Finding, finding
from inspector.model.roles.devices import device_order, is_accelerator, split_device
from inspector.model.roles.hidden import CHANGED_IN, DEVICE_NAMES, MOVABLE, devices_outside
from inspector.target.call import short_message
from inspector.target.profile import Profile
from inspector.target.restore import generator_failure, restore_failure, send_failure
from inspector.target.simulate import device_failures
from inspector.units import format_count

# The rule about devices that no `map_location` reaches: what fails there on the target, and what to set.

_MOST_NAMED = 8
_SET = "Set it after loading, such as {example}."
_HELPS: Mapping[str, str] = {
    HiddenPlace.DEVICE: _SET,
    HiddenPlace.KEY: "Build that dictionary anew with the devices of that machine.",
    HiddenPlace.NESTED: "Give the torch.load that opens it a map_location.",
    HiddenPlace.TEXT: _SET,
    HiddenPlace.TENSOR_TYPE: "Set it after loading, such as torch.FloatTensor.",
    HiddenPlace.GENERATOR: "Make a new generator on a device of that machine.",
    HiddenPlace.MESH: "Make a new mesh with init_device_mesh.",
    HiddenPlace.DATA_PARALLEL: "Take the model out of its wrapper: model = model.module.",
}
_SENT_TO = frozenset({HiddenPlace.DEVICE, HiddenPlace.TEXT, HiddenPlace.DATA_PARALLEL})


def find_hidden(case: Case) -> Iterator[Finding]:
    """Find devices that no map_location reaches, and what becomes of code that uses them on the target."""
    yield from _find_traced(case)
    hidden = [
        one
        for one in devices_outside(case.checkpoint)
        if is_accelerator(one.device) and one.what is not HiddenPlace.CODE
    ]
    if not hidden:
        return
    target = case.target
    missing = [] if target is None else [one for one in hidden if not _is_there(one, target)]
    named = ", ".join(sorted({f"{one.what} {plain(one.device)}" for one in missing or hidden})[:_MOST_NAMED])
    said = f"The file holds {named} outside of its tensors. torch.load returns that as it was saved"
    if target is None or not missing:
        detail = f"{said}; code that uses it will expect that device."
    else:
        detail = f"{said}. {_failing(missing[0], target)} {_helping(missing[0], target)}"
    if case.checkpoint.format in CHANGED_IN and any(one.what in MOVABLE for one in missing or hidden):
        detail += " In a copy, remap --hidden-devices changes it."
    yield finding(
        "hidden-device",
        "warning" if any(_is_used(one) for one in missing) else "note",
        "A device that map_location does not change",
        detail,
        [one.path for one in missing or hidden],
    )


def _find_traced(case: Case) -> Iterator[Finding]:
    """Find devices in the code of a program: what `map_location` moves meets what the code makes there."""
    own = case.checkpoint.own_loader
    if own is not None and own.is_compiled:
        return  # its loader asks for that device
    traced = [one for one in case.checkpoint.hidden_devices if one.what is HiddenPlace.CODE]
    if not traced:
        return
    named = ", ".join(sorted({plain(one.device) for one in traced})[:_MOST_NAMED])
    target = case.target
    missing = target is not None and any(not _is_there(one, target) for one in traced)
    fails = "; on the target, which has no such device, it stops there" if missing else ""
    yield finding(
        "traced-device",
        "warning" if missing or any(is_accelerator(one.device) for one in traced) else "note",
        "A device is fixed in the code of the model",
        f"The code makes tensors on {named} when it runs, whatever map_location, .to() or a remapped copy "
        f"say{fails}. On another device than the weights' it ends with 'Expected all tensors to be on the "
        "same device'. Script or trace the model again on the device where it is to run, or have forward() "
        "take the device from its input, as in torch.zeros(2, device=x.device), and script it.",
        [one.path for one in traced],
    )


def _is_used(one: HiddenDevice) -> bool:
    """Return whether an object keeps it for its own use; a value in a dictionary may be a mere record."""
    return one.what == HiddenPlace.DATA_PARALLEL or one.path.rpartition("/")[2] in DEVICE_NAMES


def _is_there(one: HiddenDevice, target: Profile) -> bool:
    parts = split_device(one.device)
    return parts is not None and target.offers(*parts)


def _failing(one: HiddenDevice, target: Profile) -> str:
    """Return what torch says there where it is used; its words to a missing GPU vary by build."""
    if one.what == HiddenPlace.DATA_PARALLEL and not target.count("cuda"):
        return (
            "On the target, calling the model ends with: RuntimeError: module must have its parameters and "
            f"buffers on device {plain(one.device)} (device_ids[0])."
        )
    if one.what == HiddenPlace.KEY:
        return "On the target, code that looks its own device up there ends with a KeyError."
    is_made = one.what is HiddenPlace.GENERATOR  # while the file is loaded
    if is_made:
        failure = generator_failure(one.device, target)
    else:
        failure = send_failure(one.device, target) if one.what in _SENT_TO else None
        if one.what == HiddenPlace.NESTED:
            failure = restore_failure(one.device, target)
    said = "" if failure is None else f" with an error such as: {failure[1].removesuffix('.')}"
    what = "torch.load" if is_made and failure is not None else "code that uses it"
    return f"On the target, {what} ends{said or ' with an error'}."


def _helping(one: HiddenDevice, target: Profile) -> str:
    device = target.destination
    value = f'torch.device("{device}")' if one.what == HiddenPlace.DEVICE else f'"{device}"'
    at_root = one.path.startswith(".") and "/" not in one.path
    return _HELPS[one.what].format(example=f"model{one.path} = {value}" if at_root else value)


_MOST_DEVICES = 16
_MOST_LOADER = 40
_NO_MAP = (
    "No map_location reaches them: load it where such a device is, move it with "
    "torch.export.passes.move_to_device_pass, and save it again. Its weights alone can be taken out here: "
    "export -o model.pt."
)
_TITLES = {
    "cuda-unavailable": "Saved on a CUDA GPU, and the target has none",
    "cuda-index-out-of-range": "Saved on a GPU index that the target does not have",
    "mps-unavailable": "Saved on an Apple GPU, and the target has none",
    "xpu-unavailable": "Saved on an Intel GPU that the target does not have",
    "unknown-device": "Saved on a device that torch does not support there",
}


def _unloadable(case: Case) -> Iterator[Finding]:
    """Explain each device that stops `torch.load` on the target."""
    if case.target is None:
        return
    by_finding: dict[str, list[str]] = defaultdict(list)
    failures = device_failures(case.checkpoint, case.target)
    for device in sorted(failures, key=device_order):
        by_finding[failures[device][0]].append(device)
    paths = _paths_by_device(case.checkpoint) if failures else {}
    archive, form = case.safety.archive, format_of(case.checkpoint.format)
    for id_, devices in by_finding.items():
        detail = _fails_with(case, short_message(failures[devices[0]][1]), _listed(devices) or "it")
        found = [path for device in devices for path in paths.get(device, [])]
        # One map has to reach every device that stops the load, whatever finding it belongs to.
        reached = devices if len(by_finding) == 1 else list(failures)
        if case.target.wanted is not None:
            others = {device for device in paths if is_accelerator(device)} - {case.target.wanted}
            reached = sorted(failures.keys() | others, key=device_order)
        fix = devices_fix(reached, case.target.destination)
        if (archive is not None and not archive.maps) or not form.can_map:
            fix = None
        yield finding(id_, "note" if form.loader_maps else "error", _TITLES[id_], detail, found, fix=fix)


def _fails_with(case: Case, message: str, devices: str) -> str:
    """Return what the loader of a file says to its devices, and where they can be mapped."""
    archive, form = case.safety.archive, format_of(case.checkpoint.format)
    if archive is not None and not archive.maps:
        detail = f"{archive.loader} puts each tensor where it was, and fails with: {message} {_NO_MAP}"
    elif form.unchecked and not form.loader_maps:  # such a loader takes no map_location
        detail = (
            f"{form.loader} puts each tensor where it was, and fails with: {message} Map {devices} to a "
            f"device "
            "of the target, in a copy or by the loading code."
        )
    else:
        loader = "torch.load" if archive is None else archive.loader
        detail = (
            f"{loader} without map_location fails with: {message} Map {devices} to a device of the "
            f"target, with "
            "map_location or in a copy."
        )
    return _loaded_all_the_same(case.checkpoint, form, detail) if form.loader_maps else detail


def _loaded_all_the_same(checkpoint: Checkpoint, form: Format, detail: str) -> str:
    """Return what is said of devices where the loader goes by none of them."""
    loader = loader_of(checkpoint)
    loader = loader if len(loader) <= _MOST_LOADER else loader.rpartition(".")[2]
    if not form.can_map:
        detail = f"{detail.partition(' Map ')[0]} Nothing has to be mapped."
    where = "to the device that it is given" if form.unchecked else "on the CPU first"
    return f"{loader} loads it all the same, {where}. Of its files, {detail}"


def _listed(devices: list[str]) -> str:
    """Name the first devices of many: a file can have a hundred thousand, each of a hundred characters."""
    more = len(devices) - _MOST_DEVICES
    return ", ".join(devices[:_MOST_DEVICES]) + (f" and {more:,} more" if more > 0 else "")


def _mixed(case: Case) -> Iterable[Finding]:
    """Look closer at a file whose tensors are not all on one device, or whose model wants a certain one."""
    hidden = (one.what is HiddenPlace.DATA_PARALLEL for one in case.checkpoint.hidden_devices)
    if len({tensor.device for tensor in case.checkpoint.tensors} - {"meta", NO_DEVICE}) < 2 and not any(
        hidden
    ):
        return ()
    from inspector.diagnose.findings.mixing import find_mixed  # noqa: PLC0415 - most files are on one device

    return find_mixed(case)


def _rng_off_cpu(case: Case) -> Iterator[Finding]:
    """Find random generator states that were moved off the CPU."""
    strays = [
        tensor.path
        for tensor in case.checkpoint.tensors
        if tensor.role == "rng" and tensor.dtype == "uint8" and is_accelerator(tensor.device)
    ]
    if strays:
        yield finding(
            "rng-off-cpu",
            "warning",
            "Random generator state is not on the CPU",
            "torch.set_rng_state and torch.cuda.set_rng_state accept only CPU tensors: 'RNG state must be a "
            "torch.ByteTensor'. Something such as map_location='cuda' moved them along with the model. Map "
            "them to the CPU, or call .cpu() on each before setting it.",
            strays,
            fix=branch_fix(strays, "cpu"),
        )


def _without_data(case: Case) -> Iterator[Finding]:
    """Find tensors of the meta device: they load anywhere, and there is nothing in them."""
    empty = [tensor.path for tensor in case.checkpoint.tensors if tensor.device == "meta"]
    if not empty:
        return
    is_all = len(empty) == len(case.checkpoint.tensors)
    yield finding(
        "meta-tensors",
        "warning",
        "The tensors have no data" if is_all else f"{format_count(len(empty), 'tensor')} without data",
        "On the meta device a tensor has a shape and no values, and none were written. torch.load returns it "
        "so, whatever map_location says, and load_state_dict stops with 'Cannot copy out of meta tensor; no "
        "data!'. The model was saved before its weights were there, or while accelerate kept them elsewhere "
        "(device_map='auto', offloading). Nothing here brings them back: save it again from a model that is "
        "loaded completely.",
        empty,
    )


def _paths_by_device(checkpoint: Checkpoint) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = defaultdict(list)
    for tensor in checkpoint.tensors:
        paths[tensor.device].append(tensor.path)
    return paths


DEVICE_RULES: tuple[Rule, ...] = (_unloadable, _without_data, _mixed, _rng_off_cpu, find_hidden)
