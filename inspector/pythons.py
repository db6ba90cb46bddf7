"""The Pythons of this machine, and the one that counts: whose torch loads the user's files.

This program may run in an environment of its own, without torch. What it says of "this machine" is about the
Python that the user's programs run with: the one that was named, else that of the active environment
(`$VIRTUAL_ENV`, `$CONDA_PREFIX`), else `python3` or `python` of `PATH`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from inspector.child import Worker, find_program, worker_script
from inspector.errors import PlanError, WorkerError
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text, escape_text

OPTION = "--python"
"""The option that names one; also the origin of a Python that was named."""

_OWN = "this program's own"
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_NAMES = ("python3", "python")
_TIMEOUT_S = 30.0
_MOST_LISTED = 64
_MOST_LIST_NBYTES = 1 << 20
_MOST_TEXT = 100
_IN_FOLDER = ("python.exe", "Scripts/python.exe") if os.name == "nt" else ("bin/python3", "bin/python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """An interpreter.

    Attributes:
        origin: What names it: `--python`, `$VIRTUAL_ENV`, `python3 on PATH`, ...
    """

    path: str
    origin: str

    @property
    def label(self) -> str:
        """The path and what names it, for people."""
        return f"{self.path} ({self.origin})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an interpreter has.

    Attributes:
        torch: The version of its torch, which was not imported; empty where it is not known, and None
            where there is none.
    """

    version: str
    torch: str | None


def find_pythons(environ: Mapping[str, str] | None = None, home: Path | None = None) -> tuple[Python, ...]:
    """Return the interpreters that are found on this machine, each once, those that count most first.

    Only files are looked at; none is started. Relative entries of `PATH` and of lists are passed over: they
    would mean the folder of a checkpoint.
    """
    environ = os.environ if environ is None else environ
    home = home or Path.home()
    found: dict[tuple[str, str], Python] = {}
    for python in (*_active(environ), *_on_path(), *_own(), *_conda(home), *_pyenv(environ, home)):
        path = Path(python.path)
        key = (os.path.realpath(path.parent), os.path.realpath(path))
        found.setdefault(key, python)
    return tuple(found.values())


def name_python(text: str) -> Python:
    """Return the interpreter that a text names: a word on `PATH`, its path, or an environment."""
    path = Path(text).expanduser()
    found: str | None = None
    if Path(text).name == text:  # a bare word is never a folder here, which may be that of a checkpoint
        found = find_program(text)
    elif path.is_dir():
        found = _in_folder(os.path.abspath(path))  # noqa: PTH100 - a link to an interpreter stays one
    elif _is_program(path):
        found = os.path.abspath(path)  # noqa: PTH100 - the same
    if found is None:
        remedy = "name the python of an environment, or its folder; one that is here begins with ./"
        raise PlanError(f"there is no Python {cut_text(escape_text(text), _MOST_TEXT)!r}", remedy=remedy)
    return Python(path=found, origin=OPTION)


def choose_python(named: str | None, progress: Progress) -> Python:
    """Return the interpreter that counts.

    Of several on `PATH` the first with a torch is taken, and this program's own before one without.
    """
    if named is not None:
        return name_python(named)
    for active in _active(os.environ):
        return active
    candidates = (*_on_path(), *_own())
    for python in candidates:
        answer = ask_python(python, progress)
        if answer is not None and answer.torch is not None:
            return python
    for python in candidates:
        return python
    remedy = f"name one with {OPTION}, or choose a target such as cpu"
    raise PlanError("no Python was found on this machine", remedy=remedy)


def ask_python(python: Python, progress: Progress) -> Installed | None:
    """Ask an interpreter what it has, without importing it; None where it gives no answer."""
    try:
        with Worker(python=python.path) as worker:
            head = worker.ask(worker_script("environment"), {}, progress=progress, timeout_s=_TIMEOUT_S).head
    except WorkerError:
        return None
    version, torch = head.get("version"), head.get("torch")
    if not isinstance(version, str) or not isinstance(torch, str | None):
        return None
    return Installed(version=_text(version), torch=None if torch is None else _text(torch))


def _text(text: str) -> str:
    return cut_text(escape_text(text), _MOST_TEXT)


# --- where they are -----------------------------------------------------------------------------------------


def _active(environ: Mapping[str, str]) -> Iterator[Python]:
    for name in _ACTIVE:
        path = _in_folder(environ.get(name, ""))
        if path is not None:
            yield Python(path=path, origin=f"${name}")


def _on_path() -> Iterator[Python]:
    for name in _NAMES:
        path = find_program(name)
        if path is not None:
            yield Python(path=path, origin=f"{name} on PATH")


def _own() -> Iterator[Python]:
    """Yield the interpreter that runs this program; a frozen program is none."""
    if sys.executable and not getattr(sys, "frozen", False):
        yield Python(path=sys.executable, origin=_OWN)


def _conda(home: Path) -> Iterator[Python]:
    """Yield those of the environments that conda keeps a list of.

    https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/custom-env-and-pkg-locations.html
    """
    try:
        with (home / ".conda" / "environments.txt").open("rb") as stream:
            text = stream.read(_MOST_LIST_NBYTES).decode("utf-8", "replace")
    except OSError:
        return
    yield from _environments(text.splitlines(), "conda")


def _pyenv(environ: Mapping[str, str], home: Path) -> Iterator[Python]:
    """Yield those that pyenv installed, below its folder `versions` (README of github.com/pyenv/pyenv)."""
    root = Path(environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    try:
        folders = sorted(os.fspath(folder) for folder in root.iterdir())
    except OSError:
        return
    yield from _environments(folders, "pyenv")


def _environments(folders: Iterable[str], origin: str) -> Iterator[Python]:
    for folder, _ in zip(folders, range(_MOST_LISTED), strict=False):
        path = _in_folder(folder.strip())
        if path is not None:
            yield Python(path=path, origin=origin)


def _in_folder(folder: str) -> str | None:
    """Return the interpreter of an environment's folder; None where it has none."""
    if not os.path.isabs(folder):  # noqa: PTH117 - a text from elsewhere
        return None
    places = (Path(folder) / name for name in _IN_FOLDER)
    return next((os.fspath(place) for place in places if _is_program(place)), None)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
