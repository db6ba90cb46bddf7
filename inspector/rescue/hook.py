"""The hook: a folder of our own, of which one part is at the front of PYTHONPATH of every Python below.

Nothing is installed. The folder lies where temporary files lie, belongs to this user alone, holds copies of
`resources/rescue` with what they have to do, and is removed when the command has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inspector.errors import ExportError
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.records import dataclass
from inspector.resources import RESCUE, resource_path
from inspector.target.machine.wish import Wish

_START = "start"
"""The folder that is on the path: nothing lies in there but what Python imports at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The folder while it is there.

    Attributes:
        folder: The folder.
        environment: The environment for the command.
    """

    folder: Path
    environment: Mapping[str, str]

    @property
    def journal(self) -> Path:
        """Where the processes write down what they did."""
        return self.folder / "journal"

    @property
    def module(self) -> str:
        """The name that the hook's start has in each process."""
        return f"_checkpoint_inspector_{self.folder.name.replace('-', '_')}_start"


@contextlib.contextmanager
def hooked(rules: Sequence[tuple[str, str]], target: Wish, *, maps_missing: bool = True) -> Iterator[Hook]:
    """Yield the hook for these rules, and remove it afterwards.

    Args:
        rules: Device patterns and where they go, in their order.
        target: The machine whose devices count as being there. This one is looked at by the program's torch.
        maps_missing: Whether devices that no rule covers are mapped where they are missing.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="checkpoint-inspector-run-")).resolve()
    except OSError as error:
        raise ExportError("the folder of the start-up hook cannot be made", where=error.filename) from error
    try:
        try:
            settings = _settings(rules, target, maps_missing=maps_missing)
            _fill(folder, settings)
        except OSError as error:
            raise ExportError("the start-up hook cannot be written", where=str(folder)) from error
        yield Hook(folder=folder, environment=_environment(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, settings: dict[str, object]) -> None:
    for name in (_START, "parts", "journal"):
        (folder / name).mkdir()
    for path in resource_path(RESCUE).glob("*.py"):
        shutil.copyfile(path, folder / (_START if path.name == "sitecustomize.py" else "parts") / path.name)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _settings(rules: Sequence[tuple[str, str]], target: Wish, *, maps_missing: bool) -> dict[str, object]:
    """Return what `resources/rescue/rescue.py` reads."""
    kinds = [row for row in DEVICE_TYPES.values() if row.noun]
    return {
        "rules": rules,
        "maps_missing": maps_missing,
        "target": _target(target),
        "kinds": [row.name for row in kinds],
        "lacks": {row.name: sorted(row.lacks) for row in kinds if row.lacks},
    }


def _target(wish: Wish) -> dict[str, object] | None:
    """Return what counts as being there, where things go, and whether all go there; None for this machine."""
    machine = wish.machine
    if machine is None:
        return (
            None if wish.wanted is None else {"counts": None, "destination": wish.wanted, "takes_all": True}
        )
    target = wish.profile(lambda: machine)
    return {
        "counts": dict(target.accelerators),
        "destination": target.destination,
        "takes_all": target.wanted is not None,
    }


def _environment(folder: Path) -> dict[str, str]:
    """Return our environment with the folder first; an empty PYTHONPATH must not become a dot."""
    before = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder / _START), *([before] if before else [])]),
    }
