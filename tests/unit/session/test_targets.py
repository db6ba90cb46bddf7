from __future__ import annotations

from inspector.session.state import State
from inspector.session.targets import target_of, targets_of
from inspector.target.profile import Profile


def test_targets_begin_with_this_machine() -> None:
    choices = targets_of(State())
    assert (choices[0].id, choices[0].label) == ("this", "This machine (taken as CPU only)")
    assert [choice.id for choice in choices[1:] if "@" not in choice.id] == [
        "cpu",
        "cuda",
        "2xcuda",
        "4xcuda",
        "8xcuda",
        "mps",
        "xpu",
        "rocm",
    ]
    labels = {choice.id: choice.label for choice in choices}
    assert labels["cuda@24gb"] == "1 NVIDIA GPU of 24 GB"
    assert list(labels).index("cuda@8gb") == list(labels).index("cuda") + 1
    assert target_of(State(target="mps")).devices == ("mps", "cpu")
    found = Profile(id="this", label="this machine (Apple GPU)", accelerators=(("mps", 1),))
    assert target_of(State(target="this", this_machine=found)) is found
