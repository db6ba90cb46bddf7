"""Has torch really load hostile files, to see that what they are said to run is run: harmless commands only.

`python -m tests.hostile.executing` reads lines `PATH` from stdin, loads each in a fork of its own with
`weights_only=False`, and answers with a line of JSON: whether the command `id` was run, and the error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path

from tests.torches import run_with_torch

_SAID = b"uid="  # what `id` says


def _load(path: str, output: int) -> None:
    import torch

    signal.alarm(30)
    os.dup2(output, 1)
    os.dup2(output, 2)
    warnings.simplefilter("ignore")
    try:
        torch.load(path, weights_only=False, map_location="cpu")
    except BaseException as error:  # noqa: BLE001 - what it is does not matter, only what was run before
        os.write(output, f"{type(error).__name__}: {error}"[:500].encode(errors="replace"))
    os._exit(0)


def _run(path: str) -> dict[str, object]:
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            _load(path, said.fileno())
        os.waitpid(pid, 0)
        said.seek(0)
        text = said.read(1 << 16)
    return {"ran": _SAID in text, "said": text.decode(errors="replace")[:500]}


def main() -> int:
    import torch  # noqa: F401 - once, for all forks

    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(line.rstrip("\n"))) + "\n")
        sys.stdout.flush()
    return 0


def load_all(paths: list[Path]) -> list[dict[str, object]]:
    done = run_with_torch("-m", "tests.hostile.executing", given="".join(f"{path}\n" for path in paths))
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
