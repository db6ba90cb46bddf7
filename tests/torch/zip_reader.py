"""What torch's own zip reader makes of files, in a child with bounded memory and time.

`python -m tests.torch.zip_reader FOLDER` answers every file of a folder with a line of JSON. `torch.load` is
given a pickle module that carries nothing out: it keeps the bytes that torch hands it, which is the program
that torch would have run.
"""

from __future__ import annotations

import json
import resource
import sys
import types
import warnings
from pathlib import Path
from typing import Any

from tests.torches import run_with_torch

_ROOM = 2 << 30  # of address space, beyond what torch takes when it starts
_MOST_SECONDS = 300
_MOST_SHOWN = 1 << 12
KEYS = ("0", "1")
Answer = dict[str, Any]


def _capturing(seen: list[bytes]) -> types.ModuleType:
    """A pickle module that keeps what it is asked to load."""
    module = types.ModuleType("capturing")

    class Unpickler:
        def __init__(self, file: Any, **_: object) -> None:
            seen.append(file.read())

        def load(self) -> None:
            return None

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("this is no zip")

    module.Unpickler = Unpickler  # type: ignore[attr-defined]
    module.load = refuse  # type: ignore[attr-defined] - what the legacy loader calls
    return module


def _answer(path: Path) -> Answer:
    """What `torch.load` hands to pickle, and what it reads of each storage; or why it refuses."""
    import torch

    seen: list[bytes] = []
    answer: Answer = {"file": path.name, "storages": {}}
    try:
        torch.load(path, pickle_module=_capturing(seen), weights_only=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer["error"] = f"{type(error).__name__}: {error}"[:600]
    if seen:
        answer["pickle"] = seen[0][:_MOST_SHOWN].hex()
        with path.open("rb") as file:
            reader = torch._C.PyTorchFileReader(file)
            for key in KEYS:
                try:
                    answer["storages"][key] = reader.get_record(f"data/{key}")[:_MOST_SHOWN].hex()
                except RuntimeError as error:
                    answer["storages"][key] = f"error: {error}"[:200]
    return answer


def main() -> int:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, used + _ROOM))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    for path in sorted(Path(sys.argv[1]).iterdir()):
        sys.stdout.write(json.dumps(_answer(path)) + "\n")
        sys.stdout.flush()
    return 0


def ask_torch(folder: Path) -> dict[str, Answer]:
    done = run_with_torch("-m", "tests.torch.zip_reader", folder)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = map(json.loads, done.stdout.splitlines())
    return {answer["file"]: answer for answer in answers}


if __name__ == "__main__":
    sys.exit(main())
