"""The rows of folders that are one checkpoint: a model in several files, and what a trainer saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.containers.container import Container
from inspector.containers.megatron import MEGATRON_NAMES
from inspector.containers.source import Source
from inspector.containers.table.row import Cannot, Format
from inspector.limits import Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.folder import Folder


def _is_training(folder: Folder) -> bool:
    from inspector.containers.belonging import is_pretrained, is_training  # noqa: PLC0415 - few are such

    return not folder.entry and (is_training(folder.sizes) or is_pretrained(folder.sizes))


def _read_training(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.training import read_training  # noqa: PLC0415 - few are such

    return read_training(cast("Folder", source), limits, progress)


def _is_sharded(folder: Folder) -> bool:
    from inspector.containers.sharded import SUFFIX, find_index  # noqa: PLC0415 - few are such

    return folder.entry.endswith(SUFFIX) or (not folder.entry and find_index(folder.sizes) is not None)


def _read_sharded(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.sharded import read_sharded  # noqa: PLC0415 - few are such

    return read_sharded(cast("Folder", source), limits, progress)


def _is_megatron(folder: Folder) -> bool:
    from inspector.containers.megatron import LATEST, is_megatron  # noqa: PLC0415 - few are such

    return folder.entry in {"", LATEST} and is_megatron(folder.sizes)


def _read_megatron(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.megatron import read_megatron  # noqa: PLC0415 - few are such

    return read_megatron(cast("Folder", source), limits, progress)


_OF_FOLDERS = (
    Cannot(
        ("in-place",),
        "a folder cannot be changed in place",
        "write a new folder with -o, or change its files one by one",
    ),
    Cannot(("recover",), "only single files are recovered", "recover the file of the folder that is damaged"),
)


FOLDER_ROWS = (
    Format(
        name="megatron",
        what="a folder of Megatron-LM",
        matches_folder=_is_megatron,
        read=_read_megatron,
        loader="megatron.training.checkpointing.load_checkpoint",
        loader_maps=True,
        own_names=MEGATRON_NAMES,
        copied_as="objects",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "Megatron loads its files to the CPU, so their devices decide nothing",
                "the model that it is loaded into decides; for torch.load write one file: remap -o model.pth",
            ),
            Cannot(
                ("recover",),
                "only single files are recovered",
                "recover the file of the rank that is damaged",
            ),
            Cannot(
                ("verify",),
                "a file made of a folder of Megatron is no copy whose bytes could be compared with it",
                "remap compares the names, types and shapes of what it writes",
            ),
        ),
    ),
    Format(
        name="folder",
        what="a folder of a trainer",
        matches_folder=_is_training,
        read=_read_training,
        loader_restricts=True,
        copied_as="state-dict",
        cannot=_OF_FOLDERS,
    ),
    Format(
        name="sharded",
        what="a model in several files with an index",
        matches_folder=_is_sharded,
        read=_read_sharded,
        loader="transformers.AutoModel.from_pretrained",
        loader_maps=True,
        device_from="from_pretrained(..., device_map=...) decides",
        loader_restricts=True,
        copied_as="state-dict",
        cannot=_OF_FOLDERS,
    ),
)
"""In the order in which they are asked."""
