"""Has torch load a copy and its original, and compares what it makes of them.

Head: `copy` and `original`, paths, and `devices`, those that the copy names. Answer: `verdict` and what goes
with it.

Both files are loaded with `weights_only=True`, so nothing in them runs; files that need more are not checked.
Where this machine has every device that the copy names, it is loaded as people do, by `torch.load(path)`;
elsewhere all of it goes to the CPU: then the values are compared, and the answer says what was not tried.

Like all requests, this one may run in an environment of the user's, with a Python as old as 3.8.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Pair = tuple[object, object, object]  # a key, and what each file has there

_MAPPED_NBYTES = 256 << 20  # larger files are mapped, where torch can, rather than read
_STEP_NBYTES = 64 << 20
_MOST_TEXT = 2000
_MOST_SHARE = 0.8  # of the memory that is free
_PARTS: dict[torch.layout, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
_FACTS = ("dtype", "shape", "layout", "requires_grad", "is_quantized")


class _Different(Exception):  # noqa: N818 - it ends a walk, and is no error
    """The two files differ at a place."""


def answer(head: dict[str, Any], _blocks: Iterator[bytes]) -> Iterator[tuple[dict[str, object], bytes]]:
    """Load both files and compare what comes out; of a file alone, see whether it loads."""
    if "original" in head:
        yield compare(head["copy"], head["original"], head["devices"]), b""
    else:
        yield try_load(head["copy"]), b""


def try_load(path: str) -> dict[str, object]:
    """Load a file as it is, and return the answer."""
    found: dict[str, object] = {"torch": torch.__version__, "verdict": "unchecked"}
    if not _fits(path):
        return {**found, "detail": "the file takes more memory than is free"}
    try:
        _load(path, {})
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return {**found, "verdict": "failed", "detail": _text(error)}
    return {**found, "verdict": "loads", "call": "torch.load(path)"}


def compare(copy: str, original: str, devices: list[str]) -> dict[str, object]:
    """Load both files and return the answer."""
    found: dict[str, object] = {"torch": torch.__version__, "verdict": "unchecked"}
    if not _fits(copy, original):
        return found | {"detail": "both files together take more memory than is free"}
    try:
        before = _load(original, {"map_location": "cpu"})
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return found | {"detail": f"torch does not load the original: {_text(error)}"}
    missing = sorted(device for device in devices if not _is_here(device))
    found["missing"] = missing
    found["call"] = "torch.load(path)" if not missing else "torch.load(path, map_location='cpu')"
    try:
        after = _load(copy, {"map_location": "cpu"} if missing else {})
        found["tensors"] = _compare(before, after)
    except _Different as difference:
        return found | {"verdict": "differs", "detail": str(difference)}
    except Exception as error:  # noqa: BLE001 - the same
        return found | {"verdict": "failed", "detail": _text(error)}
    return found | {"verdict": "equal", "detail": ""}


def _text(error: Exception) -> str:
    first, *_ = [*str(error).strip().splitlines(), ""]
    return f"{type(error).__name__}: {first}"[:_MOST_TEXT]


def _fits(*paths: str) -> bool:
    """Return whether the files fit into the memory that is free, where the system tells; mapped ones do."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return True
    free_kb = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), 0)
    sizes = [Path(path).stat().st_size for path in paths if not _is_mapped(path)]
    return not free_kb or sum(sizes) < _MOST_SHARE * free_kb * 1024


def _is_mapped(path: str) -> bool:
    with Path(path).open("rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
    return is_zip and Path(path).stat().st_size > _MAPPED_NBYTES


def _load(path: str, how: dict[str, Any]) -> object:
    if _is_mapped(path):
        how = {**how, "mmap": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(path, weights_only=True, **how)


def _is_here(device: str) -> bool:
    kind, _, index = device.partition(":")
    if kind in {"cpu", "meta"}:
        return True
    module = getattr(torch, kind, None)
    if module is None or not hasattr(module, "is_available") or not module.is_available():
        return False
    return int(index or 0) < int(module.device_count())


def _compare(before: object, after: object) -> int:
    pairs: list[tuple[tuple[object, ...], object, object]] = [((), before, after)]
    seen: set[tuple[int, int]] = set()
    count = 0
    while pairs:
        path, one, other = pairs.pop()
        if (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        if type(one) is not type(other):
            raise _Different(_at(path, "of another type"))
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            count += 1
            _compare_tensors(path, one, other)
        pairs += [((*path, key), left, right) for key, left, right in _children(path, one, other)]
    return count


def _children(path: tuple[object, ...], one: object, other: object) -> Iterator[_Pair]:
    if isinstance(one, dict) and isinstance(other, dict):
        if list(map(repr, one)) != list(map(repr, other)):
            raise _Different(_at(path, "with other keys"))
        yield from zip(one, one.values(), other.values())  # noqa: B905 - Python 3.8 cannot be strict
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            raise _Different(_at(path, "of another length"))
        yield from zip(range(len(one)), one, other)  # noqa: B905 - the same


def _compare_tensors(path: tuple[object, ...], one: torch.Tensor, other: torch.Tensor) -> None:
    for fact in _FACTS:
        if getattr(one, fact) != getattr(other, fact):
            raise _Different(_at(path, f"with another {fact}"))
    if one.layout in _PARTS:
        for name in _PARTS[one.layout]:
            _compare_tensors((*path, name), getattr(one.detach(), name)(), getattr(other.detach(), name)())
    elif one.layout == torch.strided and one.device.type != "meta":
        if one.stride() != other.stride() or one.storage_offset() != other.storage_offset():
            raise _Different(_at(path, "laid out in another way"))
        _compare_bytes(path, one.untyped_storage(), other.untyped_storage())


def _compare_bytes(path: tuple[object, ...], one: torch.UntypedStorage, other: torch.UntypedStorage) -> None:
    if one.nbytes() != other.nbytes():
        raise _Different(_at(path, "with a storage of another size"))
    left, right = (
        torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage) for storage in (one, other)
    )
    for start in range(0, one.nbytes(), _STEP_NBYTES):
        step = slice(start, start + _STEP_NBYTES)
        if not torch.equal(left[step].cpu(), right[step].cpu()):
            raise _Different(_at(path, "with other values"))


def _at(path: tuple[object, ...], what: str) -> str:
    return f"{'/'.join(map(str, path)) or 'the whole'} is {what}"[:_MOST_TEXT]
