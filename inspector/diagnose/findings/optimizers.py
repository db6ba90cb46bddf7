"""Rules about optimizers that were pickled whole: they hold their parameters and are used as loaded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from inspector.diagnose.case import Case
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import is_destination
from inspector.target.after_load import Complaint, is_own_parameter, whole_optimizer_failure
from inspector.target.parts import Form, Kind, parts_of

_MOST = 16


def find_apart(case: Case) -> Iterator[Finding]:
    """Find optimizers whose state and parameters do not go together where they were saved."""
    checkpoint = case.checkpoint
    strays: dict[Complaint, list[str]] = {}
    home = ""
    whole = (
        part for part in parts_of(checkpoint) if part.kind is Kind.OPTIMIZER and part.form is Form.OBJECT
    )
    for part in islice(whole, _MOST):
        rows = part.tensors(checkpoint)
        own = [row.device for row in rows if is_own_parameter(row)]
        apart = [row.path for row in rows if row.device not in own]
        said = whole_optimizer_failure(checkpoint, part) if apart else None
        if said:
            home = home or own[0]
            strays.setdefault(said, []).extend(apart)
    for said, paths in strays.items():
        yield (_counters if said is Complaint.CAPTURABLE else _state)(said, paths, home)


def _counters(said: Complaint, paths: list[str], home: str) -> Finding:
    title = "The step counters of a pickled optimizer are not with its parameters"
    return finding("step-off-accelerator", "warning", title, _detail(said), paths, fix=_fix(home))


def _state(said: Complaint, paths: list[str], home: str) -> Finding:
    title = "The state of a pickled optimizer is not with its parameters"
    return finding("optimizer-off-parameter-device", "warning", title, _detail(said), paths, fix=_fix(home))


def _detail(said: Complaint) -> str:
    return (
        f"The optimizer was pickled whole, so it is used as loaded, and optimizer.step() fails with '{said} "
        "...'. Map everything to one device, or give the state_dict() of this optimizer to a new one, which "
        "moves it to the parameters."
    )


def _fix(home: str) -> Fix | None:
    return Fix(rule=f"*={home}") if is_destination(home) else None
