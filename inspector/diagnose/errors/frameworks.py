"""Messages of frameworks around torch, of safetensors, and about models spread over files and devices."""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Said, Tied, Told
from inspector.diagnose.errors.ties import by_finding, of_finding, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix

_OWN_LOADER = "safetensors."


def when_of_file(told: Told) -> bool:
    """Return whether a shape that does not fit is that of a tensor in a safetensors file."""
    if not told.groups["shape"]:
        return True
    return any(frame.place.startswith("safetensors/") for frame in told.pasted.frames[-1:])


def tie_safetensors(context: Context) -> Tied:
    """Report whether this is a safetensors file, and if not, whether its name says so."""
    form = format_of(context.checkpoint.format)
    if form.loader.startswith(_OWN_LOADER):
        if "truncated" in context.findings:
            return of_finding(context.findings["truncated"])
        here = "This is a safetensors file, and it was read to its end: the error is about another file."
        return Tied(fits="no", here=here)
    here = f"This file is in the {plain(form.name)} format, not a safetensors file."
    if context.checkpoint.path.endswith(".safetensors"):
        return Tied(fits="yes", here=f"{here} Its name wrongly ends in .safetensors: rename it.")
    return Tied(fits="no", here=f"{here} The error is about another file.")


def say_header(told: Told) -> Said:
    """Explain a header that was found and not understood: the file may be newer than the reader."""
    if "invalidheaderdeserialization" not in told.text.lower().replace(" ", ""):
        return Said()
    return Said(
        title="safetensors could not read the header of the file",
        cause="There is a header, and the installed safetensors does not understand it: the file is newer "
        "(dtypes such as float8, float4 and complex came one by one), or its beginning is damaged.",
        advice="Update it first: python -m pip install -U safetensors. If that does not help, compare the "
        "file's size and checksum with the original, and fetch it again.",
    )


def tie_metadata(context: Context) -> Tied:
    """Return whether this file says which framework wrote it."""
    if not format_of(context.checkpoint.format).loader.startswith(_OWN_LOADER):
        return tie_safetensors(context)
    if any(row.keys == (".__metadata__", "format") for row in context.checkpoint.values):
        return Tied(fits="no", here="This file has that entry: the error is about another file.")
    return Tied(fits="yes", here="The metadata of this file has no entry format.")


def say_parallel_parts(told: Told) -> Said:
    """Explain weights that are in as many files as processes are to be started."""
    match = re.search(r"for MP=(\d{1,4}) but world size", told.text)
    if match is None:
        return Said()
    return Said(
        title="The weights are in parts for another number of processes",
        cause=f"The folder holds {match[1]} consolidated parts (model parallel), one for each process, and "
        "another number of processes was started.",
        advice=f"Start as many processes as there are parts: torchrun --nproc_per_node {match[1]} script.py. "
        "Or use the same weights in the form of transformers, which are loaded by one process.",
    )


def tie_lightning(context: Context) -> Tied:
    """Return whether this file is a whole checkpoint of Lightning."""
    tops = top_keys(context)
    if "pytorch-lightning_version" in tops:
        optimizers = "with" if context.checkpoint.optimizers else "without"
        here = f"This file is a Lightning checkpoint, {optimizers} optimizer state."
        return Tied(fits="no" if context.checkpoint.optimizers else "yes", here=here)
    held = f"its top-level keys are {listed(tops)}" if tops else "it has no keys"
    here = f"This file is not a Lightning checkpoint: {held}."
    return Tied(fits="yes", here=here, fix=Fix(style="plain"))


def tie_hyper_parameters(context: Context) -> Tied:
    """Return whether this file stores the argument that is missing."""
    name = context.groups["name"]
    held = [row for row in context.checkpoint.values if row.keys[:1] == ("hyper_parameters",)]
    if any(row.keys[-1:] == (name,) for row in held):
        return Tied(
            fits="no",
            here=f"This file has {plain(name)} in hyper_parameters: the error comes from another file.",
        )
    if "pytorch-lightning_version" not in top_keys(context):
        return Tied(
            fits="no", here="This file is not a Lightning checkpoint: the error comes from another file."
        )
    return Tied(fits="yes", here=f"This file has no {plain(name)} in hyper_parameters.")


def tie_loads_at_all(context: Context) -> Tied:
    """Return whether something in this file would stop any load."""
    worst = next((found for found in context.findings.values() if found.severity == "error"), None)
    if worst is not None:
        return of_finding(worst, in_full=True)
    return Tied(fits="unknown", here="Nothing in this file keeps torch from loading it.")


def say_package(told: Told) -> Said:
    """Name the package that is missing, where the message does."""
    name = plain(told.groups["package"] or told.groups["package2"])
    return Said(advice=f"python -m pip install -U {name}, in the Python that runs the program.")


tie_safetensors_shared = by_finding("shared-storage", no="No tensors in this file share storage.")
