"""One call of `torch.load` as data: its `map_location`, and what its restricted unpickler would say.

As `map_location` torch takes None, a text, a `torch.device`, a dictionary or a function, and stumbles over
anything else only when it restores the first storage. The rules are those of `_get_restore_location`, once in
`torch/serialization.py` for storages and once in `torch/_utils.py` for tensors that name a device themselves.
"""

from __future__ import annotations

import re
from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint, UnusualOpcode
from inspector.model.obstacles import pickle_obstacle
from inspector.pickles.instructions import CODES
from inspector.pickles.values import present_name
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import IMPORT_ERRORS
from inspector.target.restore import Failure
from inspector.target.versions import (
    BLOCKED_MODULES,
    HAS_WEIGHTS_ONLY,
    MATCHES_WHOLE_TAG,
    OWN_DEVICES_MAPPED,
    SAFE_GLOBALS,
    WEIGHTS_ONLY_DEFAULT,
    Release,
)
from inspector.units import cut_text

BAD_MAP = "bad-map-location"
"""The finding for a `map_location` that torch cannot work with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDevice:
    """A `torch.device`, told from the text of the same name because torch does so in dictionaries."""

    text: str


Place = str | TorchDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class TagMap:
    """A dictionary.

    Attributes:
        pairs: Its items in order. Texts are compared exactly: `cuda` is another key than `cuda:0`.
    """

    pairs: tuple[tuple[Place, Place], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of a storage, which is on the CPU, and its location tag.

    Attributes:
        gives: `storage`: it gives the storage back, as `lambda storage, tag: storage` does, which leaves
            everything on the CPU. `nothing`: it gives None, and torch goes by the tag.
    """

    gives: Literal["storage", "nothing"] = "storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongType:
    """Something that is no `map_location` at all."""

    name: str


MapLocation = Place | TagMap | Function | WrongType | None


def type_name(map_location: MapLocation) -> str:
    """Return what Python calls the type of an argument that is no text and no device."""
    if isinstance(map_location, WrongType):
        return map_location.name
    return "dict" if isinstance(map_location, TagMap) else "function"


def goes_to_meta(map_location: MapLocation) -> bool:
    """Return whether torch sees at once that everything goes to the meta device."""
    if isinstance(map_location, TorchDevice):
        return map_location.text.partition(":")[0] == "meta"
    return map_location == "meta"


def tag_for(map_location: MapLocation, tag: str, release: Release) -> str | Failure:
    """Return the tag by which torch restores a storage, or (finding, message) where it stumbles.

    A function that gives the storage back leaves it where it was read to, which is what `cpu` does too.
    """
    if isinstance(map_location, TagMap):
        found = dict(map_location.pairs).get(tag, tag)
        return found if isinstance(found, str) else (BAD_MAP, _no_text("torch.device", release))
    if isinstance(map_location, Function):
        return "cpu" if map_location.gives == "storage" else tag
    if isinstance(map_location, WrongType):
        if map_location.name == "bytes":  # taken for a text at first
            return BAD_MAP, _no_text("bytes", release)
        return BAD_MAP, f"TypeError: '{map_location.name}' object is not callable"
    return tag if map_location is None else text_of(map_location)


def device_for(
    map_location: MapLocation, device: str, release: Release, *, is_wrapper: bool
) -> str | Failure:
    """Return the device of a tensor that names its own, or (finding, message) where torch stumbles.

    Wrappers name a `torch.device`, tensors that are sent name a text, and a dictionary is asked for just
    that: the key `"cuda:0"` does not reach a wrapper.
    """
    if map_location is None or release < OWN_DEVICES_MAPPED:
        return device
    if isinstance(map_location, TagMap):
        key = TorchDevice(text=device) if is_wrapper else device
        return text_of(dict(map_location.pairs).get(key, key))
    if isinstance(map_location, Function):
        return BAD_MAP, (
            "RuntimeError: Callable map_location not supported with _rebuild_wrapper_subclass "
            "or _rebuild_device_tensor_from_numpy"
        )
    if isinstance(map_location, WrongType):
        return BAD_MAP, f"AssertionError: expected callable map_location, got {map_location.name}"
    return text_of(map_location)


def text_of(place: Place) -> str:
    """Return the text of a device."""
    return place if isinstance(place, str) else place.text


def _no_text(kind: str, release: Release) -> str:
    """Return what Python says where torch takes something else for a str; the last text since Python 3.11."""
    if kind == "bytes":
        if release >= MATCHES_WHOLE_TAG:
            return "TypeError: cannot use a string pattern on a bytes-like object"
        return "TypeError: startswith first arg must be bytes or a tuple of bytes, not str"
    if release >= MATCHES_WHOLE_TAG:
        return f"TypeError: expected string or bytes-like object, got '{kind}'"
    return f"AttributeError: '{kind}' object has no attribute 'startswith'"


# ------------------------------------------------------------------------------------------------------------
# What `torch.load(weights_only=True)` says when its restricted unpickler stops.
#
# The unpickler is `torch/_weights_only_unpickler.py`; `torch.load` wraps its text (`_get_wo_message` in
# `torch/serialization.py`). Whether it stops is judged in `inspector.safety`; `loading` makes a `Refusal` of
# that.

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


# --- one call of `torch.load`, as data ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCall:
    """How a file is loaded.

    Attributes:
        weights_only: The argument of that name; None where the call does not give it.
        current: The number of the current device: `torch.cuda.set_device`, the rank on many a cluster.
        by_loader: Whether the format's own loader is called in place of `torch.load`.
        refusal: Why `weights_only=True` would stop, see `load_call`; None if it would not. It is asked
            only where the call means `weights_only=True`.
    """

    map_location: MapLocation = None
    weights_only: bool | None = None
    mmap: bool = False
    current: int = 0
    by_loader: bool = False
    refusal: Refusal | None = None

    def is_weights_only(self, release: Release) -> bool:
        """Return whether the restricted unpickler is used: since 2.6 unless the call says otherwise."""
        if self.weights_only is None:
            return release >= WEIGHTS_ONLY_DEFAULT
        return self.weights_only


def plain_call(release: Release) -> LoadCall:
    """Return the call in which nothing but the file and the machine decides.

    That is `torch.load(path, weights_only=False)`, without the argument where torch does not know it yet.
    """
    return LoadCall(weights_only=False if release >= HAS_WEIGHTS_ONLY else None)


# ------------------------------------------------------------------------------------------------------------
# A call of `torch.load` together with what the restricted unpickler would say: the two are judged apart.

_FINDINGS = {"needs-allow-list": "needs-allow-list", "dangerous": "dangerous-global"}


def load_call(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    map_location: MapLocation = None,
    *,
    weights_only: bool | None = None,
    mmap: bool = False,
) -> LoadCall:
    """Make a call of `torch.load` for a file, ready to be simulated."""
    return LoadCall(
        map_location=map_location,
        weights_only=weights_only,
        mmap=mmap,
        refusal=refusal_of(checkpoint, safety),
    )


def refusal_of(checkpoint: Checkpoint, safety: SafetyVerdict) -> Refusal | None:
    """Return why and where `weights_only=True` stops, or None if it does not.

    A name stops it where the file asks for it first.
    """
    if safety.weights_only or safety.is_unsure or safety.archive is not None:
        return None
    if (checkpoint.needs.rivals or checkpoint.imported_inside) and safety.answer.kind == "accepts":
        return None  # what others run, or what opens bytes in it, is not what torch runs
    finding = _FINDINGS.get(safety.verdict, "runs-code")
    opcode = safety.answer.opcode
    first = next(iter(safety.answer.names), "")
    names = [present_name(use.name) for use in checkpoint.globals]
    place = next((one for one in checkpoint.needs.unusual if one.name == opcode), UnusualOpcode(opcode, 0, 0))
    if opcode and first not in names[: place.names_before]:
        return Refusal(finding=finding, opcode=CODES[opcode], storages_before=place.storages_before)
    # Where a name is asked for that the file does not hold is not known: the type of a NumPy element.
    places = {present_name(use.name): use.storages_before for use in reversed(checkpoint.globals)}
    before = places.get(first, len(checkpoint.storages))
    is_read = format_of(checkpoint.format).loads_restricted  # else that is said before any instruction
    raised = None if first or not is_read else pickle_obstacle(checkpoint, restricted=True)
    error = "" if raised is None else raised.message
    return Refusal(finding=finding, name=first, error=error, storages_before=before)
