"""The values of a file as a tree of its keys, as a script that loaded it finds them."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.model.checkpoint import Checkpoint, Key, Tensor, ValueRow

Row = Tensor | ValueRow
_METADATA = "._metadata"
_EMPTY = frozenset({"dict", "list", "tuple", "set", "OrderedDict", "collections.OrderedDict"})


class Branch:
    """A container: what stands at its keys, in the file's order."""

    __slots__ = ("children",)

    def __init__(self) -> None:
        self.children: dict[Key, Branch | Row] = {}


class Places:
    """All containers of a file."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.root = Branch()
        for tensor in checkpoint.tensors:
            if tensor.part_of is None:
                self._add(tensor)
        for value in checkpoint.values:
            self._add(value)

    def at(self, keys: tuple[Key, ...]) -> Branch | Row | None:
        """Return what stands at some keys, or None."""
        found: Branch | Row | None = self.root
        for key in keys:
            found = found.children.get(key) if isinstance(found, Branch) else None
        return found

    def _add(self, row: Row) -> None:
        at = self.root
        if _METADATA in row.keys:  # an attribute of the dictionary that `state_dict()` returns
            return
        for key in row.keys[:-1]:
            below = at.children.setdefault(key, Branch())
            if not isinstance(below, Branch):
                return  # the value of an object that stays closed
            at = below
        if row.keys:
            at.children.setdefault(row.keys[-1], row)


def state_dicts(places: Places, most: int = 8) -> list[tuple[Key, ...]]:
    """Return the places that look like the state dict of a model, the nearest to the root first."""
    found: list[tuple[Key, ...]] = []
    waiting: list[tuple[tuple[Key, ...], Branch]] = [((), places.root)]
    for keys, branch in waiting:  # which grows
        children = branch.children
        if _is_state_dict(children):
            found.append(keys)
        elif len(keys) < 3 and len(waiting) < 1000:
            below = [(key, child) for key, child in children.items() if isinstance(child, Branch)]
            waiting += [((*keys, key), child) for key, child in below]
    return found[:most]


def _is_state_dict(children: Mapping[Key, Branch | Row]) -> bool:
    """Return whether a mapping holds tensors by dotted names, most of all."""
    named = sum(1 for key, row in children.items() if isinstance(row, Tensor) and "." in str(key))
    return 2 * named > len(children)


def plain_value(row: ValueRow) -> object:
    """Return the value of a leaf as Python has it; Ellipsis for one that stays unknown."""
    if row.type == "NoneType":
        return None
    if row.type == "bool":
        return row.text == "True"
    try:
        if row.type == "int":
            return int(row.text) if len(row.text) < 30 else ...
        if row.type == "float":
            return float(row.text)
    except ValueError:
        return ...
    return ...


def is_empty_container(row: ValueRow) -> bool:
    """Return whether a leaf is a container without items."""
    return row.type in _EMPTY
