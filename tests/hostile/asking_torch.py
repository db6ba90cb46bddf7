"""Asks torch what `weights_only=True` does with files, each in a fork with little room and time.

`python -m tests.hostile.asking_torch` reads lines of JSON `[PATH, [NAME, ...]]`. Each is answered by a line
of JSON: what happened, and what happened with these names allowed. Allowed names stand for an inert class.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ROOM = 2 << 30
_SECONDS = 3
_ROOT = Path(__file__).parents[2]


class Inert:
    """Stands for an allowed name: it may be made of anything, and takes any state."""

    def __new__(cls, *_args: object, **_named: object) -> Any:
        return object.__new__(cls)

    def __init__(self, *_args: object, **_named: object) -> None: ...
    def __setstate__(self, _state: object) -> None: ...


def _load(path: str, names: Iterable[str]) -> str:
    import torch

    stands_in = [(type(name.rpartition(".")[2], (Inert,), {}), name) for name in names]
    warnings.simplefilter("ignore")
    try:
        with torch.serialization.safe_globals(stands_in):
            torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return "accepts"


def _in_fork(path: str, names: Iterable[str]) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, used + _ROOM))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(_SECONDS)
        with os.fdopen(writer, "w", encoding="utf-8", errors="backslashreplace") as pipe:
            pipe.write(_load(path, names)[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if said:
        return said
    return "hangs" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else "crashes"


def main() -> int:
    """Answer line by line."""
    import torch

    torch.set_num_threads(1)
    _load(
        str(_ROOT / "tests/data/corpus/zip/state_dict.pt"), ()
    )  # what it imports once, no fork shall pay for
    for line in sys.stdin:
        path, names = json.loads(line)
        answers = [_in_fork(path, ())]
        if names:
            answers.append(_in_fork(path, names))
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()
    return 0


def ask_torch(files: list[tuple[Path, tuple[str, ...]]]) -> list[list[str]]:
    """Ask about files, each with names to allow in a second try."""
    asked = "".join(json.dumps([str(path), names]) + "\n" for path, names in files)
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.asking_torch"],
        input=asked,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
