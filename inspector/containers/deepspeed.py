"""A folder of DeepSpeed as one checkpoint: weights in full precision by name, and the files around them.

Raw vectors of ranks give way to the parameters that they consist of. What cannot be put together for certain
stays as the files have it, and a note says why. `PipelineModule.ckpt_layer_path` in
`deepspeed/runtime/pipe/module.py` names a file for each layer; `deepspeed/checkpoint/ds_to_universal.py`
writes a folder for each parameter, with a file for each slot.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import NamedTuple, cast

from inspector.containers.base import Cannot, Format, no_copy_of
from inspector.containers.container import Container, Gathered, StoredBytes
from inspector.containers.deepspeed_joining import (
    Flat,
    Joined,
    Parameter,
    Part,
    cut,
    entry,
    flat_of,
    items_of,
    join_parameters,
    named,
    pairs_of,
    parameter_of,
    size_of,
)
from inspector.containers.folder import Folder, read_word, run_beside
from inspector.containers.gathered import tile
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind, shown
from inspector.containers.persistent_ids import NO_DEVICE, StorageId, parse_storage_id
from inspector.containers.source import Source
from inspector.errors import NotACheckpointError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import format_count

# --- names --------------------------------------------------------------------------------------------------


OWN_NAMES = frozenset(
    {
        "deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler",
        "deepspeed.runtime.fp16.loss_scaler.LossScaler",
        "deepspeed.runtime.zero.config.ZeroStageEnum",
        "deepspeed.utils.tensor_fragment.fragment_address",
    }
)
"""The dotted names of these classes."""

LATEST = "latest"
_STATES = re.compile(
    r"(?:(?:bf16_|fp16_)?zero_pp_rank_(?P<dp>[0-9]{1,6})_)?mp_rank_(?P<mp>[0-9]{1,6})_?"
    r"(?P<kind>model|optim)_states\.pt"
)


class StatesFile(NamedTuple):
    """One file of states."""

    name: str
    kind: str
    mp: int  # the rank among those that divide the model (tensor parallel)
    dp: int  # the rank among those that divide the data; -1 for a file of them all


def states_files(names: Iterable[str], tag: str) -> list[StatesFile]:
    """Return the files of states below a tag, in the order of their ranks."""
    prefix = f"{tag}/" if tag else ""
    found = []
    for name in names:
        match = _STATES.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
        if match is not None:
            dp = match["dp"]
            found.append(StatesFile(name, match["kind"], int(match["mp"]), -1 if dp is None else int(dp)))
    return sorted(found, key=lambda file: (file.kind, file.mp, file.dp))


def tags_of(names: Iterable[str]) -> list[str]:
    """Return the subfolders with files of states; an empty tag for the folder itself."""
    tags = {name.rpartition("/")[0] for name in names if _STATES.fullmatch(name.rpartition("/")[2])}
    return sorted((tag for tag in tags if tag.count("/") == 0), key=_natural)


def _natural(tag: str) -> tuple[str, int]:
    digits = tag[len(tag.rstrip("0123456789")) :][:18]
    return tag.rstrip("0123456789"), int(digits or 0)


# --- layers, and universal checkpoints ----------------------------------------------------------------------


UNIVERSAL = "latest_universal"
_LAYER = re.compile(r"layer_[0-9]{2,5}(?:-model_[0-9]{2,4})?-model_states\.pt")
_SLOT = re.compile(r"zero/(?P<parameter>[^/]{1,500})/(?P<slot>[A-Za-z0-9_]{1,100})\.pt")
_WEIGHT, _VALUE = "fp32", "param"
_MOST_FILES = 20_000


class MoreFiles(NamedTuple):
    """Files of a tag besides those of ranks."""

    layers: tuple[str, ...]
    slots: tuple[str, ...]


def more_files(names: Iterable[str], tag: str) -> MoreFiles:
    """Return the files below a tag that are neither a model's states nor an optimizer's."""
    prefix = f"{tag}/" if tag else ""
    own = sorted(name for name in names if name.startswith(prefix))[:_MOST_FILES]
    layers = tuple(name for name in own if _LAYER.fullmatch(name, len(prefix)))
    return MoreFiles(layers, tuple(name for name in own if _SLOT.fullmatch(name, len(prefix))))


def branches_of(
    tag: str, layers: Sequence[Member], slots: Sequence[Member], *, has_weights: bool
) -> list[tuple[Value, Value]]:
    """Return what these files hold, as branches of the whole."""
    found: list[tuple[Value, Value]] = []
    if slots and not has_weights:
        found += _universal(tag, slots)
    if layers:
        named: list[tuple[Value, Value]] = [
            (member.name.rpartition("/")[2].removesuffix(".pt"), member.container.root) for member in layers
        ]
        found.append(("layers", Dict(named)))
    return found


def _universal(tag: str, slots: Sequence[Member]) -> list[tuple[Value, Value]]:
    """Return the weights in full precision by name, and the other slots as an optimizer's by name."""
    weights: list[tuple[Value, Value]] = []
    state: dict[str, list[tuple[Value, Value]]] = {}
    for member in slots:
        match = _SLOT.fullmatch(member.name, len(tag) + 1 if tag else 0)
        name, slot = (match["parameter"], match["slot"]) if match else ("", "")
        root = member.container.root
        value = entry(root, _VALUE) if isinstance(root, Dict) else root
        if slot == _WEIGHT:
            weights.append((name, value))
        else:
            state.setdefault(name, []).append((slot, value))
    names: list[Value] = list(state)
    rows: list[tuple[Value, Value]] = [(name, Dict(own)) for name, own in state.items()]
    groups: list[Value] = [Dict([("params", names)])]
    found: list[tuple[Value, Value]] = [(_WEIGHT, Dict(weights))] if weights else []
    if rows:
        found.append(("optimizer", Dict([("state", Dict(rows)), ("param_groups", groups)])))
    return found


# --- the folder ---------------------------------------------------------------------------------------------


_STATE = "optimizer_state_dict"
# As `get_checkpoint_files` in `deepspeed/utils/zero_to_fp32.py` says it.
_NO_OPTIMIZER = "FileNotFoundError: can't find *_optim_states.pt files in directory '{}'"


def _tag_of(folder: Folder) -> tuple[str, list[str]]:
    tags = tags_of(folder.sizes)
    latest = LATEST if LATEST in folder.sizes else UNIVERSAL
    named = read_word(folder, latest)
    chosen = posixpath.normpath(named) if named else ""
    if named is None:
        chosen = "" if "" in tags or not tags else tags[-1]
    if chosen not in tags:
        folder.programs.miss(f"what {latest} names", "it is not here, or holds no states")
        raise NotACheckpointError(
            f"the file {latest} names a folder that is not here, or holds no states of DeepSpeed",
            where=f"{folder.path}: {shown(chosen)}",
            remedy=f"give the folder that is wanted{f', such as {tags[-1]}' if tags else ''}",
            form="deepspeed",
        )
    return chosen, [tag for tag in tags if tag != chosen]


class _Whole:
    def __init__(
        self, folder: Folder, tag: str, other_tags: list[str], limits: Limits, progress: Progress
    ) -> None:
        self._folder = folder
        self._tag = tag
        self._other_tags = other_tags
        self._limits = limits
        self._look = limits.counted(progress.advance).look
        self._notes: list[Note] = []
        self._storage_ids: dict[str, StorageId] = {}
        self._stored: dict[str, StoredBytes] = {}
        self._gathered: dict[str, Gathered] = {}
        self._consumed: set[str] = set()
        self._several = False
        self._emptied = False
        self._refusal = ""

    def join(
        self,
        files: Sequence[StatesFile],
        members: Sequence[Member],
        layers: Sequence[Member],
        slots: Sequence[Member],
    ) -> Container:
        ranks = sorted({file.mp for file in files})
        parts = {
            file.name: Part(member.container, number)
            for number, (file, member) in enumerate(zip(files, members, strict=True))
        }
        root = Dict([])
        joined: dict[int, Joined] = {}
        for mp in ranks:
            joined[mp] = self._rank(mp, files, parts, root if len(ranks) == 1 else _below(root, mp))
        for file in files:
            trimmed = _trimmed(parts[file.name].container.root, file, joined[file.mp])
            root.pairs.append((file.name.rpartition("/")[2], trimmed))
        is_joined = any(one.weights for one in joined.values())
        root.pairs[:0] = branches_of(self._tag, layers, slots, has_weights=is_joined)
        if slots and not is_joined:
            self._notes = [note for note in self._notes if note.kind is not NoteKind.UNJOINED]
            folders = {member.name.rpartition("/")[0] for member in slots}
            self._notes.append(Note(NoteKind.UNIVERSAL, (format_count(len(folders), "parameter"),)))
            if not any(file.kind == "optim" for file in files):
                self._refusal = _NO_OPTIMIZER.format(self._folder.path_of(self._tag) if self._tag else "")
        if layers:
            self._notes.append(Note(NoteKind.LAYERS, (format_count(len(layers), "layer"),)))
        if len(ranks) > 1:
            self._notes.append(Note(NoteKind.TENSOR_PARALLEL, (str(len(ranks)),)))
        self._note_rest()
        whole = join(self._folder.path, "deepspeed", [*members, *layers, *slots], root, self._limits)
        kept = {key: one for key, one in whole.storage_ids.items() if key not in self._consumed}
        return replace(
            whole,
            storage_ids={**self._storage_ids, **kept},
            stored={**{key: place for key, place in whole.stored.items() if key in kept}, **self._stored},
            gathered={**whole.gathered, **self._gathered},
            notes=(*whole.notes, *self._notes),
            refusal=self._refusal or whole.refusal,
        )

    def _rank(self, mp: int, files: Sequence[StatesFile], parts: dict[str, Part], into: Dict) -> Joined:
        models = [parts[file.name] for file in files if file.mp == mp and file.kind == "model"]
        optims = [parts[file.name] for file in files if file.mp == mp and file.kind == "optim"]
        model = models[0].container.root if models else None
        found = join_parameters(model, optims, self._look)
        if found.fault:
            self._notes.append(Note(NoteKind.UNJOINED, (found.fault,)))
        if not found.weights:
            return found
        self._consume(found.consumed, [*models, *optims])
        prefix = f"{mp}/" if len({file.mp for file in files}) > 1 else ""
        if any(file.dp >= 0 and file.kind == "model" for file in files):
            self._emptied = True
        weights = self._weights(models, found, prefix)
        into.pairs.append(("fp32", weights))
        into.pairs.append(("optimizer", self._optimizer(optims, found, prefix)))
        return found

    def _consume(self, flats: Sequence[Flat], parts: Sequence[Part]) -> None:
        uses = {
            part.number: Counter(
                one.key for node in part.container.pickle().persistent_ids if (one := parse_storage_id(node))
            )
            for part in parts
        }
        for flat in flats:
            if uses[flat.part][flat.storage.key] == 1:
                self._consumed.add(f"{flat.part}:{flat.storage.key}")

    # --- weights --------------------------------------------------------------------------------------------

    def _weights(self, models: Sequence[Part], found: Joined, prefix: str) -> Dict:
        """Return the state dict in full precision: buffers, frozen parameters, the others, and ties."""
        root = models[0].container.root
        module = named(entry(root, "module"))
        buffers = [str(name) for name in items_of(entry(root, "buffer_names")) if isinstance(name, str)]
        made: dict[str, Value] = {name: module[name] for name in buffers if name in module}
        made.update(self._frozen(models, prefix))
        for name, parameter in found.weights.items():
            made[name] = self._tensor(f"{prefix}fp32/{name}", parameter)
        shared = pairs_of(entry(root, "shared_params"))
        pairs = [tuple(pair) for pair in items_of(entry(root, "shared_params")) if isinstance(pair, list)]
        for pair in (*shared, *pairs):
            alias, source = pair if len(pair) == 2 else (None, None)
            if isinstance(alias, str) and isinstance(source, str) and source in made:
                made[str(alias)] = made[source]
        return Dict(list(made.items()))

    def _frozen(self, models: Sequence[Part], prefix: str) -> dict[str, Value]:
        """Return the parameters that were not trained, which stand in the files of the model."""
        root = models[0].container.root
        shapes = {name: size_of(size) for name, size in named(entry(root, "frozen_param_shapes")).items()}
        fragments = [named(entry(part.container.root, "frozen_param_fragments")) for part in models]
        made: dict[str, Value] = {}
        for name, shape in shapes.items():
            if shape is None or name not in fragments[0]:
                continue
            flats = [
                flat_of(one.get(name), part.container, part.number)
                for one, part in zip(fragments, models, strict=True)
            ]
            whole = [one for one in flats if one is not None]
            if len(whole) < len(flats):
                continue
            made[name] = fragments[0][name]
            if len(whole) > 1:
                self._consume(whole, models)
                chunks = tuple(cut(whole, 0, prod(shape)))
                pasted = parameter_of(name, shape, whole, chunks, whole)
                made[name] = self._tensor(f"{prefix}fp32/{name}", pasted)
        return made

    def _tensor(self, key: str, parameter: Parameter) -> StoredTensor:
        gathered = parameter.gathered
        numel = gathered.nbytes // gathered.itemsize
        location = parameter.location or NO_DEVICE
        if not parameter.location:
            self._several = True
        self._storage_ids[key] = StorageId(
            key, gathered.dtype, gathered.itemsize, location, numel, untyped=False, view=None
        )
        self._gathered[key] = gathered
        if not tile(gathered, self._look).fault:
            part = gathered.chunks[0].part if gathered.chunks else 0
            self._stored[key] = StoredBytes(part, None, gathered.nbytes)
        return StoredTensor(key, gathered.dtype, parameter.shape)

    def _optimizer(self, optims: Sequence[Part], found: Joined, prefix: str) -> Dict:
        steps = {name: step for group, step in zip(found.groups, found.steps, strict=False) for name in group}
        state: list[tuple[Value, Value]] = []
        for name, slots in found.slots.items():
            own: list[tuple[Value, Value]] = [
                (slot, self._tensor(f"{prefix}{slot}/{name}", parameter)) for slot, parameter in slots.items()
            ]
            if steps.get(name) is not None:
                own.insert(0, ("step", steps[name]))
            state.append((name, Dict(own)))
        root = entry(optims[0].container.root, _STATE)
        base = entry(root, "base_optimizer_state") or entry(root, _STATE)
        groups: list[Value] = []
        listed = items_of(entry(base, "param_groups"))
        for number, names in enumerate(found.groups):
            kept = [
                pair
                for pair in (pairs_of(listed[number]) if number < len(listed) else [])
                if pair[0] != "params"
            ]
            groups.append(Dict([*kept, ("params", list(names))]))
        return Dict([("state", Dict(state)), ("param_groups", groups)])

    # --- notes ----------------------------------------------------------------------------------------------

    def _note_rest(self) -> None:
        if self._tag:
            others = format_count(len(self._other_tags), "other") if self._other_tags else "no other"
            self._notes.append(Note(NoteKind.TAG, (shown(self._tag), others)))
        if self._emptied:
            self._notes.append(Note(NoteKind.EMPTIED))
        if self._several:
            self._notes.append(Note(NoteKind.SEVERAL_DEVICES))


def _below(root: Dict, mp: int) -> Dict:
    made = Dict([])
    root.pairs.append((f"mp_rank_{mp:02d}", made))
    return made


_VECTORS = frozenset(
    {"single_partition_of_fp32_groups", "base_optimizer_state", "fp32_flat_groups", "optimizer_state_dict"}
)
_FRAGMENTS = "frozen_param_fragments"


def _trimmed(root: Value, file: StatesFile, joined: Joined) -> Value:
    """Return what a file holds besides what was joined, and besides parameters that ZeRO 3 emptied."""
    if not joined.weights:
        return root
    if file.kind == "optim":
        return _changed(root, _STATE, _without(entry(root, _STATE), _VECTORS))
    return _without(root, {_FRAGMENTS} if file.dp < 0 else {_FRAGMENTS, "module"})


def _without(value: Value, keys: AbstractSet[str]) -> Dict:
    return Dict([pair for pair in pairs_of(value) if not isinstance(pair[0], str) or pair[0] not in keys])


def _changed(value: Value, key: str, item: Value) -> Dict:
    return Dict([(name, item if name == key else old) for name, old in pairs_of(value)])


class DeepSpeed(Format):
    """What DeepSpeed saves."""

    name = "deepspeed"
    what = "a folder of DeepSpeed"
    reads_below = True
    loader = "deepspeed.utils.zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint"
    loader_maps = True
    own_names = OWN_NAMES
    copied_as = "objects"
    weights_at = "fp32"
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "DeepSpeed loads its folders to the CPU, so their devices decide nothing",
            "the engine that loads it decides; "
            "for torch.load write one file: export --format same -o model.pth",
        ),
        Cannot(
            ("recover",),
            "what is whole in a folder of DeepSpeed is saved by leaving out what is not",
            "use export --format same -o model.pth and --exclude with the name of what is not whole",
        ),
        no_copy_of("a folder of DeepSpeed"),
    )

    @override
    def matches_folder(self, folder: Folder) -> bool:
        return bool(tags_of(folder.sizes)) and not folder.entry.endswith((".metadata", ".distcp"))

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        tag, other_tags = _tag_of(folder)
        files = states_files(folder.sizes, tag)
        progress.start("reading", len(files), is_counted=True)
        members = []
        for file in files:
            progress.advance(1)
            members.append(Member(file.name, folder.read_member(file.name, limits, progress)))
        more = more_files(folder.sizes, tag)
        layers, slots = (
            [Member(name, folder.read_member(name, limits, progress)) for name in names] for names in more
        )
        read = {member.name for member in (*members, *layers, *slots)}
        universal = read_word(folder, UNIVERSAL)  # a loader may be told to take this one
        for one in dict.fromkeys((tag, universal or tag, *([] if LATEST in folder.sizes else other_tags))):
            run_beside(folder, read, f"{one}/" if one else "", limits, progress)
        return _Whole(folder, tag, other_tags, limits, progress).join(files, members, layers, slots)
