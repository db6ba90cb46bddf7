"""Tensors described in columns are what they are one by one, or are left to that."""

from __future__ import annotations

from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.model.tensors.columns import describe_alike
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import Known
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value

_REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD.common = True
_MOST = (1 << 63) - 1
_NUMEL = 5000


def pid(key: Value = "0", tag: Value = "cpu", kind: str = "Float", numel: Value = _NUMEL) -> PersistentId:
    """The persistent id of a storage."""
    return PersistentId(("storage", Global("torch", f"{kind}Storage"), key, tag, numel))


def call(*args: Value, func: Value = _REBUILD) -> Call:
    """A call that rebuilds a tensor."""
    return Call(func, args, "reduce")


def usual(
    node: Value = None, offset: Value = 0, shape: Value = (2, 3), stride: Value = (3, 1), grad: Value = False
) -> Call:
    """The same with all arguments but these as usual."""
    return call(node or pid(), offset, shape, stride, grad, None)


def known_of(values: list[Value]) -> Known:
    """The storages of tensors, those whose key ends in `?` left out."""
    found: dict[str, StorageId] = {}
    for value in values:
        args = value.args if isinstance(value, Call) else ()
        node = args[0] if isinstance(args, tuple) and args else None
        one = parse_storage_id(node) if isinstance(node, PersistentId) else None
        if one is not None and not one.key.endswith("?"):
            found.setdefault(one.key, one)
    return Known(found)


def with_added(name: str, value: Value) -> Call:
    """A call to whose result something is added."""
    made = usual()
    setattr(made, name, value)
    return made


_PLAIN: list[Value] = [
    usual(),
    usual(pid("1", "cuda:1", "Half"), 3, (7,), (2,), True),
    usual(pid("1", "cuda:0", "Half")),  # the first id of a storage counts
    usual(pid("2", kind="Long"), 0, (), ()),
    usual(pid("3"), 9, (0, 4), (4, 1)),
    usual(pid("3"), 0, (4, 0, 2), (_MOST, 0, 1)),
    usual(pid("4"), 0, (5, 5, 5, 5), (0, 0, 0, 1)),
    usual(pid("6", kind="ComplexFloat"), 0, (_NUMEL,), (1,)),
]
_OTHER = Global("torch._utils", "_rebuild_tensor_v2")
_NEW = Global("torch._utils", "_rebuild_tensor_v3")
_NEW.common = True
_ODD: dict[str, Value] = {
    "a number": 3,
    "a function that is not common": call(*usual().args, func=_OTHER),
    "a function that is none": call(*usual().args, func=(1,)),
    "another function": call(*usual().args, func=_NEW),
    "a state": with_added("state", Dict([])),
    "items": with_added("items", []),
    "pairs": with_added("pairs", []),
    "arguments in a list": Call(_REBUILD, list(usual().args), "reduce"),
    "more arguments": call(*usual().args, Dict([])),
    "no persistent id": usual(call()),
    "an id that is no tuple": usual(PersistentId("id")),
    "an id with a view": usual(PersistentId((*pid().pid, None))),
    "a key that is a number": usual(pid(0)),
    "a key that is a list": usual(pid([0])),
    "a storage that is not known": usual(pid("x?")),
    "a storage without elements": usual(pid("empty", numel=0), 0, (0,), (1,)),
    "an id without elements": usual(pid(numel=0)),
    "on meta": usual(pid("m", "meta")),
    "a device that is cut": usual(pid("5", tag="cuda:" + "1" * 300)),
    "a device that is not ASCII": usual(pid("d", "\u00e9" * 30)),
    "of several elements in a byte": usual(pid("q", kind="QUInt4x2")),
    "bytes": usual(pid("b", kind="Byte")),
    "gradients of whole numbers": usual(pid("i", kind="Int"), 0, (2,), (1,), True),
    "an offset that is a bool": usual(offset=True),
    "an offset below zero": usual(offset=-1),
    "sizes in a list": usual(shape=[2, 3]),
    "strides in a list": usual(stride=[3, 1]),
    "gradients as a number": usual(grad=0),
    "a size that is a bool": usual(shape=(2, True)),
    "a size that is a float": usual(shape=(2, 3.0)),
    "a stride that is a text": usual(stride=(3, "1")),
    "many dimensions": usual(shape=(1,) * 5, stride=(1,) * 5),
    "more sizes than strides": usual(shape=(2, 3, 1)),
    "a size below zero": usual(shape=(-2, 3)),
    "a stride above all": usual(shape=(1, 1), stride=(_MOST + 1, 1)),
    "too many elements": usual(shape=(1 << 40, 1 << 40), stride=(0, 0)),
    "past the end": usual(offset=_NUMEL - 5),
}


def facts_of(value: Value, known: Known) -> tuple[object, ...]:
    facts = describe_tensor(value, known)
    assert facts is not None
    assert facts.storage is not None
    assert facts[10:] == ((), None, False, None, None)
    return (*facts[:5], facts.requires_grad, facts.nbytes, facts.storage.key, facts.span)


def test_plain_tensors_are_those_of_one_by_one() -> None:
    many = [usual(shape=(size, 1), stride=(1, 1)) for size in range(600)]  # more shapes than are remembered
    values = [*_PLAIN, *many]
    known = known_of(values)
    columns = describe_alike(values, known)
    assert columns is not None
    assert list(zip(*columns, strict=True)) == [facts_of(value, known) for value in values]


def test_what_is_not_plain_is_left() -> None:
    taken = []
    for name, value in _ODD.items():
        values = [*_PLAIN, value]
        if describe_alike(values, known_of(values)) is not None or describe_alike([value], known_of([value])):
            taken.append(name)
    assert not taken
    empty = parse_storage_id(pid(tag="cuda:1", numel=0))
    assert empty is not None
    assert describe_alike([usual(shape=(0,), stride=(1,))], Known({"0": empty})) is None  # see `storage_of`
