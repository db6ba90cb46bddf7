"""What kinds of messages share when they are tied to a file."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context
from inspector.diagnose.errors.paste import Scene, read_pasted
from inspector.diagnose.errors.ties import by_finding, devices_of, fix_for, paths_on, top_keys
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix, finding
from inspector.safety.verdict import judge
from inspector.target.wish import parse_target
from tests.unit.diagnose.explaining import on
from tests.unit.report.rows import checkpoint, tensor, value


def context(made: Checkpoint, target: str | None = None, **found: object) -> Context:
    return Context(
        groups={},
        text="",
        pasted=read_pasted(""),
        scene=Scene(),
        checkpoint=made,
        safety=judge(made),
        target=None if target is None else parse_target(target),
        findings=found,  # type: ignore[arg-type]
    )


def test_findings_tie() -> None:
    made = finding("b", "note", "Title", "Detail.", ["w"], fix=Fix(rule="*=cpu"))
    tied = by_finding("a", "b", no="No.")(context(on(), b=made))
    assert (tied.fits, tied.here, tied.paths, tied.finding) == ("yes", "Title.", ("w",), "b")
    assert by_finding("a", no="No.")(context(on(), b=made)).here == "No."


def test_devices_and_paths() -> None:
    made = context(on(("a", "cuda:1"), ("b", "cuda"), ("c", "cuda0"), ("d", "cpu")), "mps")
    assert devices_of(made, "cuda") == ["cuda", "cuda:1"]
    assert paths_on(made, ["cuda", "cpu"]) == ["b", "d"]
    assert fix_for(made, ["cuda", "cuda:1"]) == Fix(rule="cuda:*=mps")
    assert fix_for(context(on()), ["a=b"]) is None


def test_keys_at_the_top() -> None:
    made = checkpoint(tensor("model", "a"), tensor("model", "b"), tensor(), value("epoch"), value(0, "x"))
    assert top_keys(context(made)) == ["model", "epoch", "0"]
