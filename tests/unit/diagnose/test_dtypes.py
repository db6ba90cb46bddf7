"""Dtypes that a device cannot compute with: said for the machines that lack it, and for no other."""

from __future__ import annotations

from inspector.diagnose.dtypes import DTYPE_ROWS, find_lacks
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.target.evidence import Evidence, System
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, tensor

MPS, CUDA = parse_target("mps"), parse_target("cuda")


def macos(version: str | None) -> Profile:
    return replace(MPS, evidence=Evidence(system=System(os="Darwin", macos=version)))


def gpu(capability: tuple[int, int] | None) -> Profile:
    return replace(CUDA, gpus=(Gpu(device="cuda:0", capability=capability),))


def with_torch(version: str | None) -> Profile:
    return replace(CPU_ONLY, torch_version=version)


def weights(dtype: str, **fields: object) -> Checkpoint:
    return checkpoint(tensor("w", dtype=dtype, **{"role": "parameter", **fields}))


CASES = (
    ("float64", MPS, [parse_target("cuda"), parse_target("xpu"), CPU_ONLY]),
    ("complex128", MPS, [parse_target("cuda"), CPU_ONLY]),
    ("float8_e4m3fn", MPS, [parse_target("cuda"), CPU_ONLY]),
    ("float8_e5m2", MPS, [gpu((8, 9)), gpu((9, 0))]),
    ("bfloat16", macos("13.6.1"), [MPS, macos(None), macos("14.0"), macos("odd"), macos("26.1")]),
    ("complex64", macos("13.2"), [MPS, macos("14.5"), CPU_ONLY]),
    ("float16", with_torch("2.1.2+cpu"), [CPU_ONLY, with_torch("2.2.0"), MPS, CUDA]),
    ("float16", with_torch("1.13.1"), [with_torch("2.13.0+cpu")]),
    ("bfloat16", gpu((7, 5)), [CUDA, gpu((8, 0)), gpu(None), CPU_ONLY, MPS]),
    ("float8_e4m3fn", gpu((8, 6)), [CUDA, gpu((8, 9)), gpu(None)]),
)


def test_who_lacks_it_and_who_does_not() -> None:
    for dtype, lacking, others in CASES:
        (found,) = find_lacks(weights(dtype), lacking)
        assert (found.dtype, found.paths) == (dtype, ("w",)), (dtype, lacking.id)
        for other in others:
            assert list(find_lacks(weights(dtype), other)) == [], (dtype, other)


def test_each_row_has_its_case() -> None:
    met = {
        row.what + row.kind
        for dtype, target, _ in CASES
        for row in [next(find_lacks(weights(dtype), target)).row]
    }
    assert met == {row.what + row.kind for row in DTYPE_ROWS}
    for row in DTYPE_ROWS:
        assert row.source.startswith("https://")
        assert row.instead.endswith(".")


def test_only_weights_count() -> None:
    for role in ("optimizer", "rng", "other", "scheduler"):
        assert list(find_lacks(weights("float64", role=role), MPS)) == [], role
    for role in ("parameter", "buffer", "ema"):
        assert [lack.paths for lack in find_lacks(weights("float64", role=role), MPS)] == [("w",)], role
    assert list(find_lacks(weights("float64", part_of=0), MPS)) == []


def test_where_they_were_saved() -> None:
    assert [lack.is_off_cpu for lack in find_lacks(weights("float64"), MPS)] == [False]
    assert [lack.is_off_cpu for lack in find_lacks(weights("float64", device="cuda:0"), MPS)] == [True]


def test_the_wanted_device_decides() -> None:
    old, new = Gpu(device="cuda:0", capability=(7, 0)), Gpu(device="cuda:1", capability=(9, 0))
    two = replace(parse_target("2xcuda"), gpus=(old, new))
    assert len(list(find_lacks(weights("bfloat16"), two))) == 1
    assert list(find_lacks(weights("bfloat16"), replace(two, wanted="cuda:1"))) == []
    assert list(find_lacks(weights("float64"), replace(MPS, wanted="cpu"))) == []
