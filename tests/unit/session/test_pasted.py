from __future__ import annotations

import pytest

from inspector.session.pasted import find_named, is_script_name, may_be_script


def test_names_of_scripts() -> None:
    assert [is_script_name(name) for name in ("a.py", "B.IPYNB", "a.pth", "py")] == [True, True, False, False]


def test_scripts_and_errors() -> None:
    rows = {
        "import torch\nx = 1\n": True,
        "    from torch import nn\n": True,
        'model.load_state_dict(torch.load("best.pth"))': True,
        '{"cells": [{"cell_type": "code"}]}': True,
        '{"a": 1}': False,
        "RuntimeError: Attempting to deserialize": False,
        "Traceback (most recent call last):\n  model.load_state_dict(x)\n": False,
        "# torch.load(path) fails\n": False,
        "what is this": False,
        "": False,
    }
    assert {text: may_be_script(text) for text in rows} == rows


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'File "{run}/train.py", line 3, in main\n  torch.load("best.pth")\nRuntimeError: no',
            "run/best.pth",
        ),
        ('File "<stdin>", line 1\n  x = torch.load("best.pth", map_location=None)', "start/best.pth"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'last.ckpt'", "known/last.ckpt"),
        ("FileNotFoundError: No such file or directory: '{run}/best.pth'", "run/best.pth"),
        ('torch.load("gone.pth")\ntorch.load("best.pth")', "start/best.pth"),
        ('torch.load("strange name")', "start/strange name"),
        ('torch.load("gone.pth")', ""),
        ('open("notes.txt")', ""),
        ('torch.load("best.pth\0")', ""),
        ("RuntimeError: no", ""),
    ],
)
def test_the_file_that_a_text_names(tmp_path, text: str, found: str) -> None:
    for name in (
        "run/best.pth",
        "start/best.pth",
        "known/last.ckpt",
        "start/strange name",
        "start/notes.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    known = (str(tmp_path / "known" / "other.pth"), str(tmp_path / "known" / "last.ckpt"))
    text = text.replace("{run}", str(tmp_path / "run"))
    answer = find_named(text, (str(tmp_path / "start"), ""), known)
    assert answer == (str(tmp_path / found) if found else "")


def test_a_text_cannot_ask_the_disk_as_often_as_it_likes(monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("os.path.isfile", lambda path: bool(asked.append(path)))
    text = "\n".join(f'torch.load("/x/{number}.pth")' for number in range(5000))
    assert find_named(text, (), ()) == ""
    assert len(asked) == 64


@pytest.mark.parametrize("path", ["//host/share/a.pth", r"\\host\share\a.pth", r"/\host\a.pth"])
def test_a_file_of_another_machine_is_not_looked_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look there, Windows tells that machine who asks; and nobody has clicked yet."""
    looked: list[str] = []
    monkeypatch.setattr("os.path.isfile", looked.append)
    monkeypatch.setattr("os.path.isabs", lambda _: True)  # as Windows says
    assert find_named(f"FileNotFoundError: '{path}'", ("//host/share",), ()) == ""
    assert looked == []
