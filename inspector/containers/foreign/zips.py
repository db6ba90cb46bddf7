"""Zips that are no checkpoint, told by the names of their records: half of all file formats are zips.

The names are looked at, never what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from inspector.errors import NotACheckpointError
from inspector.units import cut_text, escape_text

_MOST_NAMES = 10_000
_MOST_NAME_CHARS = 80
_WEIGHTS = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".pth.tar")
_NOTHING = "look for the .pth or .pt file"
_PROGRAM = "this is a program or a library, no model: fetch the checkpoint again"

Names = frozenset[str]


class ZipLookalike(NamedTuple):
    """One row: how to tell a zip by its names.

    Attributes:
        form: A stable word for it.
        matches: Says whether a zip with these names is one.
        what: What it is, with its article.
        remedy: The next step.
    """

    form: str
    matches: Callable[[Names], bool]
    what: str
    remedy: str


def _all_of(*wanted: str) -> Callable[[Names], bool]:
    return lambda names: names.issuperset(wanted)


def _below(folder: str) -> Callable[[Names], bool]:
    return lambda names: any(name.startswith(folder) for name in names)


def _ending(*endings: str) -> Callable[[Names], bool]:
    return lambda names: any(name.endswith(endings) for name in names)


ZIP_LOOKALIKES: tuple[ZipLookalike, ...] = (
    ZipLookalike(
        "keras",
        lambda names: "config.json" in names and any(name.endswith(".weights.h5") for name in names),
        "a Keras model",
        "load it with keras.models.load_model; torch cannot read it",
    ),
    ZipLookalike("docx", _below("word/"), "a Word document", _NOTHING),
    ZipLookalike("xlsx", _below("xl/"), "an Excel workbook", _NOTHING),
    ZipLookalike("pptx", _below("ppt/"), "a PowerPoint presentation", _NOTHING),
    ZipLookalike("opendocument", _all_of("mimetype"), "an OpenDocument file or an e-book", _NOTHING),
    ZipLookalike("apk", _all_of("AndroidManifest.xml"), "an Android app", _PROGRAM),
    ZipLookalike(
        "torchserve",
        _all_of("MAR-INF/MANIFEST.json"),
        "a TorchServe archive (.mar)",
        "unpack it with unzip, and open the .pt or .pth file inside",
    ),
    ZipLookalike("jar", _all_of("META-INF/MANIFEST.MF"), "a Java library", _PROGRAM),
    ZipLookalike("wheel", _ending(".dist-info/METADATA"), "a Python package (wheel)", _PROGRAM),
    ZipLookalike(
        "coreml",
        _ending("/model.mlmodel", ".mlmodel", "com.apple.CoreML/weights/weight.bin"),
        "a Core ML model",
        "it is for Apple's Core ML, not for torch",
    ),
    ZipLookalike(
        "tf-savedmodel",
        _ending("saved_model.pb"),
        "a TensorFlow SavedModel, zipped",
        "unpack it, and load the folder with tf.saved_model.load; torch cannot read it",
    ),
    ZipLookalike(
        "zipped-folder",
        _ending("/data.pkl"),
        "a zip of a folder that torch.save's zip was unpacked to",
        "zip the folder that holds data.pkl itself, without packing, as torch.save does: zip -0 -r",
    ),
)


def name_zip(names: Iterable[str], path: str) -> NotACheckpointError:
    """Return the error that says what a zip is that torch did not write.

    Args:
        names: Its records' full names, as many as there are.
        path: The path as it was given.
    """
    some = frozenset(islice(names, _MOST_NAMES))
    for row in ZIP_LOOKALIKES:
        if row.matches(some):
            return NotACheckpointError(f"this is {row.what}", where=path, remedy=row.remedy, form=row.form)
    inside = min((name for name in some if name.lower().endswith(_WEIGHTS)), key=len, default=None)
    if inside is not None:
        shown = escape_text(cut_text(inside, _MOST_NAME_CHARS))
        what = f"this is a zip with other files in it, among them {shown}"
        return NotACheckpointError(
            what, where=path, remedy="unpack it, and open the checkpoint inside", form="zip-of-checkpoints"
        )
    return NotACheckpointError(
        "this zip holds no data.pkl, so torch.save did not write it",
        where=path,
        remedy="unpack it, and look for a .pth or .pt file",
        form="zip",
    )
