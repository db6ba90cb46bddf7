from __future__ import annotations

from tests.unit.diagnose.script.following import NET, check, said


def test_calls() -> None:
    check("calling")


def test_super_is_looked_for_once_in_each_class() -> None:
    lines = ["class D0(Net): pass"]
    for number in range(1, 30):
        lines += [f"class L{number}(D{number - 1}): pass", f"class R{number}(D{number - 1}): pass"]
        lines += [f"class D{number}(L{number}, R{number}): pass"]
    lines += ["class Last(D29):", "    def go(self):", "        def inner(self): return super().cuda()"]
    lines += ["        return inner(self)", "Last().go()"]
    assert said(NET + "\n".join(lines) + "\n") == "not-loaded"
