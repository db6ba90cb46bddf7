"""Rules about the memory of the target: what would not fit, and who would fill one GPU for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inspector.diagnose.base import Case, Rule
from inspector.model.devices import is_accelerator, split_device
from inspector.model.findings import Finding, Fix, finding
from inspector.model.totals import device_totals
from inspector.target.profile import Profile
from inspector.target.simulate import device_failures
from inspector.units import format_nbytes


def _all_ranks(case: Case) -> Iterator[Finding]:
    """Warn of several processes that would all load onto the one GPU in the file."""
    if case.target is None:
        return
    devices = {storage.device for storage in case.checkpoint.storages}
    saved = [device for device in devices if is_accelerator(device)]
    if len(saved) != 1:
        return
    device = saved[0]
    kind, _ = split_device(device) or ("", None)
    count = {"cuda": case.target.cuda, "xpu": case.target.xpu}.get(kind, 0)
    if count < 2 or device_failures(case.checkpoint, case.target):
        return
    yield finding(
        "all-ranks-on-one-device",
        "note",
        f"With several processes, all of them would load onto {device}",
        f"All that this file has on a GPU was saved on {device}, and the target has {count}. Training on "
        "several GPUs runs one process for each (torchrun, DistributedDataParallel), and each of them calls "
        f"torch.load: without map_location every one puts its copy on {device}, which runs full while the "
        "others stay empty. Give each process its own GPU with map_location=f'cuda:{local_rank}', where "
        "local_rank is the number of the process on its machine (torchrun sets LOCAL_RANK), or load to the "
        "CPU first. With a single process there is nothing to do.".replace("cuda:{", f"{kind}:{{"),
        [tensor.path for tensor in case.checkpoint.tensors if tensor.device == device],
        fix=Fix(style="distributed"),
    )


def _does_not_fit(case: Case) -> Iterator[Finding]:
    """Compare what the file puts on each device with the memory that is there."""
    if case.target is None:
        return
    capacities = _capacities(case.target)
    needs: Counter[str] = Counter()
    for total in device_totals(case.checkpoint) if capacities else ():
        needs[_on_target(total.device)] += total.nbytes
    for device, capacity in capacities.items():
        if needs[device] <= capacity:
            continue
        named = "the CPU" if device == "cpu" else device
        elsewhere = is_accelerator(device) and needs[device] < (case.target.memory_nbytes or 0)
        yield finding(
            "does-not-fit",
            "error",
            f"The file does not fit into the memory of {named}",
            f"It puts {format_nbytes(needs[device])} on {named}, which has {format_nbytes(capacity)}. "
            "Loading needs that much at least, and a model that is made before needs its share again. "
            + (
                "Load to the CPU first, and move only the weights: the state of the optimizer is often two "
                "thirds of a checkpoint."
                if is_accelerator(device)
                else "mmap=True reads only what is used; or save the weights alone, without the optimizer."
            ),
            [tensor.path for tensor in case.checkpoint.tensors if _on_target(tensor.device) == device],
            fix=Fix(rule=f"{device}=cpu") if elsewhere else Fix(option=("mmap", "True")),
        )


def _on_target(device: str) -> str:
    """Give the device that a tag means: without a number, the first."""
    kind, index = split_device(device) or (device, None)
    return f"{kind}:0" if kind in {"cuda", "xpu"} and index is None else device


def _capacities(target: Profile) -> dict[str, int]:
    """Give, by device, the memory that is known."""
    known = {_on_target(gpu.device): gpu.memory_nbytes for gpu in target.gpus}
    known["cpu"] = target.memory_nbytes
    return {device: nbytes for device, nbytes in known.items() if nbytes is not None}


MEMORY_RULES: tuple[Rule, ...] = (_does_not_fit, _all_ranks)
