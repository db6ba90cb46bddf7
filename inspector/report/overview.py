"""What a file is, in a dozen lines: the model, its training, and the memory that it needs.

Each line says what the file shows and no more. What could be a guess has its reason beside it; what cannot be
told is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from inspector.containers.notes import NoteKind
from inspector.model.checkpoint import Checkpoint, Optimizer
from inspector.model.roles.processes import find_shards
from inspector.model.totals import device_totals, role_totals
from inspector.model.values.text import step_text
from inspector.records import dataclass, replace
from inspector.report.architecture import Blocks
from inspector.report.charts.bars import filter_for
from inspector.report.charts.forecast import memory_of
from inspector.report.colors import device_name
from inspector.report.contents import FLOATS, Contents, ModelFacts, find_contents, layers_text
from inspector.report.details import ROLE_WORDS, written_by
from inspector.report.words.values import format_share
from inspector.snippet.inventory import take_inventory
from inspector.snippet.traits import is_adapter, look_at
from inspector.target.profile import Profile
from inspector.units import (
    cut_text,
    escape_text,
    format_count,
    format_nbytes,
    format_quantity,
    short_value,
    shown_path,
    unescaped_path,
)


class OverviewLine(NamedTuple):
    """A caption and what it says.

    Attributes:
        why: Where that is known from, or what it leaves out; may be empty.
        query: The search that finds what it speaks of; empty where none can be written.
    """

    caption: str
    text: str
    why: str = ""
    query: str = ""


class OverviewGroup(NamedTuple):
    """Lines under one title."""

    title: str
    lines: tuple[OverviewLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is shown of a file at first: what it is in a few words, then its facts.

    Attributes:
        scores: Tensors of one number that are scores, by index, with their names; they have to be read.
    """

    title: str
    groups: tuple[OverviewGroup, ...]
    scores: tuple[tuple[int, str], ...] = ()


def overview_of(checkpoint: Checkpoint) -> Overview:
    """Return what is known of a file whatever machine it is loaded on."""
    contents = find_contents(checkpoint)
    groups = (
        OverviewGroup(_MODEL, tuple(_model_lines(checkpoint, contents))),
        OverviewGroup(_TRAINING, tuple(_training_lines(checkpoint))),
        OverviewGroup("File", tuple(_file_lines(checkpoint))),
    )
    return Overview(
        title=_title(checkpoint, contents),
        groups=tuple(filter(None, map(_shown, groups))),
        scores=tuple(islice(_scores(checkpoint), _MOST_SCORES)),
    )


def with_scores(about: Overview, found: Sequence[tuple[str, str]]) -> Overview:
    """Return an overview with what was read of its scores, each with its name."""
    line = OverviewLine(_BEST, ", ".join(f"{name} {short_value('float', text)}" for name, text in found))
    group = next((one for one in about.groups if one.title == _TRAINING), OverviewGroup(_TRAINING, ()))
    more = _shown(group._replace(lines=(*group.lines, line)))
    others = [one for one in about.groups if one is not group]
    place = sum(one.title == _MODEL for one in others)
    return replace(about, groups=(*others[:place], *([more] if more else []), *others[place:]))


_MODEL, _TRAINING, _BEST = "Model", "Training", "Scores"


def with_memory(
    about: Overview, checkpoint: Checkpoint, target: Profile, loading: Sequence[tuple[str, str]]
) -> Overview:
    """Return an overview with what the file takes of a machine, before what is said of the file itself.

    Args:
        loading: What loading takes, as (device, bytes of its memory).
    """
    group = _shown(_memory(checkpoint, find_contents(checkpoint), target, loading))
    return about if group is None else replace(about, groups=(*about.groups[:-1], group, *about.groups[-1:]))


_MOST_TEXT = 200


def _shown(group: OverviewGroup) -> OverviewGroup | None:
    """Return a group as plain text of a bounded length; None for one without lines."""
    lines = []
    for line in group.lines:
        caption, text, why = (escape_text(cut_text(text, _MOST_TEXT)) for text in line[:3])
        lines.append(OverviewLine(caption, text, why, line.query))
    return OverviewGroup(group.title, tuple(lines)) if lines else None


# --- what is said of them -----------------------------------------------------------------------------------


def _title(checkpoint: Checkpoint, contents: Contents) -> str:
    models = contents.models
    if not models:
        return _title_without_model(checkpoint)
    count = sum(model.parameters for model in models)
    called = f"parameter{'s' if count > 1 else ''}{' in this part' if _is_part(checkpoint) else ''}"
    size = f"{format_quantity(count)} {called}" if count else ""
    if len(models) > 1:
        what = format_count(len(models), "model")
    else:
        what = models[0].family or ("Averaged model" if models[0].is_average else "Model")
    return ", ".join(filter(None, (what, size)))


def _is_part(checkpoint: Checkpoint) -> bool:
    """Return whether a file is one of several, also where the others are not beside it."""
    is_noted = any(note.kind is NoteKind.PART_OF for note in checkpoint.notes)
    return is_noted or (_PART.search(checkpoint.path) is not None and not checkpoint.parts)


_PART = re.compile(r"-[0-9]{5}-of-(?!00001)[0-9]{5}\.[a-z]+$")
"""What libraries call one of several files of a model."""


def _title_without_model(checkpoint: Checkpoint) -> str:
    roles = {row.role for row in checkpoint.tensors}
    if checkpoint.optimizers:
        return "State of an optimizer, without a model"
    if roles == {"rng"}:
        return "States of random number generators"
    if look_at(checkpoint).is_data:
        return f"Data: {format_count(len(checkpoint.tensors), 'tensor')}"
    if roles:
        return format_count(len(checkpoint.tensors), "tensor")
    return f"No tensors: {format_count(len(checkpoint.values), 'value')}"


def _model_lines(checkpoint: Checkpoint, contents: Contents) -> Iterator[OverviewLine]:
    models = contents.models
    yield from _called(checkpoint)
    yield from map(_one_line, models[:_MOST_LISTED] if len(models) > 1 else ())
    yield from _lines_of(checkpoint, models[0]) if len(models) == 1 else ()
    if len(models) > _MOST_LISTED:
        yield OverviewLine("And", f"{len(models) - _MOST_LISTED} more models")
    for caption, others in (("Copies", contents.copies), ("Averages", contents.averages)):
        sizes = [
            f"{_place(model)}, {format_nbytes(model.nbytes) + ' more' if model.nbytes else 'the same bytes'}"
            for model in others[:_MOST_LISTED]
        ]
        if sizes:
            more = f" and {len(others) - len(sizes)} more" if len(others) > len(sizes) else ""
            query = "role:ema" if caption == "Averages" and not models[0].is_average else ""
            yield OverviewLine(caption, f"{'; '.join(sizes)}{more}", "", query)


_MOST_LISTED = 4
_CALLED = re.compile(
    r"^(arch|architecture|model_name|model_type|(config|config\.json|args|hparams|hyper_parameters|opt|cfg|"
    r"model_args|train_args)/\.?(arch|architecture|model|model_name|model_type|backbone|encoder_name)|"
    r"\.__metadata__/(modelspec\.architecture|ss_base_model_version))$"
)


def _called(checkpoint: Checkpoint) -> Iterator[OverviewLine]:
    """Yield what the file itself calls its model."""
    if checkpoint.module_class:
        yield OverviewLine("Class", f"{checkpoint.module_class}, a whole module")
    found = next(
        (row for row in checkpoint.values if row.type == "str" and row.text and _CALLED.match(row.path)), None
    )
    if found is not None:
        yield OverviewLine(
            "Called", f"{found.text}, by {unescaped_path(found.path)}", "", _exactly(found.path)
        )


def _exactly(path: str) -> str:
    """Return the search for one row."""
    return f'"{path}"' if path and path.isprintable() and '"' not in path else ""


def _below(name: str, between: str = "/") -> str:
    """Return the search for all that stands below a path, or for the parameters of a module."""
    is_word = bool(name) and name.isprintable() and not set(name) & set('"*?: -')
    return f"{name}{between}*" if is_word else ""


def _place(model: ModelFacts) -> str:
    return shown_path(unescaped_path(model.path)) or "(root)"


def _one_line(model: ModelFacts) -> OverviewLine:
    """Return one of several models in a line."""
    said = model.family, layers_text(model), _size_text(model)
    return OverviewLine(_place(model), "; ".join(filter(None, said)), "", _below(model.path))


def _lines_of(checkpoint: Checkpoint, model: ModelFacts) -> Iterator[OverviewLine]:
    if model.is_average:
        yield OverviewLine("Averaged", "EMA or SWA weights, without those they average", "", "role:ema")
    if model.family:
        yield OverviewLine("Family", model.family, model.why)
    parts = _parts(model)
    if model.blocks:
        yield OverviewLine(
            "Layers", f"{layers_text(model).removeprefix('in ')} in {_homes_text(model.blocks)}"
        )
    elif parts and not model.family:
        yield OverviewLine("Parts", ", ".join(f"{name} {format_quantity(size)}" for name, size in parts))
    why = "packed matrices hold more numbers than their shapes say" if model.packed else ""
    yield OverviewLine("Parameters", _size_text(model), why, "" if model.is_average else "role:parameter")
    if len(model.dtypes) > 1:
        yield OverviewLine("Precision", _precision(model), "", _dtype_query(model))
    if model.buffers_nbytes * _FEW > model.nbytes:
        text = f"{format_count(model.buffers, 'tensor')}, {format_nbytes(model.buffers_nbytes)}"
        yield OverviewLine("Buffers", text, "", "" if model.is_average else "role:buffer")
    tied = (*model.tied, *checkpoint.tied)
    if tied:
        said = ", ".join(f"{name} = {other}" for name, other in tied[:2])
        more = f" and {len(tied) - 2:,} more" if len(tied) > 2 else ""
        yield OverviewLine("Tied", said + more, "counted once")
    if model.frozen:
        yield _frozen_line(model)


def _size_text(model: ModelFacts) -> str:
    count, exact = format_quantity(model.parameters), f"{model.parameters:,}"
    counted = count if count == exact else f"{count} ({exact})"
    packed = f" and {format_count(model.packed, 'packed matrix', 'packed matrices')}" if model.packed else ""
    dtype = f" in {model.dtypes[0][0]}" if len(model.dtypes) == 1 else ""
    return f"{counted}{packed}{dtype}, {format_nbytes(model.parameters_nbytes)}"


_FEW = 20
"""Buffers are worth a line from a twentieth of the bytes on."""


def _homes_text(blocks: tuple[Blocks, ...]) -> str:
    where = [row.where.removesuffix(".N") for row in blocks]
    return ", ".join(where[:_MOST_LISTED]) + (" and others" if len(where) > _MOST_LISTED else "")


def _parts(model: ModelFacts) -> list[tuple[str, int]]:
    """Return the few modules that a model consists of, with the parameters of each."""
    sizes: Counter[str] = Counter()
    for name, size in model.sizes.items():
        sizes[name.partition(".")[0] if "." in name else ""] += size
    is_told = 1 < len(sizes) <= _MOST_PARTS and all(name and not name.isdigit() for name in sizes)
    return list(sizes.items()) if is_told else []


_MOST_PARTS = 6


def _precision(model: ModelFacts) -> str:
    total = sum(size for _, size in model.dtypes)
    shown = (f"{dtype} {format_share(size, total)}" for dtype, size in model.dtypes[:_MOST_LISTED])
    return ", ".join(shown) + (" and others" if len(model.dtypes) > _MOST_LISTED else "")


def _dtype_query(model: ModelFacts) -> str:
    """Return the search for what is stored in the rarer dtypes, which are what one looks for."""
    names = [dtype for dtype, _ in model.dtypes]
    return f"{filter_for('dtype', names[-1], names)} role:parameter" if len(names) > 1 else ""


def _common_module(names: tuple[str, ...]) -> str:
    """Return the module that all names stand in, or nothing."""
    first, last = min(names).split("."), max(names).split(".")
    same = list(takewhile(lambda pair: pair[0] == pair[1], zip(first[:-1], last[:-1], strict=False)))
    return ".".join(step for step, _ in same)


def _frozen_line(model: ModelFacts) -> OverviewLine:
    names, why = model.frozen, model.why_frozen
    text = f"{format_count(len(names), 'tensor')}, {format_quantity(model.frozen_parameters)} parameters"
    below = _common_module(names)
    is_all = sum(name.startswith(f"{below}.") for name in model.sizes) == len(names)
    query = f"{_below(below, '.')} role:parameter" if is_all and _below(below, ".") else ""
    return OverviewLine("Frozen", text, f"{below}: {why}" if is_all else why, query)


# --- the training that it comes from ------------------------------------------------------------------------


class Sign(NamedTuple):
    """A row of the tables of optimizers and schedulers: the first whose words are all there, and no others.

    Attributes:
        has: Names of options and slots, or of keys; `name=text` asks for the value, too.
        hasnt: Names that its relatives have.
    """

    name: str
    has: str
    hasnt: str
    source: str


OPTIMIZERS = (
    Sign("AdamW", "betas decoupled_weight_decay=True amsgrad", "", "torch/optim/adamw.py since 2.7"),
    Sign("Adam", "betas decoupled_weight_decay=False amsgrad", "", "torch/optim/adam.py since 2.7"),
    Sign("NAdam", "betas momentum_decay", "", "torch/optim/nadam.py"),
    Sign("RAdam", "betas decoupled_weight_decay", "amsgrad", "torch/optim/radam.py"),
    Sign("Adamax", "betas exp_inf", "", "torch/optim/adamax.py"),
    Sign("LAMB", "betas trust_clip", "", "timm/optim/lamb.py"),
    Sign("Adam or AdamW", "betas amsgrad", "rectify adaptive", "torch/optim/adam.py and adamw.py before 2.7"),
    Sign("Rprop", "etas step_sizes", "", "torch/optim/rprop.py"),
    Sign("ASGD", "lambd alpha t0", "", "torch/optim/asgd.py"),
    Sign("LBFGS", "history_size max_iter", "", "torch/optim/lbfgs.py"),
    Sign("Adafactor", "beta2_decay d", "", "torch/optim/_adafactor.py"),
    Sign("Adafactor", "clip_threshold scale_parameter", "", "transformers/optimization.py"),
    Sign("Adagrad", "lr_decay initial_accumulator_value", "", "torch/optim/adagrad.py"),
    Sign("Adadelta", "rho eps", "betas adaptive dampening", "torch/optim/adadelta.py"),
    Sign("RMSprop", "alpha centered", "", "torch/optim/rmsprop.py; that of TensorFlow in timm has the same"),
    Sign(
        "SGD", "dampening nesterov", "adaptive delta trust_coeff trust_coefficient eeta", "torch/optim/sgd.py"
    ),
    Sign("Muon", "ns_steps momentum", "", "torch/optim/_muon.py"),
    Sign("one of Adam's kind", "exp_avg exp_avg_sq", "", "its slots alone"),
    Sign("SGD with momentum", "momentum_buffer", "square_avg", "its slots alone"),
)

SCHEDULERS = (
    Sign("CosineAnnealingWarmRestarts", "T_0 T_mult", "", "torch/optim/lr_scheduler.py"),
    Sign("CosineAnnealingLR", "T_max eta_min", "", "torch/optim/lr_scheduler.py"),
    Sign("OneCycleLR", "total_steps cycle_momentum", "", "torch/optim/lr_scheduler.py"),
    Sign("CyclicLR", "total_size step_ratio", "", "torch/optim/lr_scheduler.py"),
    Sign("ReduceLROnPlateau", "num_bad_epochs patience", "", "torch/optim/lr_scheduler.py"),
    Sign("MultiStepLR", "milestones gamma", "", "torch/optim/lr_scheduler.py"),
    Sign("StepLR", "step_size gamma", "", "torch/optim/lr_scheduler.py"),
    Sign("SequentialLR", "_schedulers _milestones", "", "torch/optim/lr_scheduler.py"),
    Sign("SWALR", "anneal_epochs _anneal_strategy", "", "torch/optim/swa_utils.py"),
    Sign("LinearLR", "start_factor end_factor", "", "torch/optim/lr_scheduler.py"),
    Sign("ConstantLR", "factor total_iters", "start_factor patience", "torch/optim/lr_scheduler.py"),
    Sign("PolynomialLR", "power total_iters", "", "torch/optim/lr_scheduler.py"),
    Sign("LambdaLR or MultiplicativeLR", "lr_lambdas", "", "torch/optim/lr_scheduler.py"),
    Sign("ExponentialLR", "gamma", "milestones step_size", "torch/optim/lr_scheduler.py"),
)

_COUNTED = re.compile(
    r"(^|/)(epoch|current_epoch|global_step|step|iteration|iter|iter_num|current_step|num_updates|updates|samples_seen|tokens_seen)$",
    re.IGNORECASE,
)
_SCORED = re.compile(
    r"(^|[_/.~-])(loss[a-z]?|losses|acc|accuracy|score|metric|metrics|f1|auc|bleu|wer|cer|ppl|perplexity|fitness|miou|map|map50|psnr|fid|"
    r"reward|top1|top5)([_/.~0-9-]|$)",
    re.IGNORECASE,
)
_OF_RESULTS = frozenset(
    {"metrics", "results", "scores", "best", "train_metrics", "val_metrics", "logs", "losses"}
)
_NUMBERS = frozenset({"int", "float", "numpy.float64", "numpy.float32"})
_MOST_SCORES = 6
_MOST_OPTIMIZERS = 3


def name_of(words: dict[str, str], table: Sequence[Sign]) -> str:
    """Return what has these options, slots or keys; empty where no row knows it. Values are given as text."""
    said = {*words, *(f"{name}={text}" for name, text in words.items())}
    fits = (row for row in table if said.issuperset(row.has.split()) and said.isdisjoint(row.hasnt.split()))
    return next((row.name for row in fits), "")


def _training_lines(checkpoint: Checkpoint) -> Iterator[OverviewLine]:
    inventory = take_inventory(checkpoint)
    words: dict[str, dict[str, str]] = {}
    for row in checkpoint.values:
        above, _, name = row.path.rpartition("/")
        words.setdefault(above, {})[name.removeprefix(".")] = row.text
    for optimizer in checkpoint.optimizers[:_MOST_OPTIMIZERS]:
        yield from _optimizer_lines(checkpoint, optimizer, words)
    if len(checkpoint.optimizers) > _MOST_OPTIMIZERS:
        yield OverviewLine("And", f"{len(checkpoint.optimizers) - _MOST_OPTIMIZERS} more optimizers")
    for keys in inventory.schedulers[:_MOST_OPTIMIZERS]:
        path = "/".join(map(step_text, keys))
        nested = (above.removeprefix(f"{path}/") for above in words if above.startswith(f"{path}/"))
        inside = {**dict.fromkeys((name.partition("/")[0] for name in nested), ""), **words.get(path, {})}
        at = inside.get("last_epoch", "")
        name = name_of(inside, SCHEDULERS) or f"{_UNKNOWN}, {shown_path(path)}"
        text = f"{name}, at its step {at}" if at.isdigit() else name
        yield OverviewLine("Scheduler", text, "", _below(path))
    progress = list(islice(_progress(checkpoint), _MOST_SCORES))
    if progress:
        query = _exactly(progress[0][0]) if len(progress) == 1 else ""
        yield OverviewLine("Reached", ", ".join(text for _, text in progress), "", query)
    scales = [
        words.get("/".join(map(step_text, keys)), {}).get("scale", "") for keys in inventory.scalers[:1]
    ]
    also = [f"GradScaler at {short_value('float', scale).removesuffix('.0')}" for scale in scales]
    states = sum(row.role == "rng" for row in checkpoint.tensors)
    places = (("torch", states), ("Python", inventory.python_state), ("NumPy", inventory.numpy_state))
    named = [name for name, place in places if place]
    also += [f"random states of {', '.join(named)}"] if named else []
    if also:
        yield OverviewLine("Besides", ", ".join(also), "", "role:rng" if states else "")


def _optimizer_lines(
    checkpoint: Checkpoint, optimizer: Optimizer, words: dict[str, dict[str, str]]
) -> Iterator[OverviewLine]:
    start = f"{optimizer.path}/" if optimizer.path else ""
    options: dict[str, str] = {}
    rates: dict[str, None] = {}
    groups = 0
    for above, inside in words.items():
        group = above.removeprefix(start).removeprefix(".").removeprefix("param_groups/")
        if above.startswith((f"{start}param_groups/", f"{start}.param_groups/")) and group.isdigit():
            options, groups = {**inside, **options}, groups + 1
            rates |= {short_value("float", inside["lr"]): None} if "lr" in inside else {}
    rows = [row for row in checkpoint.tensors if row.role == "optimizer" and row.path.startswith(start)]
    slots = dict.fromkeys(row.slot.partition("/")[0] for row in rows if row.slot and row.part_of is None)
    name = _class_of(checkpoint, optimizer) or name_of(options | dict.fromkeys(slots, ""), OPTIMIZERS)
    said = [name or _UNKNOWN]
    if rates:
        more = ", \u2026" if len(rates) > _MOST_LISTED else ""
        said.append(f"learning rate {', '.join(list(rates)[:_MOST_LISTED])}{more}")
    said += [f"{groups} groups"] if groups > 1 else []
    said += [shown_path(unescaped_path(optimizer.path))] if len(checkpoint.optimizers) > 1 else []
    yield OverviewLine("Optimizer", ", ".join(said), "", _below(optimizer.path))
    if slots:
        sizes = {row.storage: row.nbytes for row in rows if row.storage is not None}
        nbytes, whole = sum(sizes.values()), sum(storage.nbytes for storage in checkpoint.storages)
        share = f", {format_share(nbytes, whole)} of all bytes" if whole >= nbytes else ""
        text = f"{', '.join(list(slots)[:_MOST_SLOTS])}: {format_nbytes(nbytes)}{share}"
        left = optimizer.parameters - optimizer.with_state
        why = f"for {optimizer.with_state:,} of {optimizer.parameters:,} parameter tensors" if left else ""
        yield OverviewLine("Its state", text, why, "role:optimizer")


_UNKNOWN = "of a kind that is not known"
_MOST_SLOTS = 6
_OF_OPTIM = re.compile(r"(^|[._])optim(izers?)?[._]")


def _class_of(checkpoint: Checkpoint, optimizer: Optimizer) -> str:
    """Return the class of an optimizer that was pickled whole, where the file names one alone."""
    if not optimizer.is_object:
        return ""
    names = {
        use.name
        for use in checkpoint.globals
        if _OF_OPTIM.search(use.name) and "lr_scheduler" not in use.name
    }
    classes = {name.rpartition(".")[2] for name in names if name.rpartition(".")[2][:1].isupper()}
    return next(iter(classes)) if len(classes) == 1 else ""


def _progress(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    """Yield how far the training was, and its scores: numbers at the top or among results, by path."""
    for row in checkpoint.values:
        is_number = (
            row.type in _NUMBERS and 1 <= len(row.keys) <= _MOST_KEYS and isinstance(row.keys[-1], str)
        )
        if not is_number:
            continue
        is_told = len(row.keys) > 1 and str(row.keys[0]).lower() in _OF_RESULTS
        if len(row.keys) == 1 or row.keys[0] == _TRAINER:
            name = str(row.keys[-1])
            is_told = bool(_COUNTED.search(name) or _SCORED.search(name))
        if is_told:
            yield row.path, f"{unescaped_path(str(row.keys[-1]))} {short_value(row.type, row.text)}"


_MOST_KEYS = 2
_TRAINER = "trainer_state.json"
"""Where the trainer of transformers keeps how far it is, beside its checkpoint."""


def _scores(checkpoint: Checkpoint) -> Iterator[tuple[int, str]]:
    """Yield the tensors of one number that are scores, with their names."""
    for index, row in enumerate(checkpoint.tensors):
        name = str(row.keys[-1]) if row.role == "other" and 0 < len(row.keys) <= _MOST_KEYS + 1 else ""
        if name and all(size == 1 for size in row.shape) and (_COUNTED.search(name) or _SCORED.search(name)):
            yield index, name


# --- the file, and what it takes of a machine ---------------------------------------------------------------

_VERSION = re.compile(r"^(config\.json/)?([A-Za-z-]*_?version|__version__|date)$")


def _file_lines(checkpoint: Checkpoint) -> Iterator[OverviewLine]:
    if _is_part(checkpoint):
        yield OverviewLine("Part of", "several files; what is said here is of this one alone")
    if find_shards(checkpoint) is not None:
        yield OverviewLine("Part of", "several processes; shapes are those of whole tensors")
    written = written_by(checkpoint)
    others = [
        f"{str(row.keys[-1]).removesuffix('version').strip('_') or 'version'} {row.text}"
        for row in checkpoint.values[:_MOST_VALUES]
        if row.type == "str" and _VERSION.match(row.path)
    ]
    if written or others:
        yield OverviewLine("Saved by", ", ".join(filter(None, (written, *others[:_MOST_LISTED]))))
    roles = role_totals(checkpoint)
    if len(roles) > 1:
        said = [f"{_HELD.get(role, ROLE_WORDS[role])} {format_nbytes(nbytes)}" for role, nbytes in roles]
        yield OverviewLine("Holds", ", ".join(said))
    totals = device_totals(checkpoint)
    if totals:
        said = [
            f"{device_name(total.device)} {format_nbytes(total.nbytes)}" for total in totals[:_MOST_DEVICES]
        ]
        more = f" and {len(totals) - _MOST_DEVICES} more" if len(totals) > _MOST_DEVICES else ""
        query = filter_for("device", totals[0].device) if len(totals) == 1 else ""
        yield OverviewLine("Saved on", ", ".join(said) + more, "", query)


_HELD: dict[str, str] = {
    "parameter": "parameters",
    "buffer": "buffers",
    "rng": "random states",
    "ema": "averages",
}
_MOST_VALUES = 100_000
_MOST_DEVICES = 8
_ADAM_MORE = 12


def _memory(
    checkpoint: Checkpoint, contents: Contents, target: Profile, loading: Sequence[tuple[str, str]]
) -> OverviewGroup:
    """Return what loading, inference and training take, against the memory of the device where things go."""
    device = target.destination
    room = memory_of(target).get(device)
    title = f"Memory needed on {device}" + (f", of {format_nbytes(room)}" if room is not None else "")
    said = [f"{name} {text}" if len(loading) > 1 else text for name, text in loading]
    lines = [OverviewLine("Loading", "; ".join(said))] if loading else []
    models = contents.models
    if not models:
        return OverviewGroup(title, tuple(lines))
    several = {1: "", 2: "both models: "}.get(len(models), f"all {len(models)} models: ")
    adapts, is_packed = is_adapter(checkpoint), any(model.packed for model in models)
    several = "the adapter alone, its model comes on top: " if adapts else several
    several = "what is in this file alone: " if _is_part(checkpoint) else several
    floats, others = (sum(getattr(model, name) for model in models) for name in ("floats", "others_nbytes"))
    dtypes = {dtype for model in models for dtype, _ in model.dtypes}
    casts = [] if is_packed else [("float32", 4 * floats + others), ("bfloat16", 2 * floats + others)]
    sizes = [(f"in {dtype}", nbytes) for dtype, nbytes in casts]
    if is_packed or dtypes not in ({"float32"}, {"bfloat16"}):
        sizes.insert(0, ("as saved", sum(model.nbytes for model in models)))
    text = ", ".join(_of_room(nbytes, words, room) for words, nbytes in sizes)
    lines.append(OverviewLine("Inference", text, f"{several}weights and buffers, without activations"))
    if dtypes <= FLOATS and not is_packed and not adapts:
        still = sum(model.frozen_parameters for model in models)
        need = 4 * floats + others + _ADAM_MORE * (sum(model.parameters for model in models) - still)
        what = "gradients and moments of what is not frozen" if still else "gradients, two moments"
        why = f"{several}weights, {what}; without activations"
        lines.append(OverviewLine("Training", _of_room(need, "in float32 with Adam", room), why))
    return OverviewGroup(title, tuple(lines))


def _of_room(nbytes: int, words: str, room: int | None) -> str:
    over = f" ({format_nbytes(nbytes - room)} too much)" if room is not None and nbytes > room else ""
    return f"{format_nbytes(nbytes)} {words}{over}"
