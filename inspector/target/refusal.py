"""What `torch.load(weights_only=True)` says when its restricted unpickler stops.

The unpickler is `torch/_weights_only_unpickler.py`; `torch.load` wraps its text (`_get_wo_message` in
`torch/serialization.py`). Whether it stops is judged in `inspector.safety`; `loading` makes a `Refusal` of
that.
"""

from __future__ import annotations

import re

from inspector.records import dataclass
from inspector.safety.imports import IMPORT_ERRORS
from inspector.target.versions import BLOCKED_MODULES, SAFE_GLOBALS, WEIGHTS_ONLY_DEFAULT, Release
from inspector.units import cut_text

_BLOCKED = frozenset({"sys", "os", "posix", "nt"})
_WHAT_HAPPENS = (
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)
UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from "
    f"`False` to `True`. {_WHAT_HAPPENS}"
)
"""What torch 2.6 and later say in every such error."""

_FIRST = (
    "UnpicklingError: Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` "
    "will likely succeed, but it can result in arbitrary code execution.Do it only if you get the file from "
    "a trusted source. WeightsUnpickler error: "
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
    "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)
_REPORT = (
    "Please file an issue with the following so that we can make `weights_only=True` compatible with your "
    "use case: WeightsUnpickler error: "
)
_APART: Release = (2, 9)  # an empty line before the unpickler's own text


_MOST_CHARS = 240
CUT = "[\u2026]"
"""Where a message was shortened."""

# What the restricted unpickler says behind a page of advice.
_REASON = re.compile(
    r"(?:Unsupported (?:global: GLOBAL|class|operand) \S+(?: was not an allowed global by default)?"
    r"|Trying to load unsupported GLOBAL \S+ whose module \S+ is blocked)\.?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why and where the restricted unpickler stops.

    Attributes:
        finding: The id of the finding that explains it: `needs-allow-list`, `runs-code`, `dangerous-global`.
        name: The first name that is not on torch's list, dotted; empty where no name is the reason.
        opcode: The byte of the instruction that it does not know; None where none is the reason.
        error: What is raised in it otherwise, and leaves as it is. With none of these, only the beginning of
            torch's text is known.
        storages_before: How many storages are loaded before it. A device that is missing there stops the
            load earlier.
    """

    finding: str
    name: str = ""
    opcode: int | None = None
    error: str = ""
    storages_before: int = 0


def short_message(message: str) -> str:
    """Return what torch says as one line: its first sentence and the reason, without the advice around."""
    first, dot, rest = message.replace("\n", " ").partition(". ")
    dot = dot.strip()
    reason = _REASON.search(message)
    if reason is not None and reason.end() > len(first):
        rest = message[reason.end() :].strip()
        first, dot = f"{first}. {CUT} {reason[0].strip()}", ""
    return cut_text(first, _MOST_CHARS) + (f"{dot} {CUT}" if rest.strip() else dot)


def behind_message(text: str, message: str) -> str:
    """Return what a text says behind torch's message, which it quotes whole, in short, or not at all."""
    for quoted in (message, short_message(message)):
        text = text.rpartition(quoted)[2]
    return text.lstrip(". ")


def refusal_message(refusal: Refusal, release: Release) -> str:
    """Return torch's text with the exception's name; only its beginning where the reason is neither."""
    if refusal.error:
        return refusal.error
    said = _said(refusal, release)
    if release < SAFE_GLOBALS:
        return f"{_FIRST}{said}"
    if release < WEIGHTS_ONLY_DEFAULT:
        return _wrapped(said, refusal, _WHAT_HAPPENS, release)
    if refusal.name in IMPORT_ERRORS:
        return f"UnpicklingError: Weights only load failed. {IMPORT_ERRORS[refusal.name]}\n {UNSAFE}\n"
    return _wrapped(said, refusal, UNSAFE, release)


def _said(refusal: Refusal, release: Release) -> str:
    """Return the unpickler's own text."""
    if refusal.opcode is not None:
        return f"Unsupported operand {refusal.opcode}"
    name = refusal.name
    if not name:
        return ""
    if release < SAFE_GLOBALS:
        return f"Unsupported class {name}"
    if _is_blocked(name, release):
        module = name.rpartition(".")[0]
        return f"Trying to load unsupported GLOBAL {name} whose module {module} is blocked."
    said = f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
    short = name if release > WEIGHTS_ONLY_DEFAULT else name.rpartition(".")[2]
    if release < WEIGHTS_ONLY_DEFAULT:
        return (
            f"{said}`torch.serialization.add_safe_globals([{short}])` to allowlist this global "
            "if you trust this class/function."
        )
    return (
        f"{said}`torch.serialization.add_safe_globals([{short}])` or the "
        f"`torch.serialization.safe_globals([{short}])` context manager to allowlist this global "
        "if you trust this class/function."
    )


def _is_blocked(name: str, release: Release) -> bool:
    return release >= BLOCKED_MODULES and name.rpartition(".")[0] in _BLOCKED


def _wrapped(said: str, refusal: Refusal, unsafe: str, release: Release) -> str:
    if refusal.name and not _is_blocked(refusal.name, release):
        trust = ""
        if release >= BLOCKED_MODULES:  # bold on a terminal
            trust = ", \033[1mdo those steps only if you trust the source of the checkpoint\033[0m."
        return (
            "UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two "
            f"options{trust} \n\t(1) {unsafe}\n\t(2) Alternatively, to load with `weights_only=True` please "
            f"check the recommended steps in the following error message.\n\tWeightsUnpickler error: "
            f"{said}{_DOCS}"
        )
    begin = f"UnpicklingError: Weights only load failed. {unsafe}\n"
    if release < BLOCKED_MODULES:
        begin += " "
    if not said:
        return begin.rstrip()
    if not _is_blocked(refusal.name, release):
        begin += _REPORT
    gap = "\n\n" if release >= _APART else ""
    return f"{begin}{gap}{said}{_DOCS}"
