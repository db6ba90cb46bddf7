"""Messages of frameworks around torch, of safetensors, and of memory that is not enough."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied
from inspector.diagnose.errors.ties import listed, nothing_to_see, of_finding, paths_on, plain, top_keys
from inspector.model.findings import Fix
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import device_totals
from inspector.units import format_nbytes

_WRAPPED = (
    "This message only says that loading failed. Why is in the error before it: paste the whole text, from "
    "the first 'Traceback' on."
)


def _memory(context: Context) -> Tied:
    """Report what this file puts on each device."""
    for id_ in ("does-not-fit", "all-ranks-on-one-device"):
        found = context.findings.get(id_)
        if found is not None:
            return of_finding(found, in_full=True)
    totals = [total for total in device_totals(context.checkpoint) if is_accelerator(total.device)]
    if not totals:
        here = "This file puts nothing on a GPU: the memory was taken by the model, its batches, or others."
        return Tied(fits="no", here=here)
    shown = listed([f"{format_nbytes(total.nbytes)} on {total.device}" for total in totals])
    return Tied(
        fits="yes",
        here=f"Loaded without map_location, this file takes {shown}, beside what the model takes itself.",
        paths=paths_on(context, [total.device for total in totals]),
        fix=Fix(option=("map_location", "'cpu'")),
    )


def _host_memory(context: Context) -> Tied:
    """Report how much of the machine's memory this file takes."""
    nbytes = sum(storage.nbytes for storage in context.checkpoint.storages)
    here = f"The tensors of this file are {format_nbytes(nbytes)}; a model beside them is about the same."
    return Tied(fits="yes" if nbytes else "no", here=here, fix=Fix(option=("mmap", "True")))


def _safetensors(context: Context) -> Tied:
    """Report that this file is no safetensors file, and so what was read was given a wrong name."""
    form = context.checkpoint.format
    here = f"This file is a checkpoint of torch ({plain(form)} format) and no safetensors file."
    if context.checkpoint.path.endswith(".safetensors"):
        return Tied(fits="yes", here=f"{here} Its name ends in .safetensors, which is wrong: rename it.")
    return Tied(fits="no", here=f"{here} The error is about another.")


def _lightning(context: Context) -> Tied:
    """Return whether this file is a whole checkpoint of Lightning."""
    tops = top_keys(context)
    if "pytorch-lightning_version" in tops:
        optimizers = "with" if context.checkpoint.optimizers else "without"
        here = f"This file is a checkpoint of Lightning, {optimizers} the state of an optimizer."
        return Tied(fits="no" if context.checkpoint.optimizers else "yes", here=here)
    shown = listed(tops)
    here = f"This file is no checkpoint of Lightning: at its top there are {shown or 'no keys'}."
    return Tied(fits="yes", here=here, fix=Fix(style="plain"))


def _shared(context: Context) -> Tied:
    """Find the tensors that share their bytes."""
    found = context.findings.get("shared-storage")
    if found is None:
        return Tied(fits="no", here="No tensors of this file share their bytes.")
    return of_finding(found)


def _loads_at_all(context: Context) -> Tied:
    """Return whether something in this file would stop any load."""
    worst = next((found for found in context.findings.values() if found.severity == "error"), None)
    if worst is not None:
        return of_finding(worst, in_full=True)
    return Tied(fits="unknown", here="Nothing in this file keeps torch from loading it.")


FRAMEWORK_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="gpu-memory",
        title="The GPU's memory is not enough",
        pattern=r"(?:CUDA|HIP|XPU|MPS backend) out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|"
        r"cuda runtime error \(2\)|CUDA error: out of memory",
        finding="does-not-fit",
        cause="torch.load puts each tensor back on the GPU it was saved on, beside the model that is there "
        "already; with several processes all of them do so on the same GPU.",
        advice="Load with map_location='cpu', call load_state_dict, and delete the checkpoint before "
        "training goes on. Leave out the optimizer's state where it is not needed: it is twice the size of "
        "the weights.",
        tie=_memory,
        fix=Fix(option=("map_location", "'cpu'")),
    ),
    ErrorKind(
        id="host-memory",
        title="The computer's memory is not enough",
        pattern=r"DefaultCPUAllocator: (?:can'?t allocate|not enough) memory|"
        r"not enough memory: you tried to allocate|\bMemoryError\b|paging file is too small|"
        r"Cannot allocate memory",
        finding="does-not-fit",
        cause="torch.load reads the whole file into memory, beside the model that it is for.",
        advice="torch.load(path, mmap=True) reads only what is used (files of torch 1.6 and newer). "
        "load_state_dict(state_dict, assign=True) takes the tensors over instead of copying them.",
        tie=_host_memory,
        fix=Fix(option=("mmap", "True")),
    ),
    ErrorKind(
        id="safetensors-header",
        title="The file is no safetensors file",
        pattern=r"deserializing header: ?(?:Header ?Too ?(?:Large|Small)|Invalid ?Header\w{0,20}|header too "
        r"large|invalid (?:utf-8|json) in header)|HeaderTooLarge|InvalidHeaderDeserialization|HeaderTooSmall",
        finding="not-a-checkpoint",
        cause="A safetensors file begins with the length of its header. What was found there is no such "
        "number: the file is a Git LFS pointer or a web page, or another kind of file under that name.",
        advice="Look at its size: a pointer has about 130 bytes; fetch the real file with git lfs pull or "
        "huggingface-cli download. (A header above 100 MB is refused as well.)",
        tie=_safetensors,
    ),
    ErrorKind(
        id="safetensors-cut",
        title="The safetensors file ends too early",
        pattern=r"MetadataIncompleteBuffer|incomplete metadata|file not fully covered",
        finding="truncated",
        cause="The header lists more bytes than there are: a download or a copy broke off.",
        advice="Fetch the file again, and delete the half-finished one in the cache before.",
        tie=_safetensors,
    ),
    ErrorKind(
        id="safetensors-shared",
        title="safetensors does not store tensors that share memory",
        pattern=r"Some tensors share memory",
        finding="shared-storage",
        cause="Tied weights are one tensor under two names; safetensors would have to store them twice.",
        advice="Use safetensors.torch.save_model(model, path), or leave out one of the two names.",
        tie=_shared,
    ),
    ErrorKind(
        id="transformers-torch-version",
        title="transformers wants a newer torch before it reads .bin files",
        pattern=r"serious vulnerability issue in '?torch\.load'?|require users to upgrade torch to at least",
        cause="Before torch 2.6 even weights_only=True could be tricked into running code; transformers "
        "refuses to read pickles with such a version.",
        advice="Update torch to 2.6 or newer, or use the same model as .safetensors.",
        tie=nothing_to_see,
    ),
    ErrorKind(
        id="lightning-version",
        title="Lightning was given a file that is no checkpoint of Lightning",
        pattern=r"KeyError: ?['\"]pytorch-lightning_version",
        cause="Trainer.fit(ckpt_path=...) and load_from_checkpoint want the file of a Lightning run, with "
        "its version, loops and optimizers. This one holds weights alone, or is of another framework.",
        advice="Load the weights yourself: model.load_state_dict(torch.load(path)['state_dict']), and start "
        "the Trainer without ckpt_path.",
        tie=_lightning,
    ),
    ErrorKind(
        id="lightning-weights-alone",
        title="Lightning cannot resume from weights alone",
        pattern=r"Trying to restore (?:training state|optimizer state|hyperparameters)[\w ]{0,40}but "
        r"checkpoint contains only the model",
        cause="The file was saved with save_weights_only=True: the optimizer and the counters are not in it.",
        advice="Start a new run from the weights (load_from_checkpoint), or resume from a checkpoint that "
        "was saved without save_weights_only.",
        tie=_lightning,
    ),
    ErrorKind(
        id="transformers-wrapper",
        title="transformers could not load the weights",
        pattern=r"Unable to load weights from (?:the )?(?:pytorch )?checkpoint file|please set "
        r"'?from_tf=True",
        cause=_WRAPPED + " The hint about TensorFlow is rarely the reason: mostly the file is cut.",
        advice="Delete the model's folder in ~/.cache/huggingface/hub and let it be fetched again.",
        tie=_loads_at_all,
        is_wrapper=True,
    ),
)
