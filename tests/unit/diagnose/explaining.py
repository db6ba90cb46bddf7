"""Messages and the files they are about, for the tests of each table of messages."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.target.profile import Profile
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor


def on(*places: tuple[str, str], **fields: object) -> Checkpoint:
    """Weights as (name, device), each with a storage of its own."""
    rows: list[object] = []
    for number, (name, device) in enumerate(places):
        key = str(number)
        rows += [storage(key, device), tensor(*name.split("/"), device=device, storage=key)]
    return checkpoint(*rows, **fields)


def asking(*names: str, **fields: object) -> Checkpoint:
    """A file whose pickle asks for these names."""
    return checkpoint(globals=tuple(GlobalUse(name=name, count=1) for name in names), **fields)


def explained(text: str, made: Checkpoint, target: str | Profile | None = None, *, id_: str) -> Explanation:
    """The explanation, when it is of the expected kind."""
    machine = parse_target(target) if isinstance(target, str) else target
    found = explain_error(text, made, machine)
    assert found.id == id_
    return found
