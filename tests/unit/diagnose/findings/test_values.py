from __future__ import annotations

from inspector.diagnose.findings.values import is_sound, value_findings
from inspector.values.statistics import Oddity, Scan, Scanned
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
    assert found[1].title == "1 tensor at infinity or NaN outside of the weights"
    beside = {"shape": (), "stride": (), "role": "other"}
    rows_too = (
        tensor("callbacks", "best_model_score", **beside),
        tensor("callbacks", "best_k_models", "/run/epoch=0.ckpt", **beside),
        tensor("loss", **beside),
        tensor("state_dict", "fc.min_val", shape=(), stride=(), role="buffer"),
        tensor("state_dict", "best.max_value", shape=(1,), stride=(1,), role="parameter"),
        tensor("state_dict", "fc.weight", shape=(), stride=(), role="parameter"),
        tensor("state_dict", "fc.max_val", role="buffer"),
        tensor("optimizer", "max_val", shape=(), stride=(), role="optimizer"),
        tensor(keys=(), path="", shape=(), stride=(), role="other"),
    )
    for oddity, sound in ((Oddity.NAN, {0, 1}), (Oddity.INF, {0, 1, 2, 3, 4})):
        for row in range(len(rows_too)):
            scan = Scan(tensors=(Scanned(row=row, statistics=statistics(), oddities=(oddity,)),), nbytes=0)
            found = value_findings(checkpoint(*rows_too, stored()), scan)
            assert is_sound(scan, found) is (row in sound), (oddity, rows_too[row].path)
            assert bool(found) is not (oddity is Oddity.NAN and row in sound) or found[0].severity == "note"
    for odd, is_fine in (((Oddity.INF,), True), ((Oddity.NAN, Oddity.INF), True), ((Oddity.HUGE,), True)):
        scan = Scan(tensors=(Scanned(row=0, statistics=statistics(), oddities=odd),), nbytes=0)
        assert is_sound(scan, value_findings(checkpoint(rows[0], stored()), scan)) is is_fine
    assert not is_sound(Scan(tensors=(Scanned(row=0, statistics=None, why="cut"),), nbytes=0), ())
