"""Pairs of files as torch saves them: equal is what torch loads as equal, containers and all."""

from __future__ import annotations

import argparse
import collections
import copy
import datetime as dt
import pathlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from inspector.diff.compare import Wish, compare_paths
from inspector.diff.records import Diff
from tests.sweep import put_through

OD = collections.OrderedDict
W, V = torch.arange(12.0).reshape(3, 4), torch.arange(5.0) + 7


class Own(dict[str, Any]):
    """A class of the user's that is a dict."""


class Other(dict[str, Any]):
    """Another."""


class Point(NamedTuple):
    x: Any
    y: Any


class Place(NamedTuple):
    """Another with the same fields."""

    x: Any
    y: Any


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Made(Thing):
    """An object that is made with arguments, and has a state besides."""

    def __init__(self, number: int, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.number = number

    def __reduce__(self) -> Any:
        return (Made, (self.number,), self.__dict__)


def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def bare() -> dict[str, Any]:
    return OD(net().state_dict())


def edited(value: Any, edit: Callable[[Any], object]) -> Any:
    found = copy.deepcopy(value)
    edit(found)
    return found


def resumed(kind: str = "AdamW", steps: int = 1, **options: Any) -> dict[str, Any]:
    model = net()
    optimizer = getattr(torch.optim, kind)(model.parameters(), **{"lr": 0.1, **options})
    for _ in range(steps):
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


def group(**changes: Any) -> Any:
    return edited(resumed(), lambda state: state["optimizer"]["param_groups"][0].update(changes))


def turned(mapping: Any) -> Any:
    return type(mapping)(reversed(list(mapping.items())))


def noted(version: int) -> Any:
    state = net().state_dict()
    state._metadata["1"]["version"] = version  # type: ignore[attr-defined]
    return state


def with_attribute(number: int) -> Any:
    state = OD(w=W)
    state.extra = number  # type: ignore[attr-defined]
    return state


def beside(a: Any, b: Any) -> tuple[Any, Any]:
    return {"w": W, "x": a}, {"w": W, "x": b}


def around(a: Callable[[Any], Any], b: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Two ways of holding the same tensors."""
    return {"x": a([W, V])}, {"x": b([W, V])}


def named(a: Callable[..., Any], b: Callable[..., Any]) -> tuple[Any, Any]:
    return {"x": a(w=W)}, {"x": b(w=W)}


def shared(second: Any) -> tuple[Any, Any]:
    items = [W]
    return {"a": items, "b": items}, {"a": items, "b": second}


ARGS = argparse.Namespace
LINEAR = nn.Linear(2, 2)


def pairs() -> dict[str, tuple[Any, Any]]:
    """All pairs, made when they are asked for."""
    return {
        "the same": (net().state_dict(), net().state_dict()),
        "without _metadata": (net().state_dict(), bare()),
        "as a dict": (net().state_dict(), dict(net().state_dict())),
        "another version of a module": (net().state_dict(), noted(1)),
        "in another order": (bare(), turned(bare())),
        "list, tuple": ([W, V], (W, V)),
        "list, tuple inside": around(list, tuple),
        "list, deque": around(list, collections.deque),
        "deques": around(lambda x: collections.deque(x, 2), lambda x: collections.deque(x, 3)),
        "equal deques": around(collections.deque, collections.deque),
        "tuple, named tuple": around(tuple, Point._make),
        "two named tuples": around(Point._make, Place._make),
        "equal named tuples": around(Point._make, Point._make),
        "named tuple of numbers": beside(Point(1, 2), (1, 2)),
        "two of numbers": beside(Point(1, 2), Place(1, 2)),
        "empty list, empty tuple": beside([], ()),
        "numbers": beside([1, 2], (1, 2)),
        "nested numbers": beside([[1, 2], [3]], [[1, 2], (3,)]),
        "dict, OrderedDict": named(dict, OD),
        "dict, own": named(dict, Own),
        "own, other": named(Own, Other),
        "equal own": named(Own, Own),
        "dict, defaultdict": named(dict, lambda **x: collections.defaultdict(list, **x)),
        "defaultdicts": named(
            *(lambda factory=kind, **x: collections.defaultdict(factory, **x) for kind in (int, list))
        ),
        "equal defaultdicts": named(*(lambda **x: collections.defaultdict(list, **x) for _ in range(2))),
        "defaultdict of nothing": named(
            *(lambda f=kind, **x: collections.defaultdict(f, **x) for kind in (None, int))
        ),
        "objects": named(Thing, ARGS),
        "equal objects": named(Thing, Thing),
        "object, dict": ({"x": Thing(w=W)}, {"x": {".w": W}}),
        "objects of numbers": beside(Thing(a=1), ARGS(a=1)),
        "objects of nothing": beside(Thing(), ARGS()),
        "objects made otherwise": ({"x": Made(1, w=W)}, {"x": edited(Made(1, w=W), lambda x: x.__dict__)}),
        "None, nothing": ({"w": W, "x": None}, {"w": W}),
        "None, 0": beside(None, 0),
        "False, 0": beside(False, 0),
        "1, 1.0": beside(1, 1.0),
        "1, '1' as keys": ({1: W}, {"1": W}),
        "1, '1' as keys of a dict": ({1: {"w": W}}, {"1": {"w": W}}),
        "empty dict, empty OrderedDict": beside({}, OD()),
        "Counter, dict": beside(collections.Counter("aab"), {"a": 2, "b": 1}),
        "sets of tuples": beside({("a", "b"), ("c", "d")}, {("c", "d"), ("a", "b")}),
        "other sets of tuples": beside({("a", "b"), ("c", "d")}, {("c", "d"), ("a", "c")}),
        "sets of texts": beside({"a", "b", "c"}, {"c", "b", "a"}),
        "set, frozenset": beside({("a", "b")}, frozenset({("a", "b")})),
        "keys": ({"a": W, "b": V}, {"b": V, "a": W}),
        "keys of values": beside({"x": 1, "y": 2}, {"y": 2, "x": 1}),
        "keys deep inside": beside([{"x": 1, "y": 2}, 1], [{"y": 2, "x": 1}, 1]),
        "a dtype": ({"a": W}, {"a": W.double()}),
        "a dtype and all else": (
            bare(),
            edited(bare(), lambda x: x.update({"0.weight": x["0.weight"].half()})),
        ),
        "a shape": ({"a": W}, {"a": W.reshape(4, 3)}),
        "strides": ({"a": W}, {"a": W.t().contiguous().t()}),
        "a device": ({"a": W}, {"a": W.to("meta")}),
        "a value": ({"a": W, "b": V}, {"a": W + 0.25, "b": V}),
        "NaN": ({"a": V / 0 * 0}, {"a": V / 0 * 0}),
        "-0.0": ({"a": V * 0}, {"a": -(V * 0)}),
        "gradients": ({"a": W}, {"a": W.clone().requires_grad_()}),
        "a parameter": ({"a": W}, {"a": nn.Parameter(W, requires_grad=False)}),
        "a layout": ({"a": W}, {"a": W.to_sparse()}),
        "one more": ({"a": W}, {"a": W, "b": V}),
        "a prefix": (bare(), OD((f"module.{name}", value) for name, value in bare().items())),
        "another place": (bare(), {"model": bare()}),
        "another name": ({"a.x": W, "b": V}, {"c.y": W, "b": V}),
        "the root alone": (W, [W]),
        "a tensor alone": (W, W.clone()),
        "a key with a slash": ({"a": {"b": W}}, {"a/b": W}),
        "resumed": (resumed(), resumed()),
        "another rate": (resumed(), group(lr=0.2)),
        "betas as a list": (resumed(), group(betas=[0.9, 0.999])),
        "other parameters": (resumed(), group(params=[5, 4, 3, 2, 1, 0])),
        "groups as a tuple": (
            resumed(),
            edited(
                resumed(), lambda x: x["optimizer"].update(param_groups=tuple(x["optimizer"]["param_groups"]))
            ),
        ),
        "slots in another order": (
            resumed(),
            edited(resumed(), lambda x: x["optimizer"].update(state=turned(x["optimizer"]["state"]))),
        ),
        "slots in an OrderedDict": (
            resumed(),
            edited(resumed(), lambda x: x["optimizer"].update(state=OD(x["optimizer"]["state"]))),
        ),
        "another step": (resumed(), resumed(steps=2)),
        "another optimizer": (resumed(), resumed("SGD", momentum=0.9)),
        "another epoch": (resumed(), edited(resumed(), lambda x: x.update(epoch=4))),
        "hyper-parameters": beside({"lr": 1e-3, "layers": [1, 2, 3]}, {"lr": 1e-3, "layers": [1, 2, 4]}),
        "namespaces": beside(ARGS(lr=1), ARGS(lr=2)),
        "equal namespaces": beside(ARGS(lr=1), ARGS(lr=1)),
        "dates": beside(dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
        "equal dates": beside(dt.date(2020, 1, 1), dt.date(2020, 1, 1)),
        "paths": beside(pathlib.PurePosixPath("a/b"), "a/b"),
        "equal paths": beside(pathlib.PurePosixPath("a/b"), pathlib.PurePosixPath("a/b")),
        "long texts": beside("x" * 5000 + "a", "x" * 5000 + "b"),
        "arrays": beside(np.arange(4), np.arange(4) + 1),
        "an array, a list": beside(np.arange(3), [0, 1, 2]),
        "a number of NumPy": beside(np.float64(1), 1.0),
        "a size": beside(torch.Size([1, 2]), (1, 2)),
        "a device, a text": beside(torch.device("cpu"), "cpu"),
        "dtypes": beside(torch.float32, torch.float16),
        "bytes, bytearray": beside(b"ab", bytearray(b"ab")),
        "complex numbers": beside(1 + 2j, 1 + 3j),
        "whole modules": (net(), net()),
        "a module that evaluates": (net(), net().eval()),
        "another activation": (nn.Sequential(nn.ReLU()), nn.Sequential(nn.GELU())),
        "ModuleList, Sequential": (nn.ModuleList([LINEAR]), nn.Sequential(LINEAR)),
        "one list at two places": shared([W]),
        "a list at two places, and a tuple": shared((W,)),
        "attributes of a mapping": (with_attribute(1), with_attribute(2)),
        "equal attributes of a mapping": (with_attribute(1), with_attribute(1)),
    }


FACTS = ("dtype", "shape", "device", "requires_grad", "layout")


class Oracle:
    """What Python says of two loaded values: whether they are equal, and in the same order."""

    def __init__(self) -> None:
        self.is_reordered = False
        self._seen: set[tuple[int, int]] = set()

    def equal(self, a: Any, b: Any) -> bool:
        if type(a) is not type(b):
            return False
        if (id(a), id(b)) in self._seen:
            return True
        self._seen.add((id(a), id(b)))
        if isinstance(a, torch.Tensor):
            return _equal_tensors(a, b)
        if isinstance(a, np.ndarray):
            return bool(a.dtype == b.dtype and np.array_equal(a, b))
        return self._equal_contents(a, b) and self._equal_attributes(a, b)

    def _equal_contents(self, a: Any, b: Any) -> bool:
        if isinstance(a, dict):
            names = [[(type(key), key) for key in one] for one in (a, b)]
            if set(names[0]) != set(names[1]) or getattr(a, "default_factory", 0) is not getattr(
                b, "default_factory", 0
            ):
                return False
            self.is_reordered |= names[0] != names[1]
            return all(self.equal(value, b[key]) for key, value in a.items())
        if isinstance(a, list | tuple | collections.deque):
            same = len(a) == len(b) and getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0)
            return same and all(self.equal(one, other) for one, other in zip(a, b, strict=True))
        return hasattr(a, "__dict__") or bool(a == b)

    def _equal_attributes(self, a: Any, b: Any) -> bool:
        if isinstance(a, type | pathlib.PurePath | torch.dtype):
            return bool(a == b)
        own, others = getattr(a, "__dict__", {}), getattr(b, "__dict__", {})
        return set(own) == set(others) and all(self.equal(own[name], others[name]) for name in own)


def _equal_tensors(a: torch.Tensor, b: torch.Tensor) -> bool:
    if any(getattr(a, fact) != getattr(b, fact) for fact in FACTS):
        return False
    if a.layout is torch.strided and a.stride() != b.stride():
        return False
    return a.is_meta or torch.equal(torch.nan_to_num(a.to_dense(), 7.5), torch.nan_to_num(b.to_dense(), 7.5))


def compared(folder: Path, pair: tuple[Any, Any]) -> tuple[Diff, bool, bool]:
    """What the program says of a pair, and what Python says of it once torch loaded it."""
    paths = [str(folder / f"{number}.pt") for number in range(2)]
    for path, value in zip(paths, pair, strict=True):
        torch.save(value, path)
    oracle = Oracle()
    loaded = [torch.load(path, weights_only=False) for path in paths]
    return compare_paths(*paths, Wish()), oracle.equal(*loaded), oracle.is_reordered


def test_equal_is_what_torch_loads_as_equal(tmp_path: Path) -> None:
    answers, made = [], pairs()

    def check(name: str) -> None:
        diff, is_equal, is_reordered = compared(tmp_path, made[name])
        assert diff.is_equal == is_equal
        assert not is_equal or bool(diff.reordered) == is_reordered
        answers.append((is_equal, is_reordered))

    put_through(check, made)
    assert {(True, False), (True, True), (False, False)} <= set(answers)
    assert len(answers) > 90
