"""A fix is offered only if the planner, torch or the snippets take it; else what comes next to it is."""

from __future__ import annotations

from inspector.diagnose.accepting import accepted_fix, with_accepted_fix
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix, finding
from inspector.records import replace
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.diagnose.cases import at
from tests.unit.model.making import by_hand
from tests.unit.report.rows import checkpoint, storage, tensor

TO_CPU = Fix(option=("map_location", "'cpu'"))
MMAP = Fix(option=("mmap", "True"))


def on(device: str, dtype: str = "float32", **fields: object) -> Checkpoint:
    stored = storage("0", device, 8)._replace(file_offset=64)
    return checkpoint(stored, tensor("w", device=device, storage="0", dtype=dtype), **fields)


def test_rules() -> None:
    for made, rule, accepted in (
        (on("cuda:0"), "cuda:0=cpu", Fix(rule="cuda:0=cpu")),
        (on("cuda:0"), "cuda:0=mps", Fix(rule="cuda:0=mps")),
        (on("cuda:0", "float64"), "cuda:0=mps", Fix(rule="cuda:0=cpu")),  # no Apple GPU holds that
        (on("cuda:0", "complex128"), "path:w@mps", Fix(rule="path:w@cpu")),
        (on("cpu", "float64"), "*=mps", TO_CPU),
        (on("cuda:0"), "cuda:1=cuda:0", TO_CPU),  # matches nothing
        (on("cuda:0"), "path:nothing@cpu", None),
        (on("cuda:0"), "cuda:0=cuda:0", Fix(rule="cuda:0=cpu")),  # changes nothing
        (on("cuda:0", refusal="RuntimeError: no"), "cuda:1=cuda:0", None),
    ):
        assert accepted_fix(Fix(rule=rule), made, CPU_ONLY) == accepted, rule


def test_tensors_that_share_bytes_go_together() -> None:
    rows = (storage("0", "cuda:0", 8), *(tensor(name, device="cuda:0", storage="0") for name in "ab"))
    assert accepted_fix(Fix(rule="path:a@cpu"), checkpoint(*rows), None) is None


def test_arguments() -> None:
    packed = on("cpu")
    packed = replace(packed, storages=tuple(row._replace(file_offset=None) for row in packed.storages))
    old = Profile(id="this", label="", torch_version="2.0.1")
    for made, fix, target, accepted in (
        (on("cpu"), MMAP, None, MMAP),
        (on("cpu"), MMAP, old, None),
        (on("cpu", format="legacy"), MMAP, None, None),
        (packed, MMAP, None, None),
        (on("cpu", format="legacy"), Fix(option=("mmap", "False")), None, Fix(option=("mmap", "False"))),
        (on("cuda:0"), TO_CPU, None, TO_CPU),
        (on("cuda:0", refusal="RuntimeError: no"), TO_CPU, CPU_ONLY, None),
    ):
        assert accepted_fix(fix, made, target) == accepted, (fix, target)


def test_styles_and_the_rest() -> None:
    damaged = checkpoint(storage("0", "cpu", 8)._replace(missing=True), tensor("w", storage="0"))
    for made, fix, accepted in (
        (on("cpu"), Fix(style="plain"), Fix(style="plain")),
        (on("cpu"), Fix(style="module"), Fix(style="plain")),
        (by_hand(at("cuda:0")), Fix(style="distributed"), TO_CPU),
        (damaged, Fix(recovers=True), Fix(recovers=True)),
        (on("cpu"), Fix(recovers=True), None),
        (on("cpu"), None, None),
    ):
        assert accepted_fix(fix, made, parse_target("cuda")) == accepted, fix


def test_a_finding_keeps_all_but_its_fix() -> None:
    found = finding("id", "note", "Title", "Detail.", ["w"], fix=Fix(rule="cuda:0=mps"))
    assert with_accepted_fix(found, on("cuda:0"), None) is found
    changed = with_accepted_fix(found, on("cuda:0", "float64"), None)
    assert changed == replace(found, fix=Fix(rule="cuda:0=cpu"))
