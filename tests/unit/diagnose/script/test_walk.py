# ruff: noqa: E501 - a script a line
"""Small scripts, and what is said of each: `kind line` of what goes wrong, else the line of the load."""

from __future__ import annotations

import argparse
import tracemalloc
from pathlib import Path

import pytest

from inspector.diagnose.script.calls import Walk
from inspector.diagnose.script.evaluate import MOST_WORK, NO_CALL, Args
from inspector.diagnose.script.options import Words
from inspector.diagnose.script.places import Places
from inspector.diagnose.script.read import Project, parse_script
from inspector.diagnose.script.uses import Judge
from inspector.diagnose.script.values import UNKNOWN, File
from inspector.errors import PlanError
from inspector.report.page import plain_lines
from inspector.report.scripts import script_lines
from tests.sweep import table
from tests.unit.diagnose.script.following import NET, follow, machine, opened, said

TORCH = "import os, sys, torch\nimport torch.nn as nn\n"
PARSER = "import argparse, torch\np = argparse.ArgumentParser()\n"
LOAD = 'torch.load("sd_cuda.pth", map_location={})\n'
CKPT = 'import torch\nck = torch.load("ckpt_dp_cuda.pth.tar", "cpu", weights_only=False)\nsd = ck["state_dict"]\n'


def loads(expression: str, before: str = "") -> str:
    """A script whose third line at least loads a file of a GPU with a `map_location`."""
    return f"{TORCH}{before}{LOAD.format(expression)}"


# --- map_location -----------------------------------------------------------------------------------------------


@table(
    ("expression", "wanted"),
    [
        ("None", "load-fails 3"),
        ('"cpu"', "works 3"),
        ('torch.device("cpu")', "works 3"),
        ('torch.device("cuda", 1)', "load-fails 3"),
        ("torch.device(0)", "load-fails 3"),
        ("torch.device", "load-fails 3"),
        ("0", "load-fails 3"),
        ("what", "lost 3"),
        ("f(1)", "lost 3"),
        ('os.environ["DEVICE"]', "lost 3"),
        ('os.environ.get("DEVICE", "cpu")', "works 3"),
        ('os.getenv("DEVICE")', "lost 3"),
        ('f"cuda:{rank}"', "load-fails 3"),
        ('"cuda:%d" % rank', "load-fails 3"),
        ('"cuda:%s:%s" % (1, rank)', "lost 3"),
        ('"cuda:" + str(rank)', "load-fails 3"),
        ('f"{kind}:{rank}"', "lost 3"),
        ('f"cuda:{rank}{rank}"', "lost 3"),
        ('"cuda" if torch.cuda.is_available() else "cpu"', "works 3"),
        ('"cuda" if torch.version.cuda.is_available() else "cpu"', "works 3"),
        ('"cuda" if what else "cpu"', "lost 3"),
        ('"cpu" if what else "cpu"', "works 3"),
        ('["cuda", "cpu"][torch.cuda.is_available() - 1]', "works 3"),
        ('("cpu", "cuda")[:1][0]', "works 3"),
        ('"cpu,cuda".split(",")[0]', "works 3"),
        ('"xcpux"[1:-1]', "works 3"),
        ("what[1:]", "lost 3"),
        ('["cpu"][5:][0]', "lost 3"),
        ('"cpu".nothing()', "lost 3"),
        ('"c{}{}".format("p", "u")', "works 3"),
        ('"{:>9999}".format("cpu")', "lost 3"),
        ('f"{what:>9}"', "lost 3"),
        ('"cuda:{:d}".format(rank)', "load-fails 3"),
        ('("%9999s" % 1)', "lost 3"),
        ('"cp" + 1', "load-fails 3"),
        ('"".join(["c", "p", "u"])', "works 3"),
        ('" cpu".strip()', "works 3"),
        ('"cpu".replace(1, 2)', "lost 3"),
        ('next(iter(["cpu"]))', "lost 3"),
        ('{"cuda:0": "cpu"}', "works 3"),
        ('{"cuda:%d" % 0: "cpu"}', "works 3"),
        ("{**what}", "lost 3"),
        ('{**{"cuda:0": "cpu"}}', "works 3"),
        ('{what: "cpu"}', "lost 3"),
        ('dict(**{"a": "b"})', "load-fails 3"),
        ('dict([("cuda:0", "cpu")])', "works 3"),
        ('dict(zip(["cuda:0"], ["cpu"]))', "works 3"),
        ('dict(zip(what, ["cpu"]))', "lost 3"),
        ("lambda storage, place: storage", "works 3"),
        ("lambda storage, place: None", "load-fails 3"),
        ("lambda storage, place: storage.cpu()", "works 3"),
        ("lambda storage, place: storage.cuda()", "load-fails 3"),
        ("lambda storage, place: storage.cuda(rank)", "load-fails 3"),
        ("lambda storage, place: other.cuda()", "lost 3"),
        ("lambda storage, place: storage + 1", "lost 3"),
        ("lambda storage: storage", "lost 3"),
        ('lambda s, _: torch.serialization.default_restore_location(s, "cpu")', "works 3"),
        ('(where := "cpu")', "works 3"),
        ('("cuda", "cpu")[-1]', "works 3"),
        ("torch.device(what)", "lost 3"),
        ('torch.device(type="cpu")', "works 3"),
        ('getattr(nn.Linear(1, 2), "where", "cpu")', "works 3"),
        ("getattr(what, name)", "lost 3"),
        ("nn.Linear(1, 2).device", "works 3"),
        ('str(torch.device("cpu"))', "works 3"),
        ('torch.device("cpu").type', "works 3"),
        ('torch.device("cuda:1").index', "load-fails 3"),
        ('torch.device("cpu").index', "load-fails 3"),
        ('torch.device("cpu").what', "lost 3"),
        ('f"cuda:{int(rank)}"', "load-fails 3"),
        ('"cpu" if not torch.cuda.device_count() > 0 else "cuda"', "works 3"),
        ('"cpu" if 0 < torch.cuda.device_count() < 2 else "cuda"', "lost 3"),
        ('torch.cuda.is_available() and "cuda" or "cpu"', "works 3"),
        ('"cuda" and what', "lost 3"),
        ('"cuda" if len(sys.argv) > 1 else "cpu"', "lost 3"),
        ('"cpu" if len("ab") == 2 else "cuda"', "works 3"),
        ('[d for d in ["cuda", "cpu"] if d != "cuda"][0]', "works 3"),
        ('[a + b for a in ["c"] for b in ["pu"]][0]', "works 3"),
        ("[d for d in what][0]", "lost 3"),
        ("[*what][0]", "lost 3"),
        ('(["cuda"] + ["cpu"])[1]', "works 3"),
        ('"cpu" if bool(1) else "cuda"', "works 3"),
        ("-1", "load-fails 3"),
        ("-what", "lost 3"),
        ('{"a": "cpu"}.get("a", "cuda")', "works 3"),
        ('{"a": "cuda"}.pop("b", "cpu")', "works 3"),
        ('{"a": "cuda"}.get(what)', "lost 3"),
        ('"cpu" if "a" in {"a": 1} else "cuda"', "works 3"),
        ('"cpu" if what in {"a": 1} else "cuda"', "lost 3"),
        ('"cpu" if "a" in ["a"] else "cuda"', "works 3"),
        ('"cpu" if isinstance(what, dict) else "cuda"', "lost 3"),
        ('"cpu" if hasattr(what, "module") else "cuda"', "lost 3"),
        ('"cpu" if hasattr(what, "a") else "cuda"', "lost 3"),
        ('"cpu" if None is None else "cuda"', "works 3"),
        ('"cpu" if what is None else "cuda"', "lost 3"),
        ('"cpu" if 1 << 2 else "cuda"', "lost 3"),
        ('"cpu" if 10**9 else "cuda"', "lost 3"),
        ('"cpu" if 5 // 2 == 2 and 5 % 2 == 1 else "cuda"', "works 3"),
        ('"cpu" if 1 // 0 else "cuda"', "lost 3"),
        ("3.5", "load-fails 3"),
        ("b'cpu'", "lost 3"),
        ("9999999999999999999999", "lost 3"),
        ("(lambda: 'cpu')()", "works 3"),
        ("(await_ := 'cpu', 1)[0]", "works 3"),
        ("sys.argv[1]", "lost 3"),
        ("fabric.device", "lost 3"),
        ('{"cuda:0": what}', "lost 3"),
        ('"cpu" if torch.device("cpu") == "cpu" else "cuda"', "works 3"),
    ],
)  # fmt: skip
def test_map_location(expression: str, wanted: str) -> None:
    assert said(loads(expression), "sd_cuda.pth") == wanted


def test_what_is_not_known_is_named_and_never_called_well() -> None:
    for expression, why in (("what", "which is what"), ("args", "argument args")):
        text = f"import torch\ndef load(args):\n    return {LOAD.format(expression)}\n"
        answer = follow(text, "sd_cuda.pth")
        shown = " ".join(" ".join(plain_lines(script_lines(answer))).split())
        assert why in shown
        assert "Not known" in shown
        assert "othing" not in shown


def test_a_rank_is_the_first_where_there_are_gpus() -> None:
    answer = follow(loads('f"cuda:{rank}"'), "sd_cuda.pth", "cuda")
    assert (answer.outcome, answer.assumed) == ("works", ("the number of the device is 0",))
    assert "whatever N is" in follow(loads('f"cuda:{rank}"'), "sd_cuda.pth").why


def test_a_variable_that_says_where_is_named_in_the_reason() -> None:
    answer = follow(loads("where", 'where = "cuda:0"\n'), "sd_cuda.pth")
    assert answer.why == "map_location is where, here cuda:0, which the target does not have."
    assert '+where = "cuda:0" if torch.cuda.is_available() else "cpu"' in answer.diff
    number = follow(loads("where", 'where = "cuda:1"\n'), "sd_cuda.pth", "cuda")
    assert '+where = "cuda:0"' in number.diff
    other = follow(loads("where", 'where = "mps"\n'), "sd_cuda.pth")
    assert "torch.backends.mps.is_available()" in other.diff


# --- branches, functions, modules -------------------------------------------------------------------------------


@table(
    ("lines", "wanted"),
    [
        ("if torch.cuda.is_available():\n    LOAD\nelse:\n    torch.load('sd_cuda.pth', 'cpu')\n", "works 6"),
        ("x = LOAD if torch.cuda.is_available() else None\n", "not-loaded"),
        ("use = torch.cuda.is_available()\nif use:\n    LOAD\n", "not-loaded"),
        ("use = True\nif use:\n    pass\nelse:\n    LOAD\n", "load-fails 7"),
        ("if what:\n    sys.exit(1)\nLOAD\n", "load-fails 5"),
        ("if what:\n    raise SystemExit\nelse:\n    exit()\nLOAD\n", "load-fails 7"),
        ("while True:\n    LOAD\n    break\n", "load-fails 4"),
        ("for i in range(3):\n    if i: continue\n    LOAD\n", "load-fails 5"),
        ("for i in []: pass\nelse:\n    LOAD\n", "load-fails 5"),
        ("with open('sd_cuda.pth', 'rb') as f:\n    torch.load(f)\n", "load-fails 4"),
        ("with a as b, c:\n    LOAD\n", "load-fails 4"),
        ("async def f():\n    async with a: await g(LOAD)\n    async for x in y: pass\n", "load-fails 4"),
        ("match x:\n    case 1:\n        LOAD\n", "load-fails 5"),
        ("try:\n    LOAD\nexcept (RuntimeError, OSError):\n    torch.load('sd_cuda.pth', 'cpu')\n", "works 6"),
        ("try:\n    LOAD\nexcept KeyError:\n    torch.load('sd_cuda.pth', 'cpu')\n", "load-fails 4"),
        ("try:\n    LOAD\nexcept:\n    pass\n", "load-fails 4"),
        ("try:\n    pass\nexcept E as e:\n    LOAD\nelse:\n    pass\nfinally:\n    pass\n", "load-fails 6"),
        ("def f(path):\n    return torch.load(path)\nf('sd_cuda.pth')\n", "load-fails 4"),
        ("def f(path, *more, where=None, **rest):\n    torch.load(path, where)\nf('sd_cuda.pth', 1, where='cpu')\n", "works 4"),
        ("def f(*paths, **more):\n    torch.load(paths[0], **more)\nf('sd_cuda.pth', map_location='cpu')\n", "works 4"),
        ("def f(path):\n    if what: return 'cuda'\n    return 'cuda'\ntorch.load('sd_cuda.pth', f(1))\n", "load-fails 6"),
        ("def f(path):\n    if what: return 'cuda'\n    return 'cpu'\ntorch.load('sd_cuda.pth', f(1))\n", "lost 6"),
        ("def f(): return f()\nf()\nLOAD\n", "load-fails 5"),
        ("def f():\n    pass\ntorch.load('sd_cuda.pth', f())\n", "load-fails 5"),
        ("class A:\n    where = 'cpu'\n    def load(self):\n        torch.load('sd_cuda.pth', self.where)\n", "works 6"),
        ("class A:\n    def __init__(self, where):\n        self.where = where\n    def load(self):\n        torch.load('sd_cuda.pth', self.where)\nA('cpu').load()\n", "works 7"),
        ("class B:\n    @property\n    def where(self): return 'cpu'\nclass A(B):\n    def load(self):\n        torch.load('sd_cuda.pth', self.where)\n", "works 8"),
        ("class A:\n    @staticmethod\n    def where(x): return x\n    def load(self):\n        torch.load('sd_cuda.pth', self.where('cpu'))\n", "works 7"),
        ("class A:\n    def __init__(self):\n        LOAD\n", "load-fails 5"),
        ("class A:\n    if what:\n        def load(self):\n            LOAD\n", "load-fails 6"),
        ("class A: pass\na = A()\na.where = 'cpu'\ntorch.load('sd_cuda.pth', a.where)\n", "works 6"),
        ("class C:\n    where = 'cpu'\nC.where = 'cuda'\ntorch.load('sd_cuda.pth', C.where)\n", "load-fails 6"),
        ("class C:\n    f = lambda s: 'cpu'\n    g = None\nc = C()\nc.f = lambda: 'cpu'\ntorch.load('sd_cuda.pth', c.f())\n", "works 8"),
        ("torch.multiprocessing.spawn(work, args=(1,))\ndef work(rank, n): LOAD\n", "load-fails 4"),
        ("def work(rank, where):\n    torch.load('sd_cuda.pth', f'{where}:{rank}')\ntorch.multiprocessing.spawn(work, args=('cuda',))\n", "load-fails 4"),
        ("Thread(target=lambda: LOAD).start()\n", "load-fails 3"),
        ("where: str = 'cpu'\nother: int\ntorch.load('sd_cuda.pth', where)\n", "works 5"),
        ("where = 'c'\nwhere += 'pu'\ntorch.load('sd_cuda.pth', where)\n", "works 5"),
        ("a, b = 'cpu', 1\n(c, d), e = a, b\ntorch.load('sd_cuda.pth', a)\n", "works 5"),
        ("d = {'a': 'cuda'}\nd['a'] = 'cpu'\nd['b'] = 1\ndel d['b'], what[1]\nd[what] = 1\ntorch.load('sd_cuda.pth', d['a'])\n", "works 8"),
        ("d = {}\nd.update(where='cpu')\nd.update({'x': 1}, **what)\ntorch.load('sd_cuda.pth', d['where'])\n", "works 6"),
        ("if what:\n    d = {'map_location': 'cpu'}\nelse:\n    d = {'map_location': 'cpu', 'mmap': False}\ntorch.load('sd_cuda.pth', **d)\n", "lost 7"),
        ("d = {'map_location': 'cpu'}\nif what:\n    d['mmap'] = True\ntorch.load('sd_cuda.pth', **d)\n", "works 6"),
        ("m = None\nif what:\n    m = Net()\nLOAD\n", "load-fails 6"),
        ("d = {'weights_only': True} if what else {}\ntorch.load('sd_cuda.pth', 'cpu', **d)\n", "works 4"),
        ("torch.load('sd_cuda.pth', *what)\n", "lost 3"),
        ("torch.load('sd_cuda.pth', **what)\n", "lost 3"),
        ("from torch import load as get\nget('sd_cuda.pth')\n", "load-fails 4"),
        ("from torch import *\nload('sd_cuda.pth')\n", "load-fails 4"),
        ("from other import *\nLOAD\n", "load-fails 4"),
        ("import numpy as np\nnp.load('sd_cuda.pth')\n", "not-loaded"),
        ("import torch.serialization\ntorch.serialization.load('sd_cuda.pth')\n", "load-fails 4"),
        ("torch.hub.load_state_dict_from_url('x', map_location='cpu')\n", "not-loaded"),
        ("LOAD\nLOAD\n", "load-fails 3"),
        ("torch.load('vgg.pth')\ntorch.load('sd_cuda.pth', 'cpu')\n", "works 4"),
        ("torch.load('vgg.pth')\ntorch.load('other.pth')\n", "not-loaded"),
        ("torch.load('vgg.pth')\n", "load-fails 3"),
        ("torch.load('vgg.pth')['nothing']\ntorch.load('other.pth')['fc1.weight']\n", "load-fails 4"),
        ("torch.load(cache)\ntorch.load(checkpoint)\n", "load-fails 4"),
        ("torch.load(a, 'cpu')['fc1.weight']\ntorch.load(b)['nothing']\n", "works 3"),
        ("torch.load(os.path.join(root, 'sd_cuda.pth'), 'cpu')\ntorch.load(x)\n", "works 3"),
        ("from pathlib import Path\ntorch.load(Path(root) / 'sd_cuda.pth', 'cpu')\ntorch.load(Path('a').joinpath('sd_cuda.pth').resolve(), 'cpu')\n", "works 4"),
        ("torch.load()\n", "load-fails 3"),
        ("if __name__ == '__main__':\n    LOAD\n", "load-fails 4"),
        ("assert what, LOAD\n", "load-fails 3"),
        ("def f():\n    yield LOAD\n", "load-fails 4"),
        ("*a, b = what\nif [1]:\n    LOAD\n", "load-fails 5"),
        ("global x\npass\nLOAD\n", "load-fails 5"),
        ("print([LOAD for _ in range(2)])\nlist(reversed([1])), tuple(), sorted('ab')\n", "load-fails 3"),
        ("return LOAD\n", "load-fails 3"),
    ],
)  # fmt: skip
def test_branches_and_functions(lines: str, wanted: str) -> None:
    text = TORCH + lines.replace("LOAD", "torch.load('sd_cuda.pth')")
    assert said(text, "sd_cuda.pth") == wanted


def test_the_branch_that_is_needed_is_named() -> None:
    rows = {
        "if args.resume:\n    LOAD": "run with `--resume` (line 3)",
        "if not args.fresh:\n    pass\nelse:\n    LOAD": "run with `--fresh` (line 3)",
        'if args.mode == "eval":\n    LOAD': "run with `--mode eval` (line 3)",
        'if sys.argv[1] != "eval":\n    pass\nelse:\n    LOAD': "run with `eval` (line 3)",
        "if os.path.isfile(p):\n    LOAD": None,
        "if n == 3:\n    LOAD": "`n == 3` is true (line 3)",
        "if n < 3:\n    pass\nelse:\n    LOAD": "`n < 3` is false (line 3)",
    }
    found = {}
    for text in rows:
        answer = follow(TORCH + text.replace("LOAD", "torch.load('sd_cuda.pth')") + "\n", "sd_cuda.pth")
        found[text] = answer.assumed[0] if answer.assumed else None
    assert found == rows
    answer = follow(TORCH + "if args.resume:\n    torch.load('sd_cuda.pth')\n", "sd_cuda.pth")
    assert "Line 4 fails, when run with `--resume` (line 3)." in "\n".join(plain_lines(script_lines(answer)))


def test_repeats_are_collapsed() -> None:
    text = (
        TORCH
        + "for n in (1, 2):\n    torch.load(args.resume)\n    torch.load(args.resume)\ntorch.load(args.resume)\n"
    )
    answer = follow(text, "sd_cuda.pth")
    assert (answer.line, answer.also, answer.further) == (4, (5, 6), ())
    assert "The same fails at lines 5, 6." in "\n".join(plain_lines(script_lines(answer)))


def test_a_problem_of_another_branch_is_not_met() -> None:
    text = CKPT + 'if args.ema:\n    sd = ck["ema"]\n'
    assert said(text, "ckpt_dp_cuda.pth.tar") == "works 2"


# --- options ----------------------------------------------------------------------------------------------------

OPTIONS = (
    PARSER
    + 'p.add_argument("--resume", "-r", default="")\n'
    + 'g = p.add_argument_group("g")\n'
    + 'g.add_argument("--gpu", type=int)\n'
    + 'p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])\n'
    + 'p.add_argument("--cpu", action="store_true")\n'
    + 'p.add_argument("--no-gpu", action="store_false", dest="use_gpu")\n'
    + 'p.add_argument("--many", nargs="+")\n'
    + 'p.add_argument("--flag", type=bool, default="no")\n'
    + 'p.add_argument("--must", required=True)\n'
    + 'p.add_argument("mode", nargs="?")\n'
    + 'p.set_defaults(extra="cpu")\n'
)


@table(
    ("words", "line", "wanted"),
    [
        (None, "torch.load(args.resume, args.device)", "load-fails 15"),
        ("--device cpu", "torch.load(args.resume, args.device)", "works 15"),
        ("--device=cpu", "torch.load(args.resume, args.device)", "works 15"),
        ("--device", "torch.load(args.resume, args.device)", "load-fails 15"),
        ("--gpu 0", "torch.load(args.resume, f'cuda:{args.gpu}')", "load-fails 15"),
        ("--gpu x", "torch.load(args.resume, args.gpu)", "load-fails 15"),
        (None, "torch.load(args.resume, args.extra)", "works 15"),
        (None, "torch.load(args.resume, args.must)", "lost 15"),
        (None, "torch.load(args.resume, args.unheard)", "lost 15"),
        ("--cpu", "torch.load(args.resume, 'cpu' if args.cpu else None)", "works 15"),
        ("", "torch.load(args.resume, 'cpu' if args.cpu else None)", "load-fails 15"),
        ("--no-gpu", "torch.load(args.resume, None if args.use_gpu else 'cpu')", "works 15"),
        ("--many cpu cuda -r x", "torch.load(args.resume, args.many[0])", "works 15"),
        ("--flag yes", "torch.load(args.resume, 'cpu' if args.flag else None)", "works 15"),
        (None, "torch.load(args.resume, 'cuda' if args.flag else 'cpu')", "works 15"),
        ("cpu --unheard", "torch.load(args.resume, args.mode)", "works 15"),
        ("eval", "if args.mode == 'eval': torch.load(args.resume, 'cpu')\nelse: torch.load(args.resume)", "works 15"),
        ("train", "if args.mode == 'eval': torch.load(args.resume, 'cpu')\nelse: torch.load(args.resume)", "load-fails 16"),
        ("eval", "import sys\nif sys.argv[1] == 'eval': torch.load(args.resume, 'cpu')\nelse: torch.load(args.resume)", "works 16"),
        ("eval", "import sys\nif len(sys.argv) == 2: torch.load(args.resume, 'cpu')\nelse: torch.load(args.resume)", "works 16"),
        ("eval", "import sys\ntorch.load(args.resume, sys.argv[7])", "lost 16"),
        (None, "rest = p.parse_known_args()\ntorch.load(rest[0].resume, 'cpu')", "works 16"),
    ],
)  # fmt: skip
def test_options(words: str | None, line: str, wanted: str) -> None:
    assert said(f"{OPTIONS}args = p.parse_args()\n{line}\n", "sd_cuda.pth", arguments=words) == wanted


def test_words_without_an_end() -> None:
    with pytest.raises(PlanError, match="have no end"):
        follow("import torch\n", arguments='--a "b')
    assert argparse.ArgumentParser().parse_known_args(["x"])[1] == ["x"]


def test_words_choose_the_load() -> None:
    text = (
        OPTIONS
        + "args = p.parse_args()\nif args.gpu is None:\n    torch.load(args.resume)\n"
        + "else:\n    torch.load(args.resume, map_location='cpu')\n"
    )
    assert said(text, "sd_cuda.pth", arguments="--gpu 0") == "works 18"
    assert said(text, "sd_cuda.pth", arguments="--resume sd_cuda.pth") == "load-fails 16"
    assert said(text, "sd_cuda.pth") == "load-fails 16"


# --- modules of the project -------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "io.py").write_text(
        "import torch\nfrom . import where\nfrom .deep.more import NAME\n"
        "def load(path):\n    return torch.load(path, map_location=where.DEVICE)\n"
    )
    (tmp_path / "lib" / "where.py").write_text("DEVICE = 'cuda'\n")
    (tmp_path / "lib" / "deep" / "more.py").write_text("from .. import where\nNAME = where.DEVICE\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "train.py").write_text("")
    return tmp_path


def test_loads_in_modules_beside_the_script(project: Path) -> None:
    for start in (
        "from lib.io import load\nload(path)",
        "import lib.io as io\nio.load(path)",
        "from lib import io\nio.load(path)",
        "from lib.io import *\nload(path)",
    ):
        answer = follow(f"{start}\n", "sd_cuda.pth", folder=str(project))
        assert (answer.kind, answer.file, answer.line) == ("load-fails", "lib/io.py", 5), start
        shown = "\n".join(plain_lines(script_lines(answer)))
        assert "lib/io.py, line 5 fails" in shown
    assert "--- a/lib/where.py" not in answer.diff
    assert follow("from lib.io import load\n", "sd_cuda.pth").outcome == "not-loaded"
    uncalled = follow(
        "import lib.io, broken, train\nfrom missing import x\n", "sd_cuda.pth", folder=str(project)
    )
    assert (uncalled.outcome, uncalled.file, uncalled.load_line) == ("lost", "lib/io.py", 5)
    assert "may load this file, and whether the script comes there" in "\n".join(
        plain_lines(script_lines(uncalled))
    )


def test_patch_of_a_module(project: Path) -> None:
    (project / "lib" / "where.py").write_text("DEVICE = None\n")
    answer = follow("from lib.io import load\nload(path)\n", "sd_cuda.pth", folder=str(project))
    assert "--- a/lib/io.py\n" in answer.diff
    assert '+    return torch.load(path, map_location="cpu")\n' in answer.diff


def test_so_many_modules_and_no_more(tmp_path: Path) -> None:
    for number in range(80):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    text = "".join(f"import m{number}\n" for number in range(80))
    project = Project(parse_script(text, "train.py"), str(tmp_path))
    Walk(project, machine("cpu"), Words(None)).run()
    assert 50 <= len(project.read) <= 60
    answer = follow(text, "sd_cuda.pth", folder=str(tmp_path))
    assert answer.outcome == "lost"
    assert "Not known: no load of this file was found" in "\n".join(plain_lines(script_lines(answer)))
    (tmp_path / "big.py").write_text("#" * (1 << 21))
    project = Project(parse_script("import big\n"), str(tmp_path))
    assert project.find("big", 0, project.script) is None


# --- what real scripts taught -----------------------------------------------------------------------------------


@table(
    ("text", "wanted"),
    [
        (
            # hifi-gan: a global that main() sets
            "import torch\ndevice = None\ndef load(path):\n    return torch.load(path, map_location=device)\ndef main():\n    global device\n    device = 'cuda' if torch.cuda.is_available() else 'cpu'\n    load(path)\nmain()\n",
            "works 4",
        ),
        (
            # a function of another format in the other branch
            "import torch\nfrom safetensors.torch import load_file\ndef read(path):\n    if kind == 'safetensors':\n        return load_file(path)\n    return torch.load(path, map_location='cpu')\nread(x)\n",
            "works 6",
        ),
        (
            # a function that makes the path of a name: another file, then this one
            "import torch\na = torch.load(where('clvp2.pth'))\nb = torch.load(where('sd_cuda.pth'), map_location='cpu')\n",
            "works 3",
        ),
        (
            "import torch\nassert torch.cuda.is_available(), 'no GPU'\ntorch.load(p, map_location='cpu')\n",
            "no-device 2",
        ),
        ("import torch\nassert config\ntorch.load(p, map_location='cpu')\n", "works 3"),
        ("import torch\ntorch.load(p, map_location='cpu')\nn = torch.cuda.current_device()\n", "no-device 3"),
        (
            "import torch\nimport torch.distributed as dist\nif dist.is_initialized():\n    d = 'cuda'\nelse:\n    d = 'cpu'\ntorch.load(p, map_location=d)\n",
            "works 7",
        ),
        ("import importlib\nm = importlib.import_module(name)\nm.run()\n", "lost"),
    ],
)
def test_causes_found_in_scripts_of_packages(text: str, wanted: str) -> None:
    assert said(text, "sd_cuda.pth") == wanted


def test_options_as_a_dictionary() -> None:
    text = f'{PARSER}p.add_argument("--device", default="cpu")\na = p.parse_args().__dict__\nd = a.pop("device")\n'
    assert said(f"{text}torch.load(f, map_location=d)\n", "sd_cuda.pth") == "works 6"
    text = text.replace("p.parse_args().__dict__", "vars(p.parse_args())")
    assert said(f"{text}torch.load(f, map_location=d)\n", "sd_cuda.pth") == "works 6"


def test_options_that_are_not_given_rule_a_load_out() -> None:
    text = (
        "import argparse, torch\ndef load(args):\n    if args.resume:\n        return torch.load(find(args.resume))\n"
        "    if args.weights:\n        return torch.load(find(args.weights), map_location='cpu')\nload(config.read())\n"
    )
    assert said(text, "sd_cuda.pth", arguments="--weights x") == "works 6"
    assert said(text, "sd_cuda.pth", arguments="--resume x") == "load-fails 4"


def test_the_environment_may_turn_weights_only_off(tmp_path: Path) -> None:
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text(
        'import os\nos.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"\n'
    )
    (tmp_path / "pack" / "inner" / "__init__.py").write_text("")
    (tmp_path / "pack" / "inner" / "tools.py").write_text("x = 1\n")
    load = "import torch\ntorch.load(f, map_location='cpu')\n"
    folder = str(tmp_path / "pack" / "inner")
    assert said(load, "args_cuda.pth", folder=folder).startswith("refused")
    assert said(f"from pack.inner import tools\n{load}", "args_cuda.pth", folder=folder) == "works 3"
    given = load.replace("'cpu'", "'cpu', weights_only=True")
    assert said(f"from pack.inner import tools\n{given}", "args_cuda.pth", folder=folder).startswith(
        "refused"
    )


def test_loads_that_are_come_to_only_by_looking_keep_their_own_statement(tmp_path: Path) -> None:
    """The work ends within a long module; what is judged then stands in a shorter one."""
    (tmp_path / "far.py").write_text(
        "\n" * 700 + "def work(n):\n    for i in range(n):\n        work(i) + work(i)\n"
    )
    (tmp_path / "near.py").write_text(
        "import torch\nclass A:\n    def read(self):\n        return torch.load(self.path)\n"
    )
    steps = "".join(f"x{number} = [{', '.join(['f(1)'] * 400)}]\n" for number in range(100))
    text = f"import near\nfrom far import work\n{steps}work(9)\n"
    answer = follow(text, "args_cuda.pth", folder=str(tmp_path))
    assert (answer.outcome, answer.file, answer.load_line) == ("lost", "near.py", 4)


# --- keys, names, devices of models -----------------------------------------------------------------------------


@table(
    ("lines", "file", "target", "wanted"),
    [
        ('ck["epoch"] + ck.get("nothing", 1) + ck.get("epoch")\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ('ck["nothing"]\n', "ckpt_dp_cuda.pth.tar", "cpu", "key-missing 4"),
        ('ck["optimizer"]["nothing"]\n', "ckpt_dp_cuda.pth.tar", "cpu", "key-missing 4"),
        ('ck[what], ck["epoch"]["x"], ck["epoch"].x\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ('if "ema" in ck: ck["ema"]["x"]\nelse: ck["epoch"]\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("for key in ck: ck[key]\nfor k, v in ck.items(): ck[k]\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ('if not isinstance(ck, dict): ck["x"]\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = N()\nm.load_state_dict(sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 5"),
        ("m = N()\nm.load_state_dict(sd, strict=False)\n", "ckpt_dp_cuda.pth.tar", "cpu", "nothing-matches 5"),
        ("m = what.model\nm.load_state_dict(sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = torch.nn.DataParallel(what)\nm.load_state_dict(sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = torch.compile(N())\nm.load_state_dict(sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 5"),
        ("m = torch.nn.DataParallel(N())\nif isinstance(m, torch.nn.DataParallel): m = m.module\nm.load_state_dict(sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 6"),
        ('m = N()\nm.load_state_dict({k.replace("module.", ""): v for k, v in sd.items()})\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = N()\nm.load_state_dict({k[what:]: v for k, v in sd.items() if what})\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = N()\nm.load_state_dict(dict([(k, v) for k, v in sd.items()]))\n", "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 5"),
        ('m = N()\nsd.pop("module.fc1.bias")\nm.load_state_dict(sd)\n', "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 6"),
        ('m = N()\nm.load_state_dict(torch.zeros(1))\nm.load_state_dict("x")\nm.load_state_dict()\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = N()\nm.load_state_dict({})\nm.load_state_dict(*what)\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("ck(1)\n", "ckpt_dp_cuda.pth.tar", "cpu", "not-a-model 4"),
        ("sd.eval()\n", "ckpt_dp_cuda.pth.tar", "cpu", "not-a-model 4"),
        ('ck["epoch"].to("cpu")\nck["best_acc1"].cuda\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("f().cuda()\n", "ckpt_dp_cuda.pth.tar", "cpu", "no-device 4"),
        ('what.to(rank)\nwhat.to("nowhere")\nwhat.to(1.5)\nwhat.cpu()\n', "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("f().cuda(1)\n", "ckpt_dp_cuda.pth.tar", "cuda", "no-device 4"),
        ("m = N()\nm.load_state_dict(state_dict=sd)\n", "ckpt_dp_cuda.pth.tar", "cpu", "names-differ 5"),
        ("move = f().cuda\nmove()\n", "ckpt_dp_cuda.pth.tar", "cpu", "no-device 5"),
        ("def f(x): x.cuda()\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("if what: what.cuda()\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ("m = N()\nm.module\n", "ckpt_dp_cuda.pth.tar", "cpu", "works 2"),
        ('r = N().load_state_dict(ck["nothing"])\nr.missing_keys\nr.eval()\n', "ckpt_dp_cuda.pth.tar", "cpu", "key-missing 4"),
        ('o = torch.optim.Adam([{"params": m.a.parameters()}, what])\no.load_state_dict(what)\no.step()\n', "ckpt_dp_cuda.pth.tar", "cuda", "works 2"),
    ],
)  # fmt: skip
def test_what_follows_a_load(lines: str, file: str, target: str, wanted: str) -> None:
    assert said(CKPT + lines, file, target) == wanted


OPTIMIZER = (
    'import torch\nm = N()\no = torch.optim.Adam(m.parameters())\nck = torch.load("train_cuda.pth", "cpu")\n'
    'o.load_state_dict(ck["optimizer"])\n'
)


def test_optimizer_and_the_move() -> None:
    rows = {
        "m.cuda()\no.step()\n": "optimizer-left-behind 7",
        'm.to("cuda")\no.step()\no.step()\n': "optimizer-left-behind 7",
        'm.to("cpu")\no.step()\n': "works 4",
        "m.cuda()\nfor s in o.state.values(): pass\no.step()\n": "works 4",
        "o.step()\nm.cuda()\n": "works 4",
        "def f():\n    m.cuda()\nf()\no.step()\n": "optimizer-left-behind 9",
    }
    assert {text: said(OPTIMIZER + text, "train_cuda.pth", "cuda") for text in rows} == rows
    moved = follow(OPTIMIZER + "def f():\n    m.cuda()\nf()\no.step()\n", "train_cuda.pth", "cuda")
    assert moved.diff == ""
    assert "m.cuda()\n o.load" in follow(OPTIMIZER + "m.cuda()\no.step()\n", "train_cuda.pth", "cuda").diff
    both = follow(OPTIMIZER + "m.cuda(); x = 1\no.step()\n", "train_cuda.pth", "cuda")
    assert "+m.cuda()" in both.diff
    assert "-m.cuda()" not in both.diff
    mps = OPTIMIZER + 'm.to("mps")\no.step()\n'
    assert "found at least two devices, mps and cpu" in follow(mps, "train_cuda.pth", "mps").message
    early = OPTIMIZER.replace("m = N()\n", 'm = N().to("cuda")\n') + "m.cuda()\no.step()\n"
    assert said(early, "train_cuda.pth", "cuda") == "works 4"


def test_names_are_compared_by_the_first_step_where_the_class_is_plain() -> None:
    load = 'model.load_state_dict(torch.load("sd_cpu.pth"))\n'
    assert said(NET + load) == "works 12"
    assert said(NET.replace("self.fc2 =", "self.head =") + load) == "names-differ 12"
    assert (
        said(NET.replace("self.fc2 =", "self.head =") + load.replace("))", "), strict=False)")) == "works 12"
    )
    assert said(NET.replace("self.fc2 =", "setattr; self.head =") + load) == "works 12"
    assert said(NET.replace("nn.Module", "nn.Module, Other") + load) == "works 12"


# --- other loaders ----------------------------------------------------------------------------------------------


@table(
    ("text", "file", "wanted"),
    [
        ('M.load_from_checkpoint("last.ckpt")\n', "last.ckpt", "works 1"),
        ('class M(L): pass\nM.load_from_checkpoint("last.ckpt")\n', "last.ckpt", "works 2"),
        ("import pickle\npickle.load(what)\n", "sd_cpu.pth", "not-loaded"),
        ('import torch\ntorch.load("args_cuda.pth", "cpu", pickle_module=p)\n', "args_cuda.pth", "works 2"),
        ('import torch\ntorch.load("args_cuda.pth", "cpu", weights_only=what())\n', "args_cuda.pth", "refused 2"),
        ('import torch\ntorch.load("args_cuda.pth", "cpu", weights_only=what)\n', "args_cuda.pth", "refused 2"),
        ('import torch\ndef f(w):\n    torch.load("args_cuda.pth", "cpu", weights_only=w)\n', "args_cuda.pth", "lost 3"),
        ('import torch\ntorch.load = what\ntorch.load("args_cuda.pth")\n', "args_cuda.pth", "not-loaded"),
        ('import torch\ntorch.serialization.add_safe_globals(what)\ntorch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth", "works 3"),
        ('import torch\nwith torch.serialization.safe_globals([other.X]):\n    torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth", "refused 3"),
        ('import torch\ntorch.nn.modules.utils.consume_prefix_in_state_dict_if_present(what, "x")\n', "sd_cpu.pth", "not-loaded"),
        ('import torch\ntorch.load("sd_cpu.pth", mmap=True)\n', "sd_cpu.pth", "works 2"),
    ],
)  # fmt: skip
def test_other_loaders(text: str, file: str, wanted: str) -> None:
    assert said(text, file) == wanted


def test_a_walk_by_itself_judges_nothing() -> None:
    walk = Walk(
        Project(parse_script('import torch\nx = torch.load("a").b["c"]\nf().g()\n')),
        machine("cpu"),
        Words(None),
    )
    walk.run()
    assert walk.problems == []
    assert walk.on_key(File(0), "a", None) == UNKNOWN
    assert walk.items_of(File(0)) is None
    assert super(Walk, walk).body([]) is False
    assert Args(NO_CALL).get(0, "x") is None


def test_what_doubles_takes_little_work_and_memory() -> None:
    """Without the limit of a sequence, and of what Python works out of constants, one takes 2 to 100 MB."""
    checkpoint = opened("sd_cpu.pth")
    starts = {
        "x = (1, 2)\n": "x = (x, x)\n",
        "x = [1, 2]\n": "x = x + x\n",
        "x = 'ab'\n": "x = x + x\n",
        "x = 'ab' \n": "x = '{}{}'.format(x, x)\n",
        "x = 'aa'\n": "x = x.replace('a', x)\n",
        f"x = '{'a' * 3000}'\n": "x = x.replace('a', x)\n",
        "x = 'ab'  \n": "x = ''.join([x, x])\n",
        "x = {1: 2}\n": "x = {1: x, 2: x}\n",
    }
    for start, line in starts.items():
        text = f"import torch\n{start}{line * 20}y = x == 1\nz = str(x)\ntorch.load(x)\n"
        judge = Judge(
            Project(parse_script(text)), checkpoint, Places(checkpoint), machine("cpu"), Words(None)
        )
        tracemalloc.start()
        judge.run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert judge.loads, start
        assert judge.work < 1000, start
        assert peak < 2 << 20, start


def test_work_has_an_end() -> None:
    """Loads that were not come to are judged as they stand."""
    checkpoint = opened("sd_cuda.pth")
    loops = "".join(f"{' ' * depth}for a{depth} in range(9):\n" for depth in range(8))
    text = f"import torch\nl = [{'1, ' * 300}]\n" + "for a in l:\n for b in l: x = a\n"
    text += f"{loops}{' ' * 8}pass\ntorch.load('sd_cuda.pth')\ntorch.load({'f(' * 60}1{')' * 60})\n"
    text += "torch.load([d for a in l for b in l for d in l])\n"
    judge = Judge(Project(parse_script(text)), checkpoint, Places(checkpoint), machine("cpu"), Words(None))
    judge.run()
    assert judge.work <= MOST_WORK + 1
    assert len(judge.loads) == 2  # the third is not come to the end of
    assert follow(text, "sd_cuda.pth").kind == "load-fails"


def test_a_load_of_the_script_comes_before_one_in_a_module_that_nothing_calls(project: Path) -> None:
    text = 'import torch\nfrom lib.io import load\ntorch.load("other.pth", "cpu")\n'
    answer = follow(text, "sd_cuda.pth", folder=str(project))
    assert (answer.outcome, answer.load_line, answer.file) == ("works", 3, "")
