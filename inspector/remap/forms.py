"""The forms that an export can have, and what became of a checkpoint in one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from inspector.containers.formats import find_format, format_of
from inspector.containers.opening import open_path
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.quoting import command, file_word
from inspector.records import dataclass, replace
from inspector.remap.plan import meant_path
from inspector.remap.rules import Rule, as_meant, path_of

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
        strip_prefix: What is removed from the front of every name, or the path of the model that is meant.
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
        is_lost: Whether it is part of the model that was asked for, and the form cannot hold it.
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
    """An export in a form that was written."""

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
    by_suffix = {SAFETENSORS_SUFFIX: "safetensors", **dict.fromkeys(TORCH_SUFFIXES, "torch.load")}
    said = (_OTHER_SUFFIXES | by_suffix).get(suffix)
    is_safe = shape == "safetensors"
    reader = "safetensors" if is_safe else "torch.load"
    if said is not None and said != reader:
        name = destination.with_suffix(SAFETENSORS_SUFFIX if is_safe else ".pth").name
        raise PlanError(
            f"the file name is one for {said}, but the file would be for {reader}",
            where=str(destination),
            remedy=f"name it {name}",
        )


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


# ------------------------------------------------------------------------------------------------------------
# Which form an export has where nobody says it: what its name tells, and what is usual for its source.


def choose_shape(
    path: str, output: str | None, asked: Shape | None, *, in_place: bool = False
) -> tuple[Shape, ContainerName]:
    """Return the shape that is asked for, or that the name of the output tells, and the kind of file."""
    is_told = output is not None and output.lower().endswith(SAFETENSORS_SUFFIX)
    shape: Shape = asked or ("safetensors" if is_told else "same")
    container: ContainerName = "same"
    if asked is None and not is_told and output is not None and not in_place:
        usual = _usual_copy(path, Path(output))
        shape, container = ("same", "zip") if usual == "objects" else (usual, "same")
    if output is not None:
        refuse_suffix(Path(output), shape)
    return shape, container


def _usual_copy(path: str, output: Path) -> Literal["same", "state-dict", "objects"]:
    """Return what a copy of a file is that nothing else is said of.

    A plain pickle stays one, unless the copy is named as files of torch.save are, and the pickle is not.
    """
    with open_path(path) as source:
        form = find_format(source)
        is_new_folder = source.is_folder and output.suffix.lower() not in TORCH_SUFFIXES
    if form.unchecked:
        suffix = output.suffix.lower()
        is_other = suffix in TORCH_SUFFIXES and suffix != Path(path).suffix.lower()
        return ("objects" if form.copied_as == "same" else form.copied_as) if is_other else "same"
    return "same" if is_new_folder and form.copied_as == "state-dict" else form.copied_as


# --- patterns of paths that an export leaves out, and which of them cover what ------------------------------

_NONE: frozenset[int] = frozenset()


class Patterns:
    """The paths that are left out, each with everything below it.

    Patterns without wildcards, and beginnings of names such as `model/layer1.*`, are looked up and not tried:
    a choice made row by row may have thousands.
    """

    def __init__(self, patterns: Sequence[str], checkpoint: Checkpoint | None = None) -> None:
        self.texts = tuple(dict.fromkeys(patterns))
        meant = {} if checkpoint is None else as_meant(self.texts, checkpoint)
        self._paths: dict[str, int] = {}
        self._dotted: dict[str, int] = {}
        self._globs: list[tuple[int, Rule]] = []
        for number, given in enumerate(self.texts):
            text = meant.get(given, given)
            path, beginning = path_of(text), path_of(text.removesuffix("*"))
            if path is not None and path not in self._paths:  # there may be two spellings of one path
                self._paths[path] = number
            elif text.endswith(".*") and beginning is not None and beginning not in self._dotted:
                self._dotted[beginning] = number
            else:
                self._globs.append((number, Rule(path=text, to="cpu")))
        self._above: dict[str, frozenset[int]] = {}
        self._used: set[int] = set()
        self._steps: set[str] = set()

    @property
    def unused(self) -> tuple[str, ...]:
        """The patterns that have covered nothing so far."""
        return tuple(text for number, text in enumerate(self.texts) if number not in self._used)

    def cover(self, *paths: str) -> bool:
        """Return whether something known by these paths is left out, and remember which pattern did it."""
        return bool(self.find(*paths))

    def find(self, *paths: str) -> frozenset[int]:
        """Return the places of the patterns that leave out something known by these paths."""
        if not self.texts:
            return _NONE
        found = _NONE
        for path in paths:
            above, slash, _ = path.rpartition("/")
            found |= self._find((path,))
            if slash:
                known = self._above.get(above)
                if known is None:
                    known = self._above[above] = self._find(lineage_of(above))
                found |= known
        return found

    def name(self, paths: Sequence[str]) -> bool:
        """Return whether a pattern covers one of these paths itself, whatever they stand in."""
        return bool(self._find(paths))

    def refuse_unused(self, path: str) -> None:
        """Refuse patterns that left nothing out of a file: most likely they are mistyped."""
        for pattern in self.unused[:1]:
            near = meant_path(pattern, self._steps)
            meant = "" if near is None else f"did you mean {near}? "
            raise PlanError(
                "nothing in the file matches the pattern",
                where=pattern,
                remedy=f"{meant}list the paths with: {command('show', file_word(path))}",
            )

    def _find(self, paths: Iterable[str]) -> frozenset[int]:
        paths = tuple(paths)
        self._steps.update(path.partition("/")[0] for path in paths)
        found = {self._paths[path] for path in paths if path in self._paths}
        if self._dotted:
            begun = (path[:end] for path in paths for end in _ends_at_dots(path))
            found.update(self._dotted[beginning] for beginning in begun if beginning in self._dotted)
        found.update(number for number, rule in self._globs if rule.matches("", paths))
        self._used |= found
        return frozenset(found)


def _ends_at_dots(path: str) -> Iterator[int]:
    """Yield where `beginning.*` can have its star: behind each dot of the last step."""
    at = path.find(".", path.rfind("/") + 1)
    while at >= 0:
        yield at + 1
        at = path.find(".", at + 1)


def lineage_of(path: str) -> list[str]:
    """Return a path and all that it is below, outermost first."""
    steps = path.split("/")
    return ["/".join(steps[:count]) for count in range(1, len(steps) + 1)]
