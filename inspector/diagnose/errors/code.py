"""Messages of Python: code that a file needs, names and keys that are looked up, objects taken for others."""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.errors.state_names import state_dicts
from inspector.diagnose.errors.ties import global_names, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.pickles.values import package_of

# --- keys and attributes ------------------------------------------------------------------------------------

_MODULE = Fix(style="module")
_PLAIN = Fix(style="plain")


def tie_of_attribute(context: Context) -> Tied:
    """Return whether this file asks for the name that the module does not have."""
    groups = context.groups
    name = groups["name"] or groups["main"]
    module = groups["module"] or ("__main__" if groups["main"] else "torch._utils")
    wanted = [full for full in global_names(context) if full.rpartition(".")[2] == name]
    exact = [full for full in wanted if full == f"{module}.{name}"]
    if not wanted:
        here = f"This file asks for nothing called {plain(name)}: the error comes from another file."
        return Tied(fits="no", here=here)
    here = f"This file asks for {listed(exact or wanted)}."
    if package_of(module) == "torch":
        written = dict(context.checkpoint.versions).get("torch", "")
        here += f" It was written by torch {plain(written)}." if written else ""
        return Tied(fits="yes", here=here)
    return Tied(fits="yes", here=here, fix=_MODULE, finding=_finding(context))


def _finding(context: Context) -> str:
    return "whole-module" if context.checkpoint.module_class is not None else "runs-code"


def tie_is_mapping(context: Context) -> Tied:
    """Report what torch.load gives for this file: a dictionary, and what is in it."""
    if context.checkpoint.module_class is not None:
        here = f"This file is a whole module, {plain(context.checkpoint.module_class)}, not a dictionary."
        return Tied(fits="no", here=here)
    if context.checkpoint.root != "mapping":
        here = f"torch.load returns a {plain(context.checkpoint.root)} for this file."
        return Tied(fits="unknown", here=here)
    rows = [row for row in state_dicts(context.checkpoint) if row.tensors]
    if not rows:
        here = "torch.load returns a dictionary without tensors for this file."
        return Tied(fits="yes", here=here, fix=_PLAIN)
    where = f"under {plain(rows[0].path)}" if rows[0].path else "at its top"
    here = (
        f"torch.load returns a dictionary for this file; the weights ({len(rows[0].tensors):,}) are {where}."
    )
    return Tied(fits="yes", here=here, paths=[row.path for row in rows[0].tensors.values()], fix=_PLAIN)


def tie_old_module(context: Context) -> Tied:
    """Return whether this file brings modules of another version."""
    if context.checkpoint.module_class is None and not any(
        name.startswith(("torch.nn.modules.", "torchvision.")) for name in global_names(context)
    ):
        return Tied(fits="no", here="This file holds no pickled modules: the error comes from another file.")
    versions = dict(context.checkpoint.versions)
    written = f", written by torch {plain(versions['torch'])}" if "torch" in versions else ""
    return Tied(fits="yes", here=f"This file holds pickled modules{written}.", fix=_MODULE)


def _bare(key: str) -> Tied:
    """Report that the file is a state dict itself, which is what the key was to lead to."""
    here = f"There is no {plain(key)} in this file: it is itself a state dict, with the weights at its top."
    if _NOT_WEIGHTS.search(key):
        return Tied(
            fits="yes", here=here, advice=f"It holds only weights: skip what reads {plain(key)}.", fix=_PLAIN
        )
    advice = "Leave the key out: model.load_state_dict(torch.load(path, map_location='cpu'))."
    return Tied(fits="yes", here=here, advice=advice, fix=_PLAIN)


_NOT_WEIGHTS = re.compile(r"optim|sched|epoch|step|iter|scaler|arg|config|best|loss|hyper", re.IGNORECASE)


def tie_key(context: Context) -> Tied:
    """Compare the key of a KeyError with the keys of this file."""
    key = context.groups["key"]
    tops = top_keys(context)
    held = {str(step) for row in context.checkpoint.values for step in row.keys}
    held |= {str(step) for row in context.checkpoint.tensors for step in row.keys}
    if any("params_dict[" in frame.code for frame in context.pasted.frames):  # the model's, not the file's
        if key in held:
            here = f"This file has {plain(key)}, for which the model in memory has no parameter."
            return Tied(fits="yes", here=here)
        return Tied(fits="no", here=f"This file has no {plain(key)}: the error comes from another file.")
    if key in tops:
        here = f"This file has the top-level key {plain(key)}: the error comes from another file."
        return Tied(fits="no", here=here)
    if key in held:
        here = f"{plain(key)} is in this file, but deeper; the top-level keys are {listed(tops)}."
        return Tied(fits="yes", here=here, fix=_PLAIN)
    if any(not row.path for row in state_dicts(context.checkpoint)):
        return _bare(key)
    shown = f"the top-level keys are {listed(tops)}" if tops else "it has no keys"
    here = f"There is no {plain(key)} in this file; {shown}."
    return Tied(fits="unknown", here=here, fix=_PLAIN)


# --- modules that are missing -------------------------------------------------------------------------------


def tie_of_module(context: Context) -> Tied:
    """Return which objects of this file come from the module that is not there."""
    module = context.groups["module"].strip(".")
    wanted = [name for name in global_names(context) if name.startswith(f"{module}.")]
    if wanted:
        here = f"This file asks for {listed(wanted)}."
        if context.checkpoint.module_class is not None:
            here += f" It is a whole pickled module, {plain(context.checkpoint.module_class)}."
        whole = context.checkpoint.module_class is not None
        return Tied(fits="yes", here=here, fix=_MODULE, finding="whole-module" if whole else "runs-code")
    here = f"This file asks for nothing from {plain(module)}: your own code, or another file, imports it."
    return Tied(fits="no", here=here)


# --- objects that are taken for others ----------------------------------------------------------------------


def tie_is_module(context: Context) -> Tied:
    """Return whether torch.load gives a whole model for this file, where the code wants a dictionary."""
    name = context.checkpoint.module_class
    if name is not None:
        here = f"This file is a whole pickled module, {plain(name)}: torch.load returns the model itself."
        return Tied(fits="yes", here=here, fix=Fix(style="module"), finding="whole-module")
    return Tied(
        fits="no", here="torch.load returns no module for this file: the error comes from another object."
    )


def tie_asks_for_paths(context: Context) -> Tied:
    """Find the paths of another system that are pickled in this file."""
    wanted = [name for name in global_names(context) if name.startswith("pathlib.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds paths: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no pathlib paths: the error comes from another file.")


def tie_holds_modules(context: Context) -> Tied:
    """Return whether modules are pickled in this file."""
    name = context.checkpoint.module_class
    if name is not None or any(use.startswith("torch.nn.modules.") for use in global_names(context)):
        return Tied(
            fits="yes",
            here="This file holds pickled modules.",
            fix=Fix(style="module"),
            finding="whole-module",
        )
    return Tied(
        fits="no",
        here="This file holds no pickled modules: the error comes from another file, or from the code.",
    )


def tie_not_script(context: Context) -> Tied:
    """Return whether this file is a torch.save file, or an archive for another loader."""
    form, archive = format_of(context.checkpoint.format), context.safety.archive
    if form.torch_loads:
        return Tied(fits="yes", here="This file was written by torch.save and holds no code.", fix=_PLAIN)
    if archive is not None and archive.is_imported:
        return Tied(fits="yes", here=f"This file is {form.what}, which has no such record.", fix=_PLAIN)
    return Tied(fits="no", here=f"This file is in the {plain(form.name)} format.")


# --- values and calls ---------------------------------------------------------------------------------------


_FAMILIES = (
    (re.compile(r"^(?:Lightning|PL)"), "pytorch-lightning"),
    (re.compile(r"^(?:Accelerat|DistributedType)"), "accelerate"),
    (re.compile(r"^DeepSpeed"), "deepspeed"),
    (re.compile(r"^(?:Peft|Lora)"), "peft"),
    (re.compile(r"(?:UNet2D|UNet3D|AutoencoderKL|Pipeline$|Scheduler$|ControlNet)"), "diffusers"),
    (re.compile(r"^(?:YOLO|DetectionModel|SegmentationModel)"), "ultralytics"),
    (re.compile(r"^(?:Learner|DataLoaders|TfmdDL)"), "fastai"),
    (re.compile(r"^(?:Data|Batch|GlobalStorage|HeteroData)$"), "torch_geometric"),
    (
        re.compile(
            r"^(?:CLIP|Llama|Bert|GPT|T5|Whisper|Qwen|Mistral|Mixtral|Gemma|Phi|Falcon|ChatGLM|Roberta|OPT|Bloom|"
            r"Wav2Vec2|ViT|Dynamic|Generation|Internlm|Seq2Seq)\w{0,60}$|(?:ForCausalLM|Tokenizer\w{0,6}|Config)$"
        ),
        "transformers",
    ),
)


def family_of_class(told: Told) -> dict[str, str]:
    """Find the package that a class belongs to: by the innermost frame, or by its name."""
    known = (name for family, name in _FAMILIES if family.search(told.groups["type"]))
    return {"family": plain(told.scene.package or next(known, ""))}


def tie_root(context: Context) -> Tied:
    """Return whether torch.load gives a list for this file."""
    kind = context.checkpoint.root
    if kind == "sequence":
        return Tied(fits="yes", here="torch.load returns a list or tuple for this file.")
    return Tied(fits="no", here=f"torch.load returns no list for this file (but a {plain(kind)}).")


# --- NumPy --------------------------------------------------------------------------------------------------


def tie_numpy(context: Context) -> Tied:
    """Return whether NumPy's objects are in this file."""
    wanted = [name for name in global_names(context) if name.startswith("numpy.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds NumPy objects: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no NumPy objects: the error comes from another file.")


_EXPECTED = re.compile(r"Expected (?P<wanted>\d{1,5}) from C header, got (?P<have>\d{1,5}) from PyObject")
_VERSIONS = re.compile(
    r"compiled against A[BP]I version (?P<wanted>\w{3,12}),? but this version of numpy is (?P<have>\w{3,12})",
    re.IGNORECASE,
)


def numpy_sizes(told: Told) -> dict[str, str]:
    """Find out whether the installed NumPy is too old, where the message has both numbers."""
    wanted, have = _numbers(_EXPECTED.search(told.text) or _VERSIONS.search(told.text))
    return {"older": "yes" if wanted > have else ""}


def _numbers(match: re.Match[str] | None) -> tuple[int, int]:
    try:
        return (0, 0) if match is None else (int(match["wanted"], 0), int(match["have"], 0))
    except ValueError:
        return 0, 0
