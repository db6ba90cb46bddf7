"""The models that a file holds, told apart from their copies and averages, each with its sums.

A tensor that shares its bytes with one before it is counted with that one alone, wherever the two stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.once import once
from inspector.model.roles.roles import COUNT_OF_AVERAGES, DICTIONARIES, is_buffer
from inspector.model.tensors.dtypes import is_whole
from inspector.records import dataclass, replace
from inspector.report.architecture import (
    Blocks,
    Weight,
    exact_name,
    find_blocks,
    find_family,
    pattern_of,
    recurrent_kind,
)
from inspector.report.outline.node import shared_runs
from inspector.report.outline.nodes import elements_of, is_packed
from inspector.snippet.models import homes
from inspector.snippet.traits import look_at
from inspector.units import cut_text, escape_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model.

    Attributes:
        path: Where it stands; empty for the whole file.
        family: What it is like, or empty.
        why: Where the family is known from.
        parameters: How many there are, those that are tied once.
        dtypes: The parameters by the dtype that they are stored in, the most first.
        packed: How many matrices are packed into integers, which have more parameters than can be counted.
        floats: How many numbers a cast would change, buffers included.
        others_nbytes: What a cast leaves as it is.
        tied: Names that share their bytes with the name beside them; a part of it is called one.
        frozen: Names of parameters that are not trained, and why that is known.
        sizes: The numbers of elements of all parameters, by name.
    """

    path: str
    family: str
    why: str
    blocks: tuple[Blocks, ...]
    parameters: int
    dtypes: tuple[tuple[str, int], ...]
    packed: int
    buffers: int
    parameters_nbytes: int
    buffers_nbytes: int
    floats: int
    others_nbytes: int
    tied: tuple[tuple[str, str], ...]
    frozen: tuple[str, ...]
    why_frozen: str
    sizes: dict[str, int]
    is_average: bool

    @property
    def nbytes(self) -> int:
        """What is stored of it."""
        return self.parameters_nbytes + self.buffers_nbytes

    @property
    def frozen_parameters(self) -> int:
        """How many parameters are not trained."""
        return sum(self.sizes[name] for name in self.frozen)


class Contents(NamedTuple):
    """The models of a file: those to be used, copies of them under other names, and their averages."""

    models: tuple[ModelFacts, ...]
    copies: tuple[ModelFacts, ...] = ()
    averages: tuple[ModelFacts, ...] = ()


_COPY = re.compile(
    r"(^|[_/])(best|last|latest|backup|init|initial|prev|previous|old|current)(_|$)", re.IGNORECASE
)
_MOST_MODELS = 64
_MOST_TOLD = 200_000
"""Names are looked through in models of so many tensors: the largest that is known has 150,000."""
_ARCHITECTURE = "metadata/general.architecture"
"""Where a GGUF file says what it is."""


@once
def find_contents(checkpoint: Checkpoint) -> Contents:
    """Return the models of a file. One that stands alone as an average is the model."""
    if not look_at(checkpoint).has_model:
        return Contents(())
    grouped: dict[str, list[Tensor]] = {}
    for path, _, tensors in homes(checkpoint):
        grouped.setdefault("" if checkpoint.is_program else path, []).extend(tensors)
    parts: _Parts = {}
    for row in checkpoint.tensors:
        if row.part_of is not None:
            parts.setdefault(checkpoint.tensors[row.part_of].path, []).append(row)
    within = dict(islice(grouped.items(), _MOST_MODELS))
    shared = _share(checkpoint, (row for rows in within.values() for row in rows))
    says = next((row.text for row in checkpoint.values if row.path == _ARCHITECTURE), "")
    found = [
        _with_frozen(checkpoint, _read_model(path, rows, parts, shared)) for path, rows in within.items()
    ]
    if says and len(found) == 1 and not found[0].family:
        found = [replace(found[0], family=says, why=f"by {_ARCHITECTURE}")]
    averages = tuple(model for model in found if model.is_average and model.parameters)
    models: list[ModelFacts] = []
    copies: list[ModelFacts] = []
    for model in (one for one in found if not one.is_average):
        is_known = any(model.sizes == one.sizes for one in models)
        is_copy = not model.nbytes or (is_known and _COPY.search(model.path) is not None)
        (copies if is_copy else models).append(model)
    models = [model for model in models if model.parameters or model.packed]
    if not models:
        return Contents(averages[:1], tuple(copies), averages[1:])
    return Contents(tuple(models), tuple(copies), averages)


_Parts = dict[str, list[Tensor]]
_Shared = dict[int, tuple[int, Tensor]]
"""By the identity of a tensor, how many of its bytes are counted with another, and with which."""


def _share(checkpoint: Checkpoint, rows: Iterable[Tensor]) -> _Shared:
    """Count bytes that several tensors view with the first of them, and with a model before its average."""
    shared: _Shared = {}
    known = set(map(id, rows))
    for run in shared_runs(checkpoint):
        viewers = [row for row in map(checkpoint.tensors.__getitem__, run.tensors) if id(row) in known]
        viewers.sort(key=lambda row: row.role == "ema")
        for row in viewers[1:]:
            shared[id(row)] = shared.get(id(row), (0, row))[0] + run.nbytes, viewers[0]
    return shared


class _Draft:
    """Adds up the tensors of a model, those that share their bytes once."""

    def __init__(self, path: str, parts: _Parts, shared: _Shared) -> None:
        self.path = path
        self.steps = len(path.split("/")) if path else 0
        self.parts, self.shared = parts, shared
        self.weights: list[Weight] = []
        self.dtypes: Counter[str] = Counter()
        self.tied: list[tuple[str, str]] = []
        self.frozen: list[str] = []
        self.sizes: dict[str, int] = {}
        self.packed = self.buffers = self.floats = 0
        self.parameters_nbytes = self.buffers_nbytes = self.others_nbytes = 0
        self.asks_for_gradient = False

    def add(self, row: Tensor) -> None:
        """Take a tensor, wherever it stands in the model."""
        name = self._name_of(row)
        if name == COUNT_OF_AVERAGES:
            return
        is_parameter = row.role == "parameter" or (
            row.role == "ema" and "._buffers" not in row.keys and not is_buffer(name, row.dtype)
        )
        packs = row.role == "buffer" and is_packed(row)
        below, size = self.parts.get(row.path, []), elements_of(row)
        nbytes = sum(part.nbytes for part in below) + (row.nbytes if row.storage or not below else 0)
        gone, other = self.shared.get(id(row), (0, row))
        if gone:
            size, nbytes = size - round(size * min(gone / row.nbytes, 1)), max(nbytes - gone, 0)
        if is_parameter and gone and not size and other.path.startswith(f"{self.path}/" if self.path else ""):
            is_part = elements_of(row) < elements_of(other)
            self.tied.append((name, f"{'a part of ' if is_part else ''}{self._name_of(other)}"))
        self.weights.append(Weight(name, row.shape, size if is_parameter or packs else 0, is_parameter))
        if ((is_parameter and not is_whole(row.dtype)) or row.dtype in FLOATS) and not packs:
            self.floats += size
        else:
            self.others_nbytes += nbytes
        if is_parameter:
            self._add_parameter(row, name, size, max(below, key=lambda part: part.nbytes, default=row).dtype)
            self.parameters_nbytes += nbytes
        elif packs:
            self.packed += nbytes > 0
            self.parameters_nbytes += nbytes
        elif nbytes:
            self.buffers += 1
            self.buffers_nbytes += nbytes

    def _name_of(self, row: Tensor) -> str:
        steps = row.keys[self.steps :]
        if len(steps) == 1:
            return str(steps[0])
        return ".".join([str(key) for key in steps if key not in DICTIONARIES])

    def _add_parameter(self, row: Tensor, name: str, size: int, stored: str) -> None:
        self.dtypes[row.dtype if row.storage else stored] += size
        self.asks_for_gradient |= row.requires_grad
        if size:
            self.sizes[name] = size
            self.frozen += [] if row.requires_grad else [name]


def _read_model(path: str, tensors: list[Tensor], parts: _Parts, shared: _Shared) -> ModelFacts:
    draft = _Draft(path, parts, shared)
    for row in tensors:
        draft.add(row)
    told = draft.weights if len(draft.weights) <= _MOST_TOLD else []
    family, why = _family_text(told)
    return ModelFacts(
        path=path,
        family=family,
        why=why,
        blocks=find_blocks(told),
        parameters=sum(draft.sizes.values()),
        dtypes=tuple(draft.dtypes.most_common()),
        packed=draft.packed,
        buffers=draft.buffers,
        parameters_nbytes=draft.parameters_nbytes,
        buffers_nbytes=draft.buffers_nbytes,
        floats=draft.floats,
        others_nbytes=draft.others_nbytes,
        tied=tuple(draft.tied),
        frozen=tuple(draft.frozen) if draft.asks_for_gradient else (),
        why_frozen="they ask for no gradient",
        sizes=draft.sizes,
        is_average=all(row.role == "ema" for row in tensors),
    )


FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})


def _with_frozen(checkpoint: Checkpoint, model: ModelFacts) -> ModelFacts:
    """Return a model with what is not trained: nothing says so, but all optimizers are known without it."""
    optimizers = checkpoint.optimizers
    if model.frozen or not optimizers or any(one.models != (model.path,) for one in optimizers):
        return model
    if any(one.naming in {"partial", "unknown"} or one.with_state < one.parameters for one in optimizers):
        return model
    named = {row.parameter for row in checkpoint.tensors if row.role == "optimizer" and row.part_of is None}
    left = tuple(name for name in model.sizes if name not in named)
    if None in named or len(left) == len(model.sizes):
        return model
    return replace(model, frozen=left, why_frozen="no optimizer of this file has them")


def _family_text(weights: list[Weight]) -> tuple[str, str]:
    """Return the family, and where it is known from; two empty texts where it cannot be told."""
    adapter, why = _adapter_text(weights)
    if adapter:
        return adapter, why
    family = find_family(weight.name for weight in weights)
    if family is None:
        kind = recurrent_kind(weights)
        return (kind, "weight_ih and weight_hh, by the number of its gates") if kind else ("", "")
    named = next((one.name for one in weights if family.has[0] in f".{pattern_of(one.name)}"), "")
    name = exact_name(family, weights)
    return (
        name if family.is_kind else f"{name}-like",
        f"names as in {family.source.partition(';')[0]}: {named}",
    )


_RANK = re.compile(r"(?:^|\.)lora_(A|down|embedding_A)(?:\.|$)")
_ADAPTERS = (
    ("LoRA adapter", re.compile(r"(^|\.)lora_")),
    ("IA\u00b3 adapter", re.compile(r"(^|\.)ia3_")),
    ("Prompt adapter", re.compile(r"(^|\.)prompt_embeddings")),
)


def _adapter_text(weights: list[Weight]) -> tuple[str, str]:
    for name, sign in _ADAPTERS:
        if weights and all(sign.search(weight.name) for weight in weights):
            ranks = sorted(
                {weight.shape[0] for weight in weights if _RANK.search(weight.name) and weight.shape}
            )
            rank = f", rank {' or '.join(map(str, ranks[:4]))}" if ranks else ""
            return f"{name}{rank}", "alone: the model that it is for is not in the file"
    return "", ""


# --- in words -----------------------------------------------------------------------------------------------


def layers_text(model: ModelFacts) -> str:
    """Return how many blocks a model has and how wide they are; empty where it has none."""
    text = _blocks_text(model.blocks)
    return f"in {text}" if text and "adapter" in model.family else text


def _blocks_text(blocks: tuple[Blocks, ...]) -> str:
    if not blocks:
        return ""
    counts = [count for row in blocks for count in row.counts]
    noun = "expert" if blocks[0].where.endswith("experts.N") else "block"
    more = " + \u2026" if len(counts) > _MOST_COUNTS else ""
    text = f"{' + '.join(map(str, counts[:_MOST_COUNTS]))}{more} {noun}{'s' if counts != [1] else ''}"
    first, last = blocks[0].numbers
    if len(counts) == 1 and (first > 1 or last - first + 1 != counts[0]):
        text += f" (numbers {first} to {last})"
    widths = {row.width for row in blocks}
    text += f" of {widths.pop():,}" if len(widths) == 1 and None not in widths else ""
    return text + (f", {blocks[0].experts} experts each" if blocks[0].experts else "")


_MOST_COUNTS = 8


def summary_of(checkpoint: Checkpoint) -> str:
    """Return family and layers of the model of a file in one line; empty where neither can be told."""
    models = [model for model in find_contents(checkpoint).models if model.family or model.blocks]
    said = (", ".join(filter(None, (model.family, layers_text(model)))) for model in models[:1])
    return escape_text(cut_text(next(said, ""), _MOST_SUMMARY))


_MOST_SUMMARY = 200
