"""A folder of Megatron-LM: the part of each tensor- and pipeline-parallel rank in a file of its own.

The names are those of `get_checkpoint_name` in `megatron/training/checkpointing.py`. Along which dimension a
tensor is divided stands in the model's code alone, so the parts are shown side by side, one branch a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from inspector.containers.base import Cannot, Format, no_copy_of
from inspector.containers.container import Container
from inspector.containers.folder import Folder, read_word, run_beside
from inspector.containers.joined import join
from inspector.containers.notes import Note, NoteKind, are_files, listed, shown
from inspector.containers.source import Source
from inspector.errors import NotACheckpointError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import format_count

_OWN_NAMES = frozenset(
    {
        "argparse.Namespace",
        "megatron.core.enums.ModelType",
        "megatron.core.transformer.enums.AttnBackend",
        "megatron.core.transformer.enums.AttnMaskType",
        "megatron.core.rerun_state_machine.RerunDiagnostic",
        "megatron.core.rerun_state_machine.RerunMode",
        "megatron.core.rerun_state_machine.RerunState",
    }
)
"""Those of Megatron-LM: its arguments, and enumerations among them."""


LATEST = "latest_checkpointed_iteration.txt"
_FILE = re.compile(
    r"(?:(?P<iteration>iter_[0-9]{7}|release)/)?"
    r"(?P<rank>mp_rank_(?P<tensor>[0-9]{2,4})(?:_(?P<pipeline>[0-9]{3,4}))?(?:_[0-9]{3,4})?)/"
    r"(?P<kind>model_optim_rng|model_rng|optim|distrib_optim)\.pt"
)
_MOST_CHARS = 40
_MOST_RANKS = 4096


class _File(NamedTuple):
    """The file of one rank: its name, its iteration, the rank's folder and numbers, and what it holds."""

    name: str
    iteration: str
    rank: str
    tensor: int
    pipeline: int
    kind: str


def _files(names: Iterable[str]) -> Iterator[_File]:
    for name in names:
        found = _FILE.fullmatch(name)
        if found is not None:
            numbers = int(found["tensor"]), int(found["pipeline"] or 0)
            yield _File(name, found["iteration"] or "", found["rank"], *numbers, found["kind"])


def _iteration(folder: Folder, files: list[_File]) -> tuple[str, list[str]]:
    found = sorted({file.iteration for file in files})
    text = read_word(folder, LATEST)
    if text is None:
        chosen = "" if "" in found else found[-1]
        return chosen, [one for one in found if one != chosen]
    try:
        chosen = f"iter_{int(text):07d}"
    except ValueError:
        chosen = text
    if chosen not in found:
        folder.programs.miss("what the file of the latest iteration names", "it is not here")
        raise NotACheckpointError(
            f"the file {LATEST} names an iteration that is not here",
            where=f"{folder.path}: {shown(text, _MOST_CHARS)}",
            remedy=f"give the folder that is wanted, such as {found[-1]}",
            form="megatron",
        )
    return chosen, [one for one in found if one != chosen]


def _notes(files: list[_File], iteration: str, others: list[str]) -> Iterator[Note]:
    if iteration:
        yield Note(NoteKind.TAG, (iteration, format_count(len(others), "other") if others else "no other"))
    ranks = {file.rank for file in files}
    yield Note(NoteKind.RANKS, (format_count(len(ranks), "rank"), format_count(len(files), "file")))
    tensor = 1 + max(file.tensor for file in files)
    pipeline = 1 + max(file.pipeline for file in files)
    if tensor > 1:
        yield Note(NoteKind.TENSOR_PARALLEL, (f"{tensor:,}",))
    if pipeline > 1:
        yield Note(NoteKind.PIPELINE, (f"{pipeline:,}",))


def _missing(files: list[_File]) -> list[str]:
    tensor = 1 + max(file.tensor for file in files)
    pipeline = 1 + max(file.pipeline for file in files)
    if tensor * pipeline > _MOST_RANKS:
        return []
    there = {(file.tensor, file.pipeline, file.kind) for file in files}
    first = files[0]
    above = f"{first.iteration}/" if first.iteration else ""
    is_piped = any(file.rank.count("_") > 2 for file in files)
    kinds = sorted({file.kind for file in files})
    missing = []
    for number in range(tensor):
        for stage in range(pipeline):
            rank = f"mp_rank_{number:02d}" + (f"_{stage:03d}" if is_piped else "")
            names = (kind for kind in kinds if (number, stage, kind) not in there)
            missing += [f"{above}{rank}/{kind}.pt" for kind in names]
    return missing


class Megatron(Format):
    """What Megatron-LM saves."""

    name = "megatron"
    what = "a folder of Megatron-LM"
    reads_below = True
    loader = "megatron.training.checkpointing.load_checkpoint"
    loader_maps = True
    own_names = _OWN_NAMES
    copied_as = "objects"
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "Megatron loads its files to the CPU, so their devices decide nothing",
            "the model that it is loaded into decides; "
            "for torch.load write one file: export --format same -o model.pth",
        ),
        Cannot(
            ("recover",), "only single files are recovered", "recover the file of the rank that is damaged"
        ),
        no_copy_of("a folder of Megatron"),
    )

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return folder.entry in {"", LATEST} and any(map(_FILE.fullmatch, folder.sizes))

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        files = list(_files([*folder.sizes, *folder.outside]))  # links that lead out are refused one by one
        iteration, others = _iteration(folder, files)
        files = sorted(file for file in files if file.iteration == iteration)
        members, errors = folder.read_members(
            [file.name for file in files], lambda name: folder.read_member(name, limits, progress), progress
        )
        roots = {name: container.root for name, container in members}
        run_beside(
            folder, {file.name for file in files}, f"{iteration}/" if iteration else "", limits, progress
        )
        branches: dict[str, list[tuple[Value, Value]]] = {}
        for file in files:
            if file.name in roots:
                branches.setdefault(file.rank, []).append((file.kind, roots[file.name]))
        root = Dict(
            [(rank, pairs[0][1] if len(pairs) == 1 else Dict(pairs)) for rank, pairs in branches.items()]
        )
        whole = join(folder.path, "megatron", members, root, limits)
        notes = [Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in errors]
        notes += _notes(files, iteration, others)
        missing = _missing(files)
        if missing:
            notes.append(Note(NoteKind.MISSING_PART, (are_files(len(missing)), listed(missing))))
        refused = [*missing, *(name for name, _ in errors)]
        refusal = f"{refused[0]}: it is missing, or cannot be read" if refused else whole.refusal
        return replace(whole, notes=(*notes, *whole.notes), refusal=refusal)
