"""Asks torch what it does with files, in forks with little room and time for each.

Time is that of the processor: how busy the machine is changes no answer.

`python -m tests.hostile.asking_torch` reads lines of JSON `[PATH, [NAME, ...]]`. Each is answered by a line
of JSON: what happened with `weights_only=True` on a machine with every device, and what happened with these
names allowed. Allowed names stand for an inert class. Of `[PATH, true]` it is `torch.load(path)` on this
machine with that value of `weights_only`.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.torches import run_with_torch

_ROOM = 2 << 30
_SECONDS = 6
_LAZY = {"torch.nested._internal.nested_tensor", "torch._dynamo"}
_IN_ONE_FORK = 1000
_MOST_SAID = 4000
Load = tuple[str, Iterable[str] | bool]
_ROOT = Path(__file__).parents[2]


class Inert:
    """Stands for an allowed name: it may be made of anything, and takes any state."""

    def __new__(cls, *_args: object, **_named: object) -> Any:
        return object.__new__(cls)

    def __init__(self, *_args: object, **_named: object) -> None: ...
    def __setstate__(self, _state: object) -> None: ...


class Anywhere(dict[Any, str]):
    """Stands for a machine with every device: whatever a tag says, the bytes stay on the CPU."""

    def get(self, tag: Any, default: Any = None) -> Any:
        """Where a tag leads; what is no tag is left to torch."""
        import torch

        return "cpu" if isinstance(tag, str | torch.device) else default


def _load(path: str, how: Iterable[str] | bool) -> str:
    import torch

    names = () if isinstance(how, bool) else how
    stands_in = [(type(name.rpartition(".")[2], (Inert,), {}), name) for name in names]
    warnings.simplefilter("ignore")
    torch.serialization._serialization_tls.map_location = None  # torch leaves it behind after an error
    try:
        with torch.serialization.safe_globals(stands_in):
            if isinstance(how, bool):
                torch.load(path, weights_only=how)
            else:
                torch.load(path, map_location=Anywhere(), weights_only=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return "accepts"


def _serve(loads: list[Load], start: int, writer: int) -> None:
    """Load files one after the other, and write what became of each as a line of JSON."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, used + _ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What crashes says why on its standard error, and that is not asked for.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    gc.disable()  # it goes through all of a million lists again and again
    were_there = _LAZY & sys.modules.keys()
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        for path, names in loads[start : start + _IN_ONE_FORK]:
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            said = _load(path, names)[:_MOST_SAID]
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.write(json.dumps(said) + "\n")
            pipe.flush()
            if _LAZY & sys.modules.keys() != were_there:
                return  # what they allow would be allowed in the next file as well


def _in_forks(loads: list[Load]) -> list[str]:
    """Load files in forks, each of which goes on until a file hangs or crashes it."""
    said: list[str] = []
    while len(said) < len(loads):
        reader, writer = os.pipe()
        before = len(said)
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _serve(loads, before, writer)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            said += [json.loads(line) for line in pipe]
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            said.append("hangs" if os.WTERMSIG(status) == signal.SIGPROF else "crashes")
        elif len(said) == before:
            raise SystemExit(f"nothing came of {loads[before][0]}")
    return said


def main() -> int:
    import torch

    torch.set_num_threads(1)
    # What it imports once, no fork has to pay for.
    _load(str(_ROOT / "tests/data/corpus/zip/state_dict.pt"), ())
    asked = [json.loads(line) for line in sys.stdin]
    ways = [[how] if isinstance(how, bool) else [(), how] if how else [()] for _, how in asked]
    loads = [(path, how) for (path, _), tried in zip(asked, ways, strict=True) for how in tried]
    said = iter(_in_forks(loads))
    for tried in ways:
        sys.stdout.write(json.dumps([next(said) for _ in tried]) + "\n")
    return 0


def ask_torch(files: Sequence[tuple[Path, tuple[str, ...] | bool]]) -> list[list[str]]:
    """Ask about files, each with names to allow in a second try, or with the value of `weights_only`."""
    asked = "".join(json.dumps([str(path), names]) + "\n" for path, names in files)
    done = run_with_torch("-m", "tests.hostile.asking_torch", given=asked)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
