"""Every format, and which one a file is of.

A new format is a class in a module of its own (see `base.Format`), an entry here and a sample.
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from inspector.containers.base import Cannot, Entry, Format, Step
from inspector.containers.source import FileSource, Source
from inspector.containers.torch_zip import ARCHIVES
from inspector.errors import NotACheckpointError, PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.folder import Folder

__all__ = [
    "FILES",
    "FOLDERS",
    "FORMATS",
    "Cannot",
    "Format",
    "Step",
    "find_format",
    "format_of",
    "refuse_step",
]

_GRAPH_NBYTES = 4096

FILES: tuple[Entry, ...] = (
    Entry("zip", "torch_zip:TorchZip"),
    Entry("tar", "tar:Tar"),
    Entry("tar", "tar:OtherTar"),
    Entry("legacy", "legacy:Legacy"),
    Entry("safetensors", "safetensors:Safetensors"),
    Entry("unpacked", "pickled:Unpacked"),
    Entry("pickle", "pickled:Pickle"),
    Entry("gguf", "gguf:Gguf"),
    Entry("npy", "npy:Npy"),
)
"""What a file is asked for, in this order."""
FOLDERS: tuple[Entry, ...] = (
    Entry("diffusers", "composite:Diffusers"),
    Entry("speechbrain", "composite:SpeechBrain"),
    Entry("adapters", "composite:Adapters"),
    Entry("tensordict", "tensordict:TensorDict"),
    Entry("dcp", "dcp:Dcp"),
    Entry("deepspeed", "deepspeed:DeepSpeed"),
    Entry("megatron", "megatron:Megatron"),
    Entry("folder", "training:Training"),
    Entry("sharded", "sharded:Sharded"),
)
"""What a folder is asked for."""
FORMATS = (*FILES, *FOLDERS, *ARCHIVES, Entry("distcp", "dcp:Distcp"), Entry("joblib", "pickled:Joblib"))
"""All formats; the last ones are kinds of files above."""


def refuse_step(form: str, step: Step, path: str) -> None:
    """Refuse a step that makes no sense for a format."""
    why = next((row for row in format_of(form).cannot if step in row.steps), None)
    if why is not None:
        raise PlanError(why.what, where=path, remedy=why.remedy)


def format_of(name: str) -> Format:
    """Return the format of this name; one of which nothing is known but that where there is none."""
    found = next((entry for entry in FORMATS if entry.name == name), None)
    if found is not None:
        return found.format()
    unknown = Format()
    unknown.name, unknown.what = name, f"a {name} file"
    return unknown


def find_format(source: Source, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None) -> Format:
    """Return the format of a file or a folder."""
    if source.is_folder:
        return _find_folder_format(cast("Folder", source))
    found = next((form for entry in FILES if (form := entry.format()).matches(source)), None)
    if found is not None and found.is_read:
        if found.has_records:
            source.measure()
        return format_of(found.kind_of(source, limits, progress or Progress()))
    from inspector.containers.lookalikes import packed_with, refuse_lookalike  # noqa: PLC0415 - healthy files need none

    refuse_lookalike(source)
    if found is None:
        _refuse_weights(source)
        raise NotACheckpointError(
            f"this is not a checkpoint of torch.save{packed_with(source)}",
            where=source.path,
            remedy="check where it comes from, or fetch it again",
        )
    return found


def _refuse_weights(source: Source) -> None:
    """Refuse weights whose graph lies beside them in a file of their name."""
    stem, suffix = os.path.splitext(source.path)  # noqa: PTH122 - a text
    if suffix != ".bin" or not os.path.isfile(f"{stem}.xml"):  # noqa: PTH113 - a text
        return
    from inspector.containers.lookalikes import name_weights  # noqa: PLC0415 - as above

    with suppress(OSError), FileSource(f"{stem}.xml") as graph:
        error = name_weights(source.path, graph.read_upto(0, _GRAPH_NBYTES))
        if error is not None:
            raise error


def _find_folder_format(folder: Folder) -> Format:
    found = next((form for entry in FOLDERS if (form := entry.format()).matches_folder(folder)), None)
    if found is None:
        from inspector.containers.lookalikes import name_folder  # noqa: PLC0415 - few folders are none

        raise name_folder(folder.path)
    return found
