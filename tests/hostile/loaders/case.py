"""Files and folders whose payload really runs, for every loader that people use on them.

A case is written, loaded by its own loader in a child process, which must leave the mark of the payload
behind, and opened here: the verdict must not be that it is safe, and a refusal must warn.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.builders import zips
from tests.builders.pickles import As, call, proto, stream, text
from tests.torches import run_with_torch

MARK = "payload-ran"
"""The folder, or the file, that a payload makes where the loader runs."""


CODE = f"__import__('os').makedirs({MARK!r}, exist_ok=True)"
EVIL = call("builtins.eval", text(CODE))
"""Instructions that make the mark."""


TORCH = "import torch; torch.load(path, weights_only=False)"


def payload(protocol: int = 2) -> bytes:
    """Return a pickle that makes the mark, as Python writes it."""
    return pickle.dumps(As(eval, (CODE,)), protocol=protocol)


class Case(NamedTuple):
    """One file or folder, and what runs its payload.

    Attributes:
        name: What is odd about it, in a few words.
        reader: The reader of ours that it is for: `dcp`, `deepspeed`, `megatron`, `npz` ...
        loader: The loader that people use, such as `torch.distributed.checkpoint.load`.
        write: Writes it below an empty folder and returns the path that both open.
        load: Python that loads `path`, in a child with torch and the empty folder as its own; an exception
            after the payload does not matter.
    """

    name: str
    reader: str
    loader: str
    write: Callable[[Path], Path]
    load: str


def file(name: str, data: bytes) -> Callable[[Path], Path]:
    return partial(_write, name, data)


def _write(name: str, data: bytes, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def files(
    reader: str, loader: str, load: str, rows: Mapping[str, bytes], suffixes: Sequence[str] = (".pt",)
) -> Iterator[Case]:
    """Yield a case for each file under each suffix, which several add to the name."""
    for title, data in rows.items():
        for suffix in suffixes:
            name = f"{title}, {suffix}" if len(suffixes) > 1 else title
            yield Case(name, reader, loader, file(f"a{suffix}", data), load)


def zipped(*names: str, evil: int = 0) -> bytes:
    """Return a zip of torch with records of these names, of which one is evil."""
    pushes = (EVIL if number == evil else b"}" for number in range(len(names)))
    records = (
        zips.Record(name=f"archive/{name}", data=stream(proto(), push))
        for name, push in zip(names, pushes, strict=True)
    )
    return zips.build_zip(*records, zips.Record(name="archive/version", data=b"3\n"), zip64=True)


def run_all(cases: Sequence[Case], paths: Sequence[Path], folder: Path) -> list[bool]:
    """Return, for written cases, whether their loaders run the payload; each in a folder of its own.

    They are loaded one after the other in one child: torch's loaders take a second to import.
    """
    homes = [folder / str(number) for number in range(len(cases))]
    for home in homes:
        home.mkdir(parents=True)
    jobs = [(str(home), str(path), case.load) for home, path, case in zip(homes, paths, cases, strict=True)]
    run_with_torch("-c", _LOADING, given=json.dumps(jobs), cwd=folder)
    return [(home / MARK).exists() for home in homes]


_LOADING = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
for home, path, code in json.load(sys.stdin):
    os.chdir(home)
    try:
        exec(code, {"path": path})
    except BaseException:  # an error behind the payload does not matter
        pass
"""
