"""The one judgment; `tests/property/test_one_truth.py` compares it with all that is said of a file."""

from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import DefaultLoad, code_weights_only, judge_for, judge_load
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

OTHER_OPCODE = Safety(opcodes=("POP",), protocol=2, oddities=(), unread=())
AMBIGUOUS = (Note(NoteKind.SHARED_NAME),)
ON_GPU = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))


def names(*dotted: str) -> tuple[GlobalUse, ...]:
    return tuple(GlobalUse(name=name, count=1) for name in dotted)


def on(version: str | None) -> Profile:
    return replace(CPU_ONLY, torch_version=version)


def facts(load: DefaultLoad) -> tuple[str, bool, bool, bool | None]:
    return load.way, load.loads, load.is_safe, load.code.weights_only


@table(
    ("made", "version", "expected"),
    [
        (checkpoint(tensor("w")), None, ("as-it-is", True, True, True)),
        (checkpoint(tensor("w")), "2.4", ("as-it-is", True, True, True)),
        (checkpoint(globals=names("m.Net")), None, ("names", False, False, True)),
        (checkpoint(globals=names("m.Net")), "2.4", ("unchecked", True, False, True)),
        (checkpoint(globals=names("m.Net")), "2.3", ("unchecked", True, False, False)),
        (checkpoint(globals=names("m.Net")), "1.12", ("unchecked", True, False, None)),
        (checkpoint(safety=OTHER_OPCODE), "2.6", ("full", False, False, False)),
        (checkpoint(safety=OTHER_OPCODE), "2.4", ("unchecked", True, False, False)),
        (checkpoint(globals=names("os.system")), None, ("never", False, False, True)),
        (checkpoint(globals=names("os.system")), "2.4", ("never", True, False, True)),
        (checkpoint(*ON_GPU), None, ("other", False, True, True)),
        (checkpoint(format="torchscript"), None, ("unchecked", True, False, False)),
        (checkpoint(notes=AMBIGUOUS), None, ("unsure", True, False, True)),
        (checkpoint(notes=AMBIGUOUS), "2.4", ("unsure", True, False, True)),
        (checkpoint(*ON_GPU, notes=AMBIGUOUS), None, ("other", False, False, True)),
        (checkpoint(notes=AMBIGUOUS, globals=names("m.Net")), None, ("full", False, False, False)),
        (checkpoint(globals=names("builtins.set")), "2.4", ("unchecked", True, False, True)),
        (checkpoint(globals=names("builtins.set")), "2.6", ("as-it-is", True, True, True)),
    ],
)
def test_ways(made: Checkpoint, version: str | None, expected: tuple[str, bool, bool, bool | None]) -> None:
    assert facts(judge_load(made, on(version))) == expected


def test_what_stops_the_code_is_asked_apart() -> None:
    load = judge_load(checkpoint(*ON_GPU, globals=names("m.Net")), CPU_ONLY)
    assert load.failure is not None
    assert load.failure.finding == "needs-allow-list"
    assert load.last_error is load.stop
    assert load.stop is not None
    assert load.stop.device == "cuda:0"


def test_nothing_else_stops_what_is_only_refused() -> None:
    refused = judge_load(checkpoint(globals=names("m.Net")), CPU_ONLY)
    assert refused.last_error is None
    missing = judge_load(checkpoint(*ON_GPU), CPU_ONLY)
    assert missing.last_error is not None
    script = judge_load(checkpoint(format="torchscript"), CPU_ONLY)
    assert script.last_error is None
    old = judge_load(checkpoint(globals=names("m.Net")), on("2.4"))
    assert old.last_error is None


def test_the_dangerous_is_stopped_by_its_own_refusal() -> None:
    load = judge_load(checkpoint(globals=names("os.system")), CPU_ONLY)
    assert load.stop is load.failure
    assert load.code.refusal is not None


def test_a_verdict_counts_for_its_own_torch_only() -> None:
    made = checkpoint(globals=names("builtins.set"))
    newest = judge(made)
    assert judge_for(made, None, newest) is newest
    assert judge_for(made, on("2.13.0+cu130"), newest) is newest
    assert judge_for(made, on("2.4"), newest).verdict == "needs-allow-list"
    assert judge_for(made, None).verdict == "weights-only"
    assert judge_load(made, CPU_ONLY, newest).safety is newest
    assert code_weights_only(newest)
