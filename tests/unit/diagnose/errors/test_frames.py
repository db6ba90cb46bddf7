"""Frames in the ways that tools print them."""

from __future__ import annotations

import pytest

from inspector.diagnose.errors.paste import MOST_CHARS, is_cut_head, locate, read_head, read_pasted
from tests.sweep import table

TORCH = "lib/python3.8/site-packages/torch/optim/adam.py"
FORMS = {
    "python": f'  File "{TORCH}", line 80, in step\n    exp_avg.mul_(beta1)\n    ^^^^^^^\n',
    "one line": f'Traceback: File "{TORCH}", line 80, in step exp_avg.mul_(beta1)\n',
    "notebook": f"~/{TORCH} in step(self, closure)\n  79 x\n---> 80     exp_avg.mul_(beta1)\n 81 y\n",
    "new notebook": f"File ~/{TORCH}:80, in Adam.step(self)\n     79 x\n---> 80 exp_avg.mul_(beta1)\n",
    "pytest": f"{TORCH}:80: in step\n    exp_avg.mul_(beta1)\n",
    "rich": f"\u2502 /{TORCH}:80 in step \u2502\n\u2502 79 \u2502 x\n\u2771 80 \u2502 exp_avg.mul_(beta1)\n",
    "broken": f'  File "{TORCH[:30]}\n{TORCH[30:]}", line 80, in step\n    exp_avg.mul_(beta1)\n',
    "windows": 'File "C:\\site-packages\\torch\\optim\\n.py", line 80, in step\n    exp_avg.mul_(beta1)\n',
}


@table("form", FORMS)
def test_every_form_gives_the_same_frame(form: str) -> None:
    pasted = read_pasted(f"{FORMS[form]}RuntimeError: no")
    (frame,) = pasted.frames
    assert (frame.line, frame.code, frame.owner) == (80, "exp_avg.mul_(beta1)", "torch")
    assert frame.function in {"step", "Adam.step"}
    assert frame.place.startswith("torch/optim/")
    assert pasted.raised[0].frames == (frame,)


@table(
    ("text", "path", "line"),
    [
        ("Cell In[5], line 3\n      1 a\n----> 3 b()", "Cell", 3),
        ("Input In [5], in <cell line: 3>()\n----> 3 b()", "Input", 3),
        ("<ipython-input-5-ab12> in <module>()\n      2 a\n----> 3 b()", "<ipython-input-5-ab12>", 3),
        ("Cell In[34], [line 3](vscode-notebook-cell:?x=1)\n---> [3](https://file+/a.py:3) b()", "Cell", 3),
        ("/tmp/ipykernel_7/123.py in <module>\n----> 3 b()", "/tmp/ipykernel_7/123.py", 3),
        ("/content/My Drive/a b.py in f(x)\n----> 3 b()", "/content/My Drive/a b.py", 3),
    ],
)
def test_cells(text: str, path: str, line: int) -> None:
    (frame,) = read_pasted(text).frames
    assert (frame.path, frame.line, frame.code, frame.owner) == (path, line, "b()", "yours")


def test_each_error_has_the_frames_above_it() -> None:
    pasted = read_pasted(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    a()\nKeyError: 1\n\n'
        "During handling of the above exception, another one occurred:\n"
        '  File "b.py", line 2, in g\nValueError: 2\nc.py:3: ValueError'
    )
    assert [[frame.path for frame in one.frames] for one in pasted.raised] == [["b.py"], ["a.py"]]
    assert pasted.frames[-1].code == ""


def test_lines_that_are_no_frames() -> None:
    for line in ("In this file", "I ran foo.py today", "File size 3", "a.py:3", 'File "a.py'):
        assert read_head(line) is None
    assert is_cut_head('File "a.py')
    assert not is_cut_head("File a.py")
    assert read_pasted('File "a.py\nand\nnothing\nelse\nfollows').frames == ()


def test_of_too_many_frames_both_ends_stay() -> None:
    lines = [f'File "a.py", line {number}, in f' for number in range(2000)]
    numbers = [frame.line for frame in read_pasted("\n".join(lines)).frames]
    assert (numbers[0], numbers[-1], len(numbers)) == (0, 1999, 300)


def test_warnings() -> None:
    pasted = read_pasted("x.py:3: UserWarning: CUDA initialization: no\nRuntimeError: a\nb")
    assert pasted.warnings == ("CUDA initialization: no",)
    assert pasted.errors == ("RuntimeError: a b",)


ATTACKS = (
    "[1](https://",
    "[1](https://a)",
    'File "',
    'File "a", line ',
    'File "a", line 1, in f',
    "a.py in ",
    "/a/a/a.py:1: in f",
    "/" + "a" * 290 + ".py",
    "File /a:",
    "Cell In[1], line ",
    "----> 1 ",
    "1 \u2502 ",
    "C:\\a\\a\\",
    "~\\a",
    "Warning: ",
    "ERROR: ERROR: ",
    "<ipython-input-",
)


@pytest.mark.wide
def test_no_text_makes_the_reading_run_away() -> None:
    """A pattern that tries each way to split such a text would not end within the time limit of a test."""
    for piece in ATTACKS:
        for joined in ("", "\n"):
            text = joined.join([piece] * (MOST_CHARS // 4 // (len(piece) + 1)))
            assert len(read_pasted(text).frames) <= 300


@table(
    ("path", "owner", "place"),
    [
        ("/v/lib/python3.8/site-packages/torch/optim/adam.py", "torch", "torch/optim/adam.py"),
        (r"C:\v\Lib\site-packages\torch\nn\modules\conv.py", "torch", "torch/nn/modules/conv.py"),
        ("/e/torch/lib/python3.8/site-packages/timm/a.py", "framework", "timm/a.py"),
        ("x/site-packages/torch-1.0-py3.7-linux-x86_64.egg/torch/nn/a.py", "torch", "torch/nn/a.py"),
        ("/opt/pytorch/torch/nn/functional.py", "torch", "torch/nn/functional.py"),
        ("torch/serialization.py", "torch", "torch/serialization.py"),
        ("/content/fairseq/fairseq/trainer.py", "framework", "fairseq/trainer.py"),
        ("/usr/lib/python3.8/runpy.py", "python", "python3.8/runpy.py"),
        ("<frozen importlib._bootstrap>", "python", "<frozen importlib._bootstrap>"),
        ("/home/u/torch/train.py", "yours", "torch/train.py"),
        ("train.py", "yours", "train.py"),
        ("<ipython-input-5-abc>", "yours", "<ipython-input-5-abc>"),
    ],
)
def test_owners(path: str, owner: str, place: str) -> None:
    found = locate(path)
    assert (found.owner, found.place) == (owner, place)
    assert (found.package == "torch") is (owner == "torch")
