"""The steps that styles share: calling `torch.load`, and giving a model its weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from inspector.model.obstacles import is_gzipped
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict
from inspector.snippet.literals import literal, lookup, split_global
from inspector.snippet.models import Model
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, format_code
from inspector.target.default_load import code_weights_only, judge_for

_RUNS_CODE = "# Loading this file can run code that is in it: do so only if you trust its source."
_UNSURE = "# Programs read different things from this file: leave weights_only at True."
_DANGEROUS = (
    "# torch rightly refuses this file: it asks for names that can do anything to your",
    "# computer. Only if you made it yourself, set weights_only to False.",
)
# The class of a dtype is made by NumPy while loading, so no file names it.
_NUMPY_DTYPES = '*{type(numpy.dtype(code)) for code in numpy.typecodes["All"]}'
_STRIP = "consume_prefix_in_state_dict_if_present"
_MOST_PACKAGES = 3
_MOST_CHARS = 18
YOURS = "# The model is yours, built as it was when this file was saved."


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a file may be loaded.

    Attributes:
        weights_only: The option of `torch.load`.
        comments: What the reader must know before that.
    """

    weights_only: bool
    comments: tuple[str, ...]


def write_load(
    script: Script, request: Request, map_location: str | Bracketed | None, *, root: str | None = None
) -> None:
    """Write the call of `torch.load`, and before it what torch must be told to allow.

    Args:
        script: The snippet.
        request: What is written.
        map_location: The argument of that name, if any.
        root: The variable for what is loaded, if not the usual one.
    """
    trust = write_allowed(script, request)
    script.paragraph(*load_lines(script, request, trust, map_location, root=root))


def load_lines(
    script: Script,
    request: Request,
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
    call = Bracketed(
        head=f"{root or request.root} = torch.load(",
        items=("file" if is_gzip else path, *options, f"weights_only={trust.weights_only}"),
        tail=")",
    )
    comments = [indent + comment for comment in trust.comments]
    if not is_gzip:
        return [*comments, *format_code(call, indent)]
    script.need("import gzip")
    return [*comments, f"{indent}with gzip.open({path}) as file:", *format_code(call, f"{indent}    ")]


def write_allowed(script: Script, request: Request) -> Trust:
    """Write what torch must be told to allow, and return how the file may be loaded then."""
    safety = judge_for(request.checkpoint, request.target)
    allowed = [split for split in map(split_global, safety.to_allow) if split is not None]
    if allowed:
        script.uses_torch = True
        for module, name in allowed:
            if not module.startswith("torch.nn."):  # comes with torch itself
                script.need(f"import {_here(f'{module}.{name}').rpartition('.')[0]}")
        script.paragraph(*_condition(safety), *format_code(_allow(allowed)))
    comments = {"dangerous": _DANGEROUS, "runs-code": (_RUNS_CODE,)}.get(safety.verdict, ())
    if safety.is_unsure:
        comments = (_UNSURE,)
    return Trust(weights_only=code_weights_only(safety), comments=comments)


def write_models(script: Script, request: Request, *, placed: bool, comment: str) -> None:
    """Write how the models get their weights, and that they go to their device.

    Args:
        script: The snippet.
        request: What is written.
        placed: Whether `torch.load` has put what it loads in its place already.
        comment: What to say of the models that the reader has to bring.
    """
    lines: list[str] = []
    for name, model in request.models:
        move = request.placement.move(name, model.devices)
        filled = fill_model(script, request, name, model)
        if model.is_module:
            lines += filled if placed else [*filled, *move]
        else:
            lines += [*move, *filled]
    brought = any(not model.is_module for _, model in request.models)
    script.paragraph(*((comment,) if brought else ()), *lines)


def fill_model(script: Script, request: Request, name: str, model: Model) -> list[str]:
    """Hand a model its weights, or take a whole module out of the checkpoint."""
    weights = lookup(request.root, model.keys)
    if model.is_module:
        return [] if weights == name else [f"{name} = {weights}"]
    lines = []
    if (model.is_mixed or model.prefixes) and weights != "state_dict":
        lines.append(f"state_dict = {weights}")
        weights = "state_dict"
    if model.is_mixed:
        lines.append("state_dict = {k: v for k, v in state_dict.items() if torch.is_tensor(v)}")
    lines += [strip_prefix(script, prefix) for prefix in model.prefixes]
    return [*lines, f"{name}.load_state_dict({weights})"]


def strip_prefix(script: Script, prefix: str) -> str:
    """Take a prefix off the names in `state_dict`."""
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


def _allow(names: Sequence[tuple[str, str]]) -> Bracketed:
    items = []
    for name in (f"{module}.{name}" for module, name in names):
        items.append(f"({_here(name)}, {literal(name)})" if _is_known_otherwise(name) else name)
        if name == "numpy.dtype":
            items.append(_NUMPY_DTYPES)
    listed = Bracketed(head="[", items=tuple(items), tail="]")
    return Bracketed(head="torch.serialization.add_safe_globals(", items=(listed,), tail=")")


def _is_known_otherwise(name: str) -> bool:
    """Return whether what a name stands for does not know itself by it, so that torch must be told."""
    # NumPy 2 says `numpy._core`, Python 3.13 `pathlib._local`.
    return name.startswith(("numpy.core.", "pathlib.")) or name == "builtins.Ellipsis"


def _here(name: str) -> str:
    """Return what reaches the same class in every Python."""
    return name.replace("pathlib._local.", "pathlib.")
