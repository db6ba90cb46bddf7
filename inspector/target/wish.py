"""What `--target` asks for: how many GPUs there are, which of them is wanted, and how much memory they have.

`2xcuda` is a machine, `cuda:1` a device, and `2xcuda:1` both. `@24gb`, `@2x80gb` and `@cuda:1` may follow a
word for a machine, `this` and the file of a profile, and a blank may stand for the `@`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from inspector.errors import PlanError
from inspector.model.roles.devices import DEVICE_TYPES
from inspector.records import dataclass, replace
from inspector.target.profile import ROCM, Gpu, Profile, label_with, preset_of, presets
from inspector.units import cut_text, format_count, meant

THIS = "this"
"""The word for the machine that the program runs on."""
MOST_GPUS = 64
"""How many one machine can have, as far as words go."""

_MOST_PARTS = 4
_MOST_NAMED = 4
_MOST_CHARS = 100
_EXAMPLES = (
    "cuda is one GPU, 2xcuda two, cuda:1 that GPU of two or more, 4xcuda:1 that one of four, and @24gb "
    "behind it their memory"
)
_WORD = re.compile(r"(?:([0-9]{1,6})x)?([a-z]+)(?::([0-9]{1,6}))?", re.IGNORECASE)
_MEMORY = re.compile(r"(?:([0-9]{1,6})x)?([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([mgt])(i?)b?", re.IGNORECASE)
_LAST_PART = re.compile(r"(.*?\S)(?: *@ *| +)((?:[0-9]+x)?[0-9.]+ ?[a-z]+|[a-z]+(?::[0-9]+)?)", re.IGNORECASE)
_BEGINNING = re.compile(r"([0-9]{0,2})x?([a-z]+)", re.IGNORECASE)
_POWERS = {"m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory of each GPU of a machine, or of the machine if it has none.

    Attributes:
        text: The same as it was written, for people: `24 GB`.
    """

    nbytes: int
    text: str
    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A machine, which may have to be probed first, and what is wanted of it.

    Attributes:
        machine: The machine; None for this one.
    """

    machine: Profile | None
    wanted: str | None = None
    memory: Memory | None = None

    def profile(self, probe: Callable[[], Profile]) -> Profile:
        """Return the machine with what is wanted of it.

        Args:
            probe: Describes this machine; called only where that one is meant.
        """
        found = probe() if self.machine is None else self.machine
        if self.memory is not None:
            found = with_memory(found, self.memory)
        return found if self.wanted is None else with_wanted(found, self.wanted)


def parse_target(text: str) -> Profile:
    """Return the machine that a text means; `this` has to be probed, see `parse_wish`."""

    def no_probe() -> Profile:
        raise _unknown(text)

    return parse_wish(text).profile(no_probe)


def named_machine(word: str) -> Profile | None:
    """Return the machine that a word means, with the word as its id; None for other texts."""
    if word == THIS or word.endswith(".json") or os.sep in word:
        return None
    try:
        return replace(parse_target(word), id=word)
    except PlanError:
        return None


def parse_wish(text: str) -> Wish:
    """Read what `--target` was given. A word wins over a file of the same name."""
    head, parts = _split(text)
    wanted, memory = _read_parts(parts, text)
    word = _word(head)
    if word is not None and word[2].lower() == THIS:
        return Wish(machine=None, wanted=wanted, memory=memory)
    if word is not None:
        machine, wanted = _machine_of(word, wanted, memory, text)
    else:
        from inspector.target.profile_file import read_profile  # noqa: PLC0415 - most runs name a word

        machine = read_profile(head)
    wish = Wish(machine=machine, wanted=wanted, memory=memory)
    wish.profile(lambda: machine)  # what it lacks is said before any file is opened
    return wish


def with_wanted(target: Profile, device: str) -> Profile:
    """Return a machine of which one device is wanted."""
    if device not in target.devices and not _is_unseen(target):
        there = ", ".join(target.devices[:_MOST_NAMED])
        more = ", ..." if len(target.devices) > _MOST_NAMED else ""
        hidden = _hidden(target)
        remedy = f"its devices are {there}{more}" + (f"; {hidden} decides which are seen" if hidden else "")
        raise PlanError(f"the target has no {device}", where=target.label, remedy=remedy)
    return replace(target, wanted=device)


def _hidden(target: Profile) -> str:
    """Return the setting that may hide the device of a machine that was probed."""
    environment = {} if target.evidence is None else dict(target.evidence.environment)
    value = environment.get("CUDA_VISIBLE_DEVICES")
    return "" if value is None else f"CUDA_VISIBLE_DEVICES={cut_text(value, _MOST_CHARS)}"


def _split(text: str) -> tuple[str, list[str]]:
    """Take the parts off that follow a word for a machine or the path of a file."""
    head, parts = text.strip(" "), list[str]()
    while not (_word(head) or _is_file(head)):
        match = _LAST_PART.fullmatch(head)
        if match is None or len(parts) == _MOST_PARTS:
            raise _unknown(text)
        head, parts = match[1], [match[2], *parts]
    return head, parts


def _word(text: str) -> re.Match[str] | None:
    """Match a word for a machine, whether such a machine can be or not."""
    match = _WORD.fullmatch(text)
    kind = "" if match is None else match[2].lower()
    is_this = kind == THIS and text.lower() == THIS
    return match if is_this or preset_of(kind, 1) is not None else None


def _is_file(text: str) -> bool:
    return text.endswith(".json") or os.path.isfile(text)  # noqa: PTH113 - a path that cannot be is no error here


def _read_parts(parts: list[str], text: str) -> tuple[str | None, Memory | None]:
    wanted: str | None = None
    memory: Memory | None = None
    for part in parts:
        size, device = _memory(part), _device(part)
        if (size and memory) or (device and wanted) or not (size or device):
            raise _unknown(text)
        wanted, memory = device or wanted, size or memory
    return wanted, memory


def _memory(text: str) -> Memory | None:
    match = _MEMORY.fullmatch(text)
    if match is None:
        return None
    unit = f"{match[3].upper()}{match[4]}B"
    nbytes = int(float(match[2]) * (1024 if match[4] else 1000) ** _POWERS[match[3].lower()])
    count = None if match[1] is None else int(match[1])
    return Memory(nbytes=nbytes, text=f"{float(match[2]):g} {unit}", count=count)


def _device(text: str) -> str | None:
    """Return the device that a text names, as torch calls it."""
    match = _WORD.fullmatch(text)
    if match is None or match[1] is not None:
        return None
    kind = "cuda" if match[2].lower() == ROCM.id else match[2].lower()
    row = DEVICE_TYPES.get(kind)
    if row is None or preset_of(kind, 1) is None or (int(match[3] or 0) and not row.is_numbered):
        return None
    return f"{kind}:{int(match[3] or 0)}" if row.is_numbered else kind


def _machine_of(
    word: re.Match[str], wanted: str | None, memory: Memory | None, text: str
) -> tuple[Profile, str | None]:
    """Return the machine that a word means, and which of its devices is wanted."""
    kind, index = word[2].lower(), word[3]
    asked = None if index is None else _device(f"{kind}:{index}")
    numbers = {int(word[1])} if word[1] else set[int]()
    if memory is not None and memory.count is not None:
        numbers.add(memory.count)
    if len(numbers) > 1 or (asked and wanted and asked != wanted):
        raise PlanError(f"the target {text!r} contradicts itself", remedy=_EXAMPLES)
    count = max(numbers, default=int(index or 0) + 1)
    machine = preset_of(kind, count) if 0 < count <= MOST_GPUS else None
    if machine is None or (index is not None and asked is None):
        only = f"1 to {MOST_GPUS} GPUs" if preset_of(kind, 2) else f"one {kind} device, without a number"
        raise PlanError(f"there is no such machine as {text!r}: it can have {only}", remedy=_EXAMPLES)
    is_fewest = index is not None and not numbers and preset_of(kind, 2) is not None
    return replace(machine, is_fewest=True) if is_fewest else machine, asked or wanted


def _is_unseen(target: Profile) -> bool:
    """Return whether a machine is this one before the probe: nobody knows yet what it has."""
    return target.id == THIS and target.evidence is None


def with_memory(target: Profile, memory: Memory) -> Profile:
    """Return a machine with another memory."""
    devices = target.devices[:-1]
    if memory.count not in {None, len(devices)} and not _is_unseen(target):
        what = f"the target has {format_count(len(devices), 'GPU')}, not {memory.count}"
        raise PlanError(what, where=target.label, remedy=f"say @{memory.text.replace(' ', '').lower()}")
    label = label_with(target, memory.text)
    if not devices:
        return replace(target, label=label, memory_nbytes=memory.nbytes)
    known = {gpu.device: gpu for gpu in target.gpus}
    gpus = (known.get(device, Gpu(device=device)) for device in devices)
    return replace(
        target,
        label=label,
        gpus=tuple(replace(gpu, memory_nbytes=memory.nbytes) for gpu in gpus),
        memory_nbytes=memory.nbytes if "mps" in devices else target.memory_nbytes,  # one memory for both
    )


def _unknown(text: str) -> PlanError:
    words = ", ".join(preset.id for preset in presets() if preset.id[0].isalpha())
    remedy = f"{_meant(text)}{THIS}, {words}, or the file of a machine profile; {_EXAMPLES}"
    return PlanError(f"unknown target {cut_text(text, _MOST_CHARS)!r}", remedy=remedy)


def _meant(text: str) -> str:
    """Return the question for the word that was meant; a number of GPUs stays one."""
    match = _BEGINNING.match(text)
    if match is None:
        return ""
    known = {THIS, *(preset.id for preset in presets() if preset.id.isalpha())}
    count = f"{match[1]}x" if match[1] else ""
    if match[2].lower() in known:
        return f"did you mean {count}{match[2].lower()}? " if count and not match[0].startswith(count) else ""
    return meant(match[2].lower(), known, f"{count}{{}}")
