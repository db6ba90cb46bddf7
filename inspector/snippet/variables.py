"""Variables for what a file holds, named after its keys: `netG` for what stands under `netG_state_dict`.

A key enters only by its letters, digits and underscores, and never as a name that means something in Python,
in torch or in the code around it; so no key can change what the code does.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from keyword import iskeyword, issoftkeyword

from inspector.model.checkpoint import Key

_MOST_CHARS = 40
_ODD = re.compile(r"[^0-9A-Za-z]+")
_TAIL = re.compile(r"(^|_)(state_?dicts?|states?|sd|weights?|params|parameters)$", re.IGNORECASE)
_HEAD = re.compile(r"^state_?dict_?", re.IGNORECASE)
# These say what kind of thing it is, or nothing: the key above says more, and else the kind itself.
_GENERIC = frozenset(
    {"model", "models", "module", "modules", "network", "networks", "nets", "checkpoint", "ckpt", "best"}
)
_PLURALS = {
    "optimizers": "optimizer",
    "optims": "optim",
    "schedulers": "scheduler",
    "lr_schedulers": "lr_scheduler",
    "scalers": "scaler",
}
# By kind, what a name must have in it for people to see what it stands for.
_SIGNS = {
    "optimizer": ("opt",),
    "scheduler": ("sched", "lr", "warmup", "plateau"),
    "scaler": ("scal", "amp"),
}
# Variables and imports of the code itself.
_WORDS = """
    torch numpy np dist nn F dcp device checkpoint state_dict states data dataset loader batch saved tensor
    file files entries local_rank index options epoch step accelerator engine folder base tokenizer
    inputs outputs hyper_parameters MyModel program script k v part move to_cpu names groups group shared kind
    numbers rest deepspeed transformers accelerate peft safetensors lightning self cls
"""
_OWN = frozenset(_WORDS.split())


def is_free(name: str) -> bool:
    """Return whether a name means nothing in Python, in its library or in the code of the styles."""
    return not (
        iskeyword(name)
        or issoftkeyword(name)
        or name in _OWN
        or name in sys.stdlib_module_names
        or hasattr(builtins, name)
    )


class Names:
    """The variables of one snippet: each is given once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Begin with names that are taken already, such as those of imports."""
        self._taken = set(taken)

    def give(self, kind: str, keys: tuple[Key, ...]) -> str:
        """Return a new variable for a thing of a kind: `model`, `optimizer`, `scheduler` or `scaler`."""
        words = list(_words(kind, keys))
        wanted = [_signed(kind, words[-1])] if words else [kind]
        if len(words) > 1 and words[-2] not in words[-1]:
            wanted.append(f"{words[-2]}_{wanted[0]}"[:_MOST_CHARS])
        name = next((name for name in wanted if name not in self._taken and is_free(name)), wanted[0])
        name = name if is_free(name) else f"{name}_{kind}"
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}_{number}", number + 1
        self._taken.add(found)
        return found


def _words(kind: str, keys: tuple[Key, ...]) -> Iterator[str]:
    """Yield what the keys say, from the outermost to the innermost."""
    for key in keys:
        name = _clean(key) if isinstance(key, str) else ""
        name = _PLURALS.get(name.lower(), name)
        if name and name.lower() not in _GENERIC and name.lower() != kind:
            yield name if name[0].isalpha() else f"{kind}_{name}"


def _clean(key: str) -> str:
    """Return what of a key can be part of a name: no underscore at its ends, which mean something."""
    name = _ODD.sub("_", key[: 4 * _MOST_CHARS]).strip("_")
    return _TAIL.sub("", _HEAD.sub("", name)).strip("_")[:_MOST_CHARS].strip("_")


def _signed(kind: str, name: str) -> str:
    signs = _SIGNS.get(kind, ())
    return name if not signs or any(sign in name.lower() for sign in signs) else f"{kind}_{name}"
