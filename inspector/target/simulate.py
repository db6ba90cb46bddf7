"""What `torch.load(path)` without `map_location` does on a machine: the first error, in torch's own words.

torch restores storages in the order of the pickle and asks each backend in turn for the tag, see
`default_restore_location` in `torch/serialization.py`. The texts are those of torch 2.13.
"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.model.checkpoint import Checkpoint
from inspector.model.devices import split_device
from inspector.target.profile import Profile

_MAP_TO_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
_UNREGISTERED = frozenset({"hpu", "privateuseone", "privateuse1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailure:
    """The error that stops a load.

    Attributes:
        finding: The id of the finding that explains it.
        device: The location tag that raises it.
        storage: The storage that raises it first.
        message: torch's text, with the exception's name.
    """

    finding: str
    device: str
    storage: str
    message: str


def simulate_load(checkpoint: Checkpoint, target: Profile) -> LoadFailure | None:
    """Give the error that `torch.load(path)` raises on a machine, or None if it loads."""
    for storage in checkpoint.storages:
        failure = restore_failure(storage.device, target)
        if failure is not None:
            finding, message = failure
            return LoadFailure(finding=finding, device=storage.device, storage=storage.key, message=message)
    return None


def restore_failure(tag: str, target: Profile) -> tuple[str, str] | None:
    """Give (finding, message) for restoring one location tag on a machine, or None if that works."""
    parts = split_device(tag)
    if parts is None:
        return "unknown-device", f"RuntimeError: Invalid device string: '{tag}'"
    kind, index = parts
    if kind in {"cpu", "meta"}:
        return None if index is None else ("unknown-device", _unknown(tag))
    if target.offers(kind, index):
        return None
    if kind in {"cuda", "xpu"}:
        return _missing(kind, index or 0, target)
    if kind == "mps":
        return "mps-unavailable", "RuntimeError: torch.UntypedStorage(): Storage device not recognized: mps"
    if kind in _UNREGISTERED:
        name = kind.upper()
        return "unknown-device", f"RuntimeError: The {name} device module is not registered. {_MAP_TO_CPU}"
    if kind == "mtia":
        return "unknown-device", _unavailable("MTIA")
    return "unknown-device", _unknown(tag)


def _missing(kind: str, index: int, target: Profile) -> tuple[str, str]:
    count = target.cuda if kind == "cuda" else target.xpu
    name = kind.upper()
    if count == 0:
        return f"{kind}-unavailable", _unavailable(name)
    finding = "cuda-index-out-of-range" if kind == "cuda" else "xpu-unavailable"
    return finding, (
        f"RuntimeError: Attempting to deserialize object on {name} device {index} but torch.{kind}.device_count() is "
        f"{count}. Please use torch.load with map_location to map your storages to an existing device."
    )


def _unavailable(name: str) -> str:
    return (
        f"RuntimeError: Attempting to deserialize object on a {name} device but torch.{name.lower()}.is_available() "
        f"is False. {_MAP_TO_CPU}"
    )


def _unknown(tag: str) -> str:
    return (
        "RuntimeError: don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {tag})"
    )
