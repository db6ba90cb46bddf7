"""Folders of several objects that one program saved, each of them a branch of one checkpoint.

What tells such a folder is a file that its program writes: `model_index.json` of diffusers names the parts of
a pipeline (`DiffusionPipeline.from_pretrained` in `diffusers/pipelines/pipeline_utils.py`), `CKPT.yaml` lies
in each checkpoint of SpeechBrain (`speechbrain/utils/checkpoints.py`), and PEFT puts further adapters into
folders below the first (`PeftModel.save_pretrained` in `peft/peft_model.py`). A folder without such a file,
one of epochs for instance, stays a folder of checkpoints.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from inspector.containers.base import Format
from inspector.containers.belonging import is_training
from inspector.containers.container import Container
from inspector.containers.folder import Folder, leads_out, run_beside
from inspector.containers.joined import join
from inspector.containers.notes import Note, NoteKind, are_files, listed, shown
from inspector.containers.sharded import NOT_FOR_FOLDERS, read_index
from inspector.containers.small_json import read_json, value_of
from inspector.containers.source import Source
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.records import replace

_STEM = "diffusion_pytorch_model|pytorch_model|adapter_model|model"
_VARIANT = r"(?!safetensors|bin|index)([A-Za-z0-9_]{1,40})"
_WEIGHTS = re.compile(
    rf"(?:{_STEM})(?:\.{_VARIANT})?\.(safetensors|bin)(?:\.index(?:\.{_VARIANT})?\.json|\.{_VARIANT}\.index\.json)?"
)
_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST_TEXT_NBYTES = 1 << 16


class Branch(NamedTuple):
    """One object of the whole, and the file that its loader takes."""

    name: str
    file: str
    variant: str = ""
    others: tuple[str, ...] = ()  # further files of the same weights, which are not read


class Missing(NamedTuple):
    """An object that is named and has no file here."""

    name: str
    error: str  # what its loader says


def names_below(folder: Folder) -> dict[str, list[str]]:
    """Return the names of files by the first step of their path; those without one at an empty step."""
    found: dict[str, list[str]] = {"": []}
    for path in (*folder.sizes, *folder.outside):
        top, slash, rest = path.partition("/")
        found.setdefault(top if slash else "", []).append(rest if slash else path)
    return found


def weights_in(name: str, below: str, files: Iterable[str]) -> Branch | None:
    """Return which of the files in a folder `from_pretrained` takes for its weights; None for none.

    It takes safetensors before pickles and looks for no variant that it is not told of. diffusers looks for
    an index first, transformers for a single file.
    """
    found: list[tuple[tuple[str, bool, bool, str], str]] = []
    for file in files:
        match = _WEIGHTS.fullmatch(file)
        if match is not None:
            is_index, is_diffusers = file.endswith(".json"), file.startswith("diffusion")
            rank = match[1] or match[3] or match[4] or "", match[2] == "bin", is_index != is_diffusers, file
            found.append((rank, file))
    if not found:
        return None
    (rank, taken), *others = sorted(found)
    return Branch(name, below + taken, rank[0], tuple(file for _, file in others))


class Composite(Format):
    """What such folders have in common; `mark` is the file that tells one."""

    mark = ""
    loader_maps = True
    loader_restricts = True
    reads_below = True
    copied_as = "state-dict"
    cannot = NOT_FOR_FOLDERS

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return not folder.entry and self.mark in folder.sizes

    def find(self, folder: Folder, limits: Limits) -> Iterator[Branch | Missing]:
        """Yield the objects of a folder."""
        raise NotImplementedError(self.name)  # every such folder brings it

    def described(self, folder: Folder, limits: Limits) -> list[tuple[Value, Value]]:
        """Return what stands in the file that tells such a folder, and in others beside the weights."""
        with folder.open(self.mark) as source:
            return [(self.mark, value_of(read_json(source, limits)))]

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        found = list(self.find(folder, limits))
        branches = {one.file: one for one in found if isinstance(one, Branch)}

        def read(name: str) -> Container:
            if name.endswith(".json"):
                return read_index(folder, name, limits, progress)
            return folder.read_member(name, limits, progress)

        members, errors = folder.read_members(branches, read, progress)
        parts = {os.path.relpath(part.path, folder.root) for _, one in members for part in one.parts}
        pairs: list[tuple[Value, Value]] = [(branches[name].name, one.root) for name, one in members]
        described = self.described(folder, limits)
        # A number is no program: of its digits the unpickler knows three, which import nothing.
        numbers = {str(name) for name, text in described if isinstance(text, str) and _NUMBER.fullmatch(text)}
        known = {*branches, *(name.replace(os.sep, "/") for name in parts), *numbers}
        run_beside(folder, known, None, limits, progress)
        container = join(folder.path, self.name, members, Dict([*pairs, *described]), limits)
        missing = [one for one in found if isinstance(one, Missing)]
        refusals = [
            *(one.error for one in missing),
            *(f"{error}: {error.what}" for _, error in errors),
            *(_untold(folder, one) for one in branches.values() if one.variant),
        ]
        notes = [
            *_missing(missing),
            *(Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in errors),
            *(_taken(one) for one in branches.values() if one.others or one.variant),
        ]
        return replace(
            container,
            notes=(*notes, *container.notes),
            refusal=next(iter(refusals), container.refusal),
            tied=(),  # they are names within a branch
        )


def _missing(missing: list[Missing]) -> Iterator[Note]:
    outside = [one.name for one in missing if leads_out(one.name)]
    inside = [one.name for one in missing if not leads_out(one.name)]
    if outside:
        yield Note(NoteKind.PART_OUTSIDE, (listed(outside),))
    if inside:
        yield Note(NoteKind.MISSING_PART, (are_files(len(inside)), listed(inside)))


def _taken(branch: Branch) -> Note:
    file = branch.file.rpartition("/")[2]
    if branch.variant:
        note = Note(NoteKind.VARIANT_TAKEN, (shown(file), shown(branch.variant)))
    else:
        note = Note(NoteKind.FILE_TAKEN, (shown(file), listed(branch.others)))
    return note.within(branch.name)


_NO_MODEL = {
    "diffusers": "OSError: Error no file named diffusion_pytorch_model.bin found in directory {}.",
    "transformers": (
        "OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory {}."
    ),
}
_NO_CONFIG = "OSError: Error no file named config.json found in directory {}."
_NAMED_MISS = "it is not among the files of the folder"


def _untold(folder: Folder, branch: Branch) -> str:
    """Return what a loader says that is told of no variant."""
    library = "diffusers" if branch.file.rpartition("/")[2].startswith("diffusion") else "transformers"
    return _NO_MODEL[library].format(shown(folder.path_of(branch.name)))


class Diffusers(Composite):
    """A pipeline: `model_index.json` says which parts it has, and of which library and class each is."""

    name = "diffusers"
    what = "a pipeline of diffusers"
    loader = "diffusers.DiffusionPipeline.from_pretrained"
    device_from = "pipeline.to(device) decides"
    mark = "model_index.json"

    @override
    def find(self, folder: Folder, limits: Limits) -> Iterator[Branch | Missing]:
        for name in (*folder.sizes, *folder.outside):
            if name.endswith(".py"):
                folder.programs.miss(name, "it is code in Python, which the loader may run")
        files = names_below(folder)
        for name, library in parts_of(folder, self.mark, limits):
            is_there = bool(name) and name in files
            found = weights_in(name, f"{name}/", files[name]) if is_there else None
            if not is_there and folder.leads_elsewhere(name):
                folder.programs.miss(name, _NAMED_MISS)
            if found is not None:
                yield found
            elif not is_there:
                yield Missing(name, _NO_CONFIG.format(shown(folder.path)))
            elif f"{name}/config.json" in folder.sizes:  # as models have, and no tokenizer or scheduler
                error = _NO_MODEL.get(library, _NO_MODEL["transformers"])
                yield Missing(f"{name}/*.safetensors", error.format(shown(folder.path_of(name))))


def parts_of(folder: Folder, mark: str, limits: Limits) -> Iterator[tuple[str, str]]:
    """Yield the parts of a pipeline that it was saved with, each with the library of its class."""
    with folder.open(mark) as source:
        rows = read_json(source, limits)
    for name, row in rows:
        if name != "_class_name" and isinstance(row, list) and len(row) == 2 and isinstance(row[0], str):
            yield name, row[0]


class SpeechBrain(Composite):
    """A checkpoint of SpeechBrain: a file for each object that it recovers, some of them texts."""

    name = "speechbrain"
    what = "a checkpoint of SpeechBrain"
    loader = "speechbrain.utils.checkpoints.Checkpointer.load_checkpoint"
    device_from = "the object that each is loaded into decides"
    mark = "CKPT.yaml"

    @override
    def find(self, folder: Folder, limits: Limits) -> Iterator[Branch | Missing]:
        for name in self.recoverables((*folder.sizes, *folder.outside)):
            if not read_text(folder, f"{name}.ckpt"):
                yield Branch(name, f"{name}.ckpt")

    @staticmethod
    def recoverables(names: Iterable[str]) -> list[str]:
        """Return the names of the objects in a folder with these files."""
        return sorted(name[: -len(".ckpt")] for name in names if name.endswith(".ckpt") and "/" not in name)

    @override
    def described(self, folder: Folder, limits: Limits) -> list[tuple[Value, Value]]:
        names = (self.mark, *(f"{name}.ckpt" for name in self.recoverables(folder.sizes)))
        return [(name, text) for name in names if (text := read_text(folder, name))]


def read_text(folder: Folder, name: str) -> str:
    """Return what a short file of text says: counters and options are saved so; nothing of any other."""
    if not 0 < folder.sizes.get(name, 0) <= _MOST_TEXT_NBYTES:
        return ""
    with folder.open(name) as source:
        try:
            text = source.read(0, source.nbytes).decode()
        except UnicodeDecodeError:
            return ""
    return text.strip() if text.isprintable() or text.replace("\n", "").isprintable() else ""


class Adapters(Composite):
    """Several adapters of PEFT: the first in the folder itself, each other one in a folder of its name."""

    name = "adapters"
    what = "a folder of PEFT adapters"
    loader = "peft.PeftModel.from_pretrained"
    device_from = "the base model decides"
    mark = "adapter_config.json"

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return super().matches_folder(folder) and any(self.others(folder))

    def others(self, folder: Folder) -> Iterator[Branch]:
        """Yield further adapters; what a trainer saves at some step is one by itself."""
        files = names_below(folder)
        for name, inside in () if is_training(files[""]) else files.items():
            weights = weights_in(name, f"{name}/", inside) if name and self.mark in inside else None
            if weights is not None and not is_training(inside):
                yield weights

    @override
    def find(self, folder: Folder, limits: Limits) -> Iterator[Branch | Missing]:
        first = weights_in("default", "", names_below(folder)[""])
        if first is not None:
            yield first
        yield from self.others(folder)
