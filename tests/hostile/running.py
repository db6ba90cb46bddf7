"""Opens hostile files one by one, each in a process of its own with little room, and says how that ended.

`python -m tests.hostile.running` reads lines `PATH` from stdin and answers each with a line of JSON. Every
file is opened as `show --json` does it, in a fork of this small process: the seconds are those of the
processor, the memory is the highest that the fork had.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.limits import Limits

if TYPE_CHECKING:
    from inspector.errors import CheckpointError

MOST_SECONDS = Limits().seconds + 5  # of processor time, the report included
MOST_LATE_SECONDS = 2.0
MOST_NBYTES = 1_250_000_000
_ROOM = 5 << 28  # of address space, beyond what the process has when it starts
_MOST_CPU_S = 60  # however long it waits for its turn on a busy machine
_CANCELLED_AFTER_S = 0.02
_ROOT = Path(__file__).parents[2]
Answer = dict[str, Any]


def opened(path: str) -> Answer:
    """What the program says of a file: an error in words, or what it holds and what loading would do."""
    from inspector.containers.notes import sentences
    from inspector.diagnose.run import diagnose
    from inspector.errors import CheckpointError
    from inspector.model.build import open_checkpoint
    from inspector.report.jsonable import write_show
    from inspector.safety.verdict import judge

    try:
        checkpoint = open_checkpoint(path)
        safety = judge(checkpoint)
        findings = diagnose(checkpoint, safety)
        # Written piece by piece, as `show --json` does.
        document_nbytes = sum(map(len, write_show(checkpoint, safety, findings, open_seconds=0)))
    except CheckpointError as error:
        return _refused(error)
    problems = [row.problem for row in checkpoint.tensors if row.problem]
    return {
        "document_nbytes": document_nbytes,
        "format": checkpoint.format,
        "tensors": len(checkpoint.tensors),
        "values": [[row.path[:200], row.type, row.text] for row in checkpoint.values[:20]],
        "paths": [row.path[:600] for row in checkpoint.tensors[:20]],
        "problems": problems[:20],
        "nbytes": [row.nbytes for row in checkpoint.tensors[:5]],
        "notes": sentences(checkpoint.notes),
        "oddities": [] if checkpoint.safety is None else list(map(str, checkpoint.safety.oddities[:20])),
        "globals": [use.name for use in checkpoint.globals[:50]],
        "verdict": safety.verdict,
        "answer": safety.answer.kind,
        "reason": safety.answer.sentence,
        "reasons": list(safety.reasons),
        "calls": [[row.path, row.text, row.verdict] for row in safety.calls[:20]],
        "findings": [finding.id for finding in findings],
    }


def _refused(error: CheckpointError) -> Answer:
    """What the program says of a file that it cannot read, and of what loading it would run all the same."""
    from inspector.report.jsonable import error_document
    from inspector.safety.unread import judge_unread

    document = error_document("file", error)
    seen = judge_unread(error)
    return {
        "error": str(error),
        "kind": type(error).__name__,
        "runs": seen.sentence if seen else "",
        "verdict": seen.verdict if seen else None,
        "globals": [name for name, _, _ in seen.names] if seen else [],
        "findings": [found["id"] for found in document["findings"]],
    }


def _cancelled_after(path: str) -> float | None:
    """Cancel from the beginning, and give how many seconds that took to be noticed."""
    from inspector.errors import CancelledError, CheckpointError
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress

    progress = Progress()
    timer = threading.Timer(_CANCELLED_AFTER_S, progress.cancel)
    timer.start()
    started = time.perf_counter()
    try:
        open_checkpoint(path, progress=progress)
    except CancelledError:
        return max(time.perf_counter() - started - _CANCELLED_AFTER_S, 0.0)
    except CheckpointError:
        pass
    finally:
        timer.cancel()
    return None  # it was over before


def _in_fork(path: str, *, cancel: bool) -> Answer:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, used + _ROOM))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S + 1))
        try:
            answer = {"cancelled_after": _cancelled_after(path)} if cancel else opened(path)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent shall hear of it
            answer = {"crash": f"{type(error).__name__}: {error}"[:2000]}
        with os.fdopen(writer, "w", encoding="utf-8", errors="backslashreplace") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status, used_by = os.wait4(pid, 0)
    answer = json.loads(said) if said else {"crash": f"ended with status {status}"}
    answer["seconds"] = round(used_by.ru_utime + used_by.ru_stime, 3)
    answer["memory_nbytes"] = used_by.ru_maxrss * 1024
    return answer


def _digest(path: str) -> str | None:
    if not os.path.isfile(path):  # noqa: PTH113 - whatever stands there
        return None
    with open(path, "rb") as file:  # noqa: PTH123 - the same
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    opened(str(_ROOT / "tests/data/corpus/zip/state_dict.pt"))  # no fork pays for what is imported once
    for line in sys.stdin:
        path = line.rstrip("\n")
        before = _digest(path)
        answer = _in_fork(path, cancel=False)
        if answer["seconds"] > _CANCELLED_AFTER_S / 2:  # else it is over before
            answer |= _in_fork(path, cancel=True) | {key: answer[key] for key in ("seconds", "memory_nbytes")}
        answer["untouched"] = before == _digest(path)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


class Runner:
    """The child that opens files for a test; it is started once."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.running"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )

    def open(self, path: Path) -> Answer:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(f"{path}\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def close(self) -> None:
        self._child.communicate()
        assert self._child.returncode == 0


def shortcomings(answer: Answer, says: dict[str, Any]) -> list[str]:
    """In what an answer is not what every hostile file must get, and not what this one should."""
    found = [f"{key}: {answer[key]}" for key in ("crash",) if key in answer]
    if answer["memory_nbytes"] >= MOST_NBYTES:
        found.append(f"{answer['memory_nbytes'] / 1e6:.0f} MB")
    if not answer["untouched"]:
        found.append("the file was changed")
    if ("error" in answer) != ("error" in says):
        found.append(f"error: {answer.get('error')}")
    for key, wanted in says.items():
        if key not in answer or not _agrees(answer[key], wanted):
            found.append(f"{key}: {answer.get(key)}, not {wanted}")
    return found


def delays(answer: Answer) -> list[str]:
    """In what a file took too long: for `make hostile` on a quiet machine, no test looks at a clock."""
    found = [f"{answer['seconds']} s"] if answer["seconds"] >= MOST_SECONDS else []
    late = answer.get("cancelled_after") or 0
    return [*found, f"cancelled after {late} s"] if late > MOST_LATE_SECONDS else found


def _agrees(found: object, wanted: object) -> bool:
    """A pattern is looked for in a text, or in any of a list; anything else must be equal."""
    if not isinstance(wanted, str):
        return found == wanted
    texts = [str(item) for item in found] if isinstance(found, list) else [str(found)]
    return any(re.search(wanted, text, re.DOTALL) for text in texts)


if __name__ == "__main__":
    sys.exit(main())
