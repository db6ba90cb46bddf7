"""What a trainer leaves in a folder, as one checkpoint: a branch for each file, the model before the rest."""

from __future__ import annotations

from typing import cast

from inspector.containers.base import Format
from inspector.containers.belonging import (
    ARGUMENTS,
    INDEX,
    configurations_of,
    files_of,
    is_pretrained,
    is_training,
)
from inspector.containers.container import Container
from inspector.containers.folder import Folder, run_beside
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind
from inspector.containers.sharded import NOT_FOR_FOLDERS, pairs_of, read_index
from inspector.containers.small_json import read_json, value_of
from inspector.containers.source import Source
from inspector.errors import CheckpointError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.records import replace

_MOST_JSON_NBYTES = 1 << 20


def _configurations(folder: Folder, names: list[str], limits: Limits) -> list[tuple[Value, Value]]:
    """Return the configurations as values; one that is long or no JSON is nobody's loss."""
    found: list[tuple[Value, Value]] = []
    for name in configurations_of(names):
        if folder.sizes[name] > _MOST_JSON_NBYTES:
            continue
        try:
            with folder.open(name) as source:
                found.append((name, value_of(read_json(source, limits))))
        except CheckpointError:
            continue
    return found


def _root(members: list[Member], more: list[tuple[Value, Value]], *, is_model: bool) -> Value:
    """Return the files as branches, by names that stay when a model is saved in more files.

    A folder of one model has no branch for it, as where an index names its files: its tensors have the names
    that the model gives them.
    """
    if is_model and len(members) == 1:
        root = members[0].container.root
        pairs = (root.pairs or []) if isinstance(root, Dict | Call) and pairs_of(root) else []
        names = {name for name, _ in pairs if isinstance(name, str)}
        if pairs and len(names) == len(pairs) and names.isdisjoint(str(name) for name, _ in more):
            whole = Call(Global("collections", "OrderedDict"), (), "reduce")
            whole.pairs = [*pairs, *more]
            whole.state = root.state if isinstance(root, Call) else None
            return whole
    files = {name for name, _ in members}
    branches = [(name.removesuffix(INDEX), container.root) for name, container in members]
    if len({name for name, _ in branches}) < len(files):  # the same model, in one file and in several
        branches = [(name, container.root) for name, container in members]
    return Dict([*branches, *more])


class Training(Format):
    """What a trainer saves."""

    name = "folder"
    what = "a folder of a trainer"
    loader_restricts = True
    copied_as = "state-dict"
    cannot = NOT_FOR_FOLDERS

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return not folder.entry and (is_training(folder.sizes) or is_pretrained(folder.sizes))

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)

        def read(name: str) -> Container:  # an index stands for all files that it names
            if name.endswith(INDEX):
                return read_index(folder, name, limits, progress)
            return folder.read_member(name, limits, progress)

        names = [name for name in folder.sizes if "/" not in name]
        files = files_of(names)
        members, errors = folder.read_members(files, read, progress)
        # Neither `from_pretrained` nor a trainer that resumes opens the arguments.
        run_beside(folder, {*files, ARGUMENTS}, "", limits, progress)
        root = _root(members, _configurations(folder, names, limits), is_model=not is_training(names))
        container = join(folder.path, "folder", members, root, limits)
        notes = [Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in errors]
        refusal = f"{errors[0][0]}: {errors[0][1].what}" if errors else container.refusal
        return replace(container, notes=(*notes, *container.notes), refusal=refusal)
