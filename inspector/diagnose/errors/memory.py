"""Messages about memory that is not enough: on a GPU, in the machine, or what Windows reserves."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import of_finding, paths_on
from inspector.diagnose.listing import listed
from inspector.model.findings import Fix
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import device_totals
from inspector.units import format_nbytes

_LITTLE_NBYTES = 100_000_000  # no machine that runs torch ends at less
_UNITS = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_SIZE = r"(?P<{}>\d{{1,6}}(?:\.\d{{1,4}})?) ?(?P<{}_unit>[KMGT]i?B)"
_TRIED = re.compile(rf"Tried to allocate {_SIZE.format('n', 'n')}", re.IGNORECASE)
_TOTAL = re.compile(rf"{_SIZE.format('n', 'n')} (?:total capacity|of which)", re.IGNORECASE)
_CAPACITY = re.compile(rf"total capacity of {_SIZE.format('n', 'n')}", re.IGNORECASE)
_FREE = re.compile(rf"{_SIZE.format('n', 'n')} (?:is )?free", re.IGNORECASE)
_OWN = re.compile(rf"{_SIZE.format('n', 'n')} (?:reserved in total|memory in use)", re.IGNORECASE)
_ALLOCATED = re.compile(rf"{_SIZE.format('n', 'n')} already allocated", re.IGNORECASE)
_CACHED = re.compile(rf"{_SIZE.format('n', 'n')} cached", re.IGNORECASE)
_MUCH_ELSE = 0.4  # of the card; contexts of CUDA and the desktop take less
_LOADS = frozenset({"load", "nested-load", "script-load", "load-weights", "load-optimizer"})


def _memory(context: Context) -> Tied:
    """Report what this file puts on each device."""
    for id_ in ("does-not-fit", "all-ranks-on-one-device"):
        found = context.findings.get(id_)
        if found is not None:
            return of_finding(found, in_full=True)
    totals = [total for total in device_totals(context.checkpoint) if is_accelerator(total.device)]
    if not totals:
        here = (
            "This file puts nothing on a GPU: the memory is used by the model, its batches, or other "
            "programs."
        )
        return Tied(fits="no", here=here)
    shown = listed([f"{format_nbytes(total.nbytes)} on {total.device}" for total in totals])
    return Tied(
        fits="yes",
        here=f"Loaded without map_location, this file takes {shown}, in addition to the model itself.",
        paths=paths_on(context, [total.device for total in totals]),
        fix=Fix(option=("map_location", "'cpu'")),
    )


def _size(pattern: re.Pattern[str], text: str) -> float:
    """Return a size that a message names, in bytes; 0 where it names none."""
    match = pattern.search(text)
    return float(match["n"]) * _UNITS.get(match["n_unit"].lower(), 1) if match is not None else 0


def _out_of_memory(told: Told) -> Said:
    """Explain what filled the GPU, by the sizes in the message and by what the program was doing."""
    tried, total = _size(_TRIED, told.text), _size(_TOTAL, told.text) or _size(_CAPACITY, told.text)
    # Before torch 1.5 what was cached came on top of what was allocated.
    own = _size(_OWN, told.text) or _size(_ALLOCATED, told.text) + _size(_CACHED, told.text)
    free = _size(_FREE, told.text)
    if tried and (tried > total > 0 or tried > _HUGE_NBYTES):
        return Said(
            title="A single tensor is larger than the GPU",
            cause=f"One operation asked for {format_nbytes(round(tried))} at once, which no setting makes "
            "fit: an image of too high a resolution, a sequence that is too long (attention grows with its "
            "square), a batch that is too large, or a wrong shape.",
            advice="Print the shape of the input. Use a smaller image (resize, or tiles), a shorter input "
            "or a smaller batch; for attention use scaled_dot_product_attention or flash attention.",
        )
    if total and free and own and total - free - own > _MUCH_ELSE * total:
        used = format_nbytes(round(total - free - own))
        return Said(
            title="Another program uses the memory of the GPU",
            cause=f"Of {format_nbytes(round(total))} this process has {format_nbytes(round(own))}, and "
            f"{format_nbytes(round(free))} are free: about {used} belong to other processes, such as a run "
            "that was not ended, a notebook, or another user's.",
            advice="nvidia-smi shows them: end those that are yours (a crashed run may still be there), "
            "or use another GPU: CUDA_VISIBLE_DEVICES=1, and map_location='cpu' for checkpoints, which "
            "otherwise go to the GPU they were saved on. Only then lower the batch size.",
        )
    if told.scene.step in _LOADS:
        return Said()
    known = told.scene.has_frames and told.scene.step
    return Said(
        cause="The model, what the forward pass keeps for the gradients, the optimizer (Adam: twice the "
        "weights) and the batch together do not fit"
        + ("." if known else ", or other programs use the GPU, or a checkpoint was loaded onto it as well.")
        + " What was loaded without map_location stays on the GPU in addition.",
        advice="Lower the batch size, the resolution of the input or the length of the sequences; see in "
        "nvidia-smi whether other programs use the GPU. For inference: torch.no_grad() and model.half(). "
        "For training: mixed precision, gradient checkpointing and accumulation. When resuming, load with "
        "map_location='cpu' and delete the checkpoint before training continues. "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragments.",
    )


_HUGE_NBYTES = 100 << 30


def _host_memory(context: Context) -> Tied:
    """Report how much of the machine's memory this file takes."""
    nbytes = sum(storage.nbytes for storage in context.checkpoint.storages)
    if nbytes < _LITTLE_NBYTES:
        here = f"The tensors of this file take {format_nbytes(nbytes)}: that is not what filled the memory."
        return Tied(fits="no", here=here)
    here = (
        f"The tensors of this file take {format_nbytes(nbytes)}; a model in memory takes about as much again."
    )
    return Tied(fits="yes", here=here, fix=Fix(option=("mmap", "True")))


def _of_machine(told: Told) -> Said:
    """Explain what filled the machine: a file, or the program itself."""
    if told.scene.step in _LOADS:
        return Said(
            cause="torch.load reads the whole file into memory, in addition to the model. A damaged file, or "
            "one that is no checkpoint, can name sizes that no machine has, and ends in the same error.",
        )
    if "numpy" in told.text.lower() or told.scene.has_frames or "DefaultCPUAllocator" in told.text:
        return Said(
            cause="The program asked for more memory than is left: the data and what is computed from it, "
            "the model, its outputs that are kept, and the workers of the DataLoader together.",
            advice="Look at the line: a batch, an image or a list that grows. Use smaller batches and fewer "
            "workers, keep numbers (loss.item()) instead of tensors, and evaluate under torch.no_grad(). "
            "If it is the checkpoint that is read: torch.load(path, mmap=True).",
        )
    return Said()


def _page(told: Told) -> Said:
    """Explain whose memory ended: Windows' has a limit of its own."""
    text = told.text.lower()
    if "paging file" not in text and "1455" not in text:
        return _of_machine(told)
    library = ".dll" in text
    return Said(
        title="Windows has no virtual memory left (the paging file is too small)",
        cause="Windows reserves virtual memory (RAM and paging file together) for all that is loaded. Here "
        "it ran out while "
        + (
            "a library of torch or CUDA was loaded: each Python process, such as each worker of a "
            "DataLoader, loads gigabytes of them."
            if library
            else "a file was mapped or read: mapping a checkpoint reserves its whole size."
        ),
        advice="Enlarge the paging file (System > Advanced system settings > Performance > Advanced > "
        "Virtual memory) on a disk with room, and restart. "
        + ("Use fewer workers: num_workers=0." if library else "Close other programs that hold memory."),
    )


MEMORY_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="gpu-memory",
        title="The GPU is out of memory",
        pattern=r"(?:CUDA|HIP|XPU|MPS backend) out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|"
        r"cuda runtime error \(2\)|CUDA error: out of memory",
        finding="does-not-fit",
        cause="torch.load puts each tensor back on the GPU it was saved on, in addition to the model that "
        "is already there; with several processes, all of them do so on the same GPU.",
        advice="Load with map_location='cpu', call load_state_dict, and delete the checkpoint before "
        "training continues. Skip the optimizer state where it is not needed: Adam's is twice the size of "
        "the weights.",
        tie=_memory,
        say=_out_of_memory,
        fix=Fix(option=("map_location", "'cpu'")),
    ),
    ErrorKind(
        id="host-memory",
        title="The machine is out of memory",
        pattern=r"DefaultCPUAllocator: (?:can'?t allocate|not enough) memory|"
        r"not enough memory: you tried to allocate|\bMemoryError\b|paging file is too small|"
        r"(?:WinError|os error) 1455\b|Cannot allocate memory(?! in static)",
        finding="does-not-fit",
        cause="torch.load reads the whole file into memory, in addition to the model.",
        advice="torch.load(path, mmap=True) reads only what is used (files in the zip format of torch 1.6 "
        "and newer). load_state_dict(state_dict, assign=True) uses the loaded tensors instead of copying "
        "them.",
        tie=_host_memory,
        say=_page,
        fix=Fix(option=("mmap", "True")),
    ),
)
