"""The steps that styles share: calling `torch.load`, and giving a model its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import is_gzipped, packing
from inspector.model.roles.processes import find_shards
from inspector.model.roles.roles import COUNT_OF_AVERAGES
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import IMPORTS, imports_for
from inspector.snippet.literals import literal, lookup, split_global
from inspector.snippet.models import Model
from inspector.snippet.request import Request, is_free
from inspector.snippet.script import Bracketed, Script, call, comment_lines, format_code
from inspector.target.profile import Profile
from inspector.target.simulate import code_weights_only, judge_for
from inspector.target.versions import (
    HAS_MMAP,
    HAS_WEIGHTS_ONLY,
    SAFE_GLOBALS,
    WEIGHTS_ONLY_DEFAULT,
    Release,
    release_of,
)


class Opener(NamedTuple):
    """How one kind of file is opened: what stands before its path and behind it, and what that imports."""

    head: str
    tail: str
    modules: tuple[str, ...]


OPENERS: dict[str, Opener] = {
    "gzip": Opener("gzip.open(", ")", ("gzip",)),
    "bzip2": Opener("bz2.open(", ")", ("bz2",)),
    "xz": Opener("lzma.open(", ")", ("lzma",)),
    "lzma": Opener("lzma.open(", ")", ("lzma",)),
    "lz4": Opener("lz4.frame.open(", ")", ("lz4.frame",)),
    # What these return cannot be gone back in.
    "zstd": Opener(
        "io.BytesIO(zstandard.ZstdDecompressor().stream_reader(pathlib.Path(",
        ").read_bytes()).read())",
        ("io", "pathlib", "zstandard"),
    ),
    "zlib": Opener("io.BytesIO(zlib.decompress(pathlib.Path(", ").read_bytes()))", ("io", "pathlib", "zlib")),
}
"""By the name of the packing."""

# What loading code may use of torch, release by release: the one table that every style asks.
#
# A release that is not known counts as the newest, but for what one line can ask torch itself: see
# `device`. The figures are those of the file that is named, in the releases of 1.8 to 2.13 that have it.

Name = Literal["weights_only", "add_safe_globals", "mmap", "consume_prefix", "dcp", "fully_shard"]


FEATURES: dict[Name, Release] = {
    "weights_only": HAS_WEIGHTS_ONLY,
    "add_safe_globals": SAFE_GLOBALS,
    "mmap": HAS_MMAP,
    "consume_prefix": (1, 9),  # torch/nn/modules/utils.py
    "dcp": (2, 3),  # torch/distributed/checkpoint/format_utils.py
    "fully_shard": (2, 6),  # torch/distributed/fsdp/__init__.py
}
"""By the name under which the styles ask for it. Devices are asked for by `model.roles.device_types`."""


def has(target: Profile, name: Name) -> bool:
    """Return whether the torch of a machine has a feature; where its release is not known, the newest's."""
    return release_of(target.torch_version) >= FEATURES[name]


_RUNS_CODE = "# Loading it so can run code that is in it: do so only if you trust its source."
_UNSURE = "# Programs read different things from this file: leave weights_only at True."
_DANGEROUS = (
    "# torch rightly refuses this file: it asks for names that can do anything to your",
    "# computer. Only if you made it yourself, set weights_only to False.",
)
_ASLEEP = (
    "# Loading it runs nothing, but what it holds can run commands: open no bytes in it",
    "# with weights_only=False.",
)
# The class of a dtype is made by NumPy while loading, so no file names it.
_NUMPY_DTYPES = '*{type(numpy.dtype(code)) for code in numpy.typecodes["All"]}'
_STRIP = "consume_prefix_in_state_dict_if_present"
_MOST_PACKAGES = 3
_MOST_CHARS = 18
_MOST_NAME = 40
_NO_CHECK = "torch before 1.13 does not check what a file asks for, and this one asks for more than weights."
YOURS = "# The model is yours, built as it was when this file was saved."
YOURS_ALL = "# The models are yours, built as they were when this file was saved."


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a file may be loaded.

    Attributes:
        weights_only: The option of `torch.load`; None for a torch that does not know it.
    """

    weights_only: bool | None
    comments: tuple[str, ...]


class Load(NamedTuple):
    """What the call of `torch.load` depends on; `root` is the variable that it fills."""

    checkpoint: Checkpoint
    target: Profile
    path: str
    root: str


def write_load(
    script: Script, request: Request | Load, map_location: str | Bracketed | None, *, root: str | None = None
) -> None:
    """Write the call of `torch.load`, and before it what torch must be told to allow."""
    trust = write_allowed(script, request)
    script.paragraph(*load_lines(script, request, trust, map_location, root=root))


def load_lines(
    script: Script,
    request: Request | Load,
    trust: Trust,
    map_location: str | Bracketed | None,
    *,
    root: str | None = None,
    indent: str = "",
) -> list[str]:
    """Return the lines that call `torch.load`, with a warning before them where there is reason for one."""
    path = literal(request.path)
    is_gzip = is_gzipped(request.checkpoint)
    options = () if map_location is None else (map_location,)
    checked = () if trust.weights_only is None else (f"weights_only={trust.weights_only}",)
    call = Bracketed(
        head=f"{root or request.root} = torch.load(",
        items=("file" if is_gzip else path, *options, *checked),
        tail=")",
        is_tall=True,
    )
    comments = [indent + comment for comment in trust.comments]
    if not is_gzip:
        return [*comments, *format_code(call, indent)]
    opener = OPENERS.get(packing(request.checkpoint), OPENERS["zlib"])
    for module in opener.modules:
        script.need(f"import {module}")
    opened = f"{indent}with {opener.head}{path}{opener.tail} as file:"
    return [*comments, opened, *format_code(call, f"{indent}    ")]


def write_allowed(script: Script, request: Request | Load) -> Trust:
    """Write what torch must be told to allow, and return how the file may be loaded then."""
    safety = judge_for(request.checkpoint, request.target)
    knows = has(request.target, "weights_only")
    if safety.may_harm and not knows:
        raise PlanError(
            f"torch {request.target.torch_version} would run what is in this file: it cannot check it first",
            remedy="load it with torch 1.13 or newer",
        )
    allowing = _allowing_lines(script, safety, request.target)
    if allowing:
        script.paragraph(*_condition(safety), *_needs_list(request.target), *allowing)
    write_processes(script, request.checkpoint)
    comments: tuple[str, ...] = ()
    if safety.may_harm:
        comments = _ASLEEP if safety.answer.kind == "accepts" else _DANGEROUS
    elif safety.verdict == "runs-code":
        reason = _reason(safety, request.target) if knows else _NO_CHECK
        comments = (*comment_lines(reason), _RUNS_CODE)
    if safety.is_unsure and knows:
        comments = (_UNSURE,)
    return Trust(weights_only=code_weights_only(safety) if knows else None, comments=comments)


def _allowing_lines(script: Script, safety: SafetyVerdict, target: Profile) -> list[str]:
    """Import what torch must be told to allow, and return the lines that tell it."""
    allowed = [split for split in map(split_global, safety.to_allow) if split is not None]
    if release_of(target.torch_version) >= WEIGHTS_ONLY_DEFAULT:
        allowed = list(_import_allowed(script, allowed))
    if not allowed:
        return []
    script.uses_torch = True
    listed = Bracketed(head="[", items=tuple(_allowed_items(script, allowed)), tail="]")
    call = Bracketed(head="torch.serialization.add_safe_globals(", items=(listed,), tail=")")
    return format_code(call)


def short_load(path: str, safety: SafetyVerdict, target: Profile, map_location: str | None) -> str:
    """Return the least code that loads a file which asks for more than weights, without empty lines."""
    script = Script()
    script.paragraph(*_allowing_lines(script, safety, target))
    mapped = () if map_location is None else (f"map_location={literal(map_location)}",)
    items = (literal(path), *mapped, f"weights_only={code_weights_only(safety)}")
    script.paragraph(*call("loaded = torch.load(", *items))
    return "\n".join(line for line in script.text().split("\n") if line)


def write_processes(script: Script, checkpoint: Checkpoint) -> None:
    """Write what makes a process group, where tensors can only be loaded within one."""
    shards = find_shards(checkpoint)
    if shards is None or shards.kind != "ShardedTensor":
        return
    rank = "the rank that saved it" if shards.rank is None else f"rank {shards.rank}, which saved it"
    script.need("import torch.distributed as dist")
    script.paragraph(
        *comment_lines(
            f"This file holds ShardedTensors: it loads only in a process group, in {rank}. torchrun starts "
            "as many processes as there were."
        ),
        'dist.init_process_group("gloo")',
    )


def _reason(safety: SafetyVerdict, target: Profile) -> str:
    """Return why the file needs `weights_only=False`, with a name of its own if that is a plain one."""
    answer = safety.answer
    if answer.names and not has(target, "add_safe_globals"):
        return "weights_only=False: it needs names that only torch 2.4 and newer can be told to allow."
    if answer.opcode:
        return f"weights_only=False: torch's restricted unpickler has no opcode {answer.opcode}."
    plain = [".".join(split) for split in map(split_global, answer.names) if split is not None]
    named = next((name for name in plain if len(name) <= _MOST_NAME), "")
    if named:
        return f"weights_only=False: it calls or sets more than a list can safely allow, such as {named}."
    return "weights_only=False: torch's restricted unpickler refuses it, whatever is allowed."


def _needs_list(target: Profile) -> tuple[str, ...]:
    """Return the release that the list takes, where it is not known which one there is."""
    return () if target.torch_version else ("# This takes torch 2.4 or newer.",)


def write_models(
    script: Script, request: Request, *, placed: bool = True, comment: str | None = None
) -> None:
    """Write that the models go to their device and get their weights, then the averages of them.

    Args:
        placed: Whether the file was loaded with the map of its placement, and not to the CPU.
        comment: What to say of the models that the reader has to bring.
    """
    lines: list[str] = []
    for name, model in request.models:
        move = request.placement.move(name, model.devices, is_module=model.is_module)
        filled = fill_model(script, request, name, model)
        if model.is_module:
            lines += filled if placed and request.placement.puts(model.devices) else [*filled, *move]
        else:
            lines += [*move, *filled]
    for name, model in request.averages:
        lines += _fill_average(script, request, name, model)
    brought = sum(not model.is_module for _, model in request.models)
    said = comment or (YOURS_ALL if brought > 1 else YOURS)
    script.paragraph(*((said,) if brought else ()), *lines)
    script.paragraph(*_loose(request))


def _fill_average(script: Script, request: Request, name: str, model: Model) -> list[str]:
    """Return the lines that make a copy of the model with averaged weights; buffers are the model's own."""
    if model.is_module:
        return fill_model(script, request, name, model)
    for other, candidate in request.models:
        if model.bare_names <= candidate.bare_names:
            script.need("import copy")
            strict = len(model.names) == len(candidate.names)
            filled = fill_model(script, request, name, model, strict=strict)
            return [f"{name} = copy.deepcopy({other})", *filled]
    return [*request.placement.move(name, model.devices), *fill_model(script, request, name, model)]


def _loose(request: Request) -> list[str]:
    if not request.models or not request.placement.copied:
        return []
    home = request.placement.whole(request.model_devices)
    places = ((name, lookup(request.root, keys)) for name, keys in request.loose)
    return [f"{name} = {place}" + ("" if home.is_cpu else f".to({home.code})") for name, place in places]


def fill_model(
    script: Script, request: Request, name: str, model: Model, *, strict: bool = True
) -> list[str]:
    """Hand a model its weights, or take a whole module out of the checkpoint."""
    weights = lookup(request.root, model.keys)
    if model.is_module:
        return [] if weights == name else [f"{name} = {weights}"]
    lines = _averaging(request, name, model)
    if model.is_mixed:
        lines += _only_tensors(weights, model.strangers)
        weights = "state_dict"
    elif model.prefixes and weights != "state_dict":
        lines.append(f"state_dict = {weights}")
        weights = "state_dict"
    lines += [strip_prefix(script, request.target, prefix) for prefix in model.prefixes]
    if strict:
        return [*lines, f"{name}.load_state_dict({weights})"]
    call = Bracketed(head=f"{name}.load_state_dict(", items=(weights, "strict=False"), tail=")")
    return [*lines, "# It holds the parameters only: the buffers stay the model's.", *format_code(call)]


def _averaging(request: Request, name: str, model: Model) -> list[str]:
    """Return the line that wraps a model as the averages in the file were, which count themselves."""
    if not model.is_average or COUNT_OF_AVERAGES not in model.names:
        return []
    trained = [other for other, candidate in request.models if not candidate.is_average]
    return [f"{name} = torch.optim.swa_utils.AveragedModel({trained[0] if len(trained) == 1 else name})"]


def _only_tensors(weights: str, strangers: tuple[str, ...]) -> list[str]:
    """Return the lines that pick the tensors of a state dict from among other things."""
    lines = [] if weights.isidentifier() else [f"entries = {weights}"]
    name = weights if weights.isidentifier() else "entries"
    lines.append(f"state_dict = {{k: v for k, v in {name}.items() if torch.is_tensor(v)}}")
    if strangers:
        listed = Bracketed(head="for k in [", items=tuple(map(literal, strangers)), tail="]")
        lines += [*format_code(listed, end=":"), "    del state_dict[k]"]
    return lines


def strip_prefix(script: Script, target: Profile, prefix: str) -> str:
    """Take a prefix off the names in `state_dict`."""
    if not has(target, "consume_prefix"):
        return f"state_dict = {{k[{len(prefix)}:]: v for k, v in state_dict.items()}}"
    script.need(f"from torch.nn.modules.utils import {_STRIP}")
    return f"{_STRIP}(state_dict, {literal(prefix)})"


def _condition(verdict: SafetyVerdict) -> tuple[str, ...]:
    """Return whom one has to trust for that, where the classes are of packages that nothing is known of."""
    if not verdict.packages:
        return ()
    more = len(verdict.packages) - _MOST_PACKAGES
    shown = (name if len(name) <= _MOST_CHARS else f"{name[:_MOST_CHARS]}..." for name in verdict.packages)
    named = ", ".join(islice(shown, _MOST_PACKAGES)) + (f" and {more} more" if more > 0 else "")
    return (
        f"# The file creates objects of classes from {named}.",
        "# Allow them only if that code is yours, or if you trust it.",
    )


def _import_allowed(script: Script, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Import the modules that put names on torch's list themselves, and yield the other names."""
    wanted = {f"{module}.{name}": (module, name) for module, name in names}
    modules = imports_for(wanted)
    for module in modules:
        script.need(f"import {module}")
    if modules:
        script.paragraph(
            *comment_lines(f"Importing {' and '.join(modules)} puts classes of this file on torch's list.")
        )
    yield from (split for name, split in wanted.items() if name not in IMPORTS)


def _allowed_items(script: Script, names: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the list for torch, and import what is on it.

    A name is imported from its module, not reached through its package: there a function may have the same
    name as the module, as `torch.nn.parallel.data_parallel` has, or the module none, as `torch.optim.adam`.
    """
    bound: dict[str, str] = {}
    for module, name in names:
        full, here = f"{module}.{name}", _here(module)
        code = f"{here}.{name}"
        if here.rpartition(".")[2][:1].isupper():  # a class within a class, or such a module as PIL.Image
            script.need("from pkgutil import resolve_name")
            code = f"resolve_name({literal(code)})"
        elif "." not in here or here.startswith("numpy."):
            script.need(f"import {here}")
        elif not here.startswith("torch.nn.modules."):  # these come with torch itself
            code = _bind(bound, here, name)
            script.need(f"from {here} import {name}" + ("" if code == name else f" as {code}"))
        yield f"({code}, {literal(full)})" if _is_known_otherwise(full) else code
        if full == "numpy.dtype":
            yield _NUMPY_DTYPES


def _bind(bound: dict[str, str], module: str, name: str) -> str:
    """Return the variable for what is imported: its name, unless that is taken or means something else."""
    wanted, number = name, 2
    while not is_free(wanted) or bound.setdefault(wanted, module) != module:
        wanted, number = f"{name}_{number}", number + 1
    return wanted


def _is_known_otherwise(name: str) -> bool:
    """Return whether what a name stands for does not know itself by it, so that torch must be told."""
    # NumPy 2 says `numpy._core`, Python 3.13 `pathlib._local`.
    return name.startswith(("numpy.core.", "pathlib.")) or name == "builtins.Ellipsis"


def _here(module: str) -> str:
    """Return the module that has the same class in every Python."""
    return "pathlib" if module == "pathlib._local" else module
