from __future__ import annotations

import ast

import pytest

from inspector.diagnose.script.objects.values import Const, Device, ModuleObject, OptimizerObject, Ref
from inspector.diagnose.script.places import Places
from inspector.diagnose.script.problems import Raised
from inspector.diagnose.script.reading import parse_script
from inspector.diagnose.script.simulate.context import Arguments, Context, ExhaustedError, Known, device_text
from tests.unit.diagnose.script.following import machine, opened


def context(target: str = "cuda") -> Context:
    checkpoint = opened("sd_cpu.pth")
    return Context(
        Known(
            script=parse_script("x = 1"),
            checkpoint=checkpoint,
            target=machine(target),
            places=Places(checkpoint),
        )
    )


def test_arguments_that_the_call_writes() -> None:
    call = ast.parse("f(a, *b, c, d=1, **e)", mode="eval").body
    one, two, three = (Const(value=number) for number in (1, 2, 3))
    assert isinstance(call, ast.Call)
    given = Arguments(values=(one, two, three), named={"d": two, "e": three}, node=call)
    assert given.written == [(call.args[0], one), (call.keywords[0].value, two)]
    assert Arguments(values=(one,)).written == []


def test_work_and_depth_are_bounded() -> None:
    with pytest.raises(ExhaustedError):
        context().spend(10**9)
    deep = context()
    for _ in range(60):
        deep.enter()
    with pytest.raises(ExhaustedError):
        deep.enter()
    deep.leave()


def test_what_is_found() -> None:
    found = context()
    found.line = 7
    with pytest.raises(Raised) as raised:
        found.fail("kind", "KeyError: 'a'", "why")
    assert raised.value.problem.line == 7
    found.lose("one")
    found.lose("two")
    assert found.lost is not None
    assert (found.lost.line, found.lost.why) == (7, "one")
    found.assume("a")
    found.assume("a")
    assert found.assumed == ["a"]
    found.maybe = 1
    found.note_silent("x", "y")
    assert found.silent == []


def test_words_for_the_device() -> None:
    names = context()
    assert names.device_word() == ""
    names.memory.scopes[0] |= {
        "d": Const(value="cuda"),
        "cpu": Const(value="cpu"),
        "my_device": Device(text="cuda:0"),
    }
    assert names.device_word() == "my_device"
    own = names.memory.put(ModuleObject(cls="A", attributes={"dev": Const(value="cuda")}))
    names.memory.scopes[0] = {"self": own}
    assert names.device_word() == "self.dev"


def test_what_is_given_away_is_not_known_any_more() -> None:
    given = context()
    module = given.memory.put(ModuleObject(cls="A"))
    optimizer = given.memory.put(OptimizerObject(cls="Adam", modules=(module.id,)))
    given.give_away([module, optimizer, Const(value=1), Ref(id=999)])
    assert given.memory.module(module).device is None
    assert given.memory.get(optimizer).state is None


def test_names_and_arguments() -> None:
    names = context()
    inner = names.memory.new_scope()
    names.memory.scopes[0]["a"] = Const(value=1)
    names.scope = inner
    assert names.look_up("a") == Const(value=1)
    assert names.look_up("b") is None
    arguments = Arguments(values=(Const(value=1),), named={"x": Const(value=2)})
    assert arguments.get(0, "y") == Const(value=1)
    assert arguments.get(3, "x") == Const(value=2)
    assert arguments.get(3, "z") is None
    assert len(arguments.all) == 2
    assert device_text(None) is None
