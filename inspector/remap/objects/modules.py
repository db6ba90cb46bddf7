"""The state dict of a module that was pickled whole, without its class: what `module.state_dict()` gives.

Names and order are those of `Module.state_dict` in torch's `torch/nn/modules/module.py`: a module's own
parameters, then its buffers but for those that are not persistent, then its children; a module that two
parents share is listed under both.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.containers.container import Container
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.tensors.rebuild import looks_like_tensor
from inspector.model.values.children import attributes_of, children_of, mapping_pairs
from inspector.pickles.values import ByteString, Call, Dict, Global, Set, Value

_MOST_NAME = 10_000
_NOT_PERSISTENT = "._non_persistent_buffers_set"


class StateEntry(NamedTuple):
    """One entry of a state dict.

    Attributes:
        name: Its name.
        steps: The way to it within the module or mapping, as the path of its row has it.
        value: What it is.
    """

    name: str
    steps: tuple[str, ...]
    value: Value


def read_module(module: Value, limits: Limits = DEFAULT_LIMITS) -> list[StateEntry]:
    """Return the entries of a module's state dict."""
    entries: list[StateEntry] = []
    todo: list[tuple[str, tuple[str, ...], Value]] = [("", (), module)]
    while todo:
        prefix, steps, value = todo.pop()
        if len(steps) > 2 * limits.depth or len(entries) > limits.rows:
            raise ExportError("the modules contain each other without end", where=prefix[:200])
        attributes = dict(_text_keys(value))
        unsaved = _texts(attributes.get(_NOT_PERSISTENT))
        for kind in ("._parameters", "._buffers"):
            for name, item in _named(attributes.get(kind)):
                if item is not None and not (kind == "._buffers" and name in unsaved):
                    entries.append(StateEntry(_join(prefix, name), (*steps, kind, str(name)), item))
        children = [
            (_join(_join(prefix, name), "."), (*steps, "._modules", str(name)), item)
            for name, item in _named(attributes.get("._modules"))
            if isinstance(item, Call)
        ]
        todo += reversed(children)
    return entries


def _text_keys(value: Value) -> list[tuple[str, Value]]:
    attributes = attributes_of(value.state) if isinstance(value, Call) else []
    return [(key, item) for key, item in attributes if isinstance(key, str)]


def _named(mapping: Value) -> list[tuple[str, Value]]:
    return [(key, item) for key, item in mapping_pairs(mapping) or [] if isinstance(key, str)]


def _join(first: str, second: str) -> str:
    """Join two parts of a name; with a part whose encoding nobody knows, the whole is bytes."""
    text = first + second
    is_old = isinstance(first, ByteString) or isinstance(second, ByteString)
    return text if text.isascii() or not is_old else ByteString(text)


def _texts(value: Value) -> set[str]:
    """Read a set of texts, in any of its spellings."""
    items: Value = value.items if isinstance(value, Set) else None
    if isinstance(value, Call) and isinstance(value.func, Global) and value.func.name == "set":
        first = value.args[0] if isinstance(value.args, tuple) and value.args else []
        items = first if isinstance(first, list | tuple) else []
        items = [*items, *(value.items or [])]
    return {item for item in items if isinstance(item, str)} if isinstance(items, list) else set()


def read_program(container: Container) -> list[StateEntry]:
    """Return the state dict of a program, whose modules are mappings; own weights come first."""
    declared = container.declared or {}
    found: list[StateEntry] = []
    stack: list[tuple[tuple[str, ...], Value]] = [((), container.root)]
    seen: set[int] = set()  # a module that holds itself is listed once
    while stack:
        steps, value = stack.pop()
        is_new = isinstance(value, Dict) and id(value) not in seen and len(steps) < DEFAULT_LIMITS.depth
        pairs = value.pairs if is_new and isinstance(value, Dict) else []
        seen.add(id(value))
        named = [((*steps, key), item) for key, item in pairs if isinstance(key, str)]
        for role in ("parameter", "buffer"):
            found += [
                StateEntry(".".join(way), way, item) for way, item in named if declared.get(id(item)) == role
            ]
        stack += [(way, item) for way, item in reversed(named) if isinstance(item, Dict)]
    return found


def flat_program(container: Container) -> Dict:
    """Return the weights of a program by name, and what else its modules hold of tensors by its way."""
    entries = read_program(container)
    taken = {id(entry.value) for entry in entries}
    pairs: list[tuple[Value, Value]] = [(entry.name, entry.value) for entry in entries]
    stack: list[tuple[str, Value]] = [("", container.root)]
    seen: set[int] = set()
    while stack:
        name, value = stack.pop()
        if looks_like_tensor(value) and id(value) not in taken:
            pairs.append((name, value))
        if isinstance(value, Dict | list | tuple) and id(value) not in seen and len(name) < _MOST_NAME:
            seen.add(id(value))
            inside = children_of(value)
            stack += reversed([(f"{name}.{key}" if name else str(key), item) for key, item in inside])
    return Dict(pairs)
