from __future__ import annotations

from inspector.errors import ExportError
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.rules import parse_rule
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.operations import Job
from inspector.session.present.failure import failure_page
from inspector.session.state import PROBE, ExportState, State
from inspector.target.profile import Profile
from tests.sweep import table
from tests.unit.session.documents import saved_on

DOCUMENT = saved_on("cuda:0", "cuda:1", "cpu")
DRAFT = ExportDraft(wish=ExportWish(), kinds=(), destination="/b.pth", summary=())


def test_this_machine_counts_as_having_no_gpu_until_it_has_answered() -> None:
    assert State().machine == Profile(id="this", label="this machine (taken as CPU only)")
    probing = State(jobs=(Job(kind=PROBE, about=None, progress=Progress()),))
    assert probing.machine.label == "this machine (looking for GPUs \u2026)"
    assert probing.machine.devices == ("cpu",)
    found = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))
    assert State(this_machine=found).machine is found


def test_a_device_rule_is_written_out_for_the_devices_of_the_file() -> None:
    state = State(chosen=(("cpu", "cpu"),)).with_rule(parse_rule("cuda:*=mps"), DOCUMENT)
    assert state.chosen == (("cpu", "cpu"), ("cuda:0", "mps"), ("cuda:1", "mps"))
    assert state.branches == ()


def test_a_branch_has_one_destination() -> None:
    state = State()
    for rule in ("path:a/**@cpu", "path:b@cpu", "path:a/**@cuda:0"):
        state = state.with_rule(parse_rule(rule), DOCUMENT)
    assert [(rule.path, rule.to) for rule in state.branches] == [("a/**", "cuda:0"), ("b", "cpu")]


@table(
    ("changes", "offered"),
    [
        ({}, True),
        ({"step": "write"}, False),
        ({"failure": failure_page(ExportError("no"), "")}, False),
        ({"draft": None}, False),
        ({"draft": replace(DRAFT, refusal="no")}, False),
    ],
)
def test_a_draft_can_be_carried_out_while_it_is_shown(changes: dict[str, object], offered: bool) -> None:
    export = replace(ExportState(step="draft", draft=DRAFT), **changes)
    assert (export.offered is DRAFT) == offered
