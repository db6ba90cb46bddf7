"""Every format in one table: how to tell it, what reads it, and what torch and this program do with it.

Whatever differs from format to format is a field of a row. Nothing else compares the names of formats; where
more than a fact is needed (what writes a copy, what `torch.load` says to it), another table has a row for it.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from inspector.containers.container import Container
from inspector.containers.dcp_metadata import OWN_NAMES
from inspector.containers.deepspeed import OWN_NAMES as DEEPSPEED_NAMES
from inspector.containers.deepspeed import tags_of
from inspector.containers.legacy import find_inside, makes_magic, read_legacy
from inspector.containers.source import Source
from inspector.containers.table.archives import ARCHIVE_FORMATS
from inspector.containers.table.arrays import ARRAY_ROWS
from inspector.containers.table.folders import FOLDER_ROWS
from inspector.containers.table.pickles import PICKLE_ROWS, is_pickle
from inspector.containers.table.row import Cannot, Format, Step
from inspector.containers.unread import passes_for_tar, read_as_other_pickle, read_as_pickles, read_as_tar
from inspector.containers.zip.archive import find_records, read_torchzip
from inspector.containers.zip.records import kind_of
from inspector.errors import NotACheckpointError, PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.extents import Extents
    from inspector.containers.folder import Folder

__all__ = ["FORMATS", "Cannot", "Format", "Step", "find_format", "format_of", "refuse_step"]

_HEAD_NBYTES = 64
_LOOK_NBYTES = 4096

# The first pickle of a legacy file, an integer, as each protocol writes it: in a frame from 4 on.
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_LEGACY = (
    b"\x80\x02" + _MAGIC,
    b"\x80\x03" + _MAGIC,
    b"\x80\x04\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"\x80\x05\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"L119547037146038801333356L\n.",
)
_METADATA, _SHARD = ".metadata", ".distcp"
_MOST_SAFETENSORS_HEADER_NBYTES = 100_000_000


def _begins(*magics: bytes) -> Callable[[Source], bool]:
    return lambda source: source.read_upto(0, _HEAD_NBYTES).startswith(magics)


def _is_torch_tar(source: Source) -> bool:
    if not passes_for_tar(source):
        return False
    from inspector.containers.tar_members import INFO, NEEDED, list_members  # noqa: PLC0415 - few are tar files

    return any(info.name in {INFO, *NEEDED} for info in list_members(source))


def _is_legacy(source: Source) -> bool:
    return source.read_upto(0, _HEAD_NBYTES).startswith(_LEGACY) or makes_magic(source)


def _is_safetensors(source: Source) -> bool:
    head = source.read_upto(0, 9)
    return head[8:] == b"{" and 0 < int.from_bytes(head[:8], "little") <= _MOST_SAFETENSORS_HEADER_NBYTES


def _is_part(source: Source) -> bool:
    from inspector.containers.lookalikes import is_part  # noqa: PLC0415 - healthy files never need it

    return is_pickle(source) and is_part(source.path)


def _read_tar(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.tar import read_tar  # noqa: PLC0415 - files of 2017 are rare

    return read_tar(source, limits, progress)


def _read_safetensors(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.safetensors import read_safetensors  # noqa: PLC0415 - not every file is one

    return read_safetensors(source, limits, progress)


def _is_dcp(folder: Folder) -> bool:
    """Return whether a folder is that of a distributed checkpoint, or was opened by a file of one."""
    return folder.entry.endswith((_METADATA, _SHARD)) or any(
        name.endswith(_METADATA) and "/" not in name for name in folder.sizes
    )


def _read_dcp(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.dcp import read_dcp  # noqa: PLC0415 - few are such

    return read_dcp(cast("Folder", source), limits, progress)


def _is_deepspeed(folder: Folder) -> bool:
    return bool(tags_of(folder.sizes)) and not folder.entry.endswith((_METADATA, _SHARD))


def _read_deepspeed(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.deepspeed import read_deepspeed  # noqa: PLC0415 - few are such

    return read_deepspeed(cast("Folder", source), limits, progress)


def _read_distcp(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.dcp import read_alone  # noqa: PLC0415 - as above

    return read_alone(source, limits, progress)


def _zip_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.extents import zip_extents  # noqa: PLC0415 - opening a file needs none

    return zip_extents(source, limits, progress)


def _legacy_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.extents import legacy_extents  # noqa: PLC0415 - as above

    return legacy_extents(source, limits, progress)


FORMATS: tuple[Format, ...] = (
    Format(
        name="zip",
        what="a torch.save zip",
        matches=_begins(b"PK\x03\x04"),
        kind_of=kind_of,
        read=read_torchzip,
        extents=_zip_extents,
        is_read_through_gzip=True,
        storage_extents=find_records,
        read_rival=read_as_tar,
        torch_loads=True,
        has_records=True,
        is_archive=True,
    ),
    # Zips of other writers, which `containers.zip.kinds` tells apart.
    *ARCHIVE_FORMATS,
    Format(
        name="tar",
        what="a tar checkpoint of torch 0.1",
        matches=_is_torch_tar,
        read=_read_tar,
        has_tags=True,
        read_rival=read_as_pickles,
        torch_loads=True,
        loads_restricted=False,
        era="the format of torch before 0.2",
    ),
    Format(
        name="tar",
        what="a tar archive",
        matches=passes_for_tar,
        remedy="unpack it with tar xf, and open what is inside",
        is_foreign=True,
    ),
    Format(
        name="legacy",
        what="a legacy checkpoint",
        matches=_is_legacy,
        read=read_legacy,
        extents=_legacy_extents,
        storage_extents=find_inside,
        is_read_through_gzip=True,
        torch_loads=True,
        is_stream=True,
        era="the format of torch before 1.6",
        becomes="legacy",
    ),
    Format(
        name="safetensors",
        what="a safetensors file",
        matches=_is_safetensors,
        read=_read_safetensors,
        read_rival=read_as_other_pickle,
        loader="safetensors.torch.load_file",
        device_from="load_file(path, device=...) decides",
        suffix=".safetensors",
        copied_as="state-dict",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "a safetensors file has no devices, so there are none to change",
                "give load_file the device, or write a file for torch.load: remap -o model.pth",
            ),
        ),
    ),
    Format(
        name="dcp",
        keys_are_texts=True,
        what="a distributed checkpoint (DCP)",
        matches_folder=_is_dcp,
        read=_read_dcp,
        loader="torch.distributed.checkpoint.FileSystemReader",
        device_from="the tensors that it is loaded into decide",
        own_names=OWN_NAMES,
        copied_as="objects",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "a distributed checkpoint has no devices, so there are none to change",
                "the model that it is loaded into decides; for torch.load write one file: remap -o model.pth",
            ),
            Cannot(
                ("recover",),
                "what is whole in a distributed checkpoint is saved by leaving out what is not",
                "use remap -o model.pth and --exclude with the name of what is not whole",
            ),
            Cannot(
                ("verify",),
                "a file made of a distributed checkpoint is no copy whose bytes could be compared with it",
                "remap compares the names, types and shapes of what it writes",
            ),
        ),
    ),
    Format(
        name="deepspeed",
        what="a folder of DeepSpeed",
        matches_folder=_is_deepspeed,
        read=_read_deepspeed,
        loader="deepspeed.utils.zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint",
        loader_maps=True,
        own_names=DEEPSPEED_NAMES,
        copied_as="objects",
        weights_at="fp32",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "DeepSpeed loads its folders to the CPU, so their devices decide nothing",
                "the engine that loads it decides; for torch.load write one file: remap -o model.pth",
            ),
            Cannot(
                ("recover",),
                "what is whole in a folder of DeepSpeed is saved by leaving out what is not",
                "use remap -o model.pth and --exclude with the name of what is not whole",
            ),
            Cannot(
                ("verify",),
                "a file made of a folder of DeepSpeed is no copy whose bytes could be compared with it",
                "remap compares the names, types and shapes of what it writes",
            ),
        ),
    ),
    Format(
        name="distcp",
        what="what one rank wrote of a distributed checkpoint",
        read=_read_distcp,
        loader="torch.distributed.checkpoint.FileSystemReader",
        device_from="the tensors that it is loaded into decide",
        own_names=OWN_NAMES,
        copied_as="objects",
        cannot=(
            Cannot(
                ("remap", "in-place", "recover", "verify"),
                "what one rank wrote of a distributed checkpoint is only a part of it",
                "put it back beside its .metadata, or write what is in it for torch.load: remap -o model.pth",
            ),
        ),
    ),
    *FOLDER_ROWS,
    Format(
        name="unpacked",
        what="one part of an unpacked checkpoint",
        matches=_is_part,
        remedy="give the folder that it is in, to be told how to pack it again",
    ),
    *PICKLE_ROWS,
    *ARRAY_ROWS,
)


def refuse_step(form: str, step: Step, path: str) -> None:
    """Refuse a step that makes no sense for a format."""
    why = next((row for row in format_of(form).cannot if step in row.steps), None)
    if why is not None:
        raise PlanError(why.what, where=path, remedy=why.remedy)


def format_of(name: str) -> Format:
    """Return the format of this name; one of which nothing is known but that where the table has none."""
    found = next((row for row in FORMATS if row.name == name), None)
    return found or Format(name=name, what=f"a {name} file")


def find_format(source: Source, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None) -> Format:
    """Return the format of a file."""
    if source.is_folder:
        return _find_folder_format(cast("Folder", source))
    found = next((row for row in FORMATS if row.matches(source)), None)
    if found is not None and found.kind_of is not None:
        source.measure()
        return format_of(found.kind_of(source, limits, progress or Progress()))
    if found is None or found.read is None:
        _refuse_lookalike(source)
    if found is None:
        raise NotACheckpointError(
            f"this is not a checkpoint of torch.save{_packed(source)}",
            where=source.path,
            remedy="check where it comes from, or fetch it again",
        )
    return found


def _find_folder_format(folder: Folder) -> Format:
    """Return the format of a folder."""
    found = next((row for row in FORMATS if row.matches_folder(folder)), None)
    if found is None:
        from inspector.containers.lookalikes import name_folder  # noqa: PLC0415 - few folders are none

        raise name_folder(folder.path)
    return found


def _packed(source: Source) -> str:
    return f", packed with {source.packing}" if source.gzipped else ""


def _refuse_lookalike(source: Source) -> None:
    """Raise what says what a file is instead of a checkpoint, if that is known."""
    from inspector.containers.lookalikes import Look, name_lookalike  # noqa: PLC0415 - healthy files need none

    head = source.read_upto(0, _LOOK_NBYTES)
    if not head:
        raise NotACheckpointError(
            "the file is empty", where=source.path, remedy="fetch or copy it again", form="empty"
        )
    name = os.path.basename(source.path)  # noqa: PTH119 - the path is a text, maybe of no file name at all
    error = name_lookalike(Look(head, source.file_nbytes, name), source.path)
    if error is None:
        return
    if source.gzipped:
        error.what += _packed(source)
    raise error
