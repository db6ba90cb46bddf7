"""Runs Python with torch in children that need not import it: forks of one process that has.

The import takes longer than most of what is asked of torch. The process that forks does nothing else, so its
forks find torch as it is right after the import; each has the arguments, environment and folder that it was
given, and ends as a program does.
"""

from __future__ import annotations

import functools
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from inspector.progress import Progress
from inspector.target.profile import Profile
from inspector.target.profile_file import probe_this_machine

_ROOT = Path(__file__).parents[1]


class _Server:
    """The process that has imported torch; its forks have each its own standard streams."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torches"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )

    def fork(self, job: Mapping[str, Any]) -> int:
        """Have a job done; return its exit code."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@functools.cache
def _server() -> _Server:
    return _Server()


@functools.cache
def here() -> Profile:
    """This machine as the probe finds it: what torch says depends on what it was built for."""
    return probe_this_machine(Progress(), sys.executable)


def run_with_torch(
    *arguments: str | os.PathLike[str],
    given: str = "",
    cwd: Path = _ROOT,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENT...` in a fork that has torch already.

    Args:
        arguments: `-m MODULE`, `-c CODE` or a file, and what is in `sys.argv` behind it.
        given: What stands on its standard input.
        cwd: The folder where it runs.
        environment: All of its variables; None for those of this process.
    """
    words = list(map(os.fspath, arguments))
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_text(given, encoding="utf-8")
        job = {
            "words": words,
            "streams": list(map(str, streams)),
            "cwd": str(cwd),
            "environment": dict(os.environ if environment is None else environment),
        }
        code = _server().fork(job)
        said = [path.read_text(encoding="utf-8", errors="replace") for path in streams[1:]]
    return subprocess.CompletedProcess(words, code, *said)


def _become(job: Mapping[str, Any]) -> NoReturn:
    """Be the program that was asked for, to its end."""
    code = 1
    for number, path in enumerate(job["streams"]):
        os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["environment"])
    try:
        _run(*job["words"])
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 - whatever ends it, as in a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(what: str, *rest: str) -> None:
    if what == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif what == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [what, *rest]
        runpy.run_path(what, run_name="__main__")


def main() -> int:
    import torch  # noqa: F401 - once, for all forks

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
