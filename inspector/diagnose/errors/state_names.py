"""The names in a file's state dicts against those that a model wants, as `load_state_dict` compares them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.roles.roles import DICTIONARIES
from inspector.records import dataclass

WRAPPERS = frozenset({"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."})
"""What DataParallel (also distributed) and torch.compile put before every name."""
_WRAPPER_STEPS = frozenset(
    {"module", "_orig_mod", "default", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
)
_NO_WEIGHTS = frozenset({"optimizer", "scheduler", "rng"})
_SAMPLE = 6
_MOST_COMPARED = 2000
_MOST_STEPS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDict:
    """One state dict of a file."""

    path: str
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """How the names of a file become those that a model wants: one beginning is put for another."""

    in_file: str
    in_model: str


def state_dicts(checkpoint: Checkpoint) -> list[StateDict]:
    """Collect the state dicts of a file, whole modules among them, the largest first."""
    found: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for tensor in checkpoint.tensors:
        if tensor.part_of is None and tensor.role not in _NO_WEIGHTS and tensor.keys:
            place, name = _split(tensor)
            found[place].setdefault(name, tensor)
    rows = [StateDict(path=path, tensors=tensors) for path, tensors in found.items()]
    return sorted(rows, key=lambda row: -len(row.tensors))


def _split(tensor: Tensor) -> tuple[str, str]:
    steps = [key for key in tensor.keys if key not in DICTIONARIES]
    if len(steps) == len(tensor.keys):
        return tensor.path.rpartition("/")[0], str(tensor.keys[-1])
    first = next(place for place, key in enumerate(tensor.keys) if key in DICTIONARIES)
    place = "/".join(tensor.path.split("/")[:first])
    return place, ".".join(str(step) for step in steps[first:])


def best_match(rows: Sequence[StateDict], names: Collection[str]) -> StateDict | None:
    """Return the state dict that holds most of these names; the largest one if none holds any."""
    if not rows:
        return None
    return max(rows, key=lambda row: sum(1 for name in names if name in row.tensors))


def find_renaming(wanted: Sequence[str], names: Collection[str]) -> Renaming | None:
    """Find what makes names of a file into those that a model wants, if one thing does for most of them."""
    wanted = wanted[:_MOST_COMPARED]
    seen: Counter[tuple[str, str]] = Counter()
    for want in wanted[:: max(1, len(wanted) // _SAMPLE)][:_SAMPLE]:
        seen.update(set(_candidates(want, names)))
    for (in_file, in_model), _ in seen.most_common(_SAMPLE):
        fitting = sum(
            1
            for want in wanted
            if want.startswith(in_model) and in_file + want.removeprefix(in_model) in names
        )
        if fitting * 2 > len(wanted):
            return Renaming(in_file=in_file, in_model=in_model)
    return None


def _candidates(want: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Return beginnings that would make some name of the file this one."""
    tail, before = want, ""
    for _ in range(_MOST_STEPS):
        if tail in names and before:
            yield "", before
        step, dot, rest = tail.partition(".")
        if not dot:
            break
        before, tail = f"{before}{step}.", rest
    ending = f".{want}"
    rest = want.partition(".")[2]
    for name in names:
        if name.endswith(ending):
            yield name[: -len(want)], ""
        elif rest and name.endswith(rest) and "." in rest and name[: -len(rest)].endswith("."):
            yield name[: -len(rest)], want[: -len(rest)]


def edited(names: Sequence[str], row: StateDict) -> dict[str, str]:
    """Return which names are those of a file after an edit, each with the file's name.

    Tried are wrappers' steps anywhere (also PEFT's `default`), a path that was put before or cut off at any
    depth, and a number of letters that was cut off, as `name[7:]` does where no `module.` stands.
    """
    bare = {_bare(name): name for name in row.tensors}
    ends: dict[str, str] = {}
    for short, name in bare.items():
        for end in _ends(short):
            ends.setdefault(end, name)
    found: dict[str, str] = {}
    for name in names[:_MOST_COMPARED]:
        short = _bare(name)
        held = bare.get(short) or ends.get(short) or next(filter(None, map(bare.get, _ends(short))), None)
        if held is not None:
            found[name] = held
    if len(found) * 2 <= len(names):
        for cut in sorted(set(map(len, WRAPPERS))):
            pairs = {held[cut:]: held for held in row.tensors}
            by_letters = {name: pairs[name] for name in names[:_MOST_COMPARED] if name in pairs}
            found = max(found, by_letters, key=len)
    return found


def _bare(name: str) -> str:
    return ".".join(step for step in name.split(".") if step not in _WRAPPER_STEPS)


def _ends(name: str) -> Iterator[str]:
    """Yield the ends of a name that say more than `weight`."""
    for _ in range(_MOST_STEPS):
        _, dot, name = name.partition(".")
        if not dot or "." not in name:
            return
        yield name


def wrapper_of(names: Sequence[str]) -> str:
    """Return the wrappers' prefix that all of these names carry; empty if they carry none."""
    prefix = ""
    while names:
        step = next((one for one in ("module.", "_orig_mod.") if names[0].startswith(prefix + one)), "")
        if not step or not all(name.startswith(prefix + step) for name in names):
            break
        prefix += step
    return prefix
