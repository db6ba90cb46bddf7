"""The rows of the archives that torch writes for other functions than `torch.load`: all of them are zips.

What reads them is imported when one comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inspector.containers.container import Container, Extent
from inspector.containers.source import Source
from inspector.containers.table.row import Cannot, Format
from inspector.containers.zip.records import find_by
from inspector.limits import Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.extents import Extents


def _read_torchscript(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.torchscript import read_torchscript  # noqa: PLC0415 - few are such

    return read_torchscript(source, limits, progress)


def _script_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.torchscript import script_extents  # noqa: PLC0415 - as above

    return script_extents(source, limits, progress)


def _find_script_records(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.torchscript import find_script_records  # noqa: PLC0415 - as above

    return find_script_records(source)


def _read_package(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.package import read_package  # noqa: PLC0415 - few are such

    return read_package(source, limits, progress)


def _package_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.package import package_extents  # noqa: PLC0415 - as above

    return package_extents(source, limits, progress)


def _find_package_records(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.package import STORAGES  # noqa: PLC0415 - as above

    return find_by(source, pattern=STORAGES)


def _read_pt2(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.pt2 import read_pt2  # noqa: PLC0415 - few are such

    return read_pt2(source, limits, progress)


def _pt2_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.pt2 import pt2_extents  # noqa: PLC0415 - as above

    return pt2_extents(source, limits, progress)


def _find_pt2_records(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.pt2 import OWN  # noqa: PLC0415 - as above

    return find_by(source, own=OWN)


def _read_sb3(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.sb3 import read_sb3  # noqa: PLC0415 - few are such

    return read_sb3(source, limits, progress)


def _sb3_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.sb3 import sb3_extents  # noqa: PLC0415 - as above

    return sb3_extents(source, limits, progress)


def _find_sb3_records(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.sb3 import find_sb3_records  # noqa: PLC0415 - as above

    return find_sb3_records(source)


ARCHIVE_FORMATS: tuple[Format, ...] = (
    Format(
        name="torchscript",
        is_archive=True,
        what="a TorchScript archive",
        read=_read_torchscript,
        extents=_script_extents,
        storage_extents=_find_script_records,
        loads_restricted=False,
        loader="torch.jit.load",
    ),
    Format(
        name="pt2",
        is_archive=True,
        what="a torch.export archive",
        read=_read_pt2,
        extents=_pt2_extents,
        storage_extents=_find_pt2_records,
        loads_restricted=False,
        loader="torch.export.load",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "the devices of an exported program stand in its graph, which is checked against them",
                "load it where its device is, move it with torch.export.passes.move_to_device_pass(program, "
                '"cpu"), and save it with torch.export.save',
            ),
        ),
    ),
    Format(
        name="package",
        is_archive=True,
        what="a torch.package archive",
        read=_read_package,
        extents=_package_extents,
        storage_extents=_find_package_records,
        loads_restricted=False,
        loader="torch.package.PackageImporter",
    ),
    Format(
        name="stable-baselines3",
        is_archive=True,
        is_agent=True,
        what="a Stable-Baselines3 agent",
        read=_read_sb3,
        extents=_sb3_extents,
        storage_extents=_find_sb3_records,
        loads_restricted=False,
        loader="BaseAlgorithm.load",
        loader_maps=True,
        unchecked=True,
        copied_as="state-dict",
        weights_at="policy.pth",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "Stable-Baselines3 sends all tensors to the device that load is given, so the saved ones "
                "decide nothing",
                'load it with device="cpu" or another one; for torch.load write one file: '
                "remap -o policy.pth",
            ),
        ),
    ),
)
"""Told apart by `containers.zip.kinds`."""
