"""What the names of a script stand for: what is known of a value, and nothing that was made by running it.

Values are frozen. What a script changes (lists, dictionaries, modules, optimizers) stands in the memory, and
values point there, so that both sides of a branch can be followed and joined again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from inspector.model.checkpoint import Key
from inspector.records import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """What cannot be followed; nothing is claimed about it.

    Attributes:
        is_load: Whether the file is in there somewhere.
    """

    is_load: bool = False


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Const:
    """A number, a text, True, False or None.

    Attributes:
        value: The value.
    """

    value: object


NONE = Const(value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A tuple."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A place in the memory."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A `torch.device`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor.

    Attributes:
        device: Where it is; None where that is not known.
        dtype: torch's name of its type, or None.
        shape: Its sizes, or None; `()` for a number.
        is_number: Whether it has no dimension, which lets it mix with other devices; None where unknown.
        grad: Whether it is part of a graph that gradients flow through; None where unknown.
        from_loader: Whether it comes out of a loader as it was collated.
    """

    device: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    is_number: bool | None = None
    grad: bool | None = None
    from_loader: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a loader gives, of a form that is not known: tensors on a device, and perhaps other things."""

    device: str | None = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """A container in the file.

    Attributes:
        load: Which load it came from.
        keys: The way to it.
    """

    load: int
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A name of another module: `torch.load`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of the script."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: int
    no_grad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """A class of the script.

    Attributes:
        node: Its definition.
        scope: Where it is defined.
        bases: Its bases.
    """

    node: ast.ClassDef
    scope: int
    bases: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A method of a value."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Super:
    """What `super()` gives inside a method."""

    owner: Value
    cls: Class


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of modules, by their places in the memory."""

    modules: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What `load_state_dict` of a module returns."""

    missing: tuple[str, ...] = ()


Value = (
    Unknown | Const | Items | Ref | Device | Tensor | Batch | FilePlace | External | Function | Class | Bound
    | Super | Parameters | Loaded
)  # fmt: skip


# --- what stands in the memory ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListObject:
    """A list or set; `whole` tells whether all its items are known."""

    items: tuple[Value, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DictObject:
    """A dictionary with constant keys; `whole` tells whether all of them are known."""

    pairs: Mapping[object, Value] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleObject:
    """A module.

    Attributes:
        cls: The name of its class, as torch's messages say it.
        layer: The name in `torch.nn` where it is one of torch's own; else empty.
        script: Its class, where the script defines it.
        wrapper: The name that it gives the module inside: `module`, `_orig_mod`; else empty.
        children: Modules by attribute.
        own: Its own parameters and buffers by name; None for an unknown shape.
        whole: Whether all its parameters are known (those of children aside).
        device: Where its parameters are; None where that is not known.
        dtype: The type of its parameters, or None.
        frozen: Whether gradients were switched off; None where that is not known.
        moves_input: Whether it moves what it is called with to its device.
        attributes: Other attributes.
        line: Where it was made.
        moved: Where it was moved last; 0 for never.
        buffers: The names in `own` that are no parameters.
        is_imported: Whether its class is of another package.
        is_model: Whether the script uses it as a model is used.
    """

    cls: str
    layer: str = ""
    script: Class | None = None
    wrapper: str = ""
    children: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    whole: bool = True
    device: str | None = "cpu"
    dtype: str | None = "float32"
    frozen: bool | None = False
    moves_input: bool = False
    attributes: Mapping[str, Value] = field(default_factory=dict)
    line: int = 0
    moved: int = 0
    buffers: frozenset[str] = frozenset()
    is_imported: bool = False
    is_model: bool = False


Groups = tuple[int | None, ...]
"""How many parameters each group of an optimizer has; None for what has them of a class that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerObject:
    """An optimizer.

    Attributes:
        cls: Its class: `Adam`.
        modules: The modules whose parameters it holds; None where that is not known.
        groups: How many parameters each group has, where that is known; None where the groups are not.
        state: Where its state was put when it was loaded; empty without state, None where not known.
        line: Where it was made.
        loaded: Where its state was loaded; 0 for never.
    """

    cls: str
    modules: tuple[int, ...] | None
    groups: Groups | None = None
    state: str | None = ""
    line: int = 0
    loaded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceObject:
    """An object of a class of the script, or the options of a command line.

    Attributes:
        script: Its class; None for options.
        attributes: Its attributes.
        whole: Whether an attribute that is not listed is missing.
    """

    script: Class | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderObject:
    """A `DataLoader`.

    Attributes:
        element: What one batch of it is.
    """

    element: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class FileObject:
    """An open file, or a path object: `path` is None where it is not known."""

    path: str | None
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserObject:
    """An `ArgumentParser`: the defaults of its options."""

    options: Mapping[str, Value] = field(default_factory=dict)


Object = (
    ListObject | DictObject | ModuleObject | OptimizerObject | InstanceObject | LoaderObject | FileObject
    | ParserObject
)  # fmt: skip
