"""Rules about models and losses whose tensors were saved on several devices.

What follows from that depends on how code restores them, see `after_load`. A state dict is copied to where
the code has its model, so it breaks nothing; a pickled module is used where `torch.load` put it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diagnose.branches import branch_fix
from inspector.diagnose.case import Case
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import is_destination
from inspector.target.after_load import (
    META,
    Complaint,
    first_of_parallel,
    is_registered,
    landed_places,
    meeting,
    mixing_failure,
)
from inspector.target.parts import Form, Kind, Part, is_loss_name, is_loss_weight, parts_of
from inspector.target.restore import restore_failure
from inspector.units import cut_text, escape_text, format_count

_MODELS = frozenset({Kind.MODEL, Kind.AVERAGE})
_MOST_NAME = 60
_MOST = 16
_NOWHERE = frozenset({META, NO_DEVICE})


def find_mixed(case: Case) -> Iterator[Finding]:
    """Find models and losses that are not on one device, each with what follows from its form."""
    checkpoint = case.checkpoint
    parts = parts_of(checkpoint)
    objects = (part for part in parts if part.kind in _MODELS and part.form is Form.OBJECT)
    yield from _modules(case, [part for part in objects if _is_apart(checkpoint, part)])
    yield from _parallel(case, parts)
    yield from _losses(case, parts)


def _is_apart(checkpoint: Checkpoint, part: Part) -> bool:
    """Return whether tensors of a part cannot meet where they were saved."""
    if len(part.devices(checkpoint)) < 2:
        return False
    places = meeting(checkpoint, part, landed_places(checkpoint, part))
    return mixing_failure(place for place in places if place.device not in _NOWHERE) is not None


def _home(checkpoint: Checkpoint, parts: Sequence[Part]) -> str:
    """Return the device that most of these parts is on; empty where they have no data."""
    nbytes: Counter[str] = Counter()
    for part in parts:
        for row in part.tensors(checkpoint):
            nbytes[row.device] += row.nbytes + 1
    for device in _NOWHERE:
        del nbytes[device]
    return max(nbytes, key=lambda device: nbytes[device], default="")


def _strays(checkpoint: Checkpoint, part: Part) -> list[Tensor]:
    """Return the tensors that are not where most of their part is."""
    home = _home(checkpoint, [part])
    return [row for row in part.tensors(checkpoint) if row.device not in {home, *_NOWHERE}]


def _name(parts: Sequence[Part], noun: str) -> str:
    """Return what to call one or two parts, by their paths, or how many there are."""
    paths = [escape_text(cut_text(part.path, _MOST_NAME)) for part in parts]
    if len(paths) > 2 or not all(paths):
        return format_count(len(paths), noun) if paths[1:] else f"The {noun}"
    return " and ".join(paths)


# --- models -------------------------------------------------------------------------------------------------


def _modules(case: Case, parts: list[Part]) -> Iterator[Finding]:
    """Explain whole modules: the weights of a loss within are apart from what a forward pass needs."""
    checkpoint = case.checkpoint
    strays = [row for part in parts for row in _strays(checkpoint, part)]
    of_loss = [row.path for row in strays if _is_of_loss(row)]
    others = [row for row in strays if not _is_of_loss(row)]
    home = _home(checkpoint, parts)
    to = home if case.target is None else case.target.destination
    if of_loss:
        yield _loss_apart(of_loss, home, to)
    if others:
        yield finding(
            "mixed-devices",
            "warning",
            f"{_name(parts, 'module')} {'is' if len(parts) == 1 else 'are'} on several devices",
            f"Most of it is on {home}, {format_count(len(others), 'tensor')} elsewhere. A pickled module is "
            "used where torch.load puts it: unless its forward moves tensors between devices, it fails with "
            f"'{Complaint.SAME_DEVICE}'. {_advice(others)}",
            [row.path for row in others],
            fix=Fix(rule=f"*={to}") if is_destination(to) else None,
        )


def _advice(strays: Sequence[Tensor]) -> str:
    """Return what mends a module; `.to` leaves plain attributes where they are."""
    kept = next((row for row in strays if not is_registered(row)), None)
    if kept is None:
        return "Call .to(device) on it, or map everything to one device."
    name = escape_text(cut_text(kept.path, _MOST_NAME))
    return f"Map everything to one device: .to(device) does not move plain attributes such as {name}."


def _parallel(case: Case, parts: Sequence[Part]) -> Iterator[Finding]:
    """Find pickled `DataParallel` wrappers whose model is not on the first of their devices."""
    checkpoint = case.checkpoint
    for part in islice((part for part in parts if part.form is Form.OBJECT), _MOST):
        first = first_of_parallel(checkpoint, part)
        others = part.tensors(checkpoint) if first else ()
        rows = [row for row in others if is_registered(row) and row.device != first]
        if rows and _is_there(case, first):
            yield finding(
                "data-parallel-device",
                "warning",
                f"nn.DataParallel wants the model on {first}",
                f"The model was pickled in its wrapper, which replicates it from {first}, the first of its "
                f"device_ids. With {format_count(len(rows), 'tensor')} elsewhere, forward fails with 'module "
                f"{Complaint.FIRST_DEVICE} {first} (device_ids[0])'. Map everything there, or take the model "
                "out of the wrapper: model = model.module.",
                [row.path for row in rows],
                fix=Fix(rule=f"*={first}"),
            )


def _is_there(case: Case, device: str) -> bool:
    """Return whether the target has a device; without a target it may."""
    return case.target is None or restore_failure(device, case.target) is None


def _is_of_loss(row: Tensor) -> bool:
    """Return whether a tensor of a module is the weight of a loss within."""
    return is_loss_weight(row.keys[-1]) or any(is_loss_name(key) for key in row.keys[-4:-1])


# --- losses -------------------------------------------------------------------------------------------------


def _losses(case: Case, parts: Sequence[Part]) -> Iterator[Finding]:
    """Find losses that are not where the models are: their weights are easily left behind."""
    checkpoint = case.checkpoint
    models = [part for part in parts if part.kind is Kind.MODEL]
    home = _home(checkpoint, models)
    if not home:
        return
    at_home = {*_NOWHERE, *(row.device for part in models for row in part.tensors(checkpoint))}
    copied: list[str] = []
    used: list[str] = []
    for part in parts:
        if part.kind is Kind.LOSS:
            # A number on the CPU may meet tensors on any device.
            rows = (row for row in part.tensors(checkpoint) if row.shape or row.device != "cpu")
            paths = [row.path for row in rows if row.device not in at_home]
            (copied if part.form is Form.STATE else used).extend(paths)
    to = home if case.target is None else case.target.destination
    if used and not (case.target and to == "cpu"):
        yield _loss_apart(used, home, to)
    if copied:
        yield finding(
            "loss-buffer-left-behind",
            "note",
            "The loss was saved on another device than the model",
            "load_state_dict copies these weights to where your code made the loss, so mapping them changes "
            "nothing. model.to(device) does not move a loss that is no part of the model: call "
            "criterion.to(device) as well. Where its weights are elsewhere, computing the loss fails with "
            f"'{Complaint.SAME_DEVICE}'.",
            copied,
        )


def _loss_apart(paths: list[str], home: str, to: str) -> Finding:
    """Explain weights of a loss that are used where `torch.load` puts them."""
    return finding(
        "loss-buffer-left-behind",
        "warning",
        "Weights of the loss are not on the model's device",
        f"The model is on {home}. Weights such as those of CrossEntropyLoss(weight=...) and "
        "BCEWithLogitsLoss(pos_weight=...) are elsewhere, and used as loaded they stay there: computing the "
        f"loss fails with '{Complaint.SAME_DEVICE}'. Move them with .to(device), or map them to the model's "
        "device.",
        paths,
        fix=branch_fix(paths, to),
    )
