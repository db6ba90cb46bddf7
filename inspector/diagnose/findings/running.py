"""Rules about what comes after loading: kernels and dtypes that the target does not have.

What is not certain stays unsaid: a file is not to be doubted that runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.case import Case, Rule
from inspector.diagnose.dtypes import find_lacks
from inspector.diagnose.listing import listed
from inspector.diagnose.packages import Package, packages_of
from inspector.diagnose.quantizing import find_quantizers
from inspector.model.findings import Finding, Fix, finding
from inspector.pickles.values import present_name
from inspector.target.profile import Profile

_PLACES = {"cuda": "NVIDIA GPUs", "rocm": "AMD GPUs", "xpu": "Intel GPUs", "mps": "Apple GPUs", "cpu": "CPUs"}


def _compiled(case: Case) -> Iterator[Finding]:
    """Name the compiled packages that the file's objects come from, and what they do on the target."""
    names = list(dict.fromkeys(present_name(use.name) for use in case.checkpoint.globals))
    for package, used in packages_of(names):
        kind = "" if case.target is None else kind_of(case.target)
        of_it = f"This file asks for {listed(used)}."
        if kind in _PLACES and package.runs_on is not None and kind not in package.runs_on:
            yield _misplaced(package, package.runs_on, of_it, kind)
        elif not package.is_builtin:
            instead = package.instead if package.runs_on is None else ""
            said = _joined(of_it, package.install, instead)
            yield finding("compiled-package", "note", f"The file needs {package.name}", said, [])


def _misplaced(package: Package, runs_on: frozenset[str], of_it: str, kind: str) -> Finding:
    """Explain what becomes of a package where its kernels do not run."""
    places = " and ".join(words for one, words in _PLACES.items() if one in runs_on)
    fails = package.fails.removesuffix(".").format(NAME="CUDA" if kind == "rocm" else kind.upper())
    on_cpu = "cpu" in runs_on
    return finding(
        "compiled-package",
        "note" if on_cpu else "warning",
        f"The file needs {package.name}, which runs on {places} only",
        _joined(
            of_it,
            f"On {_PLACES[kind]} it ends with an error such as: {fails}." if fails else "",
            "Leave the model on the CPU." if on_cpu else "",
            package.instead,
            package.install if on_cpu else "",
        ),
        [],
    )


def _dtypes(case: Case) -> Iterator[Finding]:
    """Find weights in a dtype that the device where they go cannot compute with."""
    for lack in () if case.target is None else find_lacks(case.checkpoint, case.target):
        # A model of one's own may have another dtype than its state dict: load_state_dict casts.
        yield finding(
            "dtype-unsupported",
            "note" if case.checkpoint.module_class is None else "warning",
            f"Tensors in {lack.dtype}: {lack.row.what}",
            _joined(lack.row.fails.format(Name=lack.dtype.capitalize()), lack.row.instead),
            list(lack.paths),
            fix=Fix(option=("map_location", "'cpu'")) if lack.row.refuses and lack.is_off_cpu else None,
        )


def _quantized(case: Case) -> Iterator[Finding]:
    """Find weights that were quantized, by their names: a plain model does not take them."""
    for row, paths in find_quantizers(case.checkpoint):
        yield finding(
            "quantized-weights",
            "note",
            f"Weights quantized by {row.name}",
            f"They are packed as {row.packed}, with their scales beside them. load_state_dict of a model "
            f"that is not quantized stops with missing and unexpected keys. {row.instead}",
            paths,
        )


def kind_of(target: Profile) -> str:
    """Return the type of the device where things go; AMD's, which torch calls `cuda`, is `rocm`."""
    kind = target.destination.partition(":")[0]
    torch = None if target.evidence is None else target.evidence.torch
    is_amd = target.id == "rocm" or (torch is not None and bool(torch.hip))
    return "rocm" if kind == "cuda" and is_amd else kind


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


RUNNING_RULES: tuple[Rule, ...] = (_compiled, _dtypes, _quantized)
