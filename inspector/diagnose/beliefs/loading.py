"""Beliefs about loading: which program may read a file, what that takes, and what the call returns."""

from __future__ import annotations

from pathlib import PurePath

from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.diagnose.beliefs.belief import Answer, Row
from inspector.diagnose.beliefs.facts import Facts, and_joined, by_dtype, shown, tensors
from inspector.model.roles.roles import WRAPPER_PREFIXES
from inspector.pickles.python2 import present_name
from inspector.units import format_count, format_nbytes

_SINCE_PYTHON = {4: "3.4", 5: "3.8"}
_HALVES = frozenset({"float16", "bfloat16"})
_POSIX = frozenset({"pathlib.PosixPath", "pathlib._local.PosixPath"})
_WINDOWS = frozenset({"pathlib.WindowsPath", "pathlib._local.WindowsPath"})
_SINCE_TORCH = {"zip": "Every torch since 1.6 reads it", "legacy": "Every torch reads it"}
_NEW_DTYPES = ("float8", "float4", "uint16", "uint32", "uint64")


def _same_torch(facts: Facts) -> Answer:
    row = format_of(facts.checkpoint.format)
    read = _SINCE_TORCH.get(row.name, f"It is {row.what}")
    why = (
        "The container has not changed since torch 1.6, and older ones are still read. What did change is "
        "the call: since 2.6 weights_only=True is the default."
    )
    new = [dtype for dtype, _, _ in by_dtype(facts.checkpoint.tensors) if dtype.startswith(_NEW_DTYPES)]
    if new:
        here = f"{read}, but {and_joined([shown(name) for name in new])} came with later versions."
    elif facts.has_module:
        here = f"{read}, but it holds modules, and their classes must still fit."
    elif facts.load.way in {"names", "full", "never"}:
        here = f"{read}, but since 2.6 the default call refuses it: weights_only=True does not take it."
    else:
        return Answer("false", f"{read}, whatever torch wrote it.", why, facts.loading())
    return Answer("depends", here, why)


def _same_python(facts: Facts) -> Answer:
    if facts.checkpoint.safety is None:
        return Answer("false", "There is no pickle in this file, so Python has no part in it.", _PYTHON_WHY)
    protocol = facts.checkpoint.needs.protocol
    since = _SINCE_PYTHON.get(protocol)
    readers = "every Python 3 reads it" if since is None else f"Python {since} and newer read it"
    here = f"Its pickle has protocol {protocol}: {readers}."
    if facts.has_module:
        return Answer("depends", f"{here} The classes of its modules must be importable there.", _PYTHON_WHY)
    return Answer("false", here, _PYTHON_WHY)


_PYTHON_WHY = (
    "Pickles of numbers, texts and tensors are the same in every Python that knows their protocol, and "
    "torch.save writes protocol 2. Only classes and functions have to be found again."
)


def _same_system(facts: Facts) -> Answer:
    names = {present_name(use.name) for use in facts.checkpoint.globals}
    why = "Tensors are stored with their byte order, and names of devices mean the same everywhere."
    for system, paths in (("Windows", names & _POSIX), ("Linux and macOS", names & _WINDOWS)):
        if paths:
            here = f"It holds a {min(paths)}, which Python cannot create on {system}: save str(path) instead."
            return Answer("depends", here, why)
    if any(note.kind is NoteKind.MACHINE_CODE for note in facts.checkpoint.notes):
        here = "It holds machine code, which was compiled for one system, processor and GPU."
        return Answer("true", here, "Tensors and graphs go anywhere; what a compiler made of them does not.")
    return Answer("false", "Nothing in it belongs to one operating system.", why, facts.loading())


def _weights_only(facts: Facts) -> Answer:
    why = (
        "weights_only=False runs whatever the file asks for. Classes that only hold data can be allowed one "
        "by one instead, which runs nothing else."
    )
    safety = facts.load.safety
    archive = safety.archive
    if archive is not None:
        here = f"{archive.loader} loads it, without such an argument; torch.load {archive.otherwise}."
        return Answer("false", here, why, facts.loading())
    if not facts.is_for_torch:
        what = format_of(facts.checkpoint.format).what
        return Answer("false", f"torch.load does not read this file: it is {what}.", why, facts.loading())
    if safety.verdict == "weights-only":
        here = "It holds nothing that weights_only=True refuses."
        return Answer("false", here, why, facts.loading())
    reasons = " ".join(safety.reasons)
    if safety.verdict == "needs-allow-list":
        return Answer("false", reasons, why, facts.loading())
    if safety.may_harm:
        return Answer("false", f"Not for this file, ever. {reasons}", why)
    return Answer("true", f"{reasons} Do so only if you trust its source.", why)


def _doubles_memory(facts: Facts) -> Answer:
    why = (
        "torch.load reads one storage after the other, so it holds the file once. It is twice when a model "
        "already fills the GPU and the state dict lands there too: load to the CPU, copy, then drop it."
    )
    here = (
        f"It puts its tensors on {facts.places}, beside the model that may be there."
        if facts.accelerators
        else f"All of its {format_nbytes(facts.nbytes)} land on the CPU; the GPU gets what the model has."
    )
    return Answer("depends", here, why, facts.loading())


def _strict(facts: Facts) -> Answer:
    names = facts.names
    why = (
        "strict=False skips what does not match and leaves it as it was initialized; wrong shapes still "
        "raise. Print what it returns: the names that were missing, and those that were not used."
    )
    for prefix in WRAPPER_PREFIXES:
        wrapped = sum(name.startswith(prefix) for name in names)
        if wrapped:
            count = f"{wrapped:,} of its {len(names):,} names begin with `{prefix}`"
            here = f"{count}: a plain model would take none of them, and nobody would be told."
            return Answer("false", here, why, _WITHOUT.format(prefix=prefix))
    here = f"It has {format_count(len(names), 'name')}, first {shown(names[0])}." if names else _NO_NAMES
    return Answer("false", here, why, "print(model.load_state_dict(state_dict, strict=False))")


_NO_NAMES = "It holds no state dict."
_WITHOUT = 'state_dict = {{name.removeprefix("{prefix}"): value for name, value in state_dict.items()}}'


def _extension(facts: Facts) -> Answer:
    suffix = PurePath(facts.checkpoint.path).suffix
    named = f"ends with {shown(suffix)}" if suffix else "has no extension"
    here = f"This one {named} and is {format_of(facts.checkpoint.format).what}."
    why = (
        "torch.save writes the same bytes whatever the name, and torch.load looks at the content. A .bin or "
        ".pt from elsewhere can still be something else: what is inside decides."
    )
    return Answer("false", here, why)


def _cpu_changes(facts: Facts) -> Answer:
    rows = by_dtype(facts.checkpoint.tensors)
    found = and_joined([format_count(count, f"{shown(dtype)} tensor") for dtype, count, _ in rows])
    here = f"The same bit for bit: {found}." if found else "It holds no tensor."
    why = (
        "map_location changes the device and nothing else: no dtype, no rounding. Results differ in the last "
        "digits because the CPU adds in another order."
    )
    return Answer("false", here, why, facts.loading())


def _cpu_slower(facts: Facts) -> Answer:
    here = f"{format_nbytes(facts.nbytes)} are read from disk either way"
    on_gpu = sum(total.nbytes for total in facts.accelerators)
    here += f"; {format_nbytes(on_gpu)} of it would be copied to the GPU then." if on_gpu else "."
    why = (
        "torch.load always reads to the CPU first and copies from there. Where the model runs is decided by "
        ".to(), not by how its weights were loaded."
    )
    return Answer("false", here, why, facts.loading())


def _half_on_cpu(facts: Facts) -> Answer:
    rows = [row for row in facts.checkpoint.tensors if row.dtype in _HALVES]
    here = (
        f"{tensors(len(rows))} ({format_nbytes(sum(row.nbytes for row in rows))}) are in half precision."
        if rows
        else "Nothing in it is in half precision."
    )
    why = (
        "Half precision loads everywhere. Computing with it on a CPU is slow, and older versions lack many "
        "operations for it; load_state_dict into a float32 model converts it, and so does .float()."
    )
    return Answer("false", here, why, "model.float()" if rows else "")


def _returns_model(facts: Facts) -> Answer:
    name = facts.checkpoint.module_class
    if name is not None:
        why = "That is so only where the model itself was saved, not its state dict."
        return Answer("true", f"It does here: the file is a whole {shown(name)}.", why)
    kind = _KINDS.get(facts.checkpoint.root, "a value")
    why = (
        "torch.load returns what was saved. A dictionary has no eval() and cannot be called ('dict' object "
        "has no attribute 'eval'): make the model from its class and load the weights into it."
    )
    if facts.has_module:
        return Answer("depends", f"It returns {kind}; there are whole modules in it.", why)
    here = f"It returns {kind} with {tensors(len(facts.checkpoint.tensors))} in it."
    return Answer("false", here, why, _FROM_CLASS if facts.names else "")


_FROM_CLASS = "model = MyModel()\nmodel.load_state_dict(state_dict)"
_KINDS = {"mapping": "a dictionary", "sequence": "a list", "tensor": "a tensor", "object": "an object"}


def _resume(facts: Facts) -> Answer:
    names = {
        "optimizer": bool(facts.checkpoint.optimizers),
        "scheduler": any(True for _ in facts.values_at("last_epoch")),
        "random states": bool(facts.roles.get("rng")),
        "epoch": any(True for _ in facts.values_at("epoch")),
    }
    there = [name for name, is_there in names.items() if is_there]
    missing = [name for name, is_there in names.items() if not is_there]
    here = f"It holds {and_joined(there)}" if there else "It holds nothing else to resume with"
    here += f"; no {and_joined(missing, 'or')} was found." if missing else "."
    why = (
        "Without its state Adam starts anew: the loss jumps, and the warm-up counts from zero. For inference "
        "and fine-tuning the weights are enough."
    )
    return Answer("depends", here, why)


LOADING_BELIEFS = (
    Row(id="same-torch-version", claim="It needs the torch version that saved it.", answer=_same_torch),
    Row(id="same-python-version", claim="It needs the Python version that saved it.", answer=_same_python),
    Row(id="same-system", claim="Saved on Linux, it does not load on Windows or a Mac.", answer=_same_system),
    Row(id="weights-only-false-needed", claim="weights_only=False is needed.", answer=_weights_only),
    Row(
        id="loading-doubles-memory",
        claim="Loading to the GPU takes twice the memory.",
        answer=_doubles_memory,
    ),
    Row(id="strict-false-fixes", claim="strict=False fixes missing keys.", answer=_strict),
    Row(
        id="extension-matters", claim="A .pth is something else than a .pt, .ckpt or .bin.", answer=_extension
    ),
    Row(id="cpu-changes-weights", claim="map_location='cpu' changes the weights.", answer=_cpu_changes),
    Row(id="cpu-slower", claim="map_location='cpu' makes it slow.", answer=_cpu_slower),
    Row(id="half-not-on-cpu", claim="A half-precision file cannot be used on a CPU.", answer=_half_on_cpu),
    Row(id="load-returns-model", claim="torch.load returns the model.", answer=_returns_model),
    Row(id="weights-suffice", claim="The weights are enough to go on training.", answer=_resume),
)
