"""The forms that an export can have, and what became of a checkpoint in one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.records import dataclass, replace

Shape = Literal["same", "state-dict", "safetensors"]
ContainerName = Literal["same", "zip", "legacy"]
Cast = Literal["float16", "bfloat16"]

EXCLUDED = "left out on request"
NO_WEIGHTS, NO_TENSORS = "no weights are left to export", "no tensors are left to export"
KEPT, DROPPED, NEVER = 0, 1, 2
"""What becomes of a row: written, left out on request, or nothing that the form holds."""
SAFETENSORS_SUFFIX = ".safetensors"
_SHARD_SUFFIX = ".distcp"
TORCH_SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".bin"})
_OTHER_SUFFIXES = {
    **dict.fromkeys((".npy", ".npz"), "NumPy"),
    **dict.fromkeys((".h5", ".hdf5"), "HDF5"),
    ".gguf": "llama.cpp",
    ".keras": "Keras",
    ".onnx": "ONNX",
    ".tflite": "TensorFlow Lite",
}
"""Suffixes by which programs choose how to read a file, and who does; nothing here is written as theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What an export holds, and in which kind of file.

    Attributes:
        only_weights: The model's weights alone, without the prefixes that wrappers put before their names.
        shape: `same` keeps the objects as they are; `state-dict` gives the model's tensors by name, without
            any class; `safetensors` writes those in that format.
        exclude: Patterns of paths that are left out, as in `path:` rules.
        strip_prefix: What is removed from the front of every name, or the path of the model that is meant.
        compact: Whether bytes that no tensor views are left out.
        container: What torch reads it as; safetensors is a container of its own.
        cast: The type that float32 weights become, or None to leave them.
        ema: Whether the averaged weights are meant where there are others, too.
        path: The path of the model that is meant, or None where there is one only.
    """

    only_weights: bool = False
    shape: Shape = "same"
    exclude: tuple[str, ...] = ()
    strip_prefix: str | None = None
    compact: bool = False
    container: ContainerName = "same"
    cast: Cast | None = None
    ema: bool = False
    path: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it asks for nothing that a plain copy is not."""
        return self == Form()

    def format_from(self, source: str) -> str:
        """Return the format that is written from a file of another."""
        if self.shape == "safetensors":
            return "safetensors"
        return format_of(source if self.container == "same" else self.container).becomes

    def with_path(self, path: str) -> Form:
        """Return the same form for the model at this path, whatever its names begin with."""
        return replace(self, path=path, strip_prefix=None)

    @property
    def takes_model(self) -> bool:
        """Whether only the model's weights are written, not the objects around them."""
        return self.only_weights or self.shape != "same"


class LeftOut(NamedTuple):
    """Something of the source that an export does not hold.

    Attributes:
        path: Where it stands; a branch stands for all below.
        why: Why it is left out, in a few words.
        tensors: How many tensors are in it.
        nbytes: How much they view, in bytes.
        is_lost: Whether it is part of the model that was asked for, and the form cannot hold it.
        is_asked: Whether a pattern names it.
    """

    path: str
    why: str
    tensors: int
    nbytes: int
    is_lost: bool = False
    is_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPreview:
    """What an export in a form would be, told from the rows alone.

    Attributes:
        model: The path of the model that is taken; None when everything is. The root is an empty text.
        tensors: How many tensors it would hold.
        nbytes: How large it would be, nearly.
        source_nbytes: How large the file is.
        left_out: What it would not hold.
        prefix: What would be removed from the front of every name.
        tied: Names that safetensors cannot hold, each with the name of the same tensor that is kept.
        refusals: Why it cannot be written, one sentence each; empty if it can.
        fates: What becomes of each tensor.
        value_fates: What becomes of each value.
        unused: Patterns that match nothing in the file.
    """

    model: str | None
    tensors: int
    nbytes: int
    source_nbytes: int
    left_out: tuple[LeftOut, ...]
    prefix: str
    tied: tuple[tuple[str, str], ...]
    refusals: tuple[str, ...]
    fates: bytes = b""
    value_fates: bytes = b""
    unused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormExport:
    """An export in a form that was written.

    Attributes:
        destination: Where it stands.
        form: What was asked for.
        format: `zip`, `legacy` or `safetensors`.
        model: The path of the model that was taken; None when everything was.
        tensors: How many tensors it holds.
        nbytes: Its size.
        source_nbytes: The size of the source.
        left_out: What it does not hold, and why.
        prefix: What was removed from the front of every name.
        tied: Names that safetensors does not hold, each with the name of the same tensor that is kept.
        overflowed: How many numbers became infinite when they were cast.
        verified: Whether it was opened again and compared.
        compared_values: Whether all that is no tensor was compared as well.
    """

    destination: Path
    form: Form
    format: str
    model: str | None
    tensors: int
    nbytes: int
    source_nbytes: int
    left_out: tuple[LeftOut, ...]
    prefix: str
    tied: tuple[tuple[str, str], ...]
    overflowed: int
    verified: bool
    compared_values: bool = False


def refuse_suffix(destination: Path, shape: Shape) -> None:
    """Refuse a file name that says another format than the file would have."""
    suffix = destination.suffix.lower()
    if suffix == _SHARD_SUFFIX:
        raise PlanError(
            "the file name is one for a part of a distributed checkpoint, but "
            "the file would be for torch.load",
            where=str(destination),
            remedy="choose another suffix",
        )
    if suffix in _OTHER_SUFFIXES:
        raise PlanError(
            f"the file name is one for {_OTHER_SUFFIXES[suffix]}, but the file would be for "
            f"{'safetensors' if shape == 'safetensors' else 'torch.load'}",
            where=str(destination),
            remedy=f"name it {_renamed(destination, shape)}",
        )
    says_safetensors = suffix == SAFETENSORS_SUFFIX
    if (says_safetensors or suffix in TORCH_SUFFIXES) and says_safetensors != (shape == "safetensors"):
        said, other = ("safetensors", "torch.load") if says_safetensors else ("torch.load", "safetensors")
        raise PlanError(
            f"the file name is one for {said}, but the file would be for {other}",
            where=str(destination),
            remedy=f"name it {_renamed(destination, shape)}",
        )


def _renamed(destination: Path, shape: Shape) -> str:
    return destination.with_suffix(SAFETENSORS_SUFFIX if shape == "safetensors" else ".pth").name


def check_form(form: Form) -> None:
    """Refuse what does not go together."""
    if form.shape == "safetensors" and form.container != "same":
        raise PlanError("safetensors is a container of its own", remedy="choose one of the two")
    if form.cast and not form.takes_model:
        raise PlanError(
            "only weights can be cast: the state of an optimizer would lose precision",
            remedy="export the weights only",
        )
    if not all(form.exclude):
        raise PlanError("an empty pattern leaves nothing out", remedy="write --exclude GLOB")
