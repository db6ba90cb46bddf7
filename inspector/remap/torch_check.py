"""A copy loaded by torch itself, in a child process, and compared with what torch makes of the original.

Our own re-reading says what is in the bytes; only torch can say what torch makes of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from inspector.child import Worker, worker_script
from inspector.errors import WorkerError
from inspector.progress import Progress
from inspector.pythons import OPTION, Python, choose_python
from inspector.records import dataclass
from inspector.remap.files import OutFile
from inspector.units import cut_text, escape_text

Verdict = Literal["equal", "loads", "differs", "failed", "unchecked"]
"""`equal`: torch loads the copy, and its tensors are equal. `differs`, `failed`: they are not, it does not.

`loads`: nothing was compared. `unchecked`: that could not be tried here.
"""

_VERDICTS: dict[str, Verdict] = {verdict: verdict for verdict in get_args(Verdict)}
_TIMEOUT_S = 900.0
_MOST_TEXT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCheck:
    """What torch made of a copy.

    Attributes:
        detail: torch's error, the first difference, or why nothing was checked; empty if all is equal.
        call: How the copy was loaded; empty where it was not.
        torch: torch's version; empty where there was no answer.
        missing: Devices that the copy names and this machine has not: whether they take it was not tried.
    """

    verdict: Verdict
    detail: str = ""
    call: str = ""
    torch: str = ""
    tensors: int = 0
    missing: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether torch found the copy wanting."""
        return self.verdict in {"differs", "failed"}


def check_with_torch(
    copy: OutFile, original: str, devices: Iterable[str], progress: Progress, python: str | None = None
) -> TorchCheck:
    """Have torch load a copy and its original, and compare.

    Args:
        copy: The copy, which may have no name yet: the child gets its descriptor.
    """
    progress.start("asking torch to load the copy")
    names = sorted(device for device in devices if device.isascii() and device.isprintable())
    passed = (copy.fd,) if copy.part is None else ()
    head = {
        "copy": os.path.abspath(copy.path),  # noqa: PTH100 - a link stays a link
        "original": os.path.abspath(original),  # noqa: PTH100 - the same
        "devices": names,
    }
    return _ask(head, progress, python, passed)


def try_with_torch(path: str, progress: Progress, python: str | None = None) -> TorchCheck:
    """Have torch load a file where it was saved, with nothing in it run."""
    progress.start("asking torch to load it")
    return _ask({"copy": os.path.abspath(path)}, progress, python)  # noqa: PTH100 - a link stays a link


def _ask(
    head: dict[str, Any], progress: Progress, python: str | None, passed: tuple[int, ...] = ()
) -> TorchCheck:
    chosen = choose_python(python, progress)
    try:
        with Worker(python=chosen.path, pass_fds=passed) as worker:
            answer = worker.ask(worker_script("load_check"), head, progress=progress, timeout_s=_TIMEOUT_S)
    except WorkerError as error:
        return _no_answer(error.what, chosen)
    return _parse(answer.head, chosen)


def _parse(found: Mapping[str, Any], python: Python) -> TorchCheck:
    """Read the child's answer: texts in it come from the files, so they are cut and made harmless."""
    try:
        return TorchCheck(
            verdict=_VERDICTS[found["verdict"]],
            detail=_text(found.get("detail", "")),
            call=_text(found.get("call", "")),
            torch=_text(found["torch"]),
            tensors=int(found.get("tensors", 0)),
            missing=tuple(_text(device) for device in found.get("missing", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return _no_answer("what came back is none", python)


def _no_answer(why: str, python: Python) -> TorchCheck:
    detail = (
        f"torch gave no answer in {_text(python.label)}: {_text(why)}; see whether python -c 'import torch' "
        f"works, or name another Python with {OPTION}"
    )
    return TorchCheck(verdict="unchecked", detail=detail)


def _text(value: object) -> str:
    return cut_text(escape_text(str(value)), _MOST_TEXT)
