"""Pairs of files with known differences, and pairs that try to make a comparison lie."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diff import compare as module
from inspector.diff import content
from inspector.diff.compare import ChangedError, Chosen, Measuring, Wish, compare_paths
from inspector.diff.content import Tolerance
from inspector.diff.records import Diff, Numbers, Pair, TensorChange
from inspector.diff.side import Side, open_side
from inspector.errors import CancelledError, CheckpointError, PlanError
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.comparing.document import diff_document
from inspector.report.comparing.words import verdict_text
from tests.builders import pickles as p
from tests.builders.states import Pairs, Raw, T, save_safetensors, save_zip
from tests.corpus import Case, cases
from tests.sweep import put_through

W, V = [1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]


def compared(tmp_path: Path, a: Any, b: Any, wish: Wish | None = None) -> Diff:
    """Two zips compared; what is a path already is taken as it is."""
    paths = [
        value if isinstance(value, str) else save_zip(tmp_path / f"{name}.pt", value)
        for name, value in (("a", a), ("b", b))
    ]
    return compare_paths(*paths, wish or Wish())


def said(diff: Diff) -> dict[str, Any]:
    """What is different, without what goes without saying."""
    found = diff_document(diff)
    short: dict[str, Any] = {
        key: found[key]
        for key in ("added", "removed", "sharing", "runs", "same_numbers", "records")
        if found[key]
    }
    if found["renamed"]:
        short["renamed"] = {row["a"]: (row["b"], row["how"]) for row in found["renamed"]}
    if found["changed"]:
        short["changed"] = {row["path"]: row["what"] for row in found["changed"]}
    for what in ("changed", "reordered"):
        if found["containers"][what]:
            key = "containers" if what == "changed" else what
            short[key] = {row["path"]: (row["a"], row["b"]) for row in found["containers"][what]}
    assert found["equal"] == {"same_numbers", "reordered"}.issuperset(short)
    return short


def nan(payload: int) -> bytes:
    return struct.pack("<I", 0x7FC00000 | payload)


SELF: dict[str, Any] = {"w": T(W)}
SELF["me"] = SELF
LIST: list[Any] = [T(W)]
LIST.append(LIST)
ONE = {"w": T(W), "v": T(V)}
TIED = {"e": T(W, key="x"), "h": T(W, key="x"), "f": T(W, key="y")}
EVIL = Raw(p.call("os.system", p.text("id")))
EVIL_TOO = Raw(p.call("os.system", p.text("rm")))


def resumed(*names: str) -> dict[str, Any]:
    """A model of two parameters and their optimizer, which keeps them in this order."""
    of = {"a": W, "b": V}
    return {
        "model": {"a": T(W), "b": T(V)},
        "optimizer": {
            "state": {number: {"exp_avg": T(of[name])} for number, name in enumerate(names)},
            "param_groups": [{"params": [0, 1], "param_names": list(names)}],
        },
    }


PAIRS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "equal": (ONE, ONE, {}),
    "value changed": (ONE, {"w": T([1.0, 2.0, 3.0, 5.0]), "v": T(V)}, {"changed": {"w": ["values"]}}),
    "device": ({"w": T(W, device="cuda:1")}, {"w": T(W)}, {"changed": {"w": ["device"]}}),
    "dtype view of equal bytes": (
        {"w": T(b"\x00\x3c\x00\x40", dtype="float16")},
        {"w": T(b"\x00\x3c\x00\x40", dtype="bfloat16")},
        {"changed": {"w": ["dtype"]}},
    ),
    "reshaped": ({"w": T(W, (2, 2))}, {"w": T(W, (4,))}, {"changed": {"w": ["shape"]}}),
    "reshaped and changed": ({"w": T(W, (2, 2))}, {"w": T(V, (4,))}, {"changed": {"w": ["shape", "values"]}}),
    "of another size": ({"w": T(W)}, {"w": T(W[:3])}, {"changed": {"w": ["shape"]}}),
    "transposed with equal values": (
        {"w": T([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3))},
        {"w": T([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], (2, 3), stride=(1, 2))},
        {"changed": {"w": ["stride"]}},
    ),
    "transposed with equal bytes": (
        {"w": T(W, (2, 2))},
        {"w": T(W, (2, 2), stride=(1, 2))},
        {"changed": {"w": ["stride", "values"]}},
    ),
    "a stride that no element sees": ({"w": T(W, (1, 4), stride=(9, 1))}, {"w": T(W, (1, 4))}, {}),
    "both with gaps": (
        {"w": T([1.0, 9.0, 2.0, 9.0], (2,), stride=(2,))},
        {"w": T([1.0, 8.0, 2.0, 8.0], (2,), stride=(2,))},
        {"records": [{"name": "bytes of storage auto0 that no tensor shows", "what": "changed"}]},
    ),
    "gradients": ({"w": T(W, grad=True)}, {"w": T(W)}, {"changed": {"w": ["requires_grad"]}}),
    "a parameter": ({"w": T(W, kind="parameter")}, {"w": T(W)}, {"changed": {"w": ["class"]}}),
    "conjugated": (
        {"w": T(W, more=({"conj": True},))},
        {"w": T(W, more=({},))},
        {"changed": {"w": ["metadata"]}},
    ),
    "conjugated, with the numbers that it had before": (
        {"w": T([1.0, 2.0, 3.0, 4.0], (2,), dtype="complex64", more=({"conj": True},))},
        {"w": T([1.0, -2.0, 3.0, -4.0], (2,), dtype="complex64")},
        {"changed": {"w": ["metadata"]}},
    ),
    "conjugated, and nothing else": (
        {"w": T(W, (2,), dtype="complex64", more=({"conj": True},))},
        {"w": T(W, (2,), dtype="complex64")},
        {"changed": {"w": ["metadata", "values"]}},
    ),
    "negated, with the numbers that it had before": (
        {"w": T(W, (2, 2), stride=(1, 2), more=({"neg": True},))},
        {"w": T([-1.0, -3.0, -2.0, -4.0], (2, 2))},
        {"changed": {"w": ["stride", "metadata"]}},
    ),
    "a negated view of whole numbers": (
        {"w": T([1, 2], dtype="int64", more=({"neg": True},))},
        {"w": T([-1, -2], dtype="int64")},
        {"changed": {"w": ["metadata", "unread"]}},
    ),
    "the scale alone": (
        {"w": T(bytes(4), dtype="qint8", kind="qtensor", more=(1, 0.5, 3))},
        {"w": T(bytes(4), dtype="qint8", kind="qtensor", more=(1, 0.25, 3))},
        {"changed": {"w": ["metadata"]}},
    ),
    "other NaN": ({"w": T(nan(1) + nan(0))}, {"w": T(nan(2) + nan(0))}, {"same_numbers": ["w"]}),
    "-0.0": ({"w": T([0.0, 1.0])}, {"w": T([-0.0, 1.0])}, {"same_numbers": ["w"]}),
    "NaN for a number": ({"w": T(nan(1))}, {"w": T([1.0])}, {"changed": {"w": ["values"]}}),
    "removed and added": (
        {"w": T(W), "old": T([7.0, 8.0])},
        {"w": T(W), "new": T([9.0, 8.0, 7.0])},
        {"added": ["new"], "removed": ["old"]},
    ),
    "wrapped": (
        {"module.w": T(W), "module.v": T(V)},
        {"w": T(W), "v": T([0.0] * 4)},
        {
            "renamed": {"module.w": ("w", "prefix"), "module.v": ("v", "prefix")},
            "changed": {"module.v": ["values"]},
        },
    ),
    "wrapped inside, and alone": (
        {"net": {"a._orig_mod.w": T(W)}},
        {"net": {"a.w": T(W)}},
        {"renamed": {"net/a._orig_mod.w": ("net/a.w", "prefix")}},
    ),
    "names that collide without their prefix": (
        {"module.w": T(W), "w": T(V)},
        {"_orig_mod.w": T(W), "w": T(W)},
        {"changed": {"w": ["values"]}, "renamed": {"module.w": ("_orig_mod.w", "prefix")}},
    ),
    "names that two rows have without their prefix": (
        {"module.w": T(W), "_orig_mod.w": T(W)},
        {"w": T(W)},
        {"removed": ["_orig_mod.w", "module.w"], "added": ["w"]},
    ),
    "another nesting": (
        {"model": {"a.w": T(W), "a.v": T(V)}, "epoch": 1},
        {"state": {"net": {"a.w": T(W), "a.v": T(V)}}, "epoch": 1},
        {
            "renamed": {
                "model/a.w": ("state/net/a.w", "prefix"),
                "model/a.v": ("state/net/a.v", "prefix"),
            }
        },
    ),
    "values that moved along": (
        {"w": T(W), "v": T(V), "lr": 0.5},
        {"all": {"w": T(W), "v": T(V), "lr": 0.25}},
        {
            "renamed": {"w": ("all/w", "prefix"), "v": ("all/v", "prefix")},
            "changed": {"lr": ["value"]},
        },
    ),
    "versions of modules that were wrapped": (
        {"a.w": T(W), "a.v": T(V), "._metadata": {"": {"version": 1}, "a": {"version": 2}}},
        {
            "module.a.w": T(W),
            "module.a.v": T(V),
            "._metadata": {"": {"version": 1}, "module": {"version": 1}, "module.a": {"version": 3}},
        },
        {
            "renamed": {"a.w": ("module.a.w", "prefix"), "a.v": ("module.a.v", "prefix")},
            "changed": {"._metadata/a/version": ["value"]},
            "added": ["._metadata/module/version"],
        },
    ),
    "versions of modules that were unwrapped, beside other things": (
        {
            "m": {
                "module.a.w": T(W),
                "module.a.v": T(V),
                "._metadata": {"module.a": {"version": 2}, "module.z": {"version": 1}},
            },
            "x": {"version": 1},
        },
        {
            "m": {"a.w": T(W), "a.v": T(V), "._metadata": {"a": {"version": 2}, "b": {"version": 1}}},
            "y": {"version": 1},
        },
        {
            "renamed": {"m/module.a.w": ("m/a.w", "prefix"), "m/module.a.v": ("m/a.v", "prefix")},
            "added": ["m/._metadata/b/version", "y/version"],
            "removed": ["m/._metadata/module.z/version", "x/version"],
        },
    ),
    "a branch of another name and other bytes": (
        {"enc.w": T(W), "enc.v": T(V)},
        {"dec.w": T([0.5] * 4), "dec.v": T([0.25] * 4)},
        {"removed": ["enc.v", "enc.w"], "added": ["dec.v", "dec.w"]},
    ),
    "a branch of another name and equal bytes": (
        {"enc.w": T(W), "enc.v": T(V)},
        {"dec.w": T(W), "dec.v": T(V)},
        {"renamed": {"enc.w": ("dec.w", "content"), "enc.v": ("dec.v", "content")}},
    ),
    "zeros under another name": (
        {"a.w": T([0.0] * 4), "x.y": T(W)},
        {"b.v": T([0.0] * 4), "x.y": T(W)},
        {"removed": ["a.w"], "added": ["b.v"]},
    ),
    "equal bytes that two rows have": (
        {"a.w": T(W), "b.v": T(W)},
        {"c.x": T(W), "d.y": T(W)},
        {"removed": ["a.w", "b.v"], "added": ["c.x", "d.y"]},
    ),
    "swapped names": (
        {"a": T(W), "b": T(V)},
        {"a": T(V), "b": T(W)},
        {"changed": {"a": ["values"], "b": ["values"]}},
    ),
    "untied": (
        TIED,
        {"e": T(W), "h": T(W), "f": T(W)},
        {"sharing": [{"paths": ["e", "h"], "tied_in": "a"}]},
    ),
    "views that overlap, and copies of them": (
        {"a": T([*W, *V], (6,), key="x"), "b": T([*W, *V], (6,), key="x", offset=2), "c": T(W)},
        {"a": T([*W, *V[:2]]), "b": T([*W[2:], *V]), "c": T(W)},
        {"sharing": [{"paths": ["a", "b"], "tied_in": "a"}]},
    ),
    "views that stand side by side or between each other, and copies of them": (
        {
            "a": T([*W, *V], (4,), key="x"),
            "b": T([*W, *V], (4,), key="x", offset=4),
            "c": T(W, (2,), stride=(2,), key="y"),
            "d": T(W, (2,), stride=(2,), key="y", offset=1),
        },
        {"a": T(W), "b": T(V), "c": T([1.0, 3.0]), "d": T([2.0, 4.0])},
        {"changed": {"c": ["stride"], "d": ["stride"]}},
    ),
    "tied to another": (
        TIED,
        {"e": T(W, key="x"), "h": T(W, key="y"), "f": T(W, key="y")},
        {"sharing": [{"paths": ["e", "h"], "tied_in": "a"}, {"paths": ["h", "f"], "tied_in": "b"}]},
    ),
    "a key that is written twice": (
        Pairs((("w", T(W)), ("w", T(V)))),
        {"w": T(V)},
        {"removed": ["w~#1"]},
    ),
    "a number as a key, and its text": (
        Pairs(((0, T(W)), (1, 2.5))),
        {"0": T(W), "1": 2.5},
        {"changed": {"0": ["key"], "1": ["key"]}},
    ),
    "None as a key, and its text": (
        Pairs(((None, T(W)), ((1, 2), 2.5))),
        {"None": T(W), "(1, 2)": 2.5},
        {"changed": {"None": ["key"], "(1, 2)": ["key"]}},
    ),
    "itself": (SELF, SELF, {}),
    "itself, and not": (SELF, {"w": T(W), "me": 3}, {"changed": {"me": ["value", "type"]}}),
    "a list in itself": (LIST, LIST, {}),
    "texts that differ where nobody looks": (
        {"t": "x" * 1000 + "a"},
        {"t": "x" * 1000 + "b"},
        {"changed": {"t": ["value"]}},
    ),
    "numbers that differ where nobody looks": (
        {"t": list(range(100))},
        {"t": [*range(99), -1]},
        {"changed": {"t": ["value"]}},
    ),
    "True and 1": ({"t": True}, {"t": 1}, {"changed": {"t": ["value", "type"]}}),
    "values": (
        {"lr": 0.1, "gone": 1},
        {"lr": 0.2, "come": 1},
        {"changed": {"lr": ["value"]}, "removed": ["gone"], "added": ["come"]},
    ),
    "code": (
        ONE,
        {**ONE, "x": EVIL},
        {"added": ["x"], "runs": [{"text": "os.system", "verdict": "dangerous", "only_in": "b"}]},
    ),
    "one object at two places, and two": (
        {"model": (shared := {"w": T(W), "lr": 0.5}), "ema": shared},
        {"model": {"w": T(W), "lr": 0.5}, "ema": {"w": T(W), "lr": 0.5}},
        {"sharing": [{"paths": ["model/w"], "tied_in": "a"}]},
    ),
    "two objects, and one at two places": (
        {"model": {"w": T(W), "lr": 0.5}, "ema": {"w": T(V), "lr": 0.75}},
        {"model": shared, "ema": shared},
        {
            "changed": {"ema/w": ["values"], "ema/lr": ["value"]},
            "sharing": [{"paths": ["model/w", "ema/w"], "tied_in": "b"}],
        },
    ),
    "slots of parameters in another order": (
        resumed("a", "b"),
        resumed("b", "a"),
        {
            "changed": {"optimizer/param_groups/0/param_names": ["value"]},
            "renamed": {
                "optimizer/state/0/exp_avg": ("optimizer/state/1/exp_avg", "parameter"),
                "optimizer/state/1/exp_avg": ("optimizer/state/0/exp_avg", "parameter"),
            },
        },
    ),
    "a slot whose parameter one file names": (
        resumed("a", "b"),
        {
            **(other := resumed("a", "b")),
            "optimizer": {**other["optimizer"], "param_groups": [{"params": [0, 1]}]},
        },
        {"removed": ["optimizer/param_groups/0/param_names"]},
    ),
    "endless views": (
        {"w": T([1.0, 2.0], (1 << 40, 2), stride=(0, 1))},
        {"w": T([1.0, 2.0], (1 << 40, 2), stride=(0, 1))},
        {},
    ),
    "endless views of other numbers": (
        {"w": T([1.0, 2.0], (1 << 40, 2), stride=(0, 1))},
        {"w": T([1.0, 3.0], (1 << 40, 2), stride=(0, 1))},
        {"changed": {"w": ["values"]}},
    ),
    "endless views of other strides": (
        {"w": T([1.0, 2.0], (1 << 40, 2), stride=(0, 1))},
        {"w": T([1.0, 2.0], (1 << 40, 2), stride=(0, 0))},
        {"changed": {"w": ["stride", "unread"]}},
    ),
    "another command": ({"x": EVIL}, {"x": EVIL_TOO}, {"changed": {"x": ["value"]}}),
}


def test_what_differs_is_said_and_nothing_else(tmp_path: Path) -> None:
    failures = []
    for name, (a, b, expected) in PAIRS.items():
        found = said(compared(tmp_path, a, b))
        for key in ("added", "removed"):
            if key in found:
                found[key] = sorted(found[key])
            assert key not in expected or expected[key] == sorted(expected[key]), name
        if found != expected:
            failures.append(f"{name}: {found} is not {expected}")
    assert not failures, "\n".join(failures)


NUMBERS = Wish(mode="numbers")


def test_numbers_say_how_much_and_where(tmp_path: Path) -> None:
    a = {"w": T(W, (2, 2)), "same": T(V), "n": T(nan(1) + nan(2)), "d": T(V), "z": T([0.0, 1.0])}
    b = {
        "w": T([1.0, 2.0, 3.0, 8.0], (2, 2)),
        "same": T(V),
        "n": T(nan(1) + nan(3)),
        "d": T(V, dtype="float64"),
        "z": T(nan(1) + struct.pack("<f", 1.0)),
    }
    diff = compared(tmp_path, a, b, NUMBERS)
    rows = {row["path"]: row for row in diff_document(diff)["changed"]}
    assert set(rows) == {"w", "d", "z"}
    assert (rows["w"].pop("norm_a"), rows["w"].pop("norm_b")) == pytest.approx((30**0.5, 78**0.5))
    assert rows["w"].pop("distance") == 4.0
    assert rows["w"] | {"cosine": None} == {
        "path": "w",
        "what": ["values"],
        "a": None,
        "b": None,
        "max_abs": 4.0,
        "max_rel": 0.5,
        "cosine": None,
        "differing": 1,
        "numel": 4,
        "other_bits": 0,
        "not_finite": 0,
        "first": {"index": [1, 1], "a": "4.0", "b": "8.0"},
    }
    assert rows["w"]["cosine"] == pytest.approx(46 / (30 * 78) ** 0.5)
    assert rows["d"]["what"] == ["dtype"]
    assert rows["d"]["differing"] == 0
    assert rows["z"]["not_finite"] == 1
    (bits,) = (change for change in diff.tensors if not change.differs)
    assert bits.numbers is not None
    assert bits.numbers.other_bits == 1


def test_a_tolerance_makes_close_numbers_equal(tmp_path: Path) -> None:
    a, b = {"w": T([1.0, 100.0]), "v": T([1.0, 100.0])}, {"w": T([1.0, 100.5]), "v": T([1.5, 100.0])}
    diff = compared(tmp_path, a, b, Wish(mode="numbers", tolerance=Tolerance(rtol=0.01)))
    assert said(diff) == {"changed": {"v": ["values"]}}


def test_nothing_is_within_a_tolerance_where_the_numbers_are_the_same(tmp_path: Path) -> None:
    diff = compared(tmp_path, {"w": T([0.0, 1.0])}, {"w": T([-0.0, 1.0])}, NUMBERS)
    assert (diff.tolerated, diff.tensors[0].what) == (0, ("bits",))
    one, other = ({"w": T(W, (2,), dtype="complex64", more=({"conj": so},))} for so in (True, False))
    diff = compared(tmp_path, one, other, NUMBERS)
    assert diff.tensors[0].what == ("metadata", "values")
    assert diff.tensors[0].numbers is not None
    assert diff.tensors[0].numbers.max_abs == 8.0


def test_what_is_not_compared_is_not_called_equal(tmp_path: Path) -> None:
    whole = {"w": T(W), "v": T(V)}
    path = save_zip(tmp_path / "cut.pt", whole)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data.replace(b"archive/data/auto1", b"archive/gone/auto1"))
    diff = compared(tmp_path, whole, path)
    assert said(diff)["changed"]["v"][-1] == "unread"
    assert next(change.why for change in diff.tensors if "unread" in change.what)
    assert diff_document(diff)["complete"] is False
    dtypes = {"w": T(W), "v": T(V, dtype="float64")}
    diff = compared(tmp_path, dtypes, path, NUMBERS)
    assert said(diff)["changed"]["v"][-1] == "unread"
    assert compared(tmp_path, {"w": T(W), "v": T(W)}, {"w": T(W), "v": T(V)}, Wish(mode="none")).is_equal


def test_formats_that_say_less_differ_in_nothing_that_they_do_not_say(tmp_path: Path) -> None:
    safe = save_safetensors(tmp_path / "a.safetensors", {"w": T(W, (2, 2)), "v": T(V)})
    plain = {"w": T(W, (2, 2), device="cuda:0", grad=True), "v": T(V)}
    assert said(compared(tmp_path, plain, safe)) == {}
    assert said(compared(tmp_path, safe, {"model": plain})) == {
        "renamed": {"w": ("model/w", "prefix"), "v": ("model/v", "prefix")}
    }


def test_bytes_in_the_other_order_are_the_same_numbers(tmp_path: Path) -> None:
    def swapped(*numbers: float) -> bytes:
        return struct.pack(f">{len(numbers)}f", *numbers)

    state = {"w": T(swapped(*W)), "t": T(swapped(*W), (2, 2), stride=(1, 2)), "u": T(bytes(3), dtype="uint8")}
    big = save_zip(tmp_path / "big.pt", state, byteorder="big")
    little = {"w": T(W), "t": T(W, (2, 2), stride=(1, 2)), "u": T(bytes(3), dtype="uint8")}
    assert said(compared(tmp_path, big, little)) == {}
    assert said(compared(tmp_path, save_zip(tmp_path / "little.pt", little), big)) == {}


def test_only_what_was_chosen_is_compared(tmp_path: Path) -> None:
    a = {"w": T(W), "v": T(V), "gone": T([3.0, 4.0]), "lr": 1, "x": 1, "old": 1}
    b = {"w": T(V), "v": T(W), "come": T([1.0]), "lr": 2, "x": 2, "new": 1}

    def choose(checkpoint: Any) -> Chosen:
        names = {"w", "gone", "come", "lr", "old", "new"}
        tensors = (number for number, row in enumerate(checkpoint.tensors) if row.path in names)
        values = (number for number, row in enumerate(checkpoint.values) if row.path in names)
        return Chosen(frozenset(tensors), frozenset(values))

    a["module.z"], b["z"] = T([3.0, 3.5]), T([3.0, 3.5])
    assert said(compared(tmp_path, a, b, Wish(choose=choose))) == {
        "added": ["come", "new"],
        "removed": ["gone", "old"],
        "changed": {"w": ["values"], "lr": ["value"]},
    }


def test_errors_name_the_file_and_comparing_can_be_cancelled(tmp_path: Path) -> None:
    path = save_zip(tmp_path / "a.pt", {"w": T(W)})
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"PK\x03\x04 and nothing else")
    for other in (broken, tmp_path / "missing.pt"):
        with pytest.raises(CheckpointError) as caught:
            compare_paths(path, str(other), Wish())
        assert str(other) in str(caught.value)
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        compare_paths(path, path, Wish(), progress)


def test_nothing_is_equal_where_nothing_was_chosen(tmp_path: Path) -> None:
    nothing = Wish(choose=lambda _: Chosen(frozenset(), frozenset()))
    with pytest.raises(PlanError, match="neither checkpoint has a row to compare"):
        compared(tmp_path, ONE, ONE, nothing)


def test_what_no_row_lists_is_never_said_to_be_equal(tmp_path: Path) -> None:
    """Tensors below the depth that is entered may hold anything."""
    states: list[Any] = [T(W), T(V)]
    for _ in range(300):
        states = [[state] for state in states]
    assert [row.what for row in compared(tmp_path, *states).records] == ["removed", "added"]  # their storages
    found = compared(tmp_path, states[0], states[0])
    assert not found.differs
    assert not found.is_equal
    document = diff_document(found)
    assert (document["equal"], document["complete"]) == (False, False)
    assert verdict_text(found).startswith("Equal as far as it was compared")


@pytest.mark.wide
def test_genuine_files_are_equal_to_themselves_and_compared_with_any_other() -> None:
    files = [case for case in cases() if "hostile" not in case.name]

    def check(number: int) -> None:
        path, other = str(files[number].path), str(files[number - 1].path)
        assert compare_paths(path, path, Wish()).is_equal
        compare_paths(path, other, Wish())

    put_through(check, range(len(files)), lambda number: files[number].name, every=12)


@pytest.mark.wide
def test_hostile_files_are_refused_in_one_line_or_compared() -> None:
    files = [case for case in cases() if "hostile" in case.name]
    assert len(files) >= 7

    def check(case: Case) -> None:
        said = str(case.path)
        try:
            assert compare_paths(str(case.path), str(case.path), Wish()).is_equal
        except CheckpointError as error:
            said = str(error)
        assert str(case.path) in said
        assert "\n" not in said

    put_through(check, files, lambda case: case.name)


def test_what_cannot_be_read_is_not_said_to_differ(tmp_path: Path) -> None:
    a = save_zip(tmp_path / "a.pt", {"w": T(W), "v": T(V)})
    whole, cut = Path(a).read_bytes(), tmp_path / "cut.pt"
    cut.write_bytes(whole[: whole.index(struct.pack("<4f", *V)) + 4])
    diff = compare_paths(str(cut), str(cut), Wish())
    unread = "Not known to be equal: 1 tensor could not be compared, and nothing else differs."
    assert (verdict_text(diff), diff.is_equal, diff.differs) == (unread, False, False)
    diff = compare_paths(a, save_zip(tmp_path / "c.pt", {"w": T(V), "v": T(V)}), Wish())
    assert verdict_text(diff) == "Different: 1 tensor changed."
    assert diff.unread == 0


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [save_zip(tmp_path / f"{name}.pt", {"v": T(V), name: T(W), "c": T(W)}) for name in "ab"]


@pytest.fixture
def measuring(paths: list[str]) -> Iterator[Measuring]:
    found = Measuring(*paths)
    found.compare(Progress())
    yield found
    found.close()


def measured(measuring: Measuring, pair: Pair) -> int:
    measuring.measure([pair], Progress())
    found = measuring.found[pair]
    assert isinstance(found, Numbers)
    return found.differing


def test_files_are_opened_once_and_let_go_when_all_is_known(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    real = module.open_both
    monkeypatch.setattr(module, "open_both", lambda *given: opened.append(given) or real(*given))
    measuring = Measuring(*paths)
    measuring.compare(Progress())
    measuring.measure([Pair(0, 0), Pair(1, 1)], Progress())
    assert len(opened) == 1
    assert (measuring._sides, measuring._worker.pid) == (None, None)
    assert measured(measuring, Pair(0, 1)) == 4  # what is asked later opens them again
    assert len(opened) == 2


def test_no_figures_are_told_of_a_file_that_changed(measuring: Measuring, paths: list[str]) -> None:
    assert measured(measuring, Pair(0, 0)) == 0
    data = Path(paths[1]).read_bytes()
    Path(paths[1]).unlink()
    with pytest.raises(ChangedError, match="no longer there"):
        measured(measuring, Pair(0, 0))
    # The names are the same, and so is the size; only the numbers are others.
    save_zip(Path(paths[1]), {"v": T(W), "b": T(W), "c": T(W)})
    assert len(Path(paths[1]).read_bytes()) == len(data)
    with pytest.raises(ChangedError, match="has changed since it was compared") as caught:
        measured(measuring, Pair(0, 0))
    assert caught.value.where == paths[1]
    assert measuring._worker.pid is None


def test_a_file_that_changes_while_it_is_measured_is_told(
    measuring: Measuring, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.open_both

    def late(*given: Any) -> Any:
        os.utime(paths[0], ns=(1, 1))
        return real(*given)

    measured(measuring, Pair(1, 1))  # after which nothing is open
    with monkeypatch.context() as patch:
        patch.setattr(module, "open_both", late)
        with pytest.raises(ChangedError):
            measured(measuring, Pair(0, 0))


def test_a_file_that_changes_behind_the_last_byte_is_told(
    measuring: Measuring, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(*_: object) -> Iterator[Any]:
        os.utime(paths[0], ns=(1, 1))
        yield from ()

    monkeypatch.setattr(module.Differences, "compare_all", compare)
    with pytest.raises(ChangedError):
        measured(measuring, Pair(0, 0))


def test_what_is_closed_answers_nobody(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring._lock.acquire()
    asked = Progress()
    asked.cancel()
    with pytest.raises(CancelledError):  # it waits for the other one
        measuring.measure([Pair(0, 0)], asked)
    measuring._lock.release()
    with monkeypatch.context() as patch:  # the window is closed while it computes
        patch.setattr(module.Differences, "compare_all", lambda *_: measuring.close() or ())
        measuring.measure([Pair(0, 0)], Progress())
    assert measuring._sides is None
    with pytest.raises(CancelledError):
        measuring.measure([Pair(0, 0)], Progress())


def figures(one: Any, other: Any) -> tuple[Any, ...]:
    """By NumPy, of what is finite: the lengths of both and of their difference, largest step and cosine."""
    finite = np.isfinite(one) & np.isfinite(other)
    one, other = one[finite], other[finite]
    lengths = [float(np.linalg.norm(each)) for each in (one, other, one - other)]
    cosine = float(one @ other) / lengths[0] / lengths[1] if all(lengths[:2]) else math.nan
    return *lengths, float(np.abs(one - other).max()), cosine, int((~finite).sum())


def test_all_pairs_at_once_have_the_figures_that_numpy_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small and large tensors, other dtypes and strides, NaN, zeros; some go to the child together."""
    monkeypatch.setattr(content, "_SMALL_NBYTES", 400)
    monkeypatch.setattr(content, "_MOST_TOGETHER", 3)
    random = np.random.default_rng(1)
    numbers = [random.normal(size=size).astype(np.float32) for size in (1, 7, 64, 500, 3, 2, 9)]
    others = [one + random.normal(size=one.shape).astype(np.float32) / 1000 for one in numbers]
    others[1][2], numbers[2][5] = math.nan, math.inf
    numbers[5] = others[5] * 0
    known = {f"t{number}": pair for number, pair in enumerate(zip(numbers, others, strict=True))}
    a, b = ({name: T(list(pair[side])) for name, pair in known.items()} for side in (0, 1))
    known["i"] = np.array([1, -2, 1 << 40]), np.array([1, 2, 0])
    a["i"], b["i"] = (T(one.tobytes(), (3,), "int64") for one in known["i"])
    known["m"] = np.arange(4.0), np.arange(4.0)
    a["m"], b["m"] = T([0.0, 1.0, 2.0, 3.0], (2, 2)), T([0.0, 2.0, 1.0, 3.0], (2, 2), stride=(1, 2))
    paths = [save_zip(tmp_path / f"{name}.pt", state) for name, state in (("a", a), ("b", b))]
    measuring, progress = Measuring(*paths), Progress()
    diff = measuring.compare(Progress())
    measuring.measure(diff.pairs, progress)
    measuring.close()
    assert progress.done == progress.total
    assert len(measuring.found) == len(known)
    for pair, found in measuring.found.items():
        assert isinstance(found, Numbers)
        one, other = (each.astype(float) for each in known[diff.a.tensors[pair.a].path])
        cosine = math.nan if found.cosine is None else found.cosine
        given = found.norm_a, found.norm_b, found.distance, found.max_abs, cosine, found.skipped
        assert given == pytest.approx(figures(one, other), rel=1e-12, nan_ok=True)


def test_what_cannot_be_measured_is_told_and_the_rest_is(tmp_path: Path) -> None:
    whole = Path(save_zip(tmp_path / "a.pt", {"v": T(V), "w": T(W * 4000), "c": T(W)}))
    cut = tmp_path / "b.pt"
    data = whole.read_bytes()
    cut.write_bytes(data[:1500])
    measuring = Measuring(str(whole), str(cut))
    diff = measuring.compare(Progress())
    measuring.measure(diff.pairs, Progress())
    found = {diff.a.tensors[pair.a].path: one for pair, one in measuring.found.items()}
    assert isinstance(found["w"], CheckpointError)
    assert len(found) == 3
    measuring.close()


def test_what_is_cancelled_leaves_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_MOST_TOGETHER", 2)
    path = save_zip(tmp_path / "a.pt", {f"t{number}": T([float(number)]) for number in range(6)})
    measuring, progress = Measuring(path, path), Progress()
    diff = measuring.compare(Progress())
    real = content.Differences._small

    def once(*given: Any) -> Any:
        yield from real(*given)
        progress.cancel()

    with monkeypatch.context() as patch:
        patch.setattr(content.Differences, "_small", once)
        with pytest.raises(CancelledError):
            measuring.measure(diff.pairs, progress)
    assert len(measuring.found) == 2
    measuring.measure(diff.pairs, Progress())
    assert len(measuring.found) == 6
    measuring.close()


def test_the_same_numbers_in_other_bits_are_no_difference() -> None:
    assert not TensorChange(Pair(0, 0), ("bits",)).differs
    assert TensorChange(Pair(0, 0), ("device", "bits")).differs


def opened(path: str) -> Side:
    with open_side(path, Progress()) as side:
        return side


def test_objects_that_stand_twice_are_followed_to_their_first_place(tmp_path: Path) -> None:
    shared = {"w": T([1.0]), "in": {"x": T([2.0])}}
    state = {"a": shared, "b": shared, "c": {"d": shared}}
    side = opened(save_zip(tmp_path / "a.pt", state))
    assert side.aliases == {"b": "a", "c/d": "a"}
    assert side.listed_at("b/w") == side.listed_at("c/d/w") == side.listed_at("a/w") == "a/w"
    assert side.listed_at("bb/w") == "bb/w"
    side.aliases = {"a": "b", "b": "a"}  # no file leads in a circle; were there one, it ends
    assert side.listed_at("a/w") in {"a/w", "b/w"}
    side.aliases = {"x": ""}
    assert side.listed_at("x/w") == "w"


def test_names_that_safetensors_leave_out_stand_for_those_they_keep(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "a.safetensors", {"e": T([1.0])}, {"h": "e", "format": "pt"})
    side = opened(path)
    assert side.listed_at("h") == "e"
    assert side.data == b""


def test_distributed_checkpoints_make_texts_of_all_keys(tmp_path: Path) -> None:
    side = opened(save_zip(tmp_path / "a.pt", {"w": T([1.0])}))
    assert side.has_keys
    side.checkpoint = replace(side.checkpoint, format="dcp")
    assert not side.has_keys
