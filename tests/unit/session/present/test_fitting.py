"""What does not fit reaches the verdict, for the map and the way of loading that were chosen."""

from __future__ import annotations

import pytest

from inspector.records import replace
from inspector.remap.rules import parse_rule
from inspector.session.present.compose import compose
from inspector.session.screen import FindingRow, Loading, Screen
from inspector.session.state import State
from inspector.target.profile import Gpu, Profile
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import document_of

MB = 1_000_000
CARD = Profile(
    id="card",
    label="two GPUs",
    accelerators=(("cuda", 2),),
    gpus=(Gpu(device="cuda:0", memory_nbytes=300 * MB), Gpu(device="cuda:1", memory_nbytes=5000 * MB)),
    memory_nbytes=4000 * MB,
)


@pytest.fixture
def state() -> State:
    """892 MB that were saved on a GPU which the target lacks."""
    rows = [tensor("w", device="cuda:2", storage="0"), tensor("v", device="cuda:2", storage="1")]
    stored = [storage("0", "cuda:2", 800 * MB), storage("1", "cuda:2", 92 * MB)]
    document = document_of(checkpoint(*rows, *stored))
    return State(phase="ready", path="a.pth", document=document, machines=(CARD,), target="card")


def finding_of(screen: Screen, id_: str) -> FindingRow | None:
    return next((row for row in screen.findings if row.id == id_), None)


def test_a_map_onto_a_card_that_is_too_small_is_a_bad_verdict(state) -> None:
    screen = compose(state)
    assert [row.to for row in screen.device_map] == ["cuda:0"]
    banner = screen.banner
    assert banner.tone == "bad"
    assert banner.verdict == "Does not load: saved on cuda:2; after the map, cuda:0 is 592 MB too small."
    assert "takes 892 MB of cuda:0, which has 300 MB: 592 MB too much" in banner.advice
    assert "What fits: all of it on cuda:1 (5.0 GB)" in banner.advice
    assert "Map cuda:2 to cuda:0" not in banner.advice
    assert finding_of(screen, "map-does-not-fit").tone == "bad"
    room = screen.charts[1].bars[0]
    assert (room.label, room.excess_nbytes, room.capacity_nbytes) == ("cuda:0", 592 * MB, 300 * MB)


def test_another_map_is_judged_anew(state) -> None:
    screen = compose(replace(state, chosen=(("cuda:2", "cuda:1"),)))
    assert finding_of(screen, "map-does-not-fit") is None
    assert "too small" not in screen.banner.verdict
    assert screen.charts[1].bars[0].excess_nbytes == 0
    back = compose(replace(state, chosen=(("cuda:2", "cpu"),)))
    assert finding_of(back, "map-does-not-fit") is None


def test_processes_and_mapping_count(state) -> None:
    cpu = replace(state, chosen=(("cuda:2", "cpu"),), loading=Loading(ranks=8))
    screen = compose(cpu)
    assert "Loading in 8 processes at once takes 7.1 GB" in finding_of(screen, "map-does-not-fit").detail
    assert "4 processes at once" in screen.banner.advice


def test_a_rule_for_a_branch_counts(state) -> None:
    moved = replace(state, branches=(parse_rule("path:w@cuda:1"),))
    screen = compose(moved)
    assert screen.charts[1].bars[0].nbytes == 92 * MB
    assert finding_of(screen, "map-does-not-fit") is None


def test_a_file_that_loads_and_has_no_room_for_a_model_is_a_warning() -> None:
    rows = [tensor("w", device="cpu", storage="0", nbytes=892 * MB), storage("0", "cpu", 892 * MB)]
    small = Profile(id="small", label="small", memory_nbytes=1000 * MB)
    state = State(
        phase="ready",
        path="a.pth",
        document=document_of(checkpoint(*rows)),
        machines=(small,),
        target="small",
    )
    screen = compose(state)
    found = finding_of(screen, "model-does-not-fit")
    assert "CPU memory is 784 MB too small: at the peak, load_state_dict takes 1.8 GB." in found.detail
    assert screen.banner.tone == "warning"
    assert "Filling a model takes more memory than there is" in screen.banner.advice
    roomy = replace(state, machines=(replace(small, memory_nbytes=2000 * MB),))
    assert finding_of(compose(roomy), "model-does-not-fit") is None
    assert "Filling a model" not in compose(roomy).banner.advice
    tiny = compose(replace(state, machines=(replace(small, memory_nbytes=800 * MB),)))
    assert finding_of(tiny, "does-not-fit").tone == "bad"
    assert finding_of(tiny, "model-does-not-fit") is None  # which is the lesser trouble


def test_without_a_byte_there_are_no_charts() -> None:
    for rows in ((), (tensor("m", device="meta"),)):
        state = State(phase="ready", path="a.pth", document=document_of(checkpoint(*rows)))
        assert compose(state).charts == ()
