"""Machine profiles: the JSON document that the probe prints, here or on any other machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterator
from typing import TypeVar

from inspector.child import Worker, worker_script
from inspector.containers.source import FileSource
from inspector.errors import CheckpointError, ContainerError, WorkerError
from inspector.model.roles.devices import device_type
from inspector.progress import Progress
from inspector.pythons import choose_python
from inspector.records import replace
from inspector.resources import PROBE, resource_path
from inspector.target.evidence import (
    Evidence,
    Libcuda,
    Node,
    Nvidia,
    Python,
    Smi,
    SmiGpu,
    System,
    TorchDevice,
    TorchFound,
    Version,
)
from inspector.target.profile import Gpu, Profile
from inspector.units import cut_text, escape_text, format_count

_MOST_CHARS = 4000
_MOST_ITEMS = 256
_MOST_COUNT = (1 << 63) - 1
REMEDY = "make the profile again: checkpoint-inspector target --probe-script prints the script that writes it"


class Fields:
    """One JSON object. What it lacks, and what is null, counts as not known; what it has more is ignored."""

    def __init__(self, value: object, place: str = "") -> None:
        """Take a parsed value."""
        if not isinstance(value, dict):
            raise _refusal(place or "the document", "an object")
        self._value: dict[str, object] = value
        self.place = place

    def text(self, name: str) -> str | None:
        """Return a text."""
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise _refusal(self._at(name), "a text")
        return _inert(value)

    def flag(self, name: str) -> bool | None:
        """Return a yes or no."""
        value = self._value.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise _refusal(self._at(name), "true or false")

    def count(self, name: str) -> int | None:
        """Return a whole number; an exit code may be negative."""
        value = self._value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST_COUNT:
            raise _refusal(self._at(name), "a whole number")
        return value

    def nbytes(self, name: str) -> int | None:
        """Return a size."""
        value = self.count(name)
        if value is not None and value < 0:
            raise _refusal(self._at(name), "a size")
        return value

    def version(self, name: str) -> Version | None:
        """Return a version of two numbers, such as a compute capability."""
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise _refusal(self._at(name), "two numbers")
        major, minor = value
        if not (_is_small(major) and _is_small(minor)):
            raise _refusal(self._at(name), "two numbers")
        return major, minor

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise _refusal(self._at(name), "a list of texts")
        return tuple(_inert(str(value)) for value in values)

    def inside(self, name: str) -> Fields:
        """Return an object within; an empty one where it is not known."""
        value = self._value.get(name)
        return Fields({} if value is None else value, self._at(name))

    def each(self, name: str) -> tuple[Fields, ...]:
        """Return a list of objects."""
        return tuple(
            Fields(value, f"{self._at(name)}[{number}]") for number, value in enumerate(self._list(name))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that is in it, for an object that is a mapping."""
        if len(self._value) > _MOST_ITEMS:
            raise _refusal(self.place, f"at most {_MOST_ITEMS} names")
        return tuple(self._value)

    def _list(self, name: str) -> list[object]:
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > _MOST_ITEMS:
            raise _refusal(self._at(name), f"a list of at most {_MOST_ITEMS}")
        return value

    def _at(self, name: str) -> str:
        name = cut_text(escape_text(name), 40)
        return f"{self.place}.{name}" if self.place else name


def _inert(text: str) -> str:
    return cut_text(escape_text(" ".join(text.split())), _MOST_CHARS)


def _is_small(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000


def _refusal(place: str, wanted: str) -> ContainerError:
    return ContainerError(f"this machine profile is damaged: {wanted} is wanted", where=place, remedy=REMEDY)


# --- machine profiles: the JSON document that the probe prints, here or on any other machine ----------------

MARK = "checkpoint_inspector_profile"
"""The key that a profile begins with; its value is the version of the format."""
_NEWEST = 1
_MOST_NBYTES = 1_000_000
_HEAD_NBYTES = 4096
_MOST_DEVICES = 1024
_MOST_LABEL_CHARS = 40


def read_profile(path: str) -> Profile:
    """Read the profile of another machine."""
    with FileSource(path) as source:
        data = source.read_upto(0, _MOST_NBYTES + 1)
    if len(data) > _MOST_NBYTES:
        raise ContainerError("this is not a machine profile: it is too large", where=path, remedy=REMEDY)
    try:
        evidence = parse_evidence(data)
    except ContainerError as error:
        where = path if error.where is None else f"{path}, {error.where}"
        raise ContainerError(error.what, where=where, remedy=error.remedy) from error
    name = cut_text(escape_text(os.path.basename(path)), _MOST_LABEL_CHARS)  # noqa: PTH119 - a name is a text
    return build_profile(evidence, id=path, name=name.removesuffix(".json"))


def is_profile(path: str) -> bool:
    """Return whether a file begins like a profile, for a window that is handed files of all kinds."""
    try:
        with FileSource(path) as source:
            head = source.read_upto(0, _HEAD_NBYTES)
    except ContainerError:
        return False
    return MARK.encode() in head.replace(b"\0", b"")  # PowerShell writes UTF-16


def parse_evidence(data: bytes) -> Evidence:
    """Read the document that the probe printed.

    It is the last line: a greeting of the shell on another machine may stand before it.
    """
    try:
        text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig")
        found = _loads(text)
    except (ValueError, RecursionError) as error:
        raise ContainerError("this is not a machine profile: it is no JSON", remedy=REMEDY) from error
    fields = Fields(found)
    version = fields.count(MARK)
    if version is None:
        raise ContainerError(f"this is not a machine profile: it lacks {MARK}", remedy=REMEDY)
    if not 1 <= version <= _NEWEST:
        what = f"this machine profile is of version {version}, and this program reads up to {_NEWEST}"
        raise ContainerError(what, remedy="use the probe script that this program prints, or a newer program")
    return _evidence(fields)


def _loads(text: str) -> object:
    """Parse a document that was reformatted, or else the last line."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads((text.splitlines() or [""])[-1])


def build_profile(evidence: Evidence, *, id: str, name: str) -> Profile:  # noqa: A002 - as the field
    """Make the machine of what was found on it."""
    torch = evidence.torch
    found = {kind: (max(0, min(count, _MOST_DEVICES)), gpus) for kind, count, gpus in _found(evidence)}
    counts = tuple((kind, count) for kind, (count, _) in found.items() if count)
    return Profile(
        id=id,
        label=f"{name} ({_state(torch) or _names(counts, is_rocm=bool(torch.hip))})",
        accelerators=counts,
        torch_version=torch.version,
        gpus=tuple(gpu for kind, (_, gpus) in found.items() for gpu in _gpus(kind, gpus)),
        memory_nbytes=evidence.system.memory_nbytes,
        evidence=evidence,
    )


def _found(evidence: Evidence) -> Iterator[tuple[str, int, tuple[TorchDevice, ...]]]:
    """Yield (type, number of devices, what is known of each) for the types that the probe asks for."""
    torch = evidence.torch
    count = (torch.cuda_count or len(torch.cuda_devices)) if torch.cuda_available else 0
    yield "cuda", count, torch.cuda_devices
    yield "xpu", len(torch.xpu_devices), torch.xpu_devices
    # Apple's GPU works in the machine's own memory.
    apple = TorchDevice(name="Apple GPU", memory_nbytes=evidence.system.memory_nbytes)
    yield "mps", int(bool(torch.mps_available)), (apple,) if torch.mps_available else ()


def _gpus(kind: str, found: tuple[TorchDevice, ...]) -> Iterator[Gpu]:
    names = device_type(kind).devices(len(found))
    for name, device in zip(names, found, strict=True):
        yield Gpu(
            device=name,
            name=device.name,
            memory_nbytes=device.memory_nbytes,
            capability=device.capability,
        )


def _state(torch: TorchFound) -> str:
    if torch.state in {"", "imported"}:
        return ""
    return "torch is not installed" if torch.state == "missing" else "torch does not start"


def _names(counts: tuple[tuple[str, int], ...], *, is_rocm: bool) -> str:
    parts = []
    for kind, count in counts:
        row = device_type(kind)
        noun = "AMD GPU" if is_rocm and kind == "cuda" else row.noun
        parts.append(format_count(count, noun) if row.is_numbered else noun)
    return ", ".join(parts) or "CPU only"


_Record = TypeVar("_Record")


def _evidence(fields: Fields) -> Evidence:
    packages, environment = fields.inside("packages"), fields.inside("environment")
    return replace(
        _read(Evidence, fields, without=("packages", "environment")),
        packages=tuple((_key(name), packages.texts(name)) for name in packages.names),
        environment=tuple((_key(name), environment.text(name) or "") for name in environment.names),
    )


def _key(name: str) -> str:
    return cut_text(escape_text(name), _MOST_LABEL_CHARS)


def _read(record: type[_Record], fields: Fields, without: Container[str] = ()) -> _Record:
    """Return a record of what was found: the type of each field says how it is read."""
    kinds = record.__annotations__.items()
    return record(**{name: _READ[kind](fields, name) for name, kind in kinds if name not in without})


def _number(fields: Fields, name: str) -> int | None:
    return fields.nbytes(name) if name.endswith("_nbytes") else fields.count(name)


def _inside(record: type[object]) -> Callable[[Fields, str], object]:
    return lambda fields, name: _read(record, fields.inside(name))


def _each(record: type[object]) -> Callable[[Fields, str], object]:
    return lambda fields, name: tuple(_read(record, one) for one in fields.each(name))


_READ: dict[str, Callable[[Fields, str], object]] = {
    "str": lambda fields, name: fields.text(name) or "",
    "str | None": Fields.text,
    "bool": lambda fields, name: bool(fields.flag(name)),
    "bool | None": Fields.flag,
    "int | None": _number,
    "Version | None": Fields.version,
    "tuple[str, ...]": Fields.texts,
    **{record.__name__: _inside(record) for record in (System, Python, TorchFound, Nvidia, Smi, Libcuda)},
    **{f"tuple[{record.__name__}, ...]": _each(record) for record in (Node, SmiGpu, TorchDevice)},
}


# --- what torch finds on this machine, asked in a child process: in the Python that counts ------------------

_TIMEOUT_S = 120.0


def probe_this_machine(progress: Progress, python: str | None = None) -> Profile:
    """Ask the installed torch about this machine; where it is missing or broken, the profile says so.

    Args:
        python: What names the Python whose torch is asked; None for the one that counts.
    """
    chosen = choose_python(python, progress)
    head = {"script": str(resource_path(PROBE))}
    try:
        with Worker(python=chosen.path) as worker:
            answer = worker.ask(worker_script("probe"), head, progress=progress, timeout_s=_TIMEOUT_S)
        evidence = parse_evidence(answer.block)
    except (WorkerError, ContainerError) as error:
        what, remedy = "torch gave no answer about this machine", "see whether python -c 'import torch' works"
        raise CheckpointError(what, where=chosen.path, remedy=remedy) from error
    return replace(build_profile(evidence, id="this", name="this machine"), python=chosen)
