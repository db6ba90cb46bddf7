from __future__ import annotations

from inspector.records import replace
from inspector.session.judgment import load_of
from inspector.target.machine.profile import CPU_ONLY
from tests.unit.session.documents import saved_on


def test_a_document_is_judged_once_for_each_machine() -> None:
    document = saved_on("cpu", names=("m.Net",))
    first = load_of(document, CPU_ONLY)
    assert load_of(document, CPU_ONLY) is first
    assert first.safety is document.safety
    older = load_of(document, replace(CPU_ONLY, torch_version="2.4"))
    assert (first.way, older.way) == ("names", "unchecked")
    assert older.safety.torch_version.startswith("2.4")
