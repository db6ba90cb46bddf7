from __future__ import annotations

from inspector.diagnose.findings.values import is_sound, value_findings
from inspector.values.scan import Oddity, Scan, Scanned
from tests.unit.report.words.test_values import statistics
from tests.unit.values.rows import checkpoint, stored, tensor


def test_each_oddity_is_one_finding_with_its_tensors() -> None:
    opened = checkpoint(*(tensor(name) for name in "abcdefg"), stored())
    odd = [
        (),
        (Oddity.NAN, Oddity.INF),
        (Oddity.INF,),
        *((one,) for one in Oddity if one not in {"nan", "inf"}),
    ]
    tensors = tuple(Scanned(row=row, statistics=None, oddities=one) for row, one in enumerate(odd))
    found = value_findings(opened, Scan(tensors=tensors, nbytes=0))
    assert [(one.id, one.severity, one.paths) for one in found] == [
        ("nan-or-inf", "warning", ("b", "c")),
        ("huge-values", "warning", ("d",)),
        ("zero-weights", "note", ("e",)),
        ("constant-weights", "note", ("f",)),
        ("dead-rows", "note", ("g",)),
    ]
    assert found[0].title == "2 tensors with NaN or infinities"
    assert value_findings(opened, Scan(tensors=(), nbytes=0)) == ()


def test_a_score_that_begins_at_infinity_is_no_diverged_model() -> None:
    """Lightning's ModelCheckpoint keeps one in each of its files."""
    rows = (
        tensor("callbacks", "kth_value", shape=(), stride=(), role="other"),
        tensor("running_var", shape=(), stride=(), role="buffer"),
        tensor("data", role="other"),
        tensor("nan", shape=(), stride=(), role="other"),
    )
    odd = ((Oddity.INF,), (Oddity.INF,), (Oddity.INF,), (Oddity.NAN, Oddity.INF))
    tensors = tuple(Scanned(row=row, statistics=None, oddities=one) for row, one in enumerate(odd))
    found = value_findings(checkpoint(*rows, stored()), Scan(tensors=tensors, nbytes=0))
    assert [(one.id, one.severity, one.paths) for one in found] == [
        ("nan-or-inf", "warning", ("running_var", "data", "nan")),
        ("infinite-scores", "note", ("callbacks/kth_value",)),
    ]
    assert found[1].title == "1 tensor at infinity outside of the weights"
    for odd, is_fine in (((Oddity.INF,), True), ((Oddity.NAN, Oddity.INF), False), ((Oddity.HUGE,), True)):
        scan = Scan(tensors=(Scanned(row=0, statistics=statistics(), oddities=odd),), nbytes=0)
        assert is_sound(scan, value_findings(checkpoint(rows[0], stored()), scan)) is is_fine
    assert not is_sound(Scan(tensors=(Scanned(row=0, statistics=None, why="cut"),), nbytes=0), ())
