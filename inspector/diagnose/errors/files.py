"""Messages about the file itself: damaged, cut, of another kind or version, or read by another reader.

The zip reader is `caffe2/serialize/inline_container.cc`, the legacy one `_legacy_load` of
`torch/serialization.py` with Python's unpickler behind it.
"""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.errors.ties import by_finding
from inspector.diagnose.listing import plain
from inspector.model.agents import loader_of
from inspector.model.findings import Fix
from inspector.model.obstacles import is_gzipped

# --- what is in a file --------------------------------------------------------------------------------------

_WHOLE = (
    "This file was read to its end, and nothing is missing: the error comes from another file, or from "
    "another copy of this one, such as an unfinished download in a cache folder."
)


_DAMAGE = ("truncated", "invalid-tensor", "torch-refuses", "newer-format", "bad-crc")
tie_damage = by_finding(*_DAMAGE, no=_WHOLE, in_full=True)


_OBJECT = "file data.pkl"
_WITHOUT_OBJECT = {
    "pt2": "This file is an exported program, which has no data.pkl: torch.load does not read it.",
    "package": "This file is a package, which has no data.pkl: torch.load does not read it.",
}


def tie_record(context: Context) -> Tied:
    """Return the same of a record that is missing, which archives for other loaders never had."""
    here = _WITHOUT_OBJECT.get(context.checkpoint.format)
    if here is None or _OBJECT not in context.text or context.safety.archive is None:
        return tie_damage(context)
    advice = f"Load it with {context.safety.archive.loader}, as the printed code does."
    return Tied(fits="yes", here=here, advice=advice, fix=Fix(style="plain"))


def tie_first_byte(context: Context) -> Tied:
    """Return what a file begins with that has this byte, and whether it is this one."""
    key = context.groups["key"].lower()
    about = next((text for keys, text in _BEGINNINGS if key in keys), "")
    if key == "\\x1f" and is_gzipped(context.checkpoint):
        here = "This file is compressed with gzip, which torch.load does not decompress."
        return Tied(fits="yes", here=here, finding="torch-refuses", advice="Decompress it with gunzip.")
    here = f"This file begins like a checkpoint, not with '{plain(key)}': the error is about another file."
    return Tied(fits="no", here=f"{here} {about}".strip())


_BEGINNINGS = (
    ({"<"}, "A file that begins with '<' is a web page: the link led to a page, not to the file."),
    (
        {"v"},
        "A file that begins with 'v' is usually a Git LFS pointer: fetch the real one with git lfs pull.",
    ),
    ({"{"}, "A file that begins with '{' is JSON: an error message from a server, or a configuration."),
    ({"\\x1f"}, "A file that begins with '\\x1f' is compressed with gzip."),
    ({"\\x89"}, "A file that begins with '\\x89' is HDF5 (Keras) or a PNG image."),
    ({"\\x93"}, "A file that begins with '\\x93' is a NumPy file: read it with numpy.load."),
    ({"g"}, "A file that begins with 'G' is usually GGUF, for llama.cpp."),
    (
        {"p"},
        "A file that begins with 'P' is a zip archive that an old torch does not know, or a truncated one.",
    ),
    (
        {"\\x00", "0"},
        "A file of zeros was allocated on the disk and never written: a download was interrupted.",
    ),
)


def tie_version(context: Context) -> Tied:
    """Compare the version in the message with that of the file."""
    said = context.groups.get("version", "")
    versions = dict(context.checkpoint.versions)
    held = versions.get("version", versions.get(".data/version", ""))
    if held and held == said:
        return Tied(fits="yes", here=f"This file has version {plain(held)} of the zip format.")
    shown = f"of version {plain(held)}" if held else "without such a number"
    return Tied(fits="unknown" if not said else "no", here=f"This file is {shown}.")


def tie_protocol(context: Context) -> Tied:
    """Compare the protocol in the message with that of the file."""
    protocol = context.checkpoint.needs.protocol
    fits = str(protocol) == context.groups["protocol"]
    here = f"This file was pickled with protocol {protocol}."
    return Tied(
        fits="yes" if fits else "no", here=here if fits else f"{here} The error is about another file."
    )


def tie_of_other_loader(context: Context) -> Tied:
    """Return whether this file is one that another function loads than torch.load."""
    form = format_of(context.checkpoint.format)
    if form.torch_loads:
        return tie_damage(context)
    here = f"This file is {form.what}: {loader_of(context.checkpoint)} loads it, and torch.load does not."
    return Tied(fits="yes", here=here, fix=Fix(style="plain"))


def of_safetensors(told: Told | Context) -> dict[str, str]:
    """Find out whether torch.load read a safetensors file: it is the last that the text names."""
    endings = _ENDING.findall(told.pasted.flat[-_MOST_NEAR:])
    loads = told.scene.step == "load" or any("torch.load(" in frame.code for frame in told.pasted.frames)
    return {"safetensors": "yes" if loads and any(endings[-1:]) else ""}


def tie_cut_pickle(context: Context) -> Tied:
    """Return whether this file is cut; it cannot be where another kind of file was read."""
    if of_safetensors(context)["safetensors"]:
        return Tied(fits="no", here="This file is a pickled checkpoint: the error is about another file.")
    return tie_damage(context)


_MOST_NEAR = 16 * 1024
_ENDING = re.compile(r"\.(?:(safetensors|sft)|pth|pt|ckpt|bin|pkl)\b", re.IGNORECASE)  # "" for others


def tie_tensor_of_name(context: Context) -> Tied:
    """Return whether this file has the tensor that was not found."""
    name = context.groups["name"].strip("'\". ")
    held = [tensor.path for tensor in context.checkpoint.tensors if name in {str(k) for k in tensor.keys}]
    if held:
        here = f"{plain(name)} is in this file: the error comes from another file."
        return Tied(fits="no", here=here, paths=held)
    near = [tensor.path for tensor in context.checkpoint.tensors if tensor.path.endswith(name)]
    if near:
        here = f"In this file it is called {plain(near[0])}: the names have another prefix."
        return Tied(fits="yes", here=here, paths=near)
    return Tied(fits="yes", here=f"This file has no tensor {plain(name)}.")


# --- where it is --------------------------------------------------------------------------------------------


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def tie_named(context: Context) -> Tied:
    """Compare the path of the message with the file that is open."""
    said, held = _name(context.groups["path"]), _name(context.checkpoint.path)
    if said and said == held:
        here = (
            f"This file has that name, {plain(held)}, and can be read here: the script looks for it in "
            "another folder."
        )
        return Tied(fits="unknown", here=here)
    return Tied(
        fits="no", here=f"This file, {plain(held)}, is there and is a file: the error is about another path."
    )
