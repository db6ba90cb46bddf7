"""The plan: which tensors and storages get which device, decided before any byte is touched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace, Tensor
from inspector.model.once import once
from inspector.model.roles.devices import (
    DEVICE_TYPES,
    device_order,
    device_type,
    is_accelerator,
    split_device,
)
from inspector.model.roles.hidden import CHANGED_IN, DEVICE_CLASS, MOVABLE
from inspector.model.roles.roles import is_metadata_on_cpu
from inspector.model.totals import device_totals
from inspector.quoting import command, file_word
from inspector.records import dataclass, field, replace
from inspector.remap.rules import (
    Rule,
    Rules,
    check_destination,
    format_rule,
    is_same_device,
    literal_pattern,
    matches_device,
    parse_rule,
    rules_as_meant,
)
from inspector.target.profile import Profile
from inspector.units import cut_text, nearest

TOGETHER = "give them one device"
_MOST_NAMES = 4
_UNMOVED = frozenset({"cpu", "meta"})
"""The only devices of which anything stays where it is though a rule names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a remap changes.

    Attributes:
        rules: The rules it was made from; what no tensor row shows follows those by device.
        kept: Indexes of the tensors that a rule would move but that torch keeps on the CPU.
        texts: Every device text in the checkpoint; no other text can be one that has to change.
    """

    rules: Rules
    tensors: dict[int, str]
    storages: dict[str, str]
    kept: tuple[int, ...]
    held: frozenset[str]
    texts: frozenset[str]
    hidden: dict[int, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no listed tensor or storage moves, and no device outside of them."""
        return not (self.storages or self.tensors or self.hidden)

    def by_device(self, device: str) -> str | None:
        """Return where a device goes by the rules for devices alone; None where none applies."""
        return None if device == "meta" else self.rules.by_device(device)


def plan_remap(checkpoint: Checkpoint, rules: Sequence[Rule], *, move_all: bool = False) -> Plan:
    """Decide where each tensor goes.

    State that torch keeps on the CPU by design stays there, unless `move_all`. Tensors that share a storage
    must agree, and the parts of one tensor go together.
    """
    return _planned(checkpoint, tuple(rules), move_all)


@once
def _planned(checkpoint: Checkpoint, given: tuple[Rule, ...], move_all: bool) -> Plan:  # noqa: FBT001 - by position
    for rule in given:
        check_destination(rule.to)
    rules = rules_as_meant(given, checkpoint)
    if any(rule.device is None for rule in rules):
        moves = _moves_by_tensor(checkpoint, rules)
    else:
        moves = _moves_by_device(checkpoint, _going(rules, device_texts(checkpoint)))
    if format_of(checkpoint.format).unchecked:  # arrays have no device, and get none in a copy of their kind
        moves = {index: to for index, to in moves.items() if checkpoint.tensors[index].device != NO_DEVICE}
    rows, nowhere = checkpoint.tensors, device_texts(checkpoint) & _UNMOVED
    stays = [index for index in moves if rows[index].device in nowhere]
    kept = [index for index in stays if _stays(checkpoint, index, move_all=move_all)]
    for index in kept:
        del moves[index]
    _refuse_unholdable(checkpoint, moves)
    return plan_moves(checkpoint, rules, moves, kept)


def plan_moves(
    checkpoint: Checkpoint, rules: Sequence[Rule], moves: dict[int, str], kept: Sequence[int]
) -> Plan:
    """Return the plan in which these tensor rows move; what no row shows follows the rules by device."""
    rows = checkpoint.tensors
    texts = device_texts(checkpoint)
    rules = Rules(rules)
    return Plan(
        rules=rules,
        tensors=moves,
        storages=_storage_moves(checkpoint, moves) | _unseen_storages(checkpoint, _going(rules, texts)),
        kept=tuple(index for index in kept if rows[index].device != "meta"),
        held=frozenset(rows[index].storage or "" for index in kept),
        texts=texts,
    )


def without_nowhere(checkpoint: Checkpoint, plan: Plan) -> Plan:
    """Return a plan without what has no device in its file, and so has none in a copy of that format."""
    rows = checkpoint.tensors
    nowhere = {row.key for row in checkpoint.storages if row.device == NO_DEVICE}
    return replace(
        plan,
        tensors={index: to for index, to in plan.tensors.items() if rows[index].device != NO_DEVICE},
        storages={key: to for key, to in plan.storages.items() if key not in nowhere},
    )


def with_viewed(plan: Plan, storage_ids: Iterable[StorageId]) -> Plan:
    """Send the storages of torch 0.x along that are known by views of them only, each with its first view."""
    found = {
        storage.key: plan.storages[storage.viewed().key]
        for storage in storage_ids
        if storage.viewed().key in plan.storages
    }
    return replace(plan, storages=found | plan.storages)


def destinations(storages: Iterable[StorageId], plan: Plan) -> dict[str, str | None]:
    """Return the destination of each stored run of bytes by its key; None where it stays."""
    found: dict[str, str | None] = {}
    for storage in storages:
        to = plan.storages.get(storage.viewed().key)
        if found.setdefault(storage.key, to) != to:
            raise PlanError(
                "views of one storage are sent to different devices",
                where=f"storage {storage.key}",
                remedy=TOGETHER,
            )
    return found


@once
def device_texts(checkpoint: Checkpoint) -> frozenset[str]:
    """Return every device text that a checkpoint's storages and tensors carry."""
    tags = {storage.device for storage in checkpoint.storages}
    return frozenset(tags | {tensor.device for tensor in checkpoint.tensors})


def rules_for_target(checkpoint: Checkpoint, target: Profile) -> tuple[Rule, ...]:
    """Return the rules that make a checkpoint load on a machine: what exists there stays where it is.

    Accelerators that are missing are folded onto those that exist, in turn, or else onto the CPU. Where one
    device is wanted, all accelerators go to that, whether they exist or not; the CPU does not. The CPU has
    no number: torch refuses `cpu:0`. Dtypes that a type of accelerator there lacks stay on the CPU, by rules
    that go first.
    """
    lacks = {dtype for kind, _ in target.accelerators for dtype in device_type(kind).lacks}
    dtypes = {row.dtype for row in checkpoint.tensors} & lacks if lacks else ()
    texts = sorted(device_texts(checkpoint) - {NO_DEVICE})
    moving = (device for device in texts if not is_in_place(device, target))
    return (
        *(Rule(dtype=dtype, to="cpu") for dtype in sorted(dtypes)),
        *(Rule(device=device, to=check_destination(fold(device, target))) for device in moving),
    )


def is_in_place(device: str, target: Profile) -> bool:
    """Return whether a device of the file is one of the target, and the wanted one if one is wanted."""
    parts = split_device(device)
    if parts is None or not target.offers(*parts) or (parts[0] == "cpu" and device != "cpu"):
        return False
    return target.wanted is None or not is_accelerator(device) or is_same_device(device, target.wanted)


def fold(device: str, target: Profile) -> str:
    """Return the device of the target that stands in for one that is not there."""
    parts = split_device(device)
    if target.wanted is not None and is_accelerator(device):
        return target.wanted
    accelerators = [name for name in target.devices if name != "cpu"]
    if parts is None or parts[0] == "cpu" or not accelerators:
        return "cpu"
    return accelerators[(parts[1] or 0) % len(accelerators)]


# --- where each tensor goes ---------------------------------------------------------------------------------


def _going(rules: Rules, texts: Iterable[str]) -> dict[str, str]:
    found = {device: rules.by_device(device) for device in texts}
    return {device: to for device, to in found.items() if to is not None and not is_same_device(to, device)}


def _moves_by_device(checkpoint: Checkpoint, going: Mapping[str, str]) -> dict[int, str]:
    """Apply rules that look at nothing but the device: decided once for each device, not for each tensor."""
    if not going:
        return {}
    devices = [row.device for row in checkpoint.tensors]
    return {index: going[device] for index, device in enumerate(devices) if device in going}


def _moves_by_tensor(checkpoint: Checkpoint, rules: Rules) -> dict[int, str]:
    """Apply rules of any kind; a part that is named takes the rest of its tensor along."""
    named: dict[int, str] = {}
    paths: list[tuple[str, ...]] = []  # of each row and of all that it is a part of
    groups = _parts_together(checkpoint)
    dtypes = _dtypes_together(checkpoint, groups)
    for index, tensor in enumerate(checkpoint.tensors):
        paths.append((tensor.path, *(() if tensor.part_of is None else paths[tensor.part_of])))
        rule = rules.find_first(
            tensor.device, paths[index], role=tensor.role, dtypes=dtypes.get(index, (tensor.dtype,))
        )
        if rule is not None:
            named[index] = rule.to
    for group in groups:
        wanted = {named[index] for index in group if index in named}
        if len(wanted) > 1:
            raise _torn("the parts of one tensor are sent", checkpoint, group, wanted)
        named |= dict.fromkeys(group, next(iter(wanted))) if wanted else {}
    rows = checkpoint.tensors
    return {
        index: named[index] for index in sorted(named) if not is_same_device(named[index], rows[index].device)
    }


def _dtypes_together(checkpoint: Checkpoint, groups: list[list[int]]) -> dict[int, tuple[str, ...]]:
    """Return the dtypes that a row answers to: those of all parts, since a device must take every one."""
    found: dict[int, tuple[str, ...]] = {}
    for group in groups:
        dtypes = tuple({checkpoint.tensors[index].dtype for index in group})
        found |= dict.fromkeys(group, dtypes)
    return found


def _parts_together(checkpoint: Checkpoint) -> list[list[int]]:
    """Return the rows that make up one tensor and lie on one device, for each tensor that has parts."""
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    wholes: list[int] = []
    for index, tensor in enumerate(checkpoint.tensors):
        whole = tensor.part_of
        is_apart = whole is None or _is_attribute(tensor, checkpoint.tensors[whole])
        wholes.append(index if whole is None or is_apart else wholes[whole])
        groups[wholes[index], tensor.device].append(index)
    return [group for group in groups.values() if len(group) > 1]


def _is_attribute(part: Tensor, whole: Tensor) -> bool:
    """Return whether a row was merely set on a tensor that is complete without it."""
    return whole.storage is not None and str(part.keys[len(whole.keys)]).startswith(".")


def _stays(checkpoint: Checkpoint, index: int, *, move_all: bool) -> bool:
    tensor = checkpoint.tensors[index]
    if tensor.device == "meta":
        return tensor.storage is None
    if tensor.device != "cpu" or not tensor.on_cpu_by_design:
        return False
    if not move_all:
        return True
    return tensor.part_of is not None and is_metadata_on_cpu(checkpoint.tensors[tensor.part_of], tensor.keys)


def _refuse_unholdable(checkpoint: Checkpoint, moves: Mapping[int, str]) -> None:
    """Refuse to send tensors to devices that have no such dtype: torch cannot make one there at all."""
    lacking = {to: lacks for to in set(moves.values()) if (lacks := device_type(to.partition(":")[0]).lacks)}
    if not lacking:
        return
    rows = checkpoint.tensors
    found = [index for index, to in moves.items() if rows[index].dtype in lacking.get(to, ())]
    if found:
        first = rows[found[0]]
        names = ", ".join(rows[index].path for index in found[:_MOST_NAMES])
        more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
        to = moves[found[0]]
        raise PlanError(
            f"the {device_type(to.partition(':')[0]).noun} ({to}) cannot hold {first.dtype} tensors",
            where=names + more,
            remedy=f"put dtype:{first.dtype}@cpu before the other rules",
        )


# --- where each storage goes --------------------------------------------------------------------------------


def _storage_moves(checkpoint: Checkpoint, moves: Mapping[int, str]) -> dict[str, str]:
    rows = checkpoint.tensors
    found: dict[str, str] = {}
    for index, to in moves.items():
        row = rows[index]
        if row.storage is None or (row.stride is None and _is_sent(row)):
            continue
        if found.setdefault(row.storage, to) != to:
            raise _shared(checkpoint, moves, row.storage)
    if not found or len(moves) == len(rows):
        return found
    for index, row in enumerate(rows):
        if row.storage not in found or index in moves or _is_sent(row):
            continue
        if row.device != found[row.storage]:
            raise _shared(checkpoint, moves, row.storage)
    return found


def _is_sent(tensor: Tensor) -> bool:
    """Return whether a tensor is sent to its device while loading, so that its storage stays on the CPU."""
    return tensor.stride is None and tensor.layout == "strided"


def _shared(checkpoint: Checkpoint, moves: Mapping[int, str], key: str) -> PlanError:
    rows = checkpoint.tensors
    viewers = [index for index, row in enumerate(rows) if row.storage == key and not _is_sent(row)]
    wanted = {moves.get(index, rows[index].device) for index in viewers}
    return _torn("tensors that share one storage are sent", checkpoint, viewers, wanted)


def _torn(what: str, checkpoint: Checkpoint, rows: Sequence[int], wanted: set[str]) -> PlanError:
    names = ", ".join(checkpoint.tensors[index].path for index in rows[:_MOST_NAMES])
    return PlanError(f"{what} to {' and '.join(sorted(wanted))}", where=names, remedy="give them one device")


def _unseen_storages(checkpoint: Checkpoint, going: Mapping[str, str]) -> dict[str, str]:
    """Map the storages that no listed tensor views, such as those inside objects of unknown classes."""
    if not going:
        return {}
    rows = checkpoint.storages
    return {row.key: going[row.device] for row in rows if row.device in going and not row.tensors}


# ------------------------------------------------------------------------------------------------------------
# Rules that match nothing in a checkpoint: most likely they are mistyped, so nothing is written by them.

_MOST_DEVICES = 6
_MOST_CHARS = 40
_MOST_COMPARED = 100
_WITHOUT_COLON = re.compile(r"([a-z]+)[^a-z0-9]?([0-9]+)", re.IGNORECASE)


def refuse_unmatched(rules: Sequence[Rule], checkpoint: Checkpoint) -> None:
    """Refuse rules that match nothing.

    `*` and a known type with `:*` ask for whatever there is, which may be nothing: a script that maps all its
    files can use them on each.
    """
    devices = device_texts(checkpoint) | {hidden.device for hidden in checkpoint.hidden_devices}
    for rule in rules_as_meant(rules, checkpoint):
        if rule.device is not None:
            _refuse_device(rule, rule.device, devices)
        elif not _matches_row(rule, checkpoint):
            shown = command("show", file_word(checkpoint.path))
            what = next(word for word in ("path", "role", "dtype") if getattr(rule, word) is not None)
            raise PlanError(
                f"the rule matches nothing: no tensor of the file has this {what}",
                where=format_rule(rule),
                remedy=f"{_meant_path(rule, checkpoint)}see what the file holds: {shown}",
            )


def _refuse_device(rule: Rule, pattern: str, devices: Collection[str]) -> None:
    is_open = pattern == "*" or (pattern.endswith(":*") and pattern.removesuffix(":*") in DEVICE_TYPES)
    if is_open or any(matches_device(pattern, device) for device in devices):
        return
    ordered = sorted(devices, key=device_order)
    shown = ", ".join(cut_text(device, _MOST_CHARS) for device in ordered[:_MOST_DEVICES])
    more = f" and {len(ordered) - _MOST_DEVICES:,} more" if len(ordered) > _MOST_DEVICES else ""
    meant = _meant(pattern, devices)
    has = f"the file has {shown}{more}" if ordered else "the file has no tensors"
    raise PlanError(
        f"the rule matches nothing: nothing in the file is on {cut_text(pattern, _MOST_CHARS)!r}",
        where=format_rule(rule),
        remedy=f"did you mean {meant}={rule.to}? {has}" if meant else f"{has}; '*' stands for all of them",
    )


def _meant_path(rule: Rule, checkpoint: Checkpoint) -> str:
    """Return the question for the rule that was meant, where the first step of its path is mistyped."""
    if rule.path is None:
        return ""
    found = meant_path(rule.path, (row.path for row in checkpoint.tensors))
    return "" if found is None else f"did you mean {format_rule(replace(rule, path=found))}? "


def meant_path(pattern: str, paths: Iterable[str]) -> str | None:
    """Return a pattern with another first step, where no path has its own and one has a similar one."""
    first, slash, rest = pattern.partition("/")
    steps = dict.fromkeys(path.partition("/")[0] for path in paths)
    near = None if first in steps else nearest(first, list(steps)[:_MOST_COMPARED])
    return None if near is None else f"{literal_pattern(near)}{slash}{rest}"


def _meant(pattern: str, devices: Collection[str]) -> str | None:
    """Return the device that was meant, as far as a slip of the finger tells."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    parts = _WITHOUT_COLON.fullmatch(pattern)
    if parts is not None and f"{parts[1].lower()}:{parts[2]}" in devices:
        return f"{parts[1].lower()}:{parts[2]}"
    if pattern.endswith(":*"):
        every = [f"{kind}:*" for kind in DEVICE_TYPES]
    elif pattern.isalpha() and (near := nearest(pattern.lower(), {one.partition(":")[0] for one in devices})):
        return near if near in devices else f"{near}:*"
    else:
        every = sorted(devices, key=device_order)[:_MOST_COMPARED]
    return next(iter(get_close_matches(pattern.lower(), every, 1, 0.7)), None)


def _matches_row(rule: Rule, checkpoint: Checkpoint) -> bool:
    return any(
        rule.matches(row.device, (row.path,), role=row.role, dtypes=(row.dtype,))
        for row in checkpoint.tensors
    )


# ------------------------------------------------------------------------------------------------------------
# Devices outside of tensors, sent where the rules send tensors: only for those who ask for it.
#
# No `map_location` reaches them, and a value may be a mere record of where something ran, so a remap leaves
# them alone unless it is told. Then `torch.device` objects and meshes follow the rules for devices and paths.
# A random generator goes to another device of its type only: torch refuses it the state of another type.
# Texts, classes of tensors and DataParallel are the user's, always.

_DEVICE = re.compile(r"torch\.device\([^()]*\)")
_MOVABLE = MOVABLE | {HiddenPlace.GENERATOR}


def with_hidden(checkpoint: Checkpoint, plan: Plan, rules: Iterable[Rule] = ()) -> Plan:
    """Return a plan that also sends the devices outside of tensors by its rules, and then by these."""
    every = Rules((*plan.rules, *rules))
    moves = {index: to for index, to, _ in _wanted(checkpoint, every) if to is not None}
    return plan_hidden(checkpoint, plan, moves)


def plan_hidden(checkpoint: Checkpoint, plan: Plan, moves: dict[int, str]) -> Plan:
    """Return a plan in which these devices outside of tensors change, by their index."""
    if not moves:
        return plan
    rows = checkpoint.hidden_devices
    if min(moves) < 0 or max(moves) >= len(rows):
        raise PlanError("it changes devices that are not there")
    if checkpoint.format not in CHANGED_IN:
        raise PlanError(
            f"this is {format_of(checkpoint.format).what}, in which devices outside of tensors stay",
            where=rows[min(moves)].path,
            remedy="set them where the file is made, or after it is loaded; leave --hidden-devices out",
        )
    _refuse_alike(rows, moves)
    return replace(plan, hidden=moves, texts=plan.texts | {rows[index].device for index in moves})


def _refuse_alike(rows: Sequence[HiddenDevice], moves: dict[int, str]) -> None:
    """Refuse to make two keys of one dictionary the same: loading would keep the value of one."""
    before: dict[tuple[str, str], tuple[str, str]] = {}
    for index, row in enumerate(rows):
        if row.what is not HiddenPlace.KEY:
            continue
        device, old = moves.get(index, row.device), (row.path, row.device)
        if before.setdefault((without_devices(row.path), device), old) != old:
            raise PlanError(
                f"two keys of one dictionary would be the same device, {device}, and a value lost",
                where=row.path,
                remedy="send them to different devices, or leave --hidden-devices out",
            )


def without_devices(text: str) -> str:
    """Return a path, or a step of one, without the devices that keys of dictionaries are."""
    return _DEVICE.sub(DEVICE_CLASS, text)


def hidden_stay(checkpoint: Checkpoint, plan: Plan) -> tuple[HiddenDevice, ...]:
    """Return the generators that a rule names and that stay: their state fits no other type of device."""
    return tuple(row for _, to, row in _wanted(checkpoint, plan.rules) if to is None)


def could_move(checkpoint: Checkpoint, plan: Plan) -> tuple[HiddenDevice, ...]:
    """Return the devices that a plan leaves alone, and that `with_hidden` would send elsewhere."""
    wanted = _wanted(checkpoint, plan.rules) if checkpoint.format in CHANGED_IN else ()
    return tuple(row for index, to, row in wanted if to is not None and index not in plan.hidden)


def rules_for_hidden(checkpoint: Checkpoint, target: Profile) -> tuple[Rule, ...]:
    """Return the rules that send the devices outside of tensors to what the target has."""
    texts = {row.device for row in checkpoint.hidden_devices if row.what in _MOVABLE}
    moving = (text for text in sorted(texts) if split_device(text) and not is_in_place(text, target))
    return tuple(Rule(device=text, to=fold(text, target)) for text in moving)


def with_hidden_moved(rows: Iterable[HiddenDevice], hidden: Mapping[int, str]) -> tuple[HiddenDevice, ...]:
    """Return the rows as they are once a plan is carried out."""
    return tuple(
        replace(row, device=hidden[index]) if index in hidden else row for index, row in enumerate(rows)
    )


def _wanted(checkpoint: Checkpoint, rules: Rules) -> Iterable[tuple[int, str | None, HiddenDevice]]:
    """Yield each device that a rule sends elsewhere, with where it goes; None where it cannot go there."""
    for index, row in enumerate(checkpoint.hidden_devices):
        here = split_device(row.device)
        if row.what not in _MOVABLE or here is None or here[0] == "meta":
            continue
        rule = rules.find_first(row.device, (row.path,))
        if rule is None:
            continue
        kind = rule.to.partition(":")[0]
        to = kind if row.what is HiddenPlace.MESH else rule.to
        if not is_same_device(to, row.device):
            is_kept = row.what is HiddenPlace.GENERATOR and kind != here[0]
            yield index, None if is_kept else to, row


# --- what people ask of a copy, a map and a machine, as the rules and the plan that it makes of a file ------

Machine = Callable[[], Profile]
"""Describes the machine; it is called only where that matters, since it may have to be probed."""


def rules_for(
    checkpoint: Checkpoint, said: tuple[Rule, ...], machine: Machine | None, *, hidden: bool = False
) -> tuple[Rule, ...]:
    """Return the rules of a map, then those that a machine still needs; with neither, all goes to the CPU."""
    refuse_unmatched(said, checkpoint)
    if machine is None:
        return said or (parse_rule("*=cpu"),)
    profile = machine()
    rules = said + rules_for_target(checkpoint, profile)
    return rules + rules_for_hidden(checkpoint, profile) if hidden else rules


def plan_for(
    checkpoint: Checkpoint,
    said: tuple[Rule, ...],
    machine: Machine | None,
    *,
    move_all: bool = False,
    hidden: bool = False,
) -> Plan:
    """Return the plan of those rules; `move_all` moves what torch keeps on the CPU, too. Errors as above."""
    plan = plan_remap(checkpoint, rules_for(checkpoint, said, machine, hidden=hidden), move_all=move_all)
    return with_hidden(checkpoint, plan) if hidden else plan


def refuse_other_than_devices(said: tuple[Rule, ...]) -> None:
    """Refuse rules that loading code has no word for."""
    if any(rule.device is None for rule in said):
        raise PlanError("snippets can map devices only, not paths", remedy="use remap for path:GLOB@TO")


def device_map(checkpoint: Checkpoint, said: tuple[Rule, ...]) -> tuple[tuple[str, str], ...]:
    """Return where each saved device goes by rules for devices: (saved device, where to)."""
    refuse_unmatched(said, checkpoint)
    ordered = Rules(said)
    going = ((total.device, ordered.by_device(total.device)) for total in device_totals(checkpoint))
    return tuple((device, to) for device, to in going if to is not None)
