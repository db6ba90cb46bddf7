"""Rules about what loading imports and runs, and what must be importable for it."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.case import Case, Rule
from inspector.diagnose.listing import listed
from inspector.model.findings import Finding, Fix, finding
from inspector.model.obstacles import lost_directory
from inspector.model.roles.devices import is_accelerator
from inspector.pickles.values import present_name
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import IMPORTS, imports_for, titled, verdict_words

_MOST_NAMED = 8
_NESTED = "torch.storage._load_from_bytes"
# They come with torch and Python, so they can be imported wherever torch can.
_ALWAYS_THERE = frozenset({"torch", "collections", "builtins", "_codecs", "copyreg", "functools"})


def _whole_module(case: Case) -> Iterator[Finding]:
    """Report that a whole module needs its classes."""
    name = case.checkpoint.module_class
    if name is None:
        return
    modules = modules_to_import(case) or [name.rpartition(".")[0]]
    own = "" if "__main__" not in modules else (
        " __main__ is the script that saved it: the script that loads it must define or import the class."
    )  # fmt: skip
    yield finding(
        "whole-module",
        "warning",
        f"A whole pickled module, {name}",
        "The model object itself was saved (torch.save(model)), not only its weights "
        f"(torch.save(model.state_dict())). Loading it needs {_argument(case.safety)}, and its classes must "
        f"be importable under the same names, in a compatible version: {', '.join(modules)}.{own} A state "
        "dict needs neither.",
        [],
        fix=Fix(style="module"),
    )


def _argument(safety: SafetyVerdict) -> str:
    """Return what `torch.load` has to be told, as the loading code does."""
    if safety.verdict == "dangerous":
        return "weights_only=False, with which it can run commands"
    if safety.verdict == "needs-allow-list":
        return "those classes allowed"
    return "care, since programs read different things from it" if safety.is_unsure else "weights_only=False"


def modules_to_import(case: Case) -> list[str]:
    """List the modules that a file's classes and functions come from, but for torch's and Python's own."""
    names = [present_name(use.name) for use in case.checkpoint.globals]
    modules = dict.fromkeys(
        name.rpartition(".")[0] for name in names if name.partition(".")[0] not in _ALWAYS_THERE
    )
    found = [module for module in modules if module]
    more = [f"and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return found[:_MOST_NAMED] + more


def _safety(case: Case) -> Iterator[Finding]:
    """Return what loading would import."""
    safety, reasons = case.safety, " ".join(case.safety.reasons)
    title, code = titled(verdict_words(safety)), Fix(style="plain")
    if safety.is_unsure and lost_directory(case.checkpoint):  # that is damage first of all
        reasons = "Without its end, other programs may make something else of it than what is shown here."
    if safety.verdict == "dangerous":
        yield finding("dangerous-global", "error", title, reasons, [])
    elif safety.verdict == "needs-allow-list":
        detail = f"{reasons} {allowing(safety)}"
        yield finding("needs-allow-list", "warning", title, detail, [], fix=code)
    elif safety.verdict != "weights-only":
        fix = None if safety.may_harm or safety.is_unsure else code
        yield finding("runs-code", "error" if safety.may_harm else "warning", title, reasons, [], fix=fix)


def allowing(safety: SafetyVerdict) -> str:
    """Return on what allowing the names of a file depends."""
    modules = imports_for(safety.to_allow)
    if modules and all(name in IMPORTS for name in safety.to_allow):
        return f"torch allows them by itself once you import {' and '.join(modules)} before torch.load."
    if not safety.packages:
        return "They are classes that only hold data: allow them, as the loading code does."
    named = listed(safety.packages)
    return (
        f"They are classes, and the file only creates objects of them: allow them if {named} is your own "
        "code, or code that you trust."
    )


def _nested(case: Case) -> Iterator[Finding]:
    """Report pickles within the pickle: their tensors are not shown, and no map_location reaches them."""
    if _NESTED in case.checkpoint.needs.read_within:
        yield from _within(case)
        return
    count = sum(use.count for use in case.checkpoint.globals if present_name(use.name) == _NESTED)
    if count:
        yield finding(
            "nested-pickle",
            "warning",
            "Tensors are hidden in pickles within the pickle",
            "Some tensors were pickled without torch.save (by pickle itself, as joblib, Ray and "
            "multiprocessing do) and are stored as the bytes of another checkpoint. torch.load opens that "
            "without map_location, so they go to the devices they were saved on, and weights_only=True "
            "refuses them. They are not listed here. Load the file where it was made, and save it with "
            "torch.save.",
            [],
        )


def _within(case: Case) -> Iterator[Finding]:
    """Report tensors whose devices no map_location reaches, though they are listed."""
    moved = [row for row in case.checkpoint.tensors if row.storage is not None and is_accelerator(row.device)]
    if moved:
        yield finding(
            "nested-pickle",
            "warning",
            "No map_location reaches the tensors of this pickle",
            f"{case.safety.loader} has torch.storage._load_from_bytes restore each tensor on the device that "
            "it was saved on, and neither takes a map_location. The loading code replaces that function; a "
            "remapped copy needs no such code.",
            [row.path for row in moved],
            fix=Fix(style="plain"),
        )


def _embedded(case: Case) -> Iterator[Finding]:
    """Report bytes that torch.save wrote: a file within the file, which torch.load leaves closed."""
    if case.checkpoint.embedded:
        yield finding(
            "nested-checkpoint",
            "note",
            "Bytes in this file are a checkpoint of their own",
            "torch.save wrote them into a buffer. torch.load does not open them: code does that with a "
            "torch.load of its own, torch.load(io.BytesIO(...)), and only the map_location and weights_only "
            "of that call count. Their tensors are not listed here; remap --hidden-devices changes their "
            "devices in a copy. Write the bytes to a file to look into them.",
            list(case.checkpoint.embedded),
        )


CODE_RULES: tuple[Rule, ...] = (_whole_module, _safety, _nested, _embedded)
