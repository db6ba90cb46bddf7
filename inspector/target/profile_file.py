"""Machine profiles: the JSON document that the probe prints, here or on any other machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

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
)
from inspector.target.profile import Gpu, Profile
from inspector.units import cut_text, escape_text, format_count

_MOST_CHARS = 4000
_MOST_ITEMS = 256
_MOST_COUNT = (1 << 63) - 1
REMEDY = "make the profile again: checkpoint-inspector target --probe-script prints the script that writes it"


_RECORDS = {
    record.__name__: record
    for record in (System, Python, TorchFound, TorchDevice, Nvidia, Smi, SmiGpu, Libcuda, Node, Evidence)
}
_MAPPINGS = {"Packages": "tuple[str, ...]", "Environment": "str"}
_LISTS = {f"tuple[{name}, ...]": name for name in ("str", *_RECORDS)}
_UNKNOWN: dict[str, object] = {"str": "", "bool": False}
"""What stands for a field that is missing or null, where that is not None."""


def _read(kind: str, value: object, place: str) -> Any:  # noqa: ANN401 - as the field is declared
    """Return the value of a field, read by the type that it is declared with."""
    base = kind.partition("|")[0].strip()
    if base in _RECORDS:
        found = _object(value, place)
        return _RECORDS[base](
            **{name: _read(kind, found.get(name), _at(place, name)) for name, kind in _kinds(base)}
        )
    if base in _MAPPINGS:
        found = _object(value, place)
        if len(found) > _MOST_ITEMS:
            raise _refusal(place, f"at most {_MOST_ITEMS} names")
        return tuple(
            (cut_text(escape_text(name), _MOST_LABEL_CHARS), _read(_MAPPINGS[base], inner, _at(place, name)))
            for name, inner in found.items()
        )
    if base in _LISTS:
        items = [] if value is None else value
        if not isinstance(items, list) or len(items) > _MOST_ITEMS:
            raise _refusal(place, f"a list of at most {_MOST_ITEMS}")
        inner = _LISTS[base]
        return tuple(
            _read(inner, {} if item is None else item, f"{place}[{at}]") for at, item in enumerate(items)
        )
    return _UNKNOWN.get(kind) if value is None else _plain(base, value, place)


def _kinds(record: str) -> Iterator[tuple[str, str]]:
    yield from _RECORDS[record].__annotations__.items()


def _object(value: object, place: str) -> dict[str, object]:
    if value is None and place:
        return {}
    if not isinstance(value, dict):
        raise _refusal(place or "the document", "an object")
    return value


def _plain(kind: str, value: object, place: str) -> object:
    if kind == "str":
        if not isinstance(value, str):
            raise _refusal(place, "a text")
        return cut_text(escape_text(" ".join(value.split())), _MOST_CHARS)
    if kind == "bool":
        if not isinstance(value, bool):
            raise _refusal(place, "true or false")
        return value
    if kind == "int":  # an exit code may be negative
        if type(value) is not int or abs(value) > _MOST_COUNT:
            raise _refusal(place, "a whole number")
        if value < 0 and place.endswith("_nbytes"):
            raise _refusal(place, "a size")
        return value
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_small, value)):
        raise _refusal(place, "two numbers")  # of a version, such as a compute capability
    return tuple(value)


def _at(place: str, name: str) -> str:
    name = cut_text(escape_text(name), _MOST_LABEL_CHARS)
    return f"{place}.{name}" if place else name


def _is_small(value: object) -> bool:
    return type(value) is int and 0 <= value < 1000


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
    version = _read("int | None", _object(found, "").get(MARK), MARK)
    if version is None:
        raise ContainerError(f"this is not a machine profile: it lacks {MARK}", remedy=REMEDY)
    if not 1 <= version <= _NEWEST:
        what = f"this machine profile is of version {version}, and this program reads up to {_NEWEST}"
        raise ContainerError(what, remedy="use the probe script that this program prints, or a newer program")
    evidence: Evidence = _read("Evidence", found, "")
    return evidence


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
