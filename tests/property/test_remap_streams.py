"""Whatever is pickled, and however: a remap changes the devices of tensors and nothing else.

Texts, devices and containers are shared at random, so that location tags and the user's own words get into
each other's memo slots in every order. Python's unpicklers read the result, the pure one checks each FRAME.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.distributed.device_mesh import DeviceMesh

from inspector.model.build import build_checkpoint
from inspector.remap.plan import plan_remap, with_hidden
from inspector.remap.rewrite import rewrite_pickle
from inspector.remap.rules import Rule, Rules
from tests.sweep import tries
from tests.torch.remapping import Made, Name, unpickled
from tests.unit.remap.samples import container_of

pytestmark = pytest.mark.torch

# One object for each text, as Python keeps it of constants: the pickler then stores it once.
DEVICES = ["cpu", "cuda", "mps", "cuda:0", "cuda:1", "xpu:3"]
WORDS = [*DEVICES, "storage", "weight", ""]
DESTINATIONS = ["cpu", "mps", "cuda", "cuda:0", "cuda:1", "cuda:127", "xpu:3"]


class Storage:
    def __init__(self, key: int, location: str) -> None:
        self.key = str(key)
        self.location = location


class Tensor:
    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __reduce__(self) -> tuple:
        return torch._utils._rebuild_tensor_v2, (
            *(self.storage, 0, (2,), (1,), False),
            collections.OrderedDict(),
        )


class Device:
    """A `torch.device`; its type's text may be any other text's object."""

    def __init__(self, text: str) -> None:
        kind, _, index = text.partition(":")
        self.args = (kind, int(index)) if index else (next((word for word in WORDS if word == kind), kind),)

    def __reduce__(self) -> tuple:
        return torch.device, self.args


class Wrapper:
    def __init__(self, device: Device, inner: Any) -> None:
        self.device = device
        self.inner = inner

    def __reduce__(self) -> tuple:
        args = (Wrapper, torch.float32, (2,), (1,), 0, torch.strided, self.device, False)
        rebuild = torch._utils._rebuild_wrapper_subclass
        return torch._tensor._rebuild_from_type_v2, (rebuild, Wrapper, args, {"inner": self.inner})


class Mesh:
    """A `DeviceMesh`; the text of its device may be any other text's object."""

    def __init__(self, kind: str) -> None:
        self.state = {"_device_type": kind, "kind": kind, kind: kind}

    def __reduce__(self) -> tuple:
        return DeviceMesh, (), self.state


class _Saving:
    def persistent_id(self, value: object) -> tuple | None:
        if isinstance(value, Storage):
            return "storage", torch.FloatStorage, value.key, value.location, 2
        return None


class _C(_Saving, pickle.Pickler):
    pass


class _Pure(_Saving, pickle._Pickler):
    pass


def dumped(value: object, protocol: int, *, pure: bool) -> bytes:
    file = io.BytesIO()
    (_Pure if pure else _C)(file, protocol).dump(value)
    return file.getvalue()


# --- what is pickled ----------------------------------------------------------------------------------------


@st.composite
def objects(draw: st.DrawFn) -> object:
    locations = draw(st.lists(st.sampled_from(DEVICES), min_size=1, max_size=5))
    storages = [Storage(number, location) for number, location in enumerate(locations)]
    devices = {text: Device(text) for text in DEVICES}
    tensors = st.sampled_from(storages).map(Tensor)
    shared = [Tensor(storage) for storage in storages]

    def wrapper(storage: Storage, own: bool) -> Wrapper:
        device = devices[storage.location] if own else Device(storage.location)
        return Wrapper(device, Tensor(storage))

    def beside(storage: Storage, number: int) -> list[object]:
        """A wrapper and the very device that it is on, in either order."""
        both: list[object] = [devices[storage.location], wrapper(storage, own=True), storage.location]
        return both[number:] + both[:number]

    wrappers = st.builds(wrapper, st.sampled_from(storages), st.booleans())
    leaves = st.one_of(
        st.sampled_from(WORDS),
        tensors,
        wrappers,
        st.builds(beside, st.sampled_from(storages), st.integers(0, 2)),
        st.sampled_from(shared),
        st.sampled_from(list(devices.values())),
        st.sampled_from(DEVICES).map(Device),
        st.sampled_from(["cpu", "cuda", "mps"]).map(Mesh),
        st.none() | st.integers(-3, 300),
    )
    nested = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
            st.lists(inner, max_size=3).map(tuple),
        ),
        max_leaves=12,
    )
    value = draw(nested)
    return [value, draw(leaves), value] if draw(st.booleans()) else {"a": value, "b": draw(nested)}


RULES = st.lists(
    st.builds(Rule, device=st.sampled_from([*DEVICES, "*", "cuda:*"]), to=st.sampled_from(DESTINATIONS)),
    min_size=1,
    max_size=3,
)


def remapped(data: bytes, rules: list[Rule], *, hidden: bool = False) -> bytes:
    container = container_of(data)
    checkpoint = build_checkpoint(container)
    plan = plan_remap(checkpoint, rules)
    return rewrite_pickle(container.stream, with_hidden(checkpoint, plan) if hidden else plan)


# --- what must come out -------------------------------------------------------------------------------------


class _Portrait:
    """A tree of plain values, with each tensor's device as rules send it, and maybe all others."""

    def __init__(self, rules: list[Rule], *, hidden: bool) -> None:
        self._rules = rules
        self._hidden = hidden

    def of(self, value: Any) -> Any:
        if isinstance(value, Made):
            return self._made(value)
        if isinstance(value, Name):
            return value.dotted
        if (
            isinstance(value, tuple)
            and len(value) == 5
            and value[0] == "storage"
            and isinstance(value[1], Name)
        ):
            tag, cls, key, location, numel = value
            return tag, cls.dotted, key, self._moved(location), numel
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        return [type(value).__name__, *map(self.of, value)] if isinstance(value, list | tuple) else value

    def _made(self, made: Made) -> Any:
        args = made.args
        if made.name.endswith("_rebuild_from_type_v2"):
            device = args[2][6]
            text = self._moved(":".join(map(str, device.args)))
            args = (*args[:2], (*args[2][:6], f"on {text}", *args[2][7:]), *args[3:])
        if made.name == "torch.device":
            text = ":".join(map(str, args))
            return made.name, self._moved(text) if self._hidden else text
        if made.name.endswith(".DeviceMesh"):
            kind = made.state["_device_type"]
            to = self._moved(kind).partition(":")[0] if self._hidden else kind
            return made.name, self.of(made.state | {"_device_type": to})
        return made.name, [self.of(arg) for arg in args], self.of(made.state)

    def _moved(self, device: str) -> str:
        return Rules(self._rules).by_device(device) or device


def portrait(data: bytes, rules: list[Rule], *, pure: bool = False, hidden: bool = False) -> Any:
    return _Portrait(rules, hidden=hidden).of(unpickled(data, pure=pure))


SETTINGS = settings(max_examples=tries(30, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(value=objects(), rules=RULES, protocol=st.integers(1, 5), pure=st.booleans(), hidden=st.booleans())
def test_devices_change_and_nothing_else(
    value: object, rules: list[Rule], protocol: int, pure: bool, hidden: bool
) -> None:
    data = dumped(value, protocol, pure=pure)
    made = remapped(data, rules, hidden=hidden)
    wanted = portrait(data, rules, hidden=hidden)
    assert portrait(made, []) == wanted
    assert portrait(made, [], pure=True) == wanted
    if protocol >= 4:
        assert int.from_bytes(made[3:11], "little") == len(made) - 11  # one frame holds it all
    else:
        new = {code.name for code, _, _ in pickletools.genops(made)}
        old = {code.name for code, _, _ in pickletools.genops(data)}
        assert new - old <= {"GLOBAL", "TUPLE1", "TUPLE2", "BININT1", "REDUCE"}


@SETTINGS
@given(value=objects(), device=st.sampled_from(DEVICES), protocol=st.integers(1, 5))
def test_there_and_back_nothing_has_changed(value: object, device: str, protocol: int) -> None:
    data = dumped(value, protocol, pure=False)
    there = remapped(data, [Rule(device=device, to="hpu:77")])
    back = remapped(there, [Rule(device="hpu:77", to=device)])
    assert portrait(back, []) == portrait(data, [])
    again = remapped(back, [Rule(device=device, to="hpu:77")])
    assert remapped(again, [Rule(device="hpu:77", to=device)]) == back


@SETTINGS
@given(value=objects(), protocol=st.integers(1, 5))
def test_rules_that_move_nothing_change_no_byte(value: object, protocol: int) -> None:
    data = dumped(value, protocol, pure=False)
    for rules in ([], [Rule(device="hpu:77", to="cpu")], [Rule(device=text, to=text) for text in DEVICES]):
        assert remapped(data, rules) == data
