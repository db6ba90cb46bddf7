"""Rows of a crowd are those that its tensors would have one by one, and cost the same."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.containers.persistent_ids import NO_DEVICE, StorageId, parse_storage_id
from inspector.errors import ModelError
from inspector.limits import Limits, Work
from inspector.model import crowds
from inspector.model.crowds import FEW, MOST, add_alike, add_crowd, most_together
from inspector.model.found import Found, Frame
from inspector.model.roles.roles import Context
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.parts import iter_values
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Global, PersistentId, StoredTensor, Value
from inspector.progress import Progress

_REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD.common = True


def tensor(key: str, *sizes: int, tag: str = "cpu", kind: str = "Float", flag: Value = False) -> Call:
    """A call that rebuilds a tensor, as every checkpoint has it."""
    pid = PersistentId(("storage", Global("torch", f"{kind}Storage"), key, tag, 5056))
    return Call(_REBUILD, (pid, 0, sizes, (1,) * len(sizes), flag, None), "reduce")


def crowd(count: int = FEW, names: str = "layers.{}.weight", **more: Any) -> Dict:
    """A mapping of tensors, each of which views a storage of its own."""
    return Dict(
        [(names.format(number), tensor(f"{names}{number}", number + 1, **more)) for number in range(count)]
    )


def with_last(last: Value, key: Value = "last") -> Dict:
    """A crowd whose last member is another."""
    made = crowd()
    made.pairs.append((key, last))
    return made


_WITH_STATE = tensor("own", 2)
_WITH_STATE.state = Dict([("note", 3), ("_inner", tensor("inner", 2))])
_STORED: list[tuple[Value, Value]] = [
    (f"stored.{n}", StoredTensor(f"s{n}", "float32", (2,))) for n in range(FEW)
]
_ROOTS: dict[str, Value] = {
    "a model": crowd(3 * MOST),
    "a model of known storages": crowd(3 * MOST, "l.{}.weight"),
    "buffers of known storages": Dict(
        [("buffers", crowd(9, "l.{}.running_mean")), ("whole", crowd(9, "w{}.l", kind="Long"))]
    ),
    "many, and then others": Dict(
        [*crowd(MOST, "l.{}").pairs, ("odd", 1), *crowd(20, "m.{}").pairs, ("sub", crowd(9, "s.{}"))]
    ),
    "shared storages": Dict([(f"layer.{n}", tensor(str(n % 3), n + 1)) for n in range(40)]),
    "of a format without calls": Dict(_STORED),
    "buffers and weights": Dict(
        [
            (name, tensor(name, 2, kind=kind))
            for n in range(9)
            for name, kind in ((f"{n}.running_mean", "Float"), (f"{n}.i", "Long"), (f"{n}.weight", "Float"))
        ]
    ),
    "states of generators": Dict([(f"rng_state_{n}", tensor(f"r{n}", 5056, kind="Byte")) for n in range(9)]),
    "bytes in a model": with_last(tensor("b", 5056, kind="Byte")),
    "averages": Dict([("ema", crowd(9)), ("model", crowd(9, "w{}"))]),
    "counted averages": Dict(
        [("n_averaged", tensor("n")), *((f"module.{n}", tensor(f"m{n}", 2)) for n in range(9))]
    ),
    "no model": Dict([("items", Dict([(f"x{n}", tensor(f"x{n}")) for n in range(9)])), ("a", 1)]),
    "a list": [tensor(str(n), n) for n in range(12)],
    "numbers between": Dict(
        [pair for n in range(30) for pair in ((f"t{n}", tensor(str(n), 2)), (f"n{n}", n))]
    ),
    "below an odd name": Dict([("é/~" * 3, crowd())]),
    "below a long name": Dict([("n" * 600, crowd())]),
    "keys that are numbers": Dict([(n, tensor(str(n), 2)) for n in range(12)]),
    "a name with a slash": with_last(tensor("l", 2), "a/b"),
    "a name with a tilde": with_last(tensor("l", 2), "a~b"),
    "a name that is not ASCII": with_last(tensor("l", 2), "é"),
    "a name that is invisible": with_last(tensor("l", 2), "a\nb"),
    "a long name": with_last(tensor("l", 2), "n" * 512),
    "a device that is not ASCII": with_last(tensor("l", 2, tag="é" * 30)),
    "many sizes": with_last(tensor("l", 1, 1, 1, 1, 1)),
    "very many sizes": with_last(tensor("l", *[1] * 200)),
    "without a storage": with_last(
        Call(
            Global("torch._utils", "_rebuild_meta_tensor_no_storage"),
            (Global("torch", "float32"), (2,), (1,), False),
            "reduce",
        )
    ),
    "a bare storage": with_last(PersistentId(("storage", Global("torch", "FloatStorage"), "l", "cpu", 3))),
    "a call that torch does not take": with_last(tensor("l", 2, flag=3)),
    "a state": with_last(_WITH_STATE),
    "a state among others": Dict([*crowd().pairs, ("one", _WITH_STATE), *crowd(9, "more.{}").pairs]),
    "quantized": with_last(
        Call(
            Global("torch._utils", "_rebuild_qtensor"),
            (
                *tensor("q", 2, kind="QInt8").args[:4],
                (Global("torch", "per_tensor_affine"), 0.5, 3),
                False,
                None,
            ),
            "reduce",
        )
    ),
    "too large": with_last(tensor("l", 9000)),
    "an optimizer": Dict(
        [
            (
                "state",
                Dict([(n, Dict([(f"slot{i}", tensor(f"{n}-{i}", 2)) for i in range(9)])) for n in range(3)]),
            ),
            ("param_groups", [Dict([("lr", 0.1), ("params", [0, 1, 2])])]),
        ]
    ),
}


def all_of(root: Value, limits: Limits) -> tuple[object, ...]:
    """All that a walk finds, and what it cost."""
    storages = {
        f"s{n}": StorageId(f"s{n}", "float32", 4, NO_DEVICE, 2, untyped=False, view=None) for n in range(FEW)
    }
    for value in iter_values([root]):
        one = parse_storage_id(value) if isinstance(value, PersistentId) else None
        if one is not None and not one.key.startswith("layers"):  # of most roots, all are known
            storages.setdefault(one.key, one)
    limits = limits.started()
    found = walk(root, limits, Progress(), Known(storages))
    models = [(model.path, model.rows, model.is_average) for model in found.models]
    views = found.views.first, dict(found.views.more)
    work = limits.counted()
    sources = list(map(id, found.sources))
    lists = (found.tensors, found.values, list(found.slots.all()), found.uses, found.leaves, found.too_deep)
    lists = (*lists, found.encodings)
    return (*lists, models, views, sources, work.parts, work.chars)


@pytest.mark.wide
def test_rows_and_costs_are_those_of_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, root in _ROOTS.items():
        together = all_of(root, Limits())
        with monkeypatch.context() as patch:
            patch.setattr(crowds, "MOST", 1)
            patch.setattr("inspector.model.walk.after_crowds", lambda _, __, frame, *___: frame)
            assert together == all_of(root, Limits()), name


def test_crowds_are_really_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the test above would compare a way with itself."""
    answers = []
    monkeypatch.setattr(
        "inspector.model.walk.add_crowd", lambda *given: answers.append(add_crowd(*given)) or answers[-1]
    )
    counts = {}
    for name, root in _ROOTS.items():
        answers.clear()
        all_of(root, Limits())
        counts[name] = sum(answers), len(answers)
    assert counts["a model"] == (3, 3)
    assert counts["of a format without calls"] == (1, 1)
    assert counts["a list"] == (0, 1)
    assert counts["a state"] == (0, 1)
    assert counts["below an odd name"] == (0, 0)
    assert counts["an optimizer"] == (0, 0)
    assert {name for name, (made, _) in counts.items() if not made} >= {
        name for name in counts if name.startswith("a name")
    }


def test_crowds_of_known_storages_are_described_together(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    monkeypatch.setattr(
        "inspector.model.crowds.add_alike", lambda *given: answers.append(add_alike(*given)) or answers[-1]
    )
    counts = {}
    for name in (
        "a model of known storages",
        "buffers of known storages",
        "many, and then others",
        "averages",
    ):
        answers.clear()
        all_of(_ROOTS[name], Limits())
        counts[name] = list(answers)
    assert counts == {
        "a model of known storages": [True] * 3,
        "buffers of known storages": [True] * 2,
        "many, and then others": [True, False, True],
        "averages": [False, True],
    }


def test_names_and_rows_of_crowds_are_bounded() -> None:
    with pytest.raises(ModelError, match="too long to be listed"):
        all_of(crowd(100), Limits(chars=1000))
    with pytest.raises(ModelError, match="more than 50 tensors"):
        all_of(crowd(100), Limits(rows=50))


def test_frames_of_parts_optimizers_and_pinned_keys_are_no_crowds() -> None:
    frame = Frame(iter(()))
    assert most_together(frame) == MOST
    for odd in (
        {"part_of": 0},
        {"context": Context(optimizer=0)},
        {"pinned": frozenset({"x"})},
        {"prefix": "é/"},
    ):
        assert most_together(frame._replace(**odd)) == 1


def test_all_facts_are_looked_at() -> None:
    """A fact that is new must be asked for, or be one of those that a row begins with."""
    assert TensorFacts._fields == crowds._Columns._fields


def test_a_view_of_nothing_is_no_plain_tensor() -> None:
    facts = describe_tensor(tensor("k", 2))
    assert facts is not None
    one = ("k", tensor("k", 2), facts._replace(storage=None))
    assert not add_crowd(Found(), Work(Limits(), lambda: None), Frame(iter(())), [one])


def test_a_composite_is_no_plain_tensor() -> None:
    parts = (tensor("i", 1, 2), tensor("v", 2), (3,))
    sparse = Call(Global("torch._utils", "_rebuild_sparse_tensor"), ("torch.sparse_coo", parts), "reduce")
    facts = describe_tensor(sparse)
    assert facts is not None
    assert not add_crowd(Found(), Work(Limits(), lambda: None), Frame(iter(())), [("s", sparse, facts)])
