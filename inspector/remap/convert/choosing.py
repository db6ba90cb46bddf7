"""Which form an export has where nobody says it: what its name tells, and what is usual for its source."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from inspector.containers.formats import find_format
from inspector.containers.opening import open_path
from inspector.remap.convert.forms import (
    SAFETENSORS_SUFFIX,
    TORCH_SUFFIXES,
    ContainerName,
    Shape,
    refuse_suffix,
)


def choose_shape(
    path: str, output: str | None, asked: Shape | None, *, in_place: bool = False
) -> tuple[Shape, ContainerName]:
    """Return the shape that is asked for, or that the name of the output tells, and the kind of file.

    Args:
        path: The checkpoint.
        output: The name of the new file; None where there is none.
        asked: The shape that was asked for by its name, or None.
        in_place: Whether the file itself changes.
    """
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
