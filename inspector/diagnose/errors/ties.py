"""How messages are tied to a file, in the ways that many kinds of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from inspector.diagnose.branches import devices_fix
from inspector.diagnose.errors.explanation import Context, Tie, Tied
from inspector.diagnose.listing import plain
from inspector.model.findings import Finding, Fix
from inspector.model.roles.devices import device_order
from inspector.pickles.values import present_name


def about_code(here: str) -> Tie:
    """Tie a message to no file: nothing in any file brings it about."""

    def tie(context: Context) -> Tied:
        del context
        return Tied(fits="no", here=here)

    return tie


def of_finding(found: Finding, *, in_full: bool = False) -> Tied:
    """Tie a message to a finding, by its title alone or with all it says."""
    here = f"{found.title}. {found.detail}" if in_full else f"{found.title}."
    return Tied(fits="yes", here=here, paths=found.paths, count=found.count, fix=found.fix, finding=found.id)


def by_finding(*ids: str, no: str, in_full: bool = False) -> Tie:
    """Tie a message to the first of these findings; without any it comes from elsewhere."""

    def tie(context: Context) -> Tied:
        for id_ in ids:
            found = context.findings.get(id_)
            if found is not None:
                return of_finding(found, in_full=in_full)
        return Tied(fits="no", here=no)

    return tie


def of_format(wanted: Mapping[str, str]) -> Tie:
    """Tie a message to files of some formats, with what is said of each."""

    def tie(context: Context) -> Tied:
        form = context.checkpoint.format
        if form in wanted:
            return Tied(fits="yes", here=wanted[form])
        return Tied(
            fits="no", here=f"This file is in the {plain(form)} format: the error is about another file."
        )

    return tie


def devices_of(context: Context, kind: str) -> list[str]:
    """List the devices of a kind that this file has tensors or storages on."""
    devices = {storage.device for storage in context.checkpoint.storages}
    devices |= {tensor.device for tensor in context.checkpoint.tensors}
    return sorted(
        (device for device in devices if device.partition(":")[0] == kind or device == kind), key=device_order
    )


def paths_on(context: Context, devices: Sequence[str]) -> list[str]:
    """List the tensors on these devices."""
    wanted = set(devices)
    return [tensor.path for tensor in context.checkpoint.tensors if tensor.device in wanted]


def paths_with_dtype(context: Context, *dtypes: str) -> list[str]:
    """List the tensors of these dtypes."""
    return [tensor.path for tensor in context.checkpoint.tensors if tensor.dtype in dtypes]


def fix_for(context: Context, devices: Sequence[str]) -> Fix | None:
    """Return the rule that sends these devices to the target's destination, without a target to the CPU."""
    to = "cpu" if context.target is None else context.target.destination
    return devices_fix(devices, to)


def global_names(context: Context) -> list[str]:
    """List the names that this file asks for, those of Python 2 also as Python 3 spells them."""
    names = [use.name for use in context.checkpoint.globals]
    return list(dict.fromkeys([*names, *map(present_name, names)]))


def top_keys(context: Context) -> list[str]:
    """List the keys that stand at the top of a file."""
    tensors, values = context.checkpoint.tensors, context.checkpoint.values
    ways = chain((tensor.keys for tensor in tensors), (value.keys for value in values))
    return list(dict.fromkeys(str(keys[0]) for keys in ways if keys))
