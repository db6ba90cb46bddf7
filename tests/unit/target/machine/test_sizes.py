from __future__ import annotations

from inspector.records import replace
from inspector.target.machine.profile import presets
from inspector.target.machine.sizes import SIZES, in_order, sized_presets
from inspector.target.machine.wish import parse_target


def test_the_id_of_each_is_what_the_command_line_takes() -> None:
    found = {machine.id: machine for machine in sized_presets()}
    assert len(found) == sum(map(len, SIZES.values()))
    for word, machine in found.items():
        assert replace(parse_target(word), id=word) == machine
    assert found["cuda@24gb"].label == "1 NVIDIA GPU of 24 GB"
    assert found["8xcuda@141gb"].label == "8 NVIDIA GPUs of 141 GB each"
    assert [gpu.memory_nbytes for gpu in found["2xcuda@80gb"].gpus] == [80 * 10**9] * 2
    assert found["cpu@64gb"].memory_nbytes == 64 * 10**9
    assert found["mps@32gb"].memory_nbytes == 32 * 10**9


def test_every_kind_is_one_that_is_offered_anyway() -> None:
    assert set(SIZES) == {machine.id for machine in presets()}


def test_each_stands_behind_its_kind() -> None:
    ids = [machine.id for machine in in_order((*presets(), *sized_presets()))]
    assert ids[:3] == ["cpu", "cpu@8gb", "cpu@16gb"]
    assert ids[ids.index("cuda") + 1] == "cuda@8gb"
    assert len(ids) == len(set(ids)) == len(presets()) + len(sized_presets())
