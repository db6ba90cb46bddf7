"""Child processes: how programs are started, and a Python that answers requests over pipes.

Importing torch takes seconds and 300 MB and may end the process that does it, so this process never does.

A checkpoint comes in a folder that somebody else filled, and the program is often started in it. Python looks
for modules in the working directory, where a `json.py` or `torch.py` would run; entries of `PATH` and of the
linker's paths may be relative; Windows looks for programs there first. So every child works in a folder that
is as trusted as the interpreter, is started by an absolute path, and imports nothing from beside its script.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Self, cast

from inspector.errors import WorkerError
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.resources import TRUSTED_FOLDER

SAFE_FOLDER = TRUSTED_FOLDER
"""Where children work: what lies in there belongs to the Python that runs them."""

SERVE = "--answer-requests"
"""What makes a frozen program its own Python for requests: it has no interpreter that would take a script."""

_WORKER = Path(__file__).resolve().with_name("worker")
_FRAME = struct.Struct("<cIQ")  # as in worker/serve.py
_POLL_S = 0.1
_MOST_HEAD_NBYTES = 1 << 20
_MOST_BLOCK_NBYTES = 64 << 20


def worker_script(name: str) -> Path:
    """Return the path of a script in `inspector/worker`."""
    return _WORKER / f"{name}.py"


def python_command(script: Path) -> list[str]:
    """Return the command line that runs a script of ours; `-P` keeps folders of no installation off its path.

    A script and not `-m`, which would look for `inspector` wherever the child looks for modules.
    """
    return [sys.executable, "-P", os.fspath(script)]


def _serve_command(python: str | None) -> list[str]:
    """Return the command line of a Python that answers requests; None stands for this program's own."""
    if python is None and getattr(sys, "frozen", False):
        return [sys.executable, SERVE]
    return [python or sys.executable, os.fspath(worker_script("serve"))]


def find_program(name: str) -> str | None:
    """Return the path of an installed program; None where there is none.

    Relative entries of `PATH` mean the folder of the checkpoint and are passed over, and so is the working
    directory, which Windows adds by itself.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and (found := shutil.which(os.path.join(folder, name))):  # noqa: PTH117, PTH118
            return found
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to a request."""

    head: dict[str, Any]
    block: bytes


class Worker:
    """A child process that answers requests, started by the first and kept for those that follow.

    It ends with this process, however that ends, and where a request failed, was cancelled or was not read
    to its end; the next request then starts another one. One thread at a time may use it.
    """

    def __init__(self, *, python: str | None = None, pass_fds: Sequence[int] = ()) -> None:
        """Prepare a worker.

        Args:
            python: The interpreter that runs it, by an absolute path; this one by default. It needs to have
                nothing installed but what the requests import.
        """
        self._python = python
        self._pass_fds = tuple(pass_fds)
        self._child: subprocess.Popen[bytes] | None = None
        self._piping: _Piping | None = None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.end()

    @property
    def pid(self) -> int | None:
        """The child's process id; None while none runs."""
        return None if self._child is None else self._child.pid

    def request(
        self,
        script: Path,
        head: Mapping[str, object],
        blocks: Iterable[bytes] = (),
        *,
        progress: Progress,
        timeout_s: float,
    ) -> Iterator[Answer]:
        """Have the function `answer(head, blocks)` of a script answer, and yield what it yields.

        The child asks for each block when it wants it, so neither side waits for the other forever, and
        neither holds more than one block.

        Args:
            script: What answers; it is imported once in the life of the child.
            head: What is small, as JSON has it; a path must be absolute.
        """
        progress.advance()
        if self._child is None or self._piping is None:
            self._child = self._start()
            self._piping = _Piping(cast("FileIO", self._child.stdin), cast("FileIO", self._child.stdout))
        pipes = _Pipes(self._piping, progress, timeout_s)
        is_over = False
        try:
            pipes.send(b"R", json.dumps({"script": os.fspath(script), "head": head}).encode())
            yield from _answers(pipes, iter(blocks))
            is_over = True
        finally:
            if not is_over:
                self.end()

    def ask(
        self, script: Path, head: Mapping[str, object], *, progress: Progress, timeout_s: float
    ) -> Answer:
        """Return the only answer to a request; errors as those of `request`."""
        answers = list(self.request(script, head, progress=progress, timeout_s=timeout_s))
        if len(answers) != 1:
            raise WorkerError(f"the child process gave {len(answers)} answers instead of one")
        return answers[0]

    def end(self) -> None:
        """End the child, if one runs."""
        child, self._child = self._child, None
        piping, self._piping = self._piping, None
        if child is not None:
            child.kill()
            child.wait()
        if piping is not None:
            piping.end()

    def leave(self) -> None:
        """Forget a child that belongs to the process which this one was forked from, and goes on there."""
        child, self._child, self._piping = self._child, None, None
        if child is not None:
            child.returncode = 0  # so that it is neither waited for nor warned of
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            # The command is made of this interpreter, or one that the user chose, and a fixed script.
            child = subprocess.Popen(  # noqa: S603
                _serve_command(self._python),
                bufsize=0,
                cwd=SAFE_FOLDER,
                env={**os.environ, "PYTHONSAFEPATH": "1"},  # -P, which Python before 3.11 does not take
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=self._pass_fds,
                start_new_session=True,  # Ctrl+C is for this process, which then ends the child
            )
        except OSError as error:
            raise WorkerError(f"no child process could be started: {error.strerror or error}") from error
        return child


class _Piping:
    """A thread that reads and writes the pipes of a child, one thing after the other.

    Windows can neither wait for a pipe nor read one without waiting, so that no system is asked to. The
    thread closes the pipes itself: another one would take them away from under a read.
    """

    def __init__(self, stdin: FileIO, stdout: FileIO) -> None:
        self._pipes = stdin, stdout
        self._wanted: queue.SimpleQueue[bytes | int | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[bytes | OSError] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="pipes of a child", daemon=True)
        self._thread.start()

    def ask(self, wanted: bytes | int, wait: Callable[[], object]) -> bytes:
        """Write bytes, or read so many of them; `wait` is called ten times a second and may raise.

        Returns:
            What was read: less than was wanted where the child has ended.
        """
        self._wanted.put(wanted)
        while True:
            try:
                found = self._done.get(timeout=_POLL_S)
            except queue.Empty:
                wait()
                continue
            if isinstance(found, OSError):
                raise found
            return found

    def end(self) -> None:
        """Have the pipes closed, as soon as nothing is read any more: the child has ended."""
        self._wanted.put(None)
        self._thread.join(_POLL_S)  # what the child has started may still hold the other end

    def _work(self) -> None:
        stdin, stdout = self._pipes
        with stdin, stdout:
            while (wanted := self._wanted.get()) is not None:
                try:
                    self._done.put(
                        _write(stdin, wanted) if isinstance(wanted, bytes) else _read(stdout, wanted)
                    )
                except OSError as error:
                    self._done.put(error)


def _write(pipe: FileIO, data: bytes) -> bytes:
    view = memoryview(data)
    while view:
        view = view[pipe.write(view) :]
    return b""


def _read(pipe: FileIO, nbytes: int) -> bytes:
    data = bytearray(nbytes)
    view = memoryview(data)
    while view and (count := pipe.readinto(view)):
        view = view[count:]
    return bytes(data[: nbytes - len(view)])


class _Pipes:
    """The frames of one request: a letter, the lengths of head and block, and both."""

    def __init__(self, piping: _Piping, progress: Progress, timeout_s: float) -> None:
        self._piping = piping
        self._progress = progress
        self._timeout_s = timeout_s

    def send(self, kind: bytes, head: bytes = b"", block: bytes = b"") -> None:
        """Send a frame."""
        for part in (_FRAME.pack(kind, len(head), len(block)) + head, block):
            try:
                self._ask(part)
            except OSError as error:
                raise _ended() from error

    def receive(self) -> tuple[bytes, Answer]:
        """Read a frame: its letter, and the rest as an answer."""
        self._progress.advance()
        kind, head_nbytes, block_nbytes = _FRAME.unpack(self._read(_FRAME.size))
        if head_nbytes > _MOST_HEAD_NBYTES or block_nbytes > _MOST_BLOCK_NBYTES:
            raise WorkerError("the child process sent more than the limit")
        try:
            head = json.loads(self._read(head_nbytes) or b"{}")
        except (ValueError, RecursionError) as error:
            raise _nonsense() from error
        if not isinstance(head, dict):
            raise _nonsense()
        return kind, Answer(head=head, block=self._read(block_nbytes))

    def _read(self, nbytes: int) -> bytes:
        data = self._ask(nbytes)
        if len(data) < nbytes:
            raise _ended()
        return data

    def _ask(self, wanted: bytes | int) -> bytes:
        """Write or read, asking now and then whether to go on."""
        waits = 0

        def wait() -> None:
            nonlocal waits
            self._progress.advance()
            waits += 1
            if waits * _POLL_S >= self._timeout_s:
                raise WorkerError(f"the child process was silent for {self._timeout_s:g} s")

        return self._piping.ask(wanted, wait)


def _answers(pipes: _Pipes, blocks: Iterator[bytes]) -> Iterator[Answer]:
    while True:
        kind, answer = pipes.receive()
        if kind == b"A":
            yield answer
        elif kind == b"P":  # it pulls
            block = next(blocks, None)
            pipes.send(b"E" if block is None else b"B", block=block or b"")
        elif kind == b"F":
            failure = WorkerError(f"the child process failed: {answer.head.get('error')}")
            failure.missing = str(answer.head.get("missing", ""))
            raise failure
        elif kind == b"D":
            return
        else:
            raise _nonsense()


def _ended() -> WorkerError:
    return WorkerError("the child process ended before it had answered")


def _nonsense() -> WorkerError:
    return WorkerError("the child process sent an invalid answer")
