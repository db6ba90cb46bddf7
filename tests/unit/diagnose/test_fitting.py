"""What does not fit where a map puts it, and what is said to fit, is tried."""

from __future__ import annotations

from inspector.diagnose import fitting
from inspector.diagnose.fitting import (
    Overflow,
    advised_moves,
    overflow_finding,
    overflow_of,
    overflow_text,
    smallest_memory,
)
from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from inspector.target.wish import parse_target
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint, storage, tensor

MB = 1_000_000


def machine(*memory: int | None, host: int | None = None) -> Profile:
    gpus = tuple(Gpu(device=f"cuda:{number}", memory_nbytes=size) for number, size in enumerate(memory))
    kinds = (("cuda", len(memory)),) if memory else ()
    return Profile(id="this", label="this machine", accelerators=kinds, gpus=gpus, memory_nbytes=host)


def training(device: str = "cuda:5", **fields: object) -> Checkpoint:
    """Weights of 100 MB in float32, and an optimizer of 200 MB."""
    return checkpoint(
        tensor("w", device=device, storage="0", nbytes=100 * MB),
        tensor("o", device=device, storage="1", nbytes=200 * MB, role="optimizer"),
        storage("0", device, 100 * MB),
        storage("1", device, 200 * MB),
        **fields,
    )


def texts(found: Overflow) -> tuple[str, ...]:
    return tuple(one.text for one in found.fitting)


MOVES = (("cuda:5", "cuda:0"),)


def test_by_how_much_a_map_does_not_fit_and_what_does() -> None:
    found = overflow_of(training(), machine(160 * MB, 350 * MB, host=800 * MB), MOVES)
    assert found is not None
    assert (found.room.device, found.excess_nbytes) == ("cuda:0", 140 * MB + 256)  # in CUDA's pieces
    assert overflow_text(found) == (
        "Loading takes 300 MB of cuda:0, which has 160 MB: 140 MB too much. What fits: all of it on "
        "cuda:1 (350 MB); all of it on the CPU (800 MB); the weights alone (100 MB); the weights in bfloat16 "
        "(50.0 MB)."
    )
    card = overflow_finding(training(), MOVES, found)
    assert card.id == "map-does-not-fit"
    assert card.title == "After the map, cuda:0 is 140 MB too small"
    assert card.fix == Fix(rule="cuda:5=cpu")
    assert card.paths == ("w", "o")


def test_what_does_not_fit_is_not_offered() -> None:
    found = overflow_of(training(), machine(60 * MB, 299 * MB, host=10 * MB), MOVES)
    assert found.room.device == "host" or texts(found) == ("the weights in bfloat16 (50.0 MB)",)
    found = overflow_of(training(), machine(60 * MB, None, host=None), MOVES)
    assert texts(found) == (
        "all of it on the CPU, if that has 300 MB free",
        "the weights in bfloat16 (50.0 MB)",
    )
    found = overflow_of(training(), machine(10 * MB, host=210 * MB), MOVES)
    assert texts(found) == ()
    assert overflow_text(found).endswith("Nothing else that could be tried fits either.")
    assert overflow_finding(training(), MOVES, found).fix is None


def test_the_memory_of_the_cpu_can_be_too_small() -> None:
    small = replace(CPU_ONLY, memory_nbytes=150 * MB)
    found = overflow_of(training("cpu"), small, ())
    assert texts(found)[0] == "mmap=True, which reads only what is used"
    card = overflow_finding(training("cpu"), (), found)
    assert card.title == "The CPU's memory is 150 MB too small"
    assert card.fix == Fix(option=("mmap", "True"))
    assert overflow_of(training("cpu"), small, (), mmap=True) is None
    legacy = overflow_of(training("cpu", format="legacy"), small, ())
    assert not any("mmap" in text for text in texts(legacy))


def test_fewer_processes_fit() -> None:
    big = machine(10**12, host=1000 * MB)
    found = overflow_of(training("cpu"), big, (), ranks=4)
    assert overflow_text(found).startswith(
        "Loading in 4 processes at once takes 1.2 GB of the CPU's memory, which has 1.0 GB: 200 MB too much. "
        "What fits: 3 processes at once;"
    )
    assert overflow_of(training("cpu"), big, (), ranks=3) is None
    found = overflow_of(training("cpu"), machine(10**12, host=400 * MB), (), ranks=2)
    assert texts(found)[0] == "one process at a time"
    found = overflow_of(training("cpu"), machine(10**12, host=100 * MB), (), ranks=2)
    assert not any("process" in text for text in texts(found))


def test_nothing_is_known_or_all_fits() -> None:
    assert overflow_of(training(), machine(None), MOVES) is None
    assert overflow_of(training(), machine(301 * MB, host=10**10), MOVES) is None
    assert smallest_memory(parse_target("cuda@24gb")) == 24 * 10**9
    assert smallest_memory(parse_target("8xcuda")) is None


def test_parts_of_the_tree_count_where_their_rules_put_them() -> None:
    card = machine(250 * MB, 250 * MB, host=10**10)
    assert overflow_of(training(), card, MOVES, stored=(("cuda:0", 100 * MB), ("cuda:1", 200 * MB))) is None
    found = overflow_of(training(), card, (), stored=(("cuda:0", 0), ("cuda:1", 300 * MB)))
    assert (found.room.device, found.excess_nbytes) == ("cuda:1", 50 * MB)
    assert overflow_of(training(), card, (), stored=(("cuda:7", 10**12),)) is None


def test_a_small_file_needs_no_forecast(monkeypatch) -> None:
    monkeypatch.setattr(fitting, "forecast", None)
    assert overflow_of(training(), machine(700 * MB, host=700 * MB), MOVES) is None


def test_the_map_that_is_advised_is_judged() -> None:
    card = parse_target("cuda@200mb")
    assert advised_moves(training(), card) == MOVES
    found = findings(training(), card)
    assert found["map-does-not-fit"].severity == "error"
    # nor is it advised to load it there
    assert found["cuda-index-out-of-range"].fix == Fix(rule="cuda:5=cpu")
    roomy = findings(training(), parse_target("cuda@24gb"))
    assert "map-does-not-fit" not in roomy
    assert roomy["cuda-index-out-of-range"].fix == Fix(rule="cuda:5=cuda:0")
    assert "map-does-not-fit" not in findings(training(), parse_target("cuda"))
    assert "map-does-not-fit" not in findings(training())
    assert "map-does-not-fit" not in findings(training("cuda:0"), card)  # which is said of the load itself


def test_half_of_what_is_half_already_is_not_offered() -> None:
    half = training()
    half = replace(half, tensors=tuple(row._replace(dtype="bfloat16") for row in half.tensors))
    found = overflow_of(half, machine(60 * MB, host=None), MOVES)
    assert texts(found) == ("all of it on the CPU, if that has 300 MB free",)


def test_what_fits_is_tried_once_for_many_cards(monkeypatch) -> None:
    rows = []
    for number in range(16):
        rows += [tensor(f"w{number}", device=f"cuda:{number}", storage=f"{number}", nbytes=100 * MB)]
        rows += [storage(f"{number}", f"cuda:{number}", 100 * MB)]
    target = machine(*[50 * MB] * 16, host=5000 * MB)
    asked = []
    real = fitting.forecast

    def counted(*given: object, **options: object) -> object:
        asked.append(given)
        return real(*given, **options)

    monkeypatch.setattr(fitting, "forecast", counted)
    file = checkpoint(*rows)
    short = [one for one in diagnose(file, judge(file), target) if one.id == "does-not-fit"]
    assert len(short) == 16
    assert ["What fits: all of it on the CPU (5.0 GB)" in one.detail for one in short] == [True] + [
        False
    ] * 15
    assert len(asked) < 40
