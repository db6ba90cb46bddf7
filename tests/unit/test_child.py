"""The way to a child process; tests/hostile/test_poisoned_folder.py shows what does not run in it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector import child
from inspector.child import SAFE_FOLDER, Answer, Worker, find_program, python_command, worker_script
from inspector.errors import CancelledError, WorkerError
from inspector.progress import Progress
from tests.pythons import VERSIONS, find_python

ROOT = Path(__file__).parents[2]

ECHO = """
    import os, sys
    requests = 0
    def answer(head, blocks):
        global requests
        requests += 1
        print("noise")
        yield {**head, "pid": os.getpid(), "requests": requests, "version": list(sys.version_info)}, b""
        for number, block in enumerate(blocks):
            yield {"number": number}, block[::-1]
"""
SLEEPS = """
    import time
    def answer(head, blocks):
        yield {}, b"begun"
        time.sleep(600)
"""
HOSTILE = """
    import struct, sys
    def answer(kind, head=b"", block=b"", more=0, block_nbytes=None):
        nbytes = len(block) if block_nbytes is None else block_nbytes
        sys.stdout.buffer.write(struct.pack("<cIQ", kind, len(head) + more, nbytes) + head + block)
        sys.stdout.flush()
"""


class Impatient(Progress):
    """Cancels itself when it is asked the fifth time."""

    asked = 0

    def advance(self, units: int = 0) -> None:
        self.asked += 1
        if self.asked == 5:
            self.cancel()
        super().advance(units)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "script.py") -> Path:
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def asked(
    worker: Worker, script: Path, *blocks: bytes, progress: Progress | None = None, timeout_s: float = 60
) -> list[Answer]:
    head = {"name": "é"}
    return list(worker.request(script, head, blocks, progress=progress or Progress(), timeout_s=timeout_s))


def test_a_worker_answers_again_and_again_in_one_process(worker: Worker, write: Callable[..., Path]) -> None:
    """Adding a request is adding a script: this one comes from outside the package."""
    script = write(ECHO)
    assert worker.pid is None
    large = os.urandom(3_000_001)
    first, *rest = asked(worker, script, b"ab", b"", large)
    pid = worker.pid
    assert (first.head["name"], first.head["pid"], first.head["requests"]) == ("é", pid, 1)
    assert os.getsid(pid) == pid != os.getsid(0)  # so that Ctrl+C in the terminal does not end it first
    assert [answer.block for answer in rest] == [b"ba", b"", large[::-1]]
    assert [answer.head["number"] for answer in rest] == [0, 1, 2]
    assert asked(worker, script)[0].head["requests"] == 2  # it was not even imported again
    other = write(ECHO, "other.py")
    assert asked(worker, other)[0].head["requests"] == 1
    assert worker.pid == pid


def test_answers_come_while_blocks_go(worker: Worker, write: Callable[..., Path]) -> None:
    given: list[int] = []

    def blocks() -> Iterator[bytes]:
        for number in range(3):
            given.append(number)
            yield b"x"

    answers = worker.request(write(ECHO), {}, blocks(), progress=Progress(), timeout_s=60)
    next(answers)
    assert given == []
    next(answers)
    assert given == [0]
    answers.close()
    assert worker.pid is None  # nobody would read the rest of it


def test_an_only_answer_is_asked_for(worker: Worker, write: Callable[..., Path]) -> None:
    script = write("def answer(head, blocks):\n    yield from [({}, b'a')] * head['times']\n")
    assert worker.ask(script, {"times": 1}, progress=Progress(), timeout_s=60).block == b"a"
    for times in (0, 2):
        with pytest.raises(WorkerError, match=f"{times} answers instead of one"):
            worker.ask(script, {"times": times}, progress=Progress(), timeout_s=60)


def test_what_fails_says_why_and_the_next_request_starts_anew(
    worker: Worker, write: Callable[..., Path]
) -> None:
    asked(worker, write(ECHO))
    for text, why in {
        "import nothing_of_the_kind": "ModuleNotFoundError: No module named 'nothing_of_the_kind'",
        "def answer(head, blocks):\n    yield {}, head['none']": "KeyError: 'none'",
    }.items():
        with pytest.raises(WorkerError) as caught:
            asked(worker, write(text, f"{len(text)}.py"))
        assert caught.value.what == f"the child process failed: {why}"
        assert worker.pid is None
    assert asked(worker, write(ECHO))[0].head["requests"] == 1


@pytest.mark.parametrize(
    ("code", "why"),
    {
        "": "ended before",
        "answer(b'A', b'{}', b'', 5)": "ended before",  # a part of a frame
        "answer(b'A', b'{}', b'ab', 0, 3)": "ended before",
        "sys.stdout.write('Segmentation')": "ended before",
        "sys.stdout.write('Traceback (most recent call last):')": "more than the limit",
        "answer(b'A', b'', b'', 1 << 20 | 1)": "more than the limit",
        "answer(b'A', b'', b'', 0, 64 << 20 | 1)": "more than the limit",
        "answer(b'A', b'nonsense')": "invalid answer",
        "answer(b'A', b'[]')": "invalid answer",
        r"answer(b'A', b'\xff')": "invalid answer",
        "answer(b'A', b'[' * 500_000)": "invalid answer",
        "answer(b'X')": "invalid answer",
        "answer(b'P'); sys.stdin.buffer.read(1000); answer(b'A')": "ended before",
    }.items(),
)
def test_a_child_that_breaks_the_rules_is_ended(
    worker: Worker, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, code: str, why: str
) -> None:
    # One that goes by itself may be gone, on a busy machine, before what it said is read.
    goes_on = "sys.stdout.flush(); import time; time.sleep(600)" if "ended" not in why else ""
    script = write(f"{textwrap.dedent(HOSTILE)}\n{code}\n{goes_on}")
    monkeypatch.setattr(child, "worker_script", lambda _name: script)
    with pytest.raises(WorkerError, match=why):
        asked(worker, script, b"x" * 10_000_000)
    assert worker.pid is None


def test_a_silent_child_is_ended(worker: Worker, write: Callable[..., Path]) -> None:
    with pytest.raises(WorkerError, match=r"silent for 0\.3 s"):
        asked(worker, write(SLEEPS), timeout_s=0.3)
    assert worker.pid is None


@pytest.mark.parametrize("code", ["answer(b'P')", "pass"])
def test_a_child_ends_with_the_work(
    worker: Worker, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Also while it does not take what it asked for."""
    script = write(f"{textwrap.dedent(HOSTILE)}\n{code}\nimport time; time.sleep(600)")
    monkeypatch.setattr(child, "worker_script", lambda _name: script)
    with pytest.raises(CancelledError):
        asked(worker, script, b"x" * 10_000_000, progress=Impatient())
    assert worker.pid is None


def test_nothing_is_started_for_work_that_was_cancelled(worker: Worker, tmp_path: Path) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        asked(worker, tmp_path, progress=progress)
    assert worker.pid is None


PARENT = """
import sys
from pathlib import Path
from inspector.child import Worker
from inspector.progress import Progress
worker = Worker(pass_fds=[int(sys.argv[2])])
next(worker.request(Path(sys.argv[1]), {}, progress=Progress(), timeout_s=60))
print("begun", flush=True)
sys.stdin.read()
"""


def test_a_child_ends_with_its_parent(write: Callable[..., Path]) -> None:
    """Also where the parent is killed while the child is at work."""
    there, here = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, write(SLEEPS), str(here)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[here],
        cwd=Path(child.__file__).parents[1],
    ) as parent:
        os.close(here)
        assert parent.stdout.readline() == b"begun\n"
        parent.kill()
    assert os.read(there, 1) == b""  # the last process that held the other end is gone
    os.close(there)


@pytest.mark.wide
@pytest.mark.slow
def test_every_python_may_be_chosen(write: Callable[..., Path]) -> None:
    chosen = {version: python for version in VERSIONS if (python := find_python(version))}
    assert chosen
    for version, python in chosen.items():
        with Worker(python=python) as worker:
            answer, back = asked(worker, write(ECHO), b"ab")
        assert ".".join(map(str, answer.head["version"][:2])) == version
        assert back.block == b"ba"


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    with (
        Worker(python=str(tmp_path / "python")) as worker,
        pytest.raises(WorkerError, match="no child process could be started: No such file or directory"),
    ):
        asked(worker, tmp_path)


def test_a_child_works_in_a_folder_of_the_installation(
    worker: Worker, write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(
        "import os, sys\ndef answer(head, blocks):\n    yield {'at': os.getcwd(), 'path': sys.path}, b''"
    )
    monkeypatch.chdir(tmp_path)
    (answer,) = asked(worker, script)
    assert answer.head["at"] == SAFE_FOLDER
    assert not {str(tmp_path), str(worker_script("serve").parent), ""} & set(answer.head["path"])


def test_a_child_inherits_what_it_is_handed(write: Callable[..., Path]) -> None:
    there, here = os.pipe()
    os.write(here, b"handed over")
    script = write("import os\ndef answer(head, blocks):\n    yield {}, os.read(head['fd'], 99)")
    with Worker(pass_fds=(there,)) as worker:
        assert worker.ask(script, {"fd": there}, progress=Progress(), timeout_s=60).block == b"handed over"
    os.close(there)
    os.close(here)


def test_a_program_starts_apart_from_all_folders() -> None:
    script = worker_script("serve")
    assert script.is_file()
    assert python_command(script) == [sys.executable, "-P", str(script)]
    assert Path(SAFE_FOLDER).is_absolute()


def test_a_program_is_looked_for_in_absolute_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "tool"
        program.write_text("#!/bin/sh\n", encoding="ascii")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "../here", str(tmp_path)]))
    assert find_program("tool") is None
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(tmp_path / "there")]))
    assert find_program("tool") == str(tmp_path / "there" / "tool")
    monkeypatch.delenv("PATH")
    assert find_program("no such tool") is None


def test_a_frozen_program_is_its_own_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes no script: a word makes it answer requests (`packaging/bundle/entry.py`)."""
    program = tmp_path / "program"
    serve = worker_script("serve")
    program.write_text(
        f'#!/bin/sh\n[ "$*" = {child.SERVE} ] && exec "{sys.executable}" "{serve}"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    with Worker() as worker:
        head = worker.ask(worker_script("environment"), {}, progress=Progress(), timeout_s=60).head
    assert head["version"].startswith("3.")


WITHOUT = """
import os, sys
GONE = (
    "set_blocking statvfs pread preadv posix_fadvise copy_file_range sendfile getuid geteuid killpg "
    "O_CLOEXEC O_NOFOLLOW O_DIRECTORY fchmod mkfifo sched_getaffinity"
)
for name in GONE.split():
    if hasattr(os, name):
        delattr(os, name)
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
from inspector.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.torch
def test_commands_work_without_what_only_unix_has(tmp_path: Path) -> None:
    """As Windows is: it has none of these calls, and no pipes that can be waited for."""
    demo = str(ROOT / "resources" / "demo" / "demo.pth")
    out = str(tmp_path / "out.pth")
    for words, code in (
        (("show", demo, "--depth", "1"), 0),
        (("check", demo, "--target", "cpu"), 1),
        (("remap", demo, "-o", out, "--map", "*=cpu"), 0),
        (("verify", out, "--against", demo, "--map", "*=cpu"), None),
        (("diff", demo, out), 1),
        (("stats", out, "model/stem.0.weight"), None),
        (("remap", out, "--in-place", "--map", "cpu=cuda:0"), 0),
        (("remap", out, "--undo"), 0),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert "Traceback" not in ran.stderr, (words, ran.stderr[-600:])
        assert "report this" not in ran.stderr, (words, ran.stderr[-600:])
        assert code is None or ran.returncode == code, (words, ran.stdout[-300:], ran.stderr[-600:])
