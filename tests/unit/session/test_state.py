from __future__ import annotations

from inspector.session.state import State
from inspector.target.machine.profile import Profile


def test_this_machine_counts_as_having_no_gpu_until_it_has_answered() -> None:
    assert State().machine == Profile(id="this", label="this machine (taken as CPU only)")
    assert State(probing=True).machine.label == "this machine (looking for GPUs \u2026)"
    assert State(probing=True).machine.devices == ("cpu",)
    found = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))
    assert State(this_machine=found).machine is found
