"""Messages of frameworks around torch, of safetensors, and about models spread over files and devices."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Tied
from inspector.diagnose.errors.ties import of_finding, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix

_OWN_LOADER = "safetensors."


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


def tie_metadata(context: Context) -> Tied:
    """Return whether this file says which framework wrote it."""
    if not format_of(context.checkpoint.format).loader.startswith(_OWN_LOADER):
        return tie_safetensors(context)
    if any(row.keys == (".__metadata__", "format") for row in context.checkpoint.values):
        return Tied(fits="no", here="This file has that entry: the error is about another file.")
    return Tied(fits="yes", here="The metadata of this file has no entry format.")


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
