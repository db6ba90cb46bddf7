"""Scripts that are made to crash, stall or mislead whoever reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.diagnose.script import calls, evaluate
from inspector.diagnose.script.read import read_script
from inspector.errors import ModelError
from inspector.report.page import plain_lines
from inspector.report.scripts import script_lines
from tests.unit.diagnose.script.following import follow

START = "import torch\n"
DEEP = "\n".join(f"{' ' * depth}if x{depth}:" for depth in range(80)) + f"\n{' ' * 80}pass\n"
SCRIPTS = {
    "doubling functions": "def f0(): return 1\n"
    + "\n".join(f"def f{n}(): return f{n - 1}() + f{n - 1}()" for n in range(1, 60))
    + "\nf59()\n",
    "functions in a ring": "def f(): return g()\ndef g(): return f()\nf()\n",
    "a class of itself": "class A(A):\n    def __init__(self): self.a = A()\nA()\n",
    "bases in a ring": "class A: pass\nclass B(A): pass\nclass A(B): pass\nA().x()\n",
    "large texts": "s = 'a' * 10**9\ns = 'ab'\n" + "s = s + s\n" * 100 + "s = f'{s}{s}'\n" * 100,
    "large numbers": "n = 9\n" + "n = n ** n\nn = n * n\n" * 50 + "n = 1 << 10**9\n",
    "long loops": "for a in range(10**9):\n    for b in range(10**9):\n        x = a\n",
    "loops in loops": "for a in range(200):\n    for b in range(200):\n        for c in range(9): x = c\n",
    "lists that grow": "l = [1]\n" + "l = l + l\n" * 60,
    "dictionaries that grow": "d = {}\nfor i in range(250):\n    for j in range(250): d[i * 999 + j] = d\n",
    "branches": "".join(f"if x{n}: y{n} = 1\nelse: y{n} = 2\n" for n in range(3000)),
    "deep branches": DEEP,
    "comprehensions": "[a for a in range(200) for b in range(200) for c in range(200)]\n",
    "modules in a ring": "m = torch.nn.Sequential()\nm.a = m\nm.load_state_dict({})\nm(torch.zeros(1))\n",
    "a list in itself": "l = []\nl.append(l)\nfor x in l: pass\nl == l\nlen(l)\n",
    "star of everything": "f(*range(10**9), **{str(i): i for i in range(10**9)})\n",
    "replacing texts": "s = 'aaaaaaaaaaaaaaaaaaaa'\n" + "s = s.replace('a', s)\n" * 20 + "s.split('a')\n",
    "expanding templates": "s = '{}{}'\n" + "s = s.format(s, s)\n" * 30,
    "long chains": "x = torch" + ".a" * 1500 + "\n",
    "long sums": "x = (\n" + "1 +\n" * 3000 + "1)\n",
    "deep lambdas": "f = " + "lambda: " * 90 + "1\nf()\n",
    "handlers": "try:\n    raise ValueError\n" + "except A:\n    pass\n" * 500,
}


@pytest.mark.wide
def test_every_walk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a load behind all of it is judged."""
    for module in (evaluate, calls):
        monkeypatch.setattr(module, "MOST_WORK", 10_000)
    found = {}
    for name, text in SCRIPTS.items():
        try:
            found[name] = follow(START + text + "\ntorch.load('sd_cuda.pth')\n", "sd_cuda.pth", "cpu").kind
        except ModelError:
            found[name] = "refused"
    assert found.pop("long sums") in {"refused", "load-fails"}  # Python's own parser refuses it up to 3.11
    assert set(found.values()) == {"load-fails"}, found


def test_huge_files_are_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.py"
    with path.open("wb") as file:
        file.truncate(10 << 20)
    with pytest.raises(ModelError, match="too long"):
        read_script(str(path))


def test_answers_show_no_control_characters() -> None:
    evil = "import torch\nsd = torch.load('sd_cuda.pth')['\x1b[31m\u202e']  # \x1b]0;title\x07\n"
    lines = "\n".join(plain_lines(script_lines(follow(evil, "sd_cuda.pth", "cuda")))).replace("\n", "")
    assert lines.isprintable()
    raised = 'raise RuntimeError("\\x1b[31m\\u202e" + chr(7))\nraise RuntimeError("\\x1b[31m\\u202e")\n'
    assert "".join(plain_lines(script_lines(follow(raised)))).isprintable()
