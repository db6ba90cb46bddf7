from __future__ import annotations

from inspector.diagnose.script.objects.memory import Memory
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Const,
    DictObject,
    InstanceObject,
    ListObject,
    LoaderObject,
    ModuleObject,
    OptimizerObject,
    Ref,
    Tensor,
)


def test_fork_and_join_keep_what_both_sides_agree_on() -> None:
    memory = Memory()
    memory.scopes[0] = {"a": Const(value=1), "b": Const(value=2), "t": Tensor(device="cpu", dtype="float32")}
    objects = [
        ModuleObject(cls="A", attributes={"x": Const(value=1)}),
        OptimizerObject(cls="Adam", modules=(1,), state="cpu"),
        InstanceObject(attributes={"x": Const(value=1), "y": Const(value=2)}),
        DictObject(pairs={"k": Const(value=1), "l": Const(value=2)}),
        LoaderObject(element=Tensor()),
        ListObject(items=(UNKNOWN,)),
    ]
    places = [memory.put(one).id for one in objects]
    other = memory.fork()
    other.scopes[0] |= {"b": Const(value=3), "c": UNKNOWN, "t": Tensor(device="cuda:0", dtype="float32")}
    changes = [
        ModuleObject(cls="A", device="cuda:0", attributes={"x": Const(value=2)}),
        OptimizerObject(cls="Adam", modules=(1,), state="cuda:0"),
        InstanceObject(attributes={"x": Const(value=1), "y": Const(value=3)}),
        DictObject(pairs={"k": Const(value=1)}),
        LoaderObject(element=UNKNOWN),
        ListObject(),
    ]
    other.objects |= dict(zip(places, changes, strict=True))
    other.changed[0, ()] = places[3]
    memory.changed[0, ()] = places[5]
    other.default_device, other.is_grad = "cuda:0", False
    memory.join(other)
    assert memory.scopes[0]["a"] == Const(value=1)
    assert memory.scopes[0]["b"] == memory.scopes[0]["c"] == UNKNOWN
    assert memory.scopes[0]["t"] == Tensor(dtype="float32")
    assert memory.default_device is None
    assert memory.is_grad is None
    module, optimizer, instance, pairs, loader, items = (memory.objects[place] for place in places)
    assert (module.device, module.attributes["x"]) == (None, UNKNOWN)
    assert (optimizer.modules, optimizer.state) == (None, None)
    assert instance.attributes == {"x": Const(value=1), "y": UNKNOWN}
    assert dict(pairs.pairs) == {"k": Const(value=1)}
    assert loader.element == UNKNOWN
    assert items == InstanceObject()  # what was changed in one way or another
    assert memory.size > 5


def test_containers_that_were_changed_on_one_side_only_or_in_two_ways() -> None:
    for made, vague in (
        (ListObject(items=(UNKNOWN,)), ListObject(whole=False)),
        (DictObject(), DictObject(whole=False)),
    ):
        memory = Memory()
        one, two = memory.put(made), memory.put(made)
        other = memory.fork()
        memory.changed = {(0, ("here",)): one.id, (0, ("both",)): one.id, (0, ("same",)): two.id}
        other.changed = {(0, ("both",)): two.id, (0, ("same",)): two.id}
        memory.join(other)
        assert (memory.get(one), memory.get(two)) == (vague, made)


def test_modules_below_each_other() -> None:
    memory = Memory()
    inner = memory.put(ModuleObject(cls="Inner"))
    outer = memory.put(ModuleObject(cls="Outer", children={"a": inner.id, "b": inner.id, "gone": 99}))
    assert [(prefix, module.cls) for prefix, _, module in memory.below(outer.id)] == [
        ("", "Outer"),
        ("a.", "Inner"),
    ]
    assert memory.module(outer.id) is memory.module(outer)
    assert memory.module(Ref(id=98)) is None
    assert memory.get(UNKNOWN) is None
    assert memory.new_scope() in memory.scopes
