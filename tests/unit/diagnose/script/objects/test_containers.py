from __future__ import annotations

from inspector.diagnose.script.answer import answer_script
from inspector.model.checkpoint import ValueRow
from tests.unit.diagnose.script.following import check, loaded_as, machine


def said(values: tuple[ValueRow, ...], lines: str) -> str:
    """Follow a script that loads a file of nothing but these values as `c`."""
    text = 'import torch\nc = torch.load("sd_cpu.pth")\n' + lines
    checkpoint = loaded_as("sd_cpu.pth", tensors=(), values=values)
    answer = answer_script(text, "a.py", checkpoint, machine("cpu"))
    return f"{answer.kind} {answer.line}" if answer.line else answer.outcome


def value(kind: str, text: str, *keys: str) -> ValueRow:
    return ValueRow(keys=keys, path="/".join(keys), type=kind, text=text)


def test_containers() -> None:
    check("containers")


def test_empty_containers_of_the_file_keep_what_is_put_into_them() -> None:
    values = value("dict", "{}", "more"), value("list", "[]", "log"), value("tuple", "()", "none")
    both = 'if flag: x = []; c["log"].append(1)\nelse: c["log"].append(2)\n'
    rows = {
        'c["more"]["a"]\n': "key-missing 3",
        'c["more"]["a"] = 1\nif c["more"]["a"] != 1 or "b" in c["more"]: raise ValueError\n': "works",
        'c["log"].append(2)\nif c["log"][0] != 2: raise ValueError\n': "works",
        'if not isinstance(c["log"], list) or isinstance(c["none"], list): raise ValueError\n': "works",
        'if not isinstance(c["none"], tuple) or len(c["none"]): raise ValueError\n': "works",
        both + 'c["log"][0].x\nfor one in c["log"]: one.x\n': "works",
        both + 'if not isinstance(c["log"], list): raise ValueError\n': "works",
        both.replace('["log"].append(1)', '["more"]["a"] = 1') + 'c["more"]["a"], c["more"]["b"]\n': "works",
    }
    assert {lines: said(values, lines) for lines in rows} == rows


def test_items_of_a_very_large_file_are_not_followed_one_by_one() -> None:
    values = tuple(value("int", "1", f"k{number}") for number in range(20_001))
    assert (
        said(
            values,
            "for key, one in c.items():\n    a = b = key\n    a, b, key, one, a, b\n    b, a, one, key\n",
        )
        == "works"
    )
