"""Files and folders whose payload really runs, for every loader that people use on them.

A case is written, loaded by its own loader in a child process, which must leave the mark of the payload
behind, and opened here: the verdict must not be that it is safe, and a refusal must warn.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.torches import run_with_torch

MARK = "payload-ran"
"""The folder that a payload makes where the loader runs."""


class Payload:
    """Makes the mark when it is unpickled, as `pickle.dumps(Payload())` or within other values."""

    def __reduce__(self) -> tuple[object, ...]:
        return eval, (f"__import__('os').makedirs({MARK!r}, exist_ok=True)",)


def payload(protocol: int = 2) -> bytes:
    """Return a pickle that makes the mark."""
    return pickle.dumps(Payload(), protocol=protocol)


class Case(NamedTuple):
    """One file or folder, and what runs its payload.

    Attributes:
        name: What is odd about it, in a few words.
        reader: The reader of ours that it is for: `dcp`, `deepspeed`, `megatron`, `npz` ...
        loader: The loader that people use, such as `torch.distributed.checkpoint.load`.
        write: Writes it below an empty folder and returns the path that both open.
        load: Python that loads `path`, in a child with torch and the empty folder as its own; an exception
            after the payload does not matter. Empty where the loader cannot be installed.
        source: Where it cannot be installed: release, file and line of the loader that show that it runs.
    """

    name: str
    reader: str
    loader: str
    write: Callable[[Path], Path]
    load: str
    source: str = ""


def runs(case: Case, path: Path, folder: Path) -> bool:
    """Return whether the loader runs the payload of a written case, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    code = f"import os, sys\npath = {str(path)!r}\ntry:\n" + "".join(
        f"    {line}\n" for line in case.load.splitlines()
    )
    code += "except BaseException as error:\n    print(type(error).__name__, str(error)[:300])\n"
    said = run_with_torch("-c", code, cwd=folder)
    if not (folder / MARK).is_dir():
        sys.stderr.write(f"{case.name}: {said.stdout}{said.stderr}")
    return (folder / MARK).is_dir()
