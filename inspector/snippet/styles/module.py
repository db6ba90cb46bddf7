"""Styles for a whole pickled module: `module` loads it as it is, `module-weights` takes its weights only.

Such a file holds the names of the model's classes and the values of its attributes, but no code: the classes
are imported while it is loaded, from wherever Python finds them then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from inspector.model.checkpoint import Checkpoint
from inspector.pickles.values import package_of
from inspector.safety.names import standard_modules
from inspector.snippet.literals import literal, lookup, split_global
from inspector.snippet.loading import fill_model, load_lines, write_allowed, write_load, write_models
from inspector.snippet.models import MOST_OF_A_KIND
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, format_code

_MAIN = "__main__"
# They are there wherever torch is, so they need not be mentioned.
_WITH_TORCH = frozenset({"torch", "numpy"})
_IMPORTABLE = "# The file contains no code: these modules must be importable here, as where it was saved."
_DEFINED = "# The file needs classes from the script that saved it: define them before this line."
_OF_TODAY = "# The model is yours, built by your current code: only its weights come from the file."


def render(request: Request) -> str:
    """Write the code that loads a module with its class, ready to be used."""
    script, placement = Script(), request.placement
    devices = () if placement.as_one else placement.places
    script.paragraph(
        *(placement.choice_for(devices, moved=False) or placement.choice_for(request.model_devices))
    )
    modules = _modules(request.checkpoint)
    script.paragraph(*((_DEFINED,) if _MAIN in modules else ()))
    trust = write_allowed(script, request)
    if not trust.weights_only:  # what is allowed is imported already
        script.paragraph(*_imports(script, modules))
    script.paragraph(*load_lines(script, request, trust, placement.map_location()))
    write_models(
        script,
        request,
        comment="# The model without a class in the file is yours, built as it was when it was saved.",
    )
    script.paragraph(*(f"{name}.eval()" for name, model in request.models if model.is_module))
    return script.text()


def render_weights(request: Request) -> str:
    """Write the code that takes the weights out of a module, for a model that the reader has made."""
    script, placement = Script(), request.placement
    script.paragraph(*placement.choice_for(request.model_devices))
    root = "saved" if request.root == "model" else request.root
    write_load(script, request, placement.for_copying(), root=root)
    lines = [_OF_TODAY]
    for name, model in (*request.models, *request.averages):
        lines += placement.move(name, model.devices)
        if model.is_module:
            lines.append(f"{name}.load_state_dict({lookup(root, model.keys)}.state_dict())")
        else:
            lines += fill_model(script, request, name, model)
    script.paragraph(*lines)
    return script.text()


def _modules(checkpoint: Checkpoint) -> tuple[str, ...]:
    found = [split_global(use.name) for use in checkpoint.globals]
    return tuple(dict.fromkeys(split[0] for split in found if split is not None))


def _imports(script: Script, modules: tuple[str, ...]) -> Iterator[str]:
    """Import what the classes need first: the error names the module then, not the depth of a pickle."""
    names = tuple(islice((literal(name) for name in modules if _has_to_be_told(name)), MOST_OF_A_KIND))
    if names:
        script.need("import importlib")
        yield _IMPORTABLE
        yield from format_code(Bracketed(head="for name in [", items=names, tail="]"), end=":")
        yield "    importlib.import_module(name)"


def _has_to_be_told(module: str) -> bool:
    top = package_of(module)
    return top not in _WITH_TORCH and top not in standard_modules() and top != _MAIN
