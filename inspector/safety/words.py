"""How safe loading a file is, in the same words everywhere: a level, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.safety.names import judge_global, known_classes
from inspector.safety.verdict import FileVerdict, SafetyVerdict
from inspector.units import cut_text, escape_text

# Names that torch puts on its list by itself, as soon as a module of its own is imported.
#
# The restricted unpickler imports nothing. Since 2.6 it says for the best known of them that the module
# must be imported (`torch/_weights_only_unpickler.py`). The modules call `add_safe_globals`, see
# `torch/distributed/tensor/__init__.py` and `torch/_dynamo/__init__.py`. What `import torch` imports is on
# the list of `allowlist.json`, `torch.nested` among it.

_TENSOR, _DYNAMO = "torch.distributed.tensor", "torch._dynamo"
_TENSOR_NAMES = (
    "torch.distributed.device_mesh.DeviceMesh",
    f"{_TENSOR}.DTensor",
    f"{_TENSOR}._dtensor_spec.DTensorSpec",
    f"{_TENSOR}._dtensor_spec.TensorMeta",
    f"{_TENSOR}.placement_types.Partial",
    f"{_TENSOR}.placement_types.Replicate",
    f"{_TENSOR}.placement_types.Shard",
)
_UNTOLD = (f"{_TENSOR}._dtensor_spec.ShardOrderEntry", f"{_TENSOR}.placement_types._StridedShard")
_DYNAMO_NAME = "torch._dynamo.decorators._DimRange"

IMPORTS = {**dict.fromkeys((*_TENSOR_NAMES, *_UNTOLD), _TENSOR), _DYNAMO_NAME: _DYNAMO}
"""The module that puts a name on the list, by the name."""

IMPORT_ERRORS = {
    **dict.fromkeys(_TENSOR_NAMES, "``torch.distributed.tensor`` must be imported to load DTensors"),
    _DYNAMO_NAME: (
        "``torch.nested`` and ``torch._dynamo`` must be imported to load nested jagged tensors (NJTs)"
    ),
}
"""What torch says to a name whose module was not imported; to the others it says what it says to any name."""


def imports_for(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that put names on torch's list, each once."""
    return tuple(dict.fromkeys(IMPORTS[name] for name in names if name in IMPORTS))


LEVELS: dict[FileVerdict, str] = {
    "weights-only": "safe",
    "needs-allow-list": "needs your trust",
    "runs-code": "needs your trust",
    "unknown": "unknown",
    "dangerous": "dangerous",
}
"""How safe loading a file is, in the words that are used everywhere."""

SAFETY: dict[FileVerdict, str] = {
    "weights-only": "weights only",
    "needs-allow-list": "it makes objects of classes that are not on torch's list",
    "runs-code": "torch's restricted unpickler refuses it, and without that it can run code",
    "unknown": "not all that loading it would run could be read",
    "dangerous": "loading it can run commands",
}
"""Why, where no more is known than the verdict."""

_NO_PICKLE = "it holds no pickle"
# A loader that restricts nothing is as safe as what the pickles name.
_UNRESTRICTED: dict[FileVerdict, str] = {
    "weights-only": "its pickles name nothing but tensors and plain data",
    "runs-code": "its loader runs whatever the pickles name, and not all of that is known",
}
_UNSURE = "programs read different things from this file"
# What comes with torch and Python is nobody's own code.
_COMMON = frozenset({"torch", "numpy", "builtins", "collections", "_codecs", "copyreg", "functools"})
_MOST_NAMED = 3
_MOST_CHARS = 80


def shouted(said: str) -> str:
    """Return a verdict with what it comes to in capitals: `SAFE: weights only`."""
    level, colon, why = said.partition(":")
    return f"{level.upper()}{colon}{why}"


def titled(said: str) -> str:
    """Return a verdict as a title: `Safe: weights only`."""
    return said[:1].upper() + said[1:]


def verdict_words(safety: SafetyVerdict) -> str:
    """Return how safe loading a file is, and why: which code is needed, or which commands are run."""
    return f"{LEVELS[safety.verdict]}: {_why(safety)}"


def words_of(verdict: FileVerdict) -> str:
    """Return the same of a file of which only the verdict is known."""
    return f"{LEVELS[verdict]}: {SAFETY[verdict]}"


def _why(safety: SafetyVerdict) -> str:
    verdict = safety.verdict
    if verdict == "dangerous":
        named = _dangers(safety)
        return f"{safety.danger}: {few(named, _MOST_NAMED)}" if named else safety.danger
    if verdict == "unknown":
        return SAFETY[verdict]
    if safety.archive is not None:
        return safety.archive.words
    if safety.loader and verdict != "weights-only":
        own = _own(safety.answer.names, safety)
        which = f": {few(own, _MOST_NAMED)}" if own else ", which is only tensors, arrays and plain data"
        return f"{safety.loader} runs whatever the file names{which}"
    if safety.is_unrestricted and safety.has_pickles:
        return _UNRESTRICTED[verdict]
    return _why_restricted(safety)


def _why_restricted(safety: SafetyVerdict) -> str:
    """Return why torch's restricted unpickler takes a file, or which names it stops at."""
    if safety.weights_only:
        return SAFETY["weights-only"] if safety.has_pickles else _NO_PICKLE
    if safety.is_unsure:
        return _UNSURE
    asked = [name for name in safety.answer.names if name not in IMPORTS] or safety.answer.names
    names = _own(asked, safety) or [escape_text(name) for name in asked]
    if not names:
        return SAFETY[safety.verdict]
    which = "must be importable" if safety.packages or safety.verdict == "runs-code" else "only hold data"
    if any(name.startswith("__main__.") for name in names):
        which = "your script must define"
    return f"it uses {few(names, _MOST_NAMED)}, which {which}"


def _dangers(safety: SafetyVerdict) -> list[str]:
    """Return the calls that can do harm, or the names where nothing is called."""
    calls = [cut_text(row.text, _MOST_CHARS) for row in safety.calls if row.verdict == "dangerous"]
    return calls or [escape_text(name) for name in safety.answer.names if judge_global(name) == "dangerous"]


def _own(names: Sequence[str], safety: SafetyVerdict) -> list[str]:
    common = {*_COMMON, safety.loader.partition(".")[0]}
    own = [name for name in names if name.partition(".")[0] in safety.packages]
    own = own or [
        name for name in names if name.partition(".")[0] not in common and name not in known_classes()
    ]
    return [escape_text(cut_text(name, _MOST_CHARS)) for name in own]


def few(items: Sequence[str], most: int) -> str:
    """Return the first of many as a list in words: `a, b and 3 more`."""
    shown = [*items] if len(items) <= most + 1 else [*items[:most], f"{len(items) - most:,} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
