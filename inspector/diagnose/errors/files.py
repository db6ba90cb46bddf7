"""Messages about the file itself: damaged, cut, of another kind or version, or read by another reader.

The zip reader is `caffe2/serialize/inline_container.cc`, the legacy one `_legacy_load` of
`torch/serialization.py` with Python's unpickler behind it.
"""

from __future__ import annotations

import posixpath
import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Said, Tie, Tied, Told
from inspector.diagnose.errors.ties import about_code, by_finding
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


def _format(wanted: str, here: str, *, fix: Fix | None = None) -> Tie:
    """Tie a message to files of one format."""

    def tie(context: Context) -> Tied:
        form = context.checkpoint.format
        if form == wanted:
            return Tied(fits="yes", here=here, fix=fix)
        return Tied(
            fits="no", here=f"This file is in the {plain(form)} format: the error is about another file."
        )

    return tie


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


def say_part_of_checkpoint(told: Told) -> Said:
    """Explain what it means where torch.load itself says so: there is a pickle without the file around it."""
    if told.scene.step != "load" or not any("torch/" in frame.place for frame in told.pasted.frames):
        return Said()
    return Said(
        title="The file is only a part of a checkpoint",
        cause="torch.load found a bare pickle whose tensors are elsewhere: data.pkl out of a checkpoint "
        "that was unpacked, or a checkpoint that was packed again in another way.",
        advice="Pass the whole file as it was saved or downloaded (.pth, .pt), not what an archive program "
        "made of it; download it again without unpacking.",
    )


def _from_process(told: Told) -> bool:
    """Return whether the end of a connection to another process was met, not that of a file."""
    return any(_CONNECTION.search(frame.path) is not None for frame in told.pasted.frames[-1:])


_CONNECTION = re.compile(
    r"multiprocessing[/\\](?:connection|spawn|reduction|queues|managers|synchronize|forkserver)\.py$"
)


def _read_safetensors(told: Told) -> bool:
    """Return whether torch.load read a safetensors file: it is the last that the text names."""
    endings = _ENDING.findall(told.pasted.flat[-_MOST_NEAR:])
    loads = told.scene.step == "load" or any("torch.load(" in frame.code for frame in told.pasted.frames)
    return loads and any(endings[-1:])


def say_of_safetensors(told: Told) -> Said:
    """Explain that the file is a safetensors file, where the text shows that."""
    if not _read_safetensors(told):
        return Said()
    return Said(
        title="A safetensors file was read with torch.load",
        cause="torch.load reads pickles, and a .safetensors file is none: the unpickler takes its header "
        "for instructions. The file itself need not be broken.",
        advice="Read it with safetensors.torch.load_file(path), or pass a file of torch.save. In a program "
        "that is not yours, update it or choose a .pt or .ckpt.",
    )


def tie_cut_pickle(context: Context) -> Tied:
    """Return whether this file is cut; it cannot be where another kind of file was read."""
    told = Told(groups=context.groups, text=context.text, pasted=context.pasted, scene=context.scene)
    if _read_safetensors(told):
        return Tied(fits="no", here="This file is a pickled checkpoint: the error is about another file.")
    return tie_damage(context)


def say_of_script(told: Told) -> Said:
    """Explain that torch.jit.load may have got a file of torch.save."""
    if _SCRIPT.search(told.pasted.flat[-_MOST_NEAR:]) is None:
        return Said()
    return Said(
        cause="torch.jit.load reads the zip archives of torch.jit.save. This file is none: torch.save wrote "
        "it (in the old format), or it was truncated.",
        advice="Try torch.load(path, map_location='cpu') and load the weights into a model that you create. "
        "If that fails, too, fetch the file again.",
    )


_MOST_NEAR = 16 * 1024
_ENDING = re.compile(r"\.(?:(safetensors|sft)|pth|pt|ckpt|bin|pkl)\b", re.IGNORECASE)  # "" for others
_SCRIPT = re.compile(r"torch\.jit\.load|import_ir_module|torch\.jit import load")


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


tie_zip_for_old_torch = _format("zip", "This file is in the zip format of torch 1.6 and newer.")


def when_empty_file(told: Told) -> bool:
    """Return whether the end is that of a file, not that of a connection to another process."""
    return not _from_process(told)


tie_mmap_format = _format("legacy", "This file is in the old format.", fix=Fix(option=("mmap", "False")))


# --- where it is --------------------------------------------------------------------------------------------

tie_saved = about_code(
    "Nothing in this file decides it: it is about the object that is being saved, or the place."
)


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def tie_named(context: Context) -> Tied:
    """Compare the path of the message with the file that is open."""
    path = next(
        (context.groups[key] for key in ("path", "path2", "path3", "path4") if context.groups.get(key)), ""
    )
    said, held = _name(path), _name(context.checkpoint.path)
    if said and said == held:
        here = (
            f"This file has that name, {plain(held)}, and can be read here: the script looks for it in "
            "another folder."
        )
        return Tied(fits="unknown", here=here)
    return Tied(
        fits="no", here=f"This file, {plain(held)}, is there and is a file: the error is about another path."
    )


def _permission(told: Told) -> bool:
    """Return whether a refused access may be that of a folder: Windows says so of folders."""
    path = told.groups.get("path", "")
    return told.scene.step in {"load", "script-load", "nested-load", "save", ""} and bool(path)


def _denied(told: Told) -> Said:
    """Name a folder first where the path looks like one; only Windows denies access to folders."""
    path = told.groups.get("path", "")
    if path.startswith("/"):
        return _NO_RIGHT
    ending = posixpath.splitext(path.rstrip("/"))[1].lower()
    return _MAYBE_FOLDER if ending in _ENDINGS and not path.endswith("/") else Said()


_NO_RIGHT = Said(
    title="Access to the file is denied",
    cause="You have no right to read or write at that path: it belongs to another user, often to root.",
    advice="Look at its rights with ls -l, and change them (chown, chmod), or use a folder of your own.",
)
_MAYBE_FOLDER = Said(
    title="Access to the file is denied",
    cause="Windows denies access to folders in this way, also where a folder is named like a file (an "
    "archive that was unpacked). Otherwise another program holds the file, or you have no right to read it.",
    advice="Look whether the path is a folder, and pass the file in it. Otherwise check the rights of the "
    "file, and that no other program has it open.",
)
_ENDINGS = frozenset({".pt", ".pth", ".ckpt", ".bin", ".tar", ".pkl", ".safetensors", ".t7", ".model"})


def say_folder_given(told: Told) -> Said:
    """Name the path that was refused."""
    return _denied(told) if told.groups.get("path") else Said()


def when_folder_given(told: Told) -> bool:
    """Return whether a refused permission is about a path that a checkpoint has."""
    return "Permission" not in told.text or _permission(told)
