from __future__ import annotations

from inspector.target.profile import SIZES, offered, offered_machine, presets
from inspector.target.wish import parse_target


def test_each_is_what_the_command_line_makes_of_its_id() -> None:
    labels = dict(offered())
    assert len(labels) == len(offered()) == len(presets()) + sum(map(len, SIZES.values()))
    found = {word: offered_machine(word) for word in labels}
    for word, machine in found.items():
        made = parse_target(word)
        assert machine is not None
        assert (machine.id, machine.label, machine.gpus) == (word, labels[word], made.gpus)
        assert (machine.accelerators, machine.memory_nbytes) == (made.accelerators, made.memory_nbytes)
    assert labels["cuda@24gb"] == "1 NVIDIA GPU of 24 GB"
    assert labels["8xcuda@141gb"] == "8 NVIDIA GPUs of 141 GB each"
    assert labels["cpu@64gb"] == "CPU only, 64 GB of memory"
    known = {word: machine for word, machine in found.items() if machine is not None}
    assert [gpu.memory_nbytes for gpu in known["2xcuda@80gb"].gpus] == [80 * 10**9] * 2
    assert known["mps@32gb"].memory_nbytes == 32 * 10**9
    assert [known[preset.id] for preset in presets()] == list(presets())


def test_every_kind_is_one_that_is_offered_anyway() -> None:
    assert set(SIZES) == {machine.id for machine in presets()}


def test_what_is_not_offered_is_no_machine() -> None:
    assert [offered_machine(word) for word in ("this", "cuda@25gb", "cuda@24GB", "")] == [None] * 4


def test_each_stands_behind_its_kind() -> None:
    ids = [word for word, _ in offered()]
    assert ids[:3] == ["cpu", "cpu@8gb", "cpu@16gb"]
    assert ids[ids.index("cuda") + 1] == "cuda@8gb"
